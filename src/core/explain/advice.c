/* advice.c - finds changes that would let more pods of a workload be placed, and proves each by a plan.
 *
 * Candidates come from the filters that refuse nodes (explain.h) and from what nodes have free. A candidate is only a
 * guess: topology constraints, quotas, reservations and the rest of a gang may still refuse the pod. So each candidate
 * is applied to a copy of the snapshot (what_if.h) and planned, and only the result of that plan is reported.
 */
#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/explain/explain.h"
#include "core/explain/what_if.h"
#include "core/gpu/gpu.h"

enum { CANDIDATES_MAX = 24 };

struct advice_candidate {
    struct what_if what;
    uint32_t class; /* one of the enum below: lower first */
    uint64_t score; /* within its class: higher first */
};

struct advice_search {
    struct filter_report q;
    struct berth_plan *p;
    const struct demand *w;
    const struct berth_policy *policy;
    uint32_t at_once; /* pods that must be placed together */
    uint32_t waiting, placed;
    struct advice_candidate at[CANDIDATES_MAX];
    size_t len;
};

/* Order of the candidates: those that keep most of the description are first. */
enum { LESS_FOR_ALL, SMALLER_GANG, FEWER_CONSTRAINTS, LESS_FOR_ONE };

/* Returns whether the change is a candidate already: two verdicts may suggest the same one. */
static bool is_listed(const struct advice_search *a, const struct what_if *what)
{
    for (size_t i = 0; i < a->len; i++) {
        const struct what_if *x = &a->at[i].what;
        if (x->change == what->change && x->resource == what->resource && x->amount == what->amount &&
            x->taint == what->taint && x->position == what->position)
            return true;
    }
    return false;
}

static void candidate_add(struct advice_search *a, uint32_t class, uint64_t score, struct what_if what)
{
    what.workload = a->w->workload;
    if (a->len < CANDIDATES_MAX && !is_listed(a, &what))
        a->at[a->len++] = (struct advice_candidate){what, class, score};
}

/* ---- smaller requests ------------------------------------------------------------------------------------------- */

/* Returns the nodes on which a pod would fit with a smaller request of the verdict's resource; without a verdict, the
 * nodes on which a pod fits now. */
static uint64_t near_bits(const struct filter_report *q, const struct filter_verdict *v, uint32_t block)
{
    uint64_t fits = layout_block_bits(q->p->c.l, block) & ~q->any[block];
    return v ? fits | (v->refused[block] & q->once[block]) : fits;
}

static uint32_t devices_at(const struct filter_report *q, uint32_t position)
{
    const struct layout *l = q->p->c.l;
    uint32_t devices = 0;
    for (uint32_t d = l->device[position]; d < l->device[position + 1]; d++)
        devices += gpu_device_fits(&q->t, d);
    return devices;
}

/* Returns how many pods fit on the node if one resource, or (NONE) GPUs, are not counted. Spread and affinity are left
 * to the plan. */
static int64_t pods_without_resource(const struct filter_report *q, uint32_t resource, uint32_t position)
{
    const struct class *k = q->t.k;
    int64_t pods = k->max_per_node ? k->max_per_node : INT32_MAX;
    if (k->ports_len || k->topology_constraints_len)
        pods = 1;
    for (uint32_t i = 0; i < k->needs_len; i++) {
        const int64_t *column = cycle_column(&q->p->c, k->needs[i].resource, false);
        int64_t fit = column ? column[position] / k->needs[i].amount : 0;
        if (k->needs[i].resource != resource)
            pods = fit < pods ? fit : pods;
    }
    if (k->gpu.count && resource != NONE) {
        int64_t fit = devices_at(q, position) / k->gpu.count;
        pods = fit < pods ? fit : pods;
    }
    return pods > 0 ? pods : 0;
}

/* Returns whether so many pods fit at once, each with `amount` of the resource. */
static bool amount_fits(const struct filter_report *q, const struct filter_verdict *v, uint32_t resource,
                        int64_t amount, uint32_t pods)
{
    const int64_t *column = cycle_column(&q->p->c, resource, false);
    int64_t left = pods;
    for (uint32_t b = 0; left > 0 && b < q->p->c.blocks; b++)
        BITS_EACH (lane, near_bits(q, v, b)) {
            uint32_t at = b * BLOCK + (uint32_t)lane;
            int64_t fit = column[at] / amount, beside = fit > 0 ? pods_without_resource(q, resource, at) : 0;
            left -= fit < beside ? fit : beside;
        }
    return left <= 0;
}

static bool is_size(const char *resource)
{
    return strcmp(resource, "memory") == 0 || strncmp(resource, "storage", 7) == 0 ||
           strcmp(resource, "ephemeral-storage") == 0;
}

/* Rounds down to a readable amount: to whole units of which there are at least 64, or that divide the amount. */
static int64_t amount_round(const char *resource, int64_t amount)
{
    int64_t unit = 1;
    if (!is_size(resource))
        return amount;
    while (amount / (unit * 1024) >= 64 || (amount >= unit * 1024 && amount % (unit * 1024) == 0))
        unit *= 1024;
    return amount - amount % unit;
}

/* Returns the largest amount of the resource with which so many pods fit at once; 0: none. */
static int64_t amount_for(const struct filter_report *q, const struct filter_verdict *v,
                          const struct resource_need *need, uint32_t pods)
{
    int64_t fits = 0, over = need->amount;
    while (over - fits > 1) {
        int64_t middle = fits + (over - fits) / 2;
        if (amount_fits(q, v, need->resource, middle, pods))
            fits = middle;
        else
            over = middle;
    }
    return amount_round(snapshot_text(q->p->s, q->p->s->resources[need->resource].name), fits);
}

static const struct filter_verdict *verdict_of(const struct filter_report *q, uint32_t need)
{
    for (const struct filter_verdict *v = q->at; v < q->at + q->len; v++)
        if (v->filter->reason == REASON_SHORT && v->aspect == need)
            return v;
    return NULL;
}

static void add_smaller_request(struct advice_search *a, uint32_t need, uint32_t pods, uint32_t class)
{
    const struct resource_need *n = &a->q.t.k->needs[need];
    const struct resource *r = &a->p->s->resources[n->resource];
    if (n->resource == RESOURCE_PODS || r->optional || r->page_size_bytes ||
        !cycle_column(&a->p->c, n->resource, false))
        return;
    int64_t amount = amount_for(&a->q, verdict_of(&a->q, need), n, pods);
    uint64_t kept = (uint64_t)((unsigned __int128)(uint64_t)amount * 1000000 / (uint64_t)n->amount);
    if (amount > 0)
        candidate_add(a, class, kept,
                      (struct what_if){.change = BERTH_CHANGE_REQUEST, .resource = n->resource, .amount = amount});
}

/* ---- fewer GPUs ------------------------------------------------------------------------------------------------- */

static const struct filter_verdict *verdict_about(const struct filter_report *q, enum reason reason)
{
    for (const struct filter_verdict *v = q->at; v < q->at + q->len; v++)
        if (v->filter->reason == reason)
            return v;
    return NULL;
}

static bool gpus_fit(const struct filter_report *q, uint32_t count, uint32_t pods)
{
    const struct filter_verdict *kind = verdict_about(q, REASON_GPU_KIND), *free = verdict_about(q, REASON_GPU);
    int64_t left = pods;
    for (uint32_t b = 0; left > 0 && b < q->p->c.blocks; b++)
        BITS_EACH (lane, near_bits(q, kind, b) | near_bits(q, free, b)) {
            uint32_t at = b * BLOCK + (uint32_t)lane;
            int64_t fit = devices_at(q, at) / count, beside = fit > 0 ? pods_without_resource(q, NONE, at) : 0;
            left -= fit < beside ? fit : beside;
        }
    return left <= 0;
}

static void add_fewer_gpus(struct advice_search *a, uint32_t pods, uint32_t class)
{
    uint32_t asked = a->q.t.k->gpu.count, count = asked;
    if (asked < 2)
        return;
    while (--count && !gpus_fit(&a->q, count, pods))
        ;
    if (count)
        candidate_add(a, class, (uint64_t)count * 1000000 / asked,
                      (struct what_if){.change = BERTH_CHANGE_GPUS, .amount = count});
}

static void add_smaller_requests(struct advice_search *a, uint32_t pods, uint32_t class)
{
    for (uint32_t i = 0; i < a->q.t.k->needs_len; i++)
        add_smaller_request(a, i, pods, class);
    add_fewer_gpus(a, pods, class);
}

/* ---- a smaller gang, fewer constraints -------------------------------------------------------------------------- */

/* Returns whether the gang has a single workload; a gang of several workloads has no size of its own. */
static bool gang_alone(const struct advice_search *a)
{
    const struct workload *w = snapshot_workload(a->p->s, a->w->workload);
    return w->gang != NONE && w->next_in_gang == NONE && w->prev_in_gang == NONE;
}

static void add_smaller_gang(struct advice_search *a)
{
    const struct demand *w = a->w;
    uint32_t min = snapshot_workload(a->p->s, w->workload)->gang_min;
    if (w->group == NONE || !w->gang_failed || w->blocked || !gang_alone(a) || w->gang_fits == 0 ||
        w->gang_fits >= w->needed || min < w->needed)
        return;
    candidate_add(a, SMALLER_GANG, 0,
                  (struct what_if){.change = BERTH_CHANGE_GANG, .amount = min - w->needed + w->gang_fits});
}

/* Returns the constraint to remove for a reason; BERTH_CHANGE_REQUEST: none. */
static enum berth_change change_of(enum reason reason)
{
    static const enum berth_change changes[REASONS_LEN] = {
        [REASON_NAME] = BERTH_CHANGE_NODE,
        [REASON_LABELS] = BERTH_CHANGE_LABELS,
        [REASON_DOMAIN] = BERTH_CHANGE_DOMAIN,
        [REASON_RUNTIME] = BERTH_CHANGE_RUNTIME,
        [REASON_ARCH] = BERTH_CHANGE_ARCH,
        [REASON_GPU_KIND] = BERTH_CHANGE_GPU_KIND,
        [REASON_GPU] = BERTH_CHANGE_GPU_KIND,
        [REASON_PORT] = BERTH_CHANGE_PORTS,
        [REASON_VOLUME] = BERTH_CHANGE_VOLUMES,
        [REASON_ATTACH] = BERTH_CHANGE_VOLUMES,
        [REASON_SPREAD] = BERTH_CHANGE_SPREAD,
        [REASON_AFFINITY] = BERTH_CHANGE_AFFINITY,
        [REASON_ANTI_AFFINITY] = BERTH_CHANGE_ANTI_AFFINITY,
        [REASON_PER_NODE] = BERTH_CHANGE_PER_NODE,
    };
    return changes[reason];
}

/* Returns whether the demand has such a constraint. */
static bool has_constraint(const struct advice_search *a, enum berth_change change)
{
    const struct gpu_need *gpu = &a->q.t.k->gpu;
    if (change == BERTH_CHANGE_GPU_KIND)
        return gpu->models.len || gpu->memory_bytes;
    return change != BERTH_CHANGE_REQUEST;
}

/* Suggests the first cordoned node that is refused for its state alone. */
static void add_uncordon(struct advice_search *a, const struct filter_verdict *v)
{
    for (uint32_t at = 0; at < a->p->c.len; at++)
        if (bits_has(a->q.once, at) && bits_has(v->refused, at) && a->p->s->state[at] == BERTH_NODE_CORDONED) {
            candidate_add(a, FEWER_CONSTRAINTS, v->only,
                          (struct what_if){.change = BERTH_CHANGE_UNCORDON, .position = at});
            return;
        }
}

/* Suggests a toleration for the first node that is refused for a taint alone. */
static void add_toleration(struct advice_search *a, const struct filter_verdict *v)
{
    for (uint32_t at = 0; at < a->p->c.len; at++) {
        sym key = bits_has(a->q.once, at) && bits_has(v->refused, at) ? explain_taint(&a->q, at) : 0;
        if (key) {
            candidate_add(a, FEWER_CONSTRAINTS, v->only,
                          (struct what_if){.change = BERTH_CHANGE_TOLERATION, .taint = key});
            return;
        }
    }
}

static void add_fewer_constraints(struct advice_search *a)
{
    for (uint32_t i = 0; i < a->q.len; i++) {
        const struct filter_verdict *v = &a->q.at[i];
        enum berth_change change = change_of(v->filter->reason);
        if (v->only == 0)
            continue;
        if (v->filter->reason == REASON_STATE)
            add_uncordon(a, v);
        else if (v->filter->reason == REASON_TAINT)
            add_toleration(a, v);
        else if (has_constraint(a, change))
            candidate_add(a, FEWER_CONSTRAINTS, v->only, (struct what_if){.change = change});
    }
}

static int compare_candidates(const void *ctx, uint32_t x, uint32_t y)
{
    const struct advice_candidate *a = (const struct advice_candidate *)ctx + x,
                                  *b = (const struct advice_candidate *)ctx + y;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (x > y) - (x < y);
}

static void candidates_find(struct advice_search *a)
{
    add_smaller_requests(a, a->at_once, LESS_FOR_ALL);
    add_smaller_gang(a);
    add_fewer_constraints(a);
    if (a->at_once > 1 && a->w->group == NONE)
        add_smaller_requests(a, 1, LESS_FOR_ONE);
}

/* ---- trying candidates ------------------------------------------------------------------------------------------ */

/* The placements of a plan for a workload. */
struct placement_outcome {
    uint32_t placed, after;
    const char *node;
};

static struct placement_outcome outcome_of(const struct berth_plan *p, uint32_t workload)
{
    struct placement_outcome o = {.node = ""};
    for (size_t i = 0; i < p->c.acts.len; i++) {
        const struct plan_act *a = &p->c.acts.at[i];
        if (a->workload != workload || a->replaces != NONE || (a->op != BERTH_PLACE && a->op != BERTH_RESERVE))
            continue;
        if (o.placed++ == 0)
            o.node = snapshot_text(p->s, p->c.l->id[a->position]);
        o.after += a->op == BERTH_RESERVE;
    }
    return o;
}

static bool candidate_try(struct advice_search *a, const struct what_if *what, struct placement_outcome *ret)
{
    struct berth_policy policy = a->policy ? *a->policy : (struct berth_policy){0};
    struct berth_snapshot *s = what_if_new(a->p->s, what);
    struct berth_plan *p = NULL;
    policy.progress = NULL;
    bool made = berth_plan_make(s, &policy, &p, NULL) == 0;
    if (made) {
        *ret = outcome_of(p, what->workload);
        ret->node = arena_strdup(&a->p->arena, ret->node);
    }
    berth_plan_free(p);
    berth_snapshot_free(s);
    return made && ret->placed > a->placed;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

/* Formats an amount without loss, as it may be written in a request. */
static const char *exact_text(struct arena *arena, const char *resource, int64_t amount)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    size_t unit = 0;
    if (!is_size(resource))
        return explain_amount(arena, resource, amount, false);
    for (; amount && amount % 1024 == 0 && unit < 5; unit++)
        amount /= 1024;
    return arena_fmt(arena, "%lld%s", (long long)amount, units[unit]);
}

static const char *request_text(const struct advice_search *a, const struct what_if *what)
{
    struct arena *arena = &a->p->arena;
    const char *name = snapshot_text(a->p->s, a->p->s->resources[what->resource].name);
    const char *each = a->waiting > 1 ? " in each pod" : "";
    return arena_fmt(arena, "with %s of %s instead of %s%s", exact_text(arena, name, what->amount), name,
                     exact_text(arena, name, class_need(a->q.t.k, what->resource)), each);
}

static const char *change_text(const struct advice_search *a, const struct what_if *what, const char *name)
{
    static const char *const plain[] = {
        [BERTH_CHANGE_NODE] = "on any node instead of the named one",
        [BERTH_CHANGE_LABELS] = "without the required node labels",
        [BERTH_CHANGE_DOMAIN] = "in any domain",
        [BERTH_CHANGE_RUNTIME] = "with any runtime",
        [BERTH_CHANGE_ARCH] = "on any architecture",
        [BERTH_CHANGE_GPU_KIND] = "with GPUs of any model and memory",
        [BERTH_CHANGE_PORTS] = "without its ports",
        [BERTH_CHANGE_VOLUMES] = "without its volumes",
        [BERTH_CHANGE_SPREAD] = "without the required spread",
        [BERTH_CHANGE_AFFINITY] = "without the required affinity",
        [BERTH_CHANGE_ANTI_AFFINITY] = "without the required anti-affinity",
        [BERTH_CHANGE_PER_NODE] = "without the limit on pods per node",
    };
    struct arena *arena = &a->p->arena;
    uint32_t amount = (uint32_t)what->amount;
    switch (what->change) {
    case BERTH_CHANGE_REQUEST: return request_text(a, what);
    case BERTH_CHANGE_GPUS:
        return arena_fmt(arena, "with %u GPU%s in each pod instead of %u", amount, amount == 1 ? "" : "s",
                         a->q.t.k->gpu.count);
    case BERTH_CHANGE_GANG:
        return arena_fmt(arena, "as an elastic gang that starts with %u pod%s instead of %u", amount,
                         amount == 1 ? "" : "s", snapshot_workload(a->p->s, what->workload)->gang_min);
    case BERTH_CHANGE_TOLERATION: return arena_fmt(arena, "with a toleration for taint %s", name);
    case BERTH_CHANGE_UNCORDON: return arena_fmt(arena, "with node %s uncordoned", name);
    default: return plain[what->change];
    }
}

static const char *outcome_text(const struct advice_search *a, const struct placement_outcome *o)
{
    struct arena *arena = &a->p->arena;
    const char *after = o->after ? ", once other pods have stopped" : "";
    if (a->waiting == 1)
        return arena_fmt(arena, "the pod starts on %s%s", o->node, after);
    if (o->placed >= a->waiting)
        return arena_fmt(arena, "all %u pods start%s", a->waiting, after);
    return arena_fmt(arena, "%u of %u pods start%s%s", o->placed, a->waiting, o->placed == 1 ? "s" : "", after);
}

static const char *name_of(const struct advice_search *a, const struct what_if *what)
{
    const struct berth_snapshot *s = a->p->s;
    switch (what->change) {
    case BERTH_CHANGE_REQUEST: return snapshot_text(s, s->resources[what->resource].name);
    case BERTH_CHANGE_TOLERATION: return snapshot_text(s, what->taint);
    case BERTH_CHANGE_UNCORDON: return snapshot_text(s, a->p->c.l->id[what->position]);
    default: return "";
    }
}

static struct berth_advice advice_of(const struct advice_search *a, const struct what_if *what,
                                     const struct placement_outcome *o)
{
    const char *name = name_of(a, what), *change = change_text(a, what, name);
    return (struct berth_advice){
        .change = what->change,
        .name = name,
        .amount = what->amount,
        .starts = o->placed,
        .after = o->after,
        .waiting = a->waiting,
        .node = o->node,
        .what = change,
        .text = arena_fmt(&a->p->arena, "%s, %s", change, outcome_text(a, o)),
    };
}

/* ---- entry point ------------------------------------------------------------------------------------------------ */

size_t advice_find(struct berth_plan *p, const struct demand *w, uint32_t left, const struct berth_policy *policy,
                   size_t tries, struct berth_advice *ret, size_t cap)
{
    struct advice_search a = {.p = p, .w = w, .policy = policy};
    uint32_t order[2 * CANDIDATES_MAX];
    size_t len = 0;
    if (w->replaces != NONE || w->elsewhere || p->c.len == 0)
        return 0; /* the demand is a move: its pod runs already */
    a.placed = outcome_of(p, w->workload).placed;
    a.waiting = left + a.placed;
    a.at_once = w->group != NONE && w->needed ? w->needed : left;
    filter_report_begin(&a.q, p, w);
    candidates_find(&a);
    for (uint32_t i = 0; i < a.len; i++)
        order[i] = i;
    sort_indices(order, order + CANDIDATES_MAX, a.len, compare_candidates, a.at);
    for (size_t i = 0; i < a.len && tries-- && len < cap; i++) {
        const struct what_if *what = &a.at[order[i]].what;
        struct placement_outcome o;
        if (candidate_try(&a, what, &o))
            ret[len++] = advice_of(&a, what, &o);
    }
    filter_report_end(&a.q);
    return len;
}
