#include "control/sched/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/plant.h"
#include "base/str.h"
#include "control/job/job.h"
#include "control/kind/queue.h"
#include "control/sched/batch_doc.h"
#include "control/sched/batch_group.h"
#include "control/sched/batch_parts.h"
#include "control/sched/batch_reasons.h"
#include "control/state/commit.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static void unit_free(struct unit *u)
{
    for (size_t i = 0; i < u->steps.len; i++)
        json_decref(u->steps.at[i].doc);
    vec_done(&u->steps);
    str_done(&u->basis.assumed);
    str_done(&u->reasons);
    arena_done(&u->arena);
    mem_free(u);
}

struct units *units_new(struct control *control, void (*idle)(void *ctx), void *ctx)
{
    struct units *u = mem_zalloc(sizeof *u);
    u->control = control;
    u->idle = idle;
    u->ctx = ctx;
    return u;
}

void units_free(struct units *u)
{
    if (!u)
        return;
    while (u->first) {
        struct unit *next = u->first->next;
        unit_free(u->first);
        u->first = next;
    }
    vec_done(&u->own);
    str_done(&u->failures.text);
    mem_free(u);
}

size_t units_len(const struct units *u)
{
    return u->len;
}

uint64_t units_returned(const struct units *u)
{
    return u->returned + state_dropped(u->control->state);
}

enum units_failure units_failure(struct units *u)
{
    enum units_failure failure = u->troubled ? UNITS_TROUBLE : u->failed ? UNITS_CONFLICT : UNITS_FINE;
    u->failed = u->troubled = false;
    return failure;
}

/* ---- batches of a plan ------------------------------------------------------------------------------------------ */

static struct unit *unit_new(struct units *u, const struct unit_basis *basis)
{
    struct unit *unit = mem_zalloc(sizeof *unit);
    unit->units = u;
    unit->dropped = state_dropped(u->control->state);
    unit->basis = *basis;
    unit->basis.assumed = (struct str){0};
    arena_init(&unit->arena);
    unit->basis.profile = arena_strdup(&unit->arena, basis->profile);
    if (u->last)
        u->last->next = unit;
    else
        u->first = unit;
    u->last = unit;
    u->len++;
    return unit;
}

static void advance(struct units *u);

static struct unit_groups *groups_read(const struct units *u, const struct berth_plan *plan)
{
    struct unit_groups *g = unit_groups_new(u->control->state);
    for (const struct unit *unit = u->first; unit; unit = unit->next)
        for (size_t i = 0; i < unit->steps.len; i++)
            if (!unit->steps.at[i].fact && unit->steps.at[i].op == BERTH_RESERVE)
                unit_groups_promised(g, unit->steps.at[i].node);
    unit_groups_read(g, plan);
    return g;
}

size_t units_add(struct units *u, struct berth_plan *plan, struct unit_basis *basis)
{
    struct unit *open = NULL, *first = NULL;
    VEC(struct unit *) groups = {0}; /* by group number */
    struct unit_groups *together = groups_read(u, plan);
    size_t made = 0, old = 0, freed = 0; /* freed: the last batch that frees resources */

    /* A queued batch depends on the freeze of its own plan, and the first batch in the queue on the earliest freeze.
     * Older own revisions are no longer needed. */
    uint64_t earliest = u->first ? u->first->basis.revision : basis->revision;
    while (old < u->own.len && u->own.at[old] <= earliest)
        old++;
    if (old) {
        memmove(u->own.at, u->own.at + old, (u->own.len - old) * sizeof *u->own.at);
        u->own.len -= old;
    }

    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        uint64_t number = unit_group_of(together, &a);
        while (groups.len <= number)
            vec_push(&groups, NULL);
        struct unit *unit = groups.at[number];
        bool goes = a.op == BERTH_STOP || a.op == BERTH_LOSE;
        if (!number && !goes && open && open->number < freed)
            open = NULL; /* the action may use resources that a later batch frees */
        if (!unit && (number || !open || open->steps.len >= UNIT_ACTIONS_MAX)) {
            unit = unit_new(u, basis);
            unit->number = ++made;
            first = first ? first : unit;
            if (number) {
                groups.at[number] = unit;
                unit->whole = true;
            } else {
                open = unit;
            }
        }
        unit = unit ? unit : open;
        unit_assume(unit, &a);
        if (unit->frees && unit->number > freed)
            freed = unit->number;
    }
    for (size_t i = 0; i < berth_plan_facts(plan); i++) {
        struct berth_fact fact = berth_plan_fact(plan, i);
        if (!first) {
            first = unit_new(u, basis);
            first->number = ++made;
        }
        unit_assume_fact(first, &fact);
    }
    if (first) { /* stored once in the journal for all batches of the plan: the text may be long */
        unit_reasons_write(plan, &first->reasons);
        first->basis.assumed = basis->assumed;
        basis->assumed = (struct str){0};
    }
    for (struct unit *unit = first; unit; unit = unit->next)
        unit->of = made;
    vec_done(&groups);
    unit_groups_free(together);
    advance(u);
    return made;
}

void units_assumed(const struct units *u, struct str *to)
{
    bool some = false;
    str_add_char(to, '[');
    for (const struct unit *unit = u->first; unit; unit = unit->next)
        for (size_t i = 0; i < unit->steps.len; i++) {
            const struct step *s = &unit->steps.at[i];
            char number[24];
            if (!state_is_assumed(u->control->state, s->fact ? KIND_FACT : KIND_INSTANCE,
                                  s->fact ? s->fact : str_u64(s->instance, number)))
                continue; /* another writer has changed the object: the batch will be in conflict */
            json_t *tree = s->fact ? fact_doc_make(&s->remembered) : json_incref(s->doc);
            char *doc = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
            json_decref(tree);
            str_addf(to, "%s[\"%s\",", some ? "," : "", s->fact ? "fact" : berth_op_name(s->op));
            if (s->fact)
                str_add_json(to, s->fact);
            else
                str_addf(to, "%" PRIu64, s->instance);
            str_addf(to, ",%" PRId64 ",%s]", unit->basis.now_ns, doc ? doc : "null");
            free(doc);
            some = true;
        }
    str_add_char(to, ']');
}

/* ---- commit to the store ---------------------------------------------------------------------------------------- */

static void give_back_later(struct units *u);

/* Rolls back one step of the first batch. */
static void step_drop(struct unit *u, struct step *s)
{
    give_back_later(u->units);
    unit_step_give_back(u, s);
    json_decref(s->doc);
    metric_add(u->units->control->metrics, METRIC_UNITS_CONFLICT, 0, 1);
}

/* Rolls back the marked steps, last first, and removes them from the batch. */
static void vain_drop(struct unit *u)
{
    size_t kept = 0;
    for (size_t i = u->steps.len; i-- > 0;)
        if (u->steps.at[i].vain)
            step_drop(u, &u->steps.at[i]);
    for (size_t i = 0; i < u->steps.len; i++)
        if (!u->steps.at[i].vain)
            u->steps.at[kept++] = u->steps.at[i];
    u->steps.len = kept;
}

/* Leaves out the pods of jobs that have ended. */
static void leave_out_over(struct unit *u)
{
    if (!PLANTED(OVER_PLACED) && unit_over_mark(u) > 0)
        vain_drop(u);
}

/* Builds either the steps that place instances or the others. Returns false if the batch must be rolled back. In a
 * batch of independent steps, marks the steps that cannot be built instead. */
static bool steps_build(struct unit *u, struct change *change, struct unit_trial *trial, bool take)
{
    for (size_t i = 0; i < u->steps.len; i++) {
        struct step *s = &u->steps.at[i];
        size_t tried = trial->tried.len;
        if (unit_step_takes(s) != take)
            continue;
        s->vain = !unit_quota_try(u, trial, s) || !unit_step_build(u, change, s);
        if (s->vain && u->whole)
            return false;
        if (s->vain)
            unit_quota_undo(u, trial, tried);
    }
    return true;
}

/* Builds the steps that free resources first, because the others may use them. */
static bool unit_build(struct unit *u, struct change *change)
{
    struct unit_trial trial = {0};
    bool numbers = false;
    leave_out_over(u);
    bool ok = steps_build(u, change, &trial, false) && steps_build(u, change, &trial, true);
    if (ok && trial.takes)
        (void)change_rest_on(change, KIND_LEDGER, LEDGER_QUOTAS);
    unit_quota_undo(u, &trial, 0);
    vec_done(&trial.tried);
    if (!ok)
        return false;
    vain_drop(u);
    for (size_t i = 0; i < u->steps.len; i++)
        numbers = numbers || (unit_step_takes(&u->steps.at[i]) && u->steps.at[i].op != BERTH_PROMOTE);
    if (numbers) {
        json_int_t last = (json_int_t)state_last_number(change->state, KIND_INSTANCE);
        change_put_unguarded(change, KIND_COUNTER, kinds[KIND_INSTANCE].plural, json_pack("{s:I}", "last", last));
    }
    return u->steps.len > 0;
}

static void unit_give_back(struct unit *u)
{
    for (size_t i = u->steps.len; i-- > 0;)
        unit_step_give_back(u, &u->steps.at[i]);
    u->units->failed = true;
    unit_failure_note(&u->units->failures, u->basis.cycle, u->number);
    metric_add(u->units->control->metrics, METRIC_UNITS_CONFLICT, 0, 1);
}

static void unit_pop(struct units *u)
{
    struct unit *unit = u->first;
    u->first = unit->next;
    if (!u->first)
        u->last = NULL;
    u->len--;
    unit_free(unit);
}

/* Called when a step of the first batch fails. Rolls back the batches that depend on it: those of later plans, and the
 * later ones of its own plan if they may use the resources it frees. Rolls back in reverse order, so that each replaced
 * instance finds its resources free again. The plan being made is repeated, because it depends on the step, too. */
static void give_back_later(struct units *u)
{
    VEC(struct unit *) later = {0};
    struct unit *kept = u->first;
    while (!u->first->frees && kept->next && kept->next->basis.cycle == u->first->basis.cycle)
        kept = kept->next;
    for (struct unit *unit = kept->next; unit; unit = unit->next)
        vec_push(&later, unit);
    kept->next = NULL;
    u->last = kept;
    while (later.len) {
        struct unit *unit = later.at[--later.len];
        unit_give_back(unit);
        unit_free(unit);
        u->len--;
    }
    vec_done(&later);
    u->returned++;
}

/* Drops the first batch, which has not been written to the journal. Data that is recorded once per plan moves to the
 * next batch. */
static void drop_first(struct units *u)
{
    struct unit *unit = u->first, *next = unit->next;
    if (next && next->basis.cycle == unit->basis.cycle && unit->basis.assumed.len) {
        next->basis.assumed = unit->basis.assumed;
        unit->basis.assumed = (struct str){0};
    }
    if (next && next->basis.cycle == unit->basis.cycle && unit->reasons.len) {
        next->reasons = unit->reasons;
        unit->reasons = (struct str){0};
    }
    unit_pop(u);
}

static void give_back_first(struct units *u)
{
    give_back_later(u);
    unit_give_back(u->first);
    drop_first(u);
}

static void count_placed(struct unit *u)
{
    struct control *c = u->units->control;
    int64_t now_ns = control_now_ns(c);
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct step *s = &u->steps.at[i];
        if (s->fact)
            continue;
        metric_add(c->metrics, METRIC_ACTIONS, s->op, 1);
        if (s->op == BERTH_STOP && s->cause == BERTH_CAUSE_PREEMPTED)
            job_tell_preempted(c, s->workload, s->ordinal, s->node, unit_stopped_for(u, s->instance));
        const struct object *work = s->op == BERTH_PLACE ? state_find_work(c->state, s->workload) : NULL;
        if (work && work->work->created_ns)
            metric_observe(c->metrics, METRIC_PLACE_SECONDS, now_ns - work->work->created_ns);
    }
}

/* Returns whether the batch is still assumed in the cluster. */
static bool is_assumed(const struct unit *u)
{
    return u->dropped == state_dropped(u->units->control->state);
}

static bool has_fact(const struct unit *u, const char *fact)
{
    for (size_t i = 0; i < u->steps.len; i++)
        if (u->steps.at[i].fact && strcmp(u->steps.at[i].fact, fact) == 0)
            return true;
    return false;
}

/* Settles the facts that are still assumed: the commit did not write them because their documents were equal already. A
 * fact that a later batch assumes too stays assumed, and is listed in the next plan's basis. */
static void facts_settle(struct unit *u)
{
    struct state *s = u->units->control->state;
    for (size_t i = 0; i < u->steps.len; i++) {
        const char *fact = u->steps.at[i].fact;
        if (!fact || !state_is_assumed(s, KIND_FACT, fact))
            continue;
        const struct unit *later = u->next;
        while (later && !has_fact(later, fact))
            later = later->next;
        if (!later)
            state_fact_settle(s, fact);
    }
}

static void unit_done(void *ctx, const struct store_result *result)
{
    struct unit *unit = ctx;
    struct units *u = unit->units;
    struct control *c = u->control;
    u->submitted = false;
    metric_add(c->metrics, METRIC_COMMITS, result->rc == 0 ? 0 : result->rc == -EAGAIN ? 1 : 2, 1);
    if (result->rc == 0) {
        if (is_assumed(unit)) /* otherwise later plans do not know of the commit */
            vec_push(&u->own, result->revision);
        facts_settle(unit);
        count_placed(unit);
    } else {
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "unit.failed", LOG_NUMBER("cycle", (int64_t)unit->basis.cycle),
                  LOG_NUMBER("unit", (int64_t)unit->number), LOG_NUMBER("actions", (int64_t)unit->steps.len),
                  LOG_TEXT("text", result->rc == -EAGAIN ? "an object that it depends on has changed" : result->text));
        u->troubled = u->troubled || result->rc != -EAGAIN;
        give_back_first(u);
    }
    if (result->rc == 0)
        unit_pop(u);
    advance(u);
    if (!u->first)
        u->idle(u->ctx);
}

/* Appends the decision's part of the journal record. */
static void cycle_write(struct unit *u, struct str *to)
{
    const struct unit_basis *b = &u->basis;
    unit_basis_write(b, u->number, u->of, to);
    str_add(to, ",\"actions\":[");
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct step *s = &u->steps.at[i];
        struct unit_action a = {s->op, s->cause, s->workload, s->node, s->ordinal, s->instance, s->score, s->rival};
        if (!s->fact)
            unit_action_write(&a, to);
    }
    str_add_char(to, ']');
    unit_failures_write(&u->units->failures, to);
    if (b->assumed.len) {
        str_add(to, ",\"assumed\":");
        str_add_bytes(to, b->assumed.at, b->assumed.len);
    }
    if (u->reasons.len) { /* the reasons cover the whole plan */
        unit_kinds_write(b, to);
        str_add(to, ",\"pending\":");
        str_add_bytes(to, u->reasons.at, u->reasons.len);
    }
    str_add(to, "}}");
}

static bool unit_submit(struct unit *u)
{
    struct control *c = u->units->control;
    struct change change;
    CLEANUP(str) struct str extra = {0};
    struct berth_err err;
    change_init(&change, c->state, &u->arena);
    int rc = unit_build(u, &change) ? 0 : -EAGAIN;
    if (rc == 0) {
        cycle_write(u, &extra);
        struct commit_note note = {
            .who = "berth", .verb = "unit", .extra = {extra.at, extra.len}
        };
        rc = commit_submit(c, &change, &note, unit_done, u, &err);
        if (rc < 0) {
            u->units->troubled = true;
            log_write(c->env.log, c->now_ns, LEVEL_ERROR, "unit.refused", LOG_TEXT("text", err.text));
        }
    }
    change_done(&change);
    return rc > 0;
}

/* Submits the first batch unless a commit is in progress. Rolls back batches that cannot be submitted. */
static void advance(struct units *u)
{
    while (u->first && !u->submitted) {
        if (u->first->steps.len && !u->first->broken && is_assumed(u->first) && unit_submit(u->first)) {
            u->submitted = true;
            return;
        }
        if (u->first->steps.len)
            give_back_first(u);
        else
            drop_first(u);
    }
}
