/* preempt_blockers.c - finds and stops the pods that keep a pod away from a node by topology constraints. */
#include "core/preempt/preempt_blockers.h"

#include <assert.h>

#include "core/filter/filters.h"

enum {
    NODES_PER_POD = 256,      /* nodes examined for one pod */
    NODES_PER_PLAN = 1 << 16, /* nodes examined for all pods of a plan */
    TRIES = 4,                /* nodes tried for one pod */
    REPRIEVES_PER_NODE = 64,  /* victim groups on a node for which it is tried whether each is needed */
};

/* The last failed attempt: for pods with these labels and of this tier, before more was stopped. */
struct failed_clearing {
    uint32_t label_set, stops; /* stops + 1 */
    int64_t tier;
    bool kept_budgets;
    size_t acts;
};

/* Returns whether the attempt would fail again. Placements since the last one may have satisfied an affinity of the
 * pod. */
static bool has_failed_before(const struct berth_plan *p, const struct failed_clearing *x, uint32_t label_set,
                              const struct preemptor *a)
{
    return x->stops == p->stop_set + 1 && x->label_set == label_set && a->tier <= x->tier &&
           (a->keeps_budgets || !x->kept_budgets) &&
           (x->acts == p->c.acts.len || !class_gains_from_placements(p, a->class));
}

/* ---- estimate --------------------------------------------------------------------------------------------------- */

/* Returns how many of the pods that the constraint counts on the node would stop. */
static int32_t stopping_pods(const struct attempt *t, const struct berth_plan *p, const struct topology_state *ts,
                             uint32_t position, const uint32_t *victim_groups, uint32_t len)
{
    const struct victims *v = p->victims;
    int32_t n = 0;
    if (ts->counted && !bits_has(ts->counted, position))
        return 0;
    for (uint32_t i = 0; i < len; i++)
        for (uint32_t m = 0; m < v->victim_groups[victim_groups[i]].len; m++) {
            uint32_t member = v->victim_groups[victim_groups[i]].first + m;
            uint32_t workload = snapshot_instance(p->s, v->members[member])->workload.v;
            n += v->pods[member].position == position && victim_stands(p, v->members[member]) &&
                 topology_state_selects(t->c, ts, workload);
        }
    return n;
}

/* Returns by how many pods the domain of the node exceeds a required constraint; INT32_MAX: stopping pods cannot
 * satisfy it. */
static int32_t excess(const struct topology_state *ts, uint32_t position)
{
    uint32_t d = topology_state_domain(ts, position);
    switch (ts->topology_constraint->kind) {
    case TOPOLOGY_ANTI_AFFINITY: return d == NONE ? 0 : ts->count[d] - (ts->leaving ? ts->leaving[position] : 0);
    case TOPOLOGY_SPREAD:
        return d == NONE ? INT32_MAX
                         : ts->count[d] - (ts->least + (int32_t)ts->topology_constraint->max_skew - (ts->self ? 1 : 0));
    default: return 0; /* stopping pods satisfies no affinity */
    }
}

/* Returns whether topology constraints keep the pod away now, and would not if these groups stopped. */
static bool could_help(const struct attempt *t, const struct berth_plan *p, uint32_t position,
                       const uint32_t *victim_groups, uint32_t len)
{
    bool helps = false;
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (!ts->topology_constraint || ts->topology_constraint->weight)
            continue;
        int32_t many = excess(ts, position);
        if (many <= 0)
            continue;
        if (many > stopping_pods(t, p, ts, position, victim_groups, len))
            return false;
        helps = true;
    }
    return helps;
}

/* ---- attempts --------------------------------------------------------------------------------------------------- */

/* Stops these groups, except number `but`, and reserves the pod a place on the node. */
static bool stop_and_reserve(struct preempt_attempt *e, struct demand *w, uint32_t position,
                             const uint32_t *victim_groups, uint32_t len, uint32_t but)
{
    struct berth_plan *p = e->p;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint64_t *only = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    uint32_t before = w->placed;
    for (uint32_t n = 0; n < len; n++)
        if (n != but)
            preempt_attempt_stop(e, victim_groups[n]);
    bits_add(only, position);
    (void)place_later(p, w, before + 1, only);
    arena_rewind(&p->scratch, mark);
    return w->placed > before;
}

/* Clears the node, then reprieves groups from the end of the list: the most valuable, and those that would break a
 * budget. */
static bool clear_node(struct preempt_attempt *e, struct demand *w, uint32_t position, uint32_t *victim_groups,
                       uint32_t len)
{
    struct berth_plan *p = e->p;
    size_t acts = p->c.acts.len;
    uint32_t tries = 0;
    if (!stop_and_reserve(e, w, position, victim_groups, len, NONE)) {
        preempt_attempt_undo(e, acts);
        return false;
    }
    for (uint32_t n = len; n-- > 0 && len > 1 && tries++ < REPRIEVES_PER_NODE;) {
        preempt_attempt_undo(e, acts);
        if (stop_and_reserve(e, w, position, victim_groups, len, n)) {
            for (uint32_t i = n + 1; i < len; i++)
                victim_groups[i - 1] = victim_groups[i];
            len--;
            continue;
        }
        preempt_attempt_undo(e, acts);
        bool again = stop_and_reserve(e, w, position, victim_groups, len, NONE);
        assert(again);
        (void)again;
    }
    if (p->victims->stopped <= preempt_max_stops(p))
        return true;
    preempt_attempt_undo(e, acts);
    return false;
}

/* Returns the nodes that accept the pod by all filters that do not depend on other pods. */
static const uint64_t *nodes_able(struct berth_plan *p, struct attempt *t)
{
    uint64_t *mask = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    const uint64_t *constraints = attempt_constraints_mask(&p->c, t);
    struct block_range all = {0, p->c.blocks};
    for (uint32_t b = 0; b < p->c.blocks; b++)
        mask[b] = constraints[b];
    for (size_t f = 0; f < filters_len; f++) {
        const struct filter *x = filter_rows[f];
        bool others = x == &filter_ports || x == &filter_resources || x == &filter_gpu || x == &filter_spread ||
                      x == &filter_anti_affinity;
        if (p->c.profile.filters >> f & 1 && !others && x->when != FILTER_STATIC && x->applies(t))
            x->mask(t, all, mask);
    }
    return mask;
}

/* Examines the nodes in the order of the lower bound on the cost. */
static bool clear_some_node(struct preempt_attempt *e, struct demand *w, const struct preemptor *a, struct attempt *t)
{
    struct berth_plan *p = e->p;
    struct victims *v = p->victims;
    const uint64_t *mask = nodes_able(p, t);
    uint32_t tries = 0, looks = 0;
    for (uint32_t i = 0; i < v->by_min_cost_len && looks < NODES_PER_POD && tries < TRIES; i++) {
        uint32_t at = v->by_min_cost[i], len;
        if (v->lowest[at] >= a->tier)
            break;
        if (!bits_has(mask, at))
            continue;
        looks++;
        v->looks++;
        uint32_t *victim_groups = preempt_node_groups(p, a, at, &len);
        if (len == 0 || !could_help(t, p, at, victim_groups, len))
            continue;
        tries++;
        if (clear_node(e, w, at, victim_groups, len))
            return true;
    }
    return false;
}

bool preempt_blockers_clear(struct preempt_attempt *e, struct demand *w, const struct preemptor *a)
{
    struct berth_plan *p = e->p;
    struct victims *v = p->victims;
    uint32_t label_set = snapshot_workload(p->s, w->workload)->label_set, state = p->stop_set;
    if (!v->cleared)
        v->cleared = ARENA_ARRAY(&p->arena, struct failed_clearing, p->s->classes.len + 1);
    struct failed_clearing *x = &v->cleared[w->class.v];
    if (v->looks >= NODES_PER_PLAN || has_failed_before(p, x, label_set, a))
        return false;
    struct attempt t;
    attempt_begin(&t, &p->c, demand_attempt_spec(w), true);
    bool kept_away =
        has_topology_constraint(&t, TOPOLOGY_ANTI_AFFINITY, true) || has_topology_constraint(&t, TOPOLOGY_SPREAD, true);
    bool done = kept_away && clear_some_node(e, w, a, &t);
    attempt_end(&t);
    if (done)
        return true;
    p->stop_set = state; /* nothing has changed */
    *x = (struct failed_clearing){label_set, state + 1, a->tier, a->keeps_budgets, p->c.acts.len};
    return false;
}
