#include "control/sched/plan_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/state/spec_cache.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"
#include "core/plan/policy.h"
#include "formula/formula.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/quantity.h"

#define SECOND_NS ((int64_t)1000000000)

enum { FORMULAS_MAX = 64 };

static uint32_t number(const struct state *s, enum system_setting setting)
{
    return (uint32_t)system_setting_number(s, setting); /* within the bounds of the setting's row */
}

static int64_t seconds(const struct state *s, enum system_setting setting)
{
    return system_setting_number(s, setting) * SECOND_NS;
}

static bool is_on(const struct state *s, enum system_setting setting, struct arena *arena)
{
    return strcmp(system_setting_text(s, setting, arena), "on") == 0;
}

/* ---- formulas --------------------------------------------------------------------------------------------------- */

struct plan_formula {
    struct formula *formula; /* NULL: the formula does not compile */
    struct cached_spec *of;
    const char *policy;
    bool own; /* a private copy: another plan uses the policy's compiled formula */
    bool failed;
    struct berth_err err;
};

/* Runs on the planning thread. After a failure all keys are equal, so jobs stay in order of creation. */
static int run_formula(void *ctx, const struct berth_factors *in, int64_t *keys, struct berth_err *err)
{
    struct plan_formula *f = ctx;
    (void)err;
    if (formula_run(f->formula, in, keys, &f->err) < 0) {
        f->failed = true;
        for (size_t i = 0; i < in->len; i++)
            keys[i] = 0;
    }
    return 0;
}

static struct plan_formula *formula_take(struct plan_policy *p, const struct object *o, struct cached_spec *kept)
{
    for (size_t i = 0; i < p->formulas_len; i++)
        if (p->formulas[i]->of == kept)
            return p->formulas[i];
    if (p->formulas_len == FORMULAS_MAX)
        return NULL;
    struct plan_formula *f = arena_zalloc(&p->arena, sizeof *f);
    f->of = kept;
    f->policy = arena_strdup(&p->arena, o->id);
    f->formula = cached_formula_acquire(kept, &f->err);
    if (!f->formula && f->err.code == EBUSY) {
        f->own = true;
        if (formula_new(o->policy->formula, f->policy, &f->formula, &f->err) < 0)
            f->formula = NULL;
    }
    f->failed = !f->formula;
    p->formulas[p->formulas_len++] = f;
    return f;
}

const char *plan_policy_failure(struct plan_policy *p, const char **ret_why)
{
    for (size_t i = 0; i < p->formulas_len; i++) {
        struct plan_formula *f = p->formulas[i];
        if (!f->failed || !cached_formula_first_failure(f->of))
            continue;
        *ret_why = f->err.text;
        return f->policy;
    }
    return NULL;
}

/* ---- rankings --------------------------------------------------------------------------------------------------- */

bool plan_policy_built_in(const char *name)
{
    const char *known;
    for (size_t i = 0; (known = berth_ranking_at(i, NULL)); i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

static void keep_doc(struct plan_policy *p, struct cached_spec *kept)
{
    p->kept[p->kept_len++] = kept;
}

/* Returns the ranking of a policy: a stored policy, else a built-in one, else "fifo". */
static struct berth_ranking ranking_of(const struct state *s, struct plan_policy *p, const char *name)
{
    const struct object *o = state_find(s, KIND_POLICY, name);
    if (!o)
        return (struct berth_ranking){.name = plan_policy_built_in(name) ? arena_strdup(&p->arena, name) : "fifo"};
    struct cached_spec *kept = cached_spec_ref(o);
    keep_doc(p, kept);
    struct berth_ranking r = {
        .name = o->policy->ranking, .weights = o->policy->weights, .weights_len = o->policy->weights_len};
    if (!o->policy->formula)
        return plan_policy_built_in(r.name) ? r : (struct berth_ranking){.name = "fifo"};
    struct plan_formula *f = formula_take(p, o, kept);
    if (!f || !f->formula)
        return (struct berth_ranking){.name = "fifo"};
    r.formula = run_formula;
    r.ctx = f;
    return r;
}

static void order_read(const struct state *s, struct plan_policy *p)
{
    struct berth_order *o = &p->policy.order;
    size_t len;
    const struct object *const *queues = state_list(s, KIND_QUEUE, &len);
    const char *in_force = system_setting_text(s, SETTING_POLICY, &p->arena);
    const char *before = system_setting_text(s, SETTING_BACKFILL_POLICY, &p->arena);
    len = len < BERTH_LIST_MAX ? len : BERTH_LIST_MAX;
    struct berth_queue *at = ARENA_ARRAY(&p->arena, struct berth_queue, len);
    o->ranking = ranking_of(s, p, in_force);
    if (*before)
        p->policy.backfill.ranking = ranking_of(s, p, before);
    for (size_t i = 0; i < len; i++) {
        const struct queue_terms terms = queue_terms(s, queues[i]->id);
        at[i] = (struct berth_queue){
            .id = arena_strdup(&p->arena, queues[i]->id),
            .priority = queues[i]->queue->priority,
            .ranking = terms.policy ? ranking_of(s, p, terms.policy) : o->ranking,
        };
    }
    o->queues = at;
    o->queues_len = len;
    o->half_life_ns = seconds(s, SETTING_HALF_LIFE_S);
    o->age_ns = seconds(s, SETTING_AGE_MAX_S);
    o->max_wait_ns = seconds(s, SETTING_MAX_WAIT_S);
    if (charges_parse(system_setting_text(s, SETTING_CHARGES, &p->arena), &p->arena, &o->charges, &o->charges_len,
                      NULL) < 0)
        o->charges_len = 0;
}

int charges_parse(const char *text, struct arena *arena, const struct berth_amount **ret, size_t *ret_len,
                  struct berth_err *err)
{
    enum { CHARGES_MAX = 64 };
    struct berth_amount *at = ARENA_ARRAY(arena, struct berth_amount, CHARGES_MAX);
    size_t len = 0;
    for (const char *p = text; *p;) {
        size_t part = strcspn(p, ","), name = strcspn(p, "=");
        if (name == 0 || name >= part || len == CHARGES_MAX)
            return err_set(err, EINVAL, "expected something like cpu=1,gpu=10,memory=0.25, found %.80s", p);
        const char *value = arena_strndup(arena, p + name + 1, part - name - 1);
        at[len].resource = arena_strndup(arena, p, name);
        int rc = quantity_parse_text("cpu", value, &at[len].amount, err); /* thousandths */
        if (rc == 0 && at[len].amount < 0)
            rc = err_set(err, EINVAL, "expected 0 or more");
        if (rc < 0)
            return err ? err_prefix(err, "%s", at[len].resource) : rc;
        len++;
        p += part + (p[part] == ',');
    }
    *ret = at;
    *ret_len = len;
    return 0;
}

/* ---- windows and domains ---------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Chooses at most WINDOWS_MAX windows: those with the latest ends, in the order of the list. All others are over,
 * because no more than WINDOWS_MAX current windows can be created. The choice uses no clock, so that a replay makes the
 * same one. */
static const struct object *const *windows_chosen(const struct state *s, struct arena *arena, size_t *ret_len)
{
    size_t len, chosen = 0;
    const struct object *const *windows = state_list(s, KIND_WINDOW, &len);
    *ret_len = len;
    if (len <= WINDOWS_MAX)
        return windows;
    int64_t *ends = ARENA_ARRAY(arena, int64_t, len);
    for (size_t i = 0; i < len; i++)
        ends[i] = windows[i]->window->end_ns;
    qsort(ends, len, sizeof *ends, by_time);
    int64_t last = ends[len - WINDOWS_MAX];
    size_t ties = 0; /* how many of the windows with this very end are chosen */
    for (size_t i = len - WINDOWS_MAX; i < len; i++)
        ties += ends[i] == last;
    const struct object **at = ARENA_ARRAY(arena, const struct object *, WINDOWS_MAX);
    for (size_t i = 0; i < len; i++) {
        int64_t end = windows[i]->window->end_ns;
        if (end > last || (end == last && ties > 0)) {
            ties -= end == last;
            at[chosen++] = windows[i];
        }
    }
    *ret_len = chosen;
    return at;
}

static void windows_read(const struct state *s, struct plan_policy *p)
{
    size_t len;
    const struct object *const *windows = windows_chosen(s, &p->arena, &len);
    struct berth_window *at = ARENA_ARRAY(&p->arena, struct berth_window, len);
    for (size_t i = 0; i < len; i++) {
        const struct window_doc *d = windows[i]->window;
        const char **quotas = ARENA_ARRAY(&p->arena, const char *, d->users_len + d->groups_len);
        size_t quotas_len = 0;
        keep_doc(p, cached_spec_ref(windows[i]));
        for (size_t u = 0; u < d->users_len; u++)
            quotas[quotas_len++] = arena_fmt(&p->arena, "user/%s", d->users[u]);
        for (size_t g = 0; g < d->groups_len; g++)
            quotas[quotas_len++] = arena_fmt(&p->arena, "group/%s", d->groups[g]);
        at[i] = (struct berth_window){
            .id = arena_strdup(&p->arena, windows[i]->id),
            .start_ns = d->start_ns,
            .end_ns = d->end_ns,
            .nodes = d->nodes,
            .nodes_len = d->nodes_len,
            .require = d->require,
            .require_len = d->require_len,
            .quotas = quotas,
            .quotas_len = quotas_len,
        };
    }
    p->policy.windows = at;
    p->policy.windows_len = len;
}

static void headroom_read(const struct state *s, struct plan_policy *p)
{
    size_t len, reserves = 0, most = 2;
    const struct object *const *domains = state_list(s, KIND_DOMAIN, &len);
    uint32_t permille = number(s, SETTING_HEADROOM_PERCENT) * 10;
    for (size_t i = 0; i < len; i++)
        most += domains[i]->domain->keep_len;
    most = most < BERTH_LIST_MAX ? most : BERTH_LIST_MAX;
    struct berth_headroom_amount *at = ARENA_ARRAY(&p->arena, struct berth_headroom_amount, most);
    if (permille) {
        at[reserves++] = (struct berth_headroom_amount){.resource = "cpu", .permille = permille};
        at[reserves++] = (struct berth_headroom_amount){.resource = "memory", .permille = permille};
    }
    for (size_t i = 0; i < len; i++) {
        const struct domain_doc *d = domains[i]->domain;
        if (d->keep_len)
            keep_doc(p, cached_spec_ref(domains[i]));
        for (size_t k = 0; k < d->keep_len && reserves < most; k++)
            at[reserves++] = (struct berth_headroom_amount){.resource = d->keep[k].resource,
                                                            .amount = d->keep[k].amount,
                                                            .domain = arena_strdup(&p->arena, domains[i]->id)};
    }
    if (reserves == 0)
        return;
    p->policy.headroom = (struct berth_headroom){
        .reserves = at,
        .reserves_len = reserves,
        .priority = (int32_t)system_setting_number(s, SETTING_HEADROOM_PRIORITY),
        .tasks = number(s, SETTING_HEADROOM_TASKS),
    };
}

/* ---- the whole policy ------------------------------------------------------------------------------------------- */

static void settings_read(const struct state *s, struct plan_policy *ret)
{
    uint32_t high = number(s, SETTING_PRESSURE_PERCENT), low = number(s, SETTING_PRESSURE_LOW_PERCENT);
    struct berth_policy *p = &ret->policy;
    const char *backfill = system_setting_text(s, SETTING_BACKFILL, &ret->arena);
    p->pressure.high_percent = high;
    p->pressure.low_percent = low < high ? low : high;
    p->pressure.hold_ns = seconds(s, SETTING_PRESSURE_HOLD_S);
    p->shed = is_on(s, SETTING_SHED, &ret->arena);
    p->rebalance.moves = is_on(s, SETTING_REBALANCE, &ret->arena) ? number(s, SETTING_REBALANCE_MOVES) : 0;
    p->rebalance.gain_percent = number(s, SETTING_REBALANCE_GAIN_PERCENT);
    p->rebalance.age_ns = seconds(s, SETTING_REBALANCE_AGE_S);
    p->backfill.reservations = strcmp(backfill, "off") == 0 ? 0 : number(s, SETTING_RESERVATIONS);
    p->backfill.alike = number(s, SETTING_RESERVATIONS_ALIKE);
    p->backfill.until_limit = is_on(s, SETTING_BACKFILL_UNTIL_LIMIT, &ret->arena);
    p->backfill.strict = strcmp(backfill, "strict") == 0;
    p->backfill.estimate_ns = seconds(s, SETTING_ESTIMATE_S);
    p->starting = number(s, SETTING_PLACEMENT_BUDGET);
    p->preemption.on = is_on(s, SETTING_PREEMPTION, &ret->arena);
    p->preemption.min_run_ns = seconds(s, SETTING_PREEMPT_MIN_RUN_S);
}

void plan_policy_read(const struct state *s, struct plan_policy *ret)
{
    size_t queues, windows, domains;
    *ret = (struct plan_policy){.policy = berth_policy_usual()};
    arena_init(&ret->arena);
    (void)state_list(s, KIND_QUEUE, &queues);
    (void)state_list(s, KIND_WINDOW, &windows);
    (void)state_list(s, KIND_DOMAIN, &domains);
    /* each document at most once */
    ret->kept = ARENA_ARRAY(&ret->arena, struct cached_spec *, queues + windows + domains + 2);
    ret->formulas = ARENA_ARRAY(&ret->arena, struct plan_formula *, FORMULAS_MAX);
    settings_read(s, ret);
    headroom_read(s, ret);
    order_read(s, ret);
    windows_read(s, ret);
}

void plan_policy_release_formulas(struct plan_policy *p)
{
    for (size_t i = 0; i < p->formulas_len; i++) {
        if (p->formulas[i]->own)
            formula_free(p->formulas[i]->formula);
        else if (p->formulas[i]->formula)
            cached_formula_release(p->formulas[i]->of);
    }
    p->formulas_len = 0;
}

void plan_policy_done(struct plan_policy *p)
{
    plan_policy_release_formulas(p);
    for (size_t i = 0; i < p->kept_len; i++)
        cached_spec_unref(p->kept[i]);
    if (p->kept)
        arena_done(&p->arena);
    *p = (struct plan_policy){0};
}

int plan_policy_check(const struct policy_doc *d, struct berth_err *err)
{
    CLEANUP(formula) struct formula *formula = NULL;
    struct berth_policy policy = {
        .order.ranking = {.name = d->ranking, .weights = d->weights, .weights_len = d->weights_len}
    };
    if (d->formula) {
        int rc = formula_new(d->formula, "formula", &formula, err);
        if (rc < 0)
            return rc;
        policy.order.ranking.formula = formula_run;
        policy.order.ranking.ctx = formula;
    }
    struct berth_cluster *cluster = berth_cluster_new();
    struct berth_snapshot *snapshot = berth_freeze(cluster, 0, 0);
    struct berth_plan *plan = NULL;
    int rc = berth_plan_make(snapshot, &policy, &plan, err);
    if (rc == 0)
        berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    berth_cluster_free(cluster);
    return rc;
}
