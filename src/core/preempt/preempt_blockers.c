/* preempt_blockers.c - finds and stops the pods that keep a pod away from a node by topology constraints. */
#include "core/preempt/preempt_blockers.h"

#include <assert.h>

#include "core/filter/filters.h"

enum {
    LOOKS = 256,         /* nodes examined for one pod */
    LOOKS_ALL = 1 << 16, /* nodes examined for all pods of a plan */
    TRIES = 4,           /* nodes tried for one pod */
    KEEPS = 64,          /* victim groups on a node for which it is tried whether each is needed */
};

/* The last failed attempt: for pods with these labels and of this tier, before more was stopped. */
struct cleared {
    uint32_t label_set, stops; /* stops + 1 */
    int64_t tier;
    bool kept_budgets;
    size_t acts;
};

/* Returns whether the attempt would fail again. Placements since the last one may have satisfied an affinity of the
 * pod. */
static bool is_in_vain(const struct berth_plan *p, const struct cleared *x, uint32_t label_set,
                       const struct harm_asker *a)
{
    return x->stops == p->stop_state + 1 && x->label_set == label_set && a->tier <= x->tier &&
           (a->keeps_budgets || !x->kept_budgets) && (x->acts == p->c.acts.len || !place_may_rise(p, a->class));
}

/* ---- estimate --------------------------------------------------------------------------------------------------- */

/* Returns how many of the pods that the constraint counts on the node would stop. */
static int32_t goers(const struct turn *t, const struct berth_plan *p, const struct tie_state *ts, uint32_t position,
                     const uint32_t *parties, uint32_t len)
{
    const struct victims *v = p->victims;
    int32_t n = 0;
    if (ts->counted && !bits_has(ts->counted, position))
        return 0;
    for (uint32_t i = 0; i < len; i++)
        for (uint32_t m = 0; m < v->parties[parties[i]].len; m++) {
            uint32_t member = v->parties[parties[i]].first + m;
            uint32_t workload = snapshot_instance(p->s, v->members[member])->workload.v;
            n += v->pods[member].position == position && member_stands(p, v->members[member]) &&
                 tie_counts(t->c, ts, workload);
        }
    return n;
}

/* Returns by how many pods the domain of the node exceeds a required constraint; INT32_MAX: stopping pods cannot
 * satisfy it. */
static int32_t excess(const struct tie_state *ts, uint32_t position)
{
    uint32_t d = tie_domain(ts, position);
    switch (ts->tie->kind) {
    case TIE_APART: return d == NONE ? 0 : ts->count[d] - (ts->leaving ? ts->leaving[position] : 0);
    case TIE_SPREAD:
        return d == NONE ? INT32_MAX : ts->count[d] - (ts->least + (int32_t)ts->tie->max_skew - (ts->self ? 1 : 0));
    default: return 0; /* stopping pods satisfies no affinity */
    }
}

/* Returns whether topology constraints keep the pod away now, and would not if these groups stopped. */
static bool could_help(const struct turn *t, const struct berth_plan *p, uint32_t position, const uint32_t *parties,
                       uint32_t len)
{
    bool helps = false;
    for (uint32_t i = 0; i < t->ties_len; i++) {
        const struct tie_state *ts = &t->ties[i];
        if (!ts->tie || ts->tie->weight)
            continue;
        int32_t many = excess(ts, position);
        if (many <= 0)
            continue;
        if (many > goers(t, p, ts, position, parties, len))
            return false;
        helps = true;
    }
    return helps;
}

/* ---- attempts --------------------------------------------------------------------------------------------------- */

/* Stops these groups, except number `but`, and reserves the pod a place on the node. */
static bool go(struct effort *e, struct wish *w, uint32_t position, const uint32_t *parties, uint32_t len, uint32_t but)
{
    struct berth_plan *p = e->p;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint64_t *only = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    uint32_t before = w->placed;
    for (uint32_t n = 0; n < len; n++)
        if (n != but)
            effort_stop(e, parties[n]);
    bits_add(only, position);
    (void)place_later(p, w, before + 1, only);
    arena_rewind(&p->scratch, mark);
    return w->placed > before;
}

/* Clears the node, then reprieves groups from the end of the list: the most valuable, and those that would break a
 * budget. */
static bool clear_node(struct effort *e, struct wish *w, uint32_t position, uint32_t *parties, uint32_t len)
{
    struct berth_plan *p = e->p;
    size_t acts = p->c.acts.len;
    uint32_t tries = 0;
    if (!go(e, w, position, parties, len, NONE)) {
        effort_undo(e, acts);
        return false;
    }
    for (uint32_t n = len; n-- > 0 && len > 1 && tries++ < KEEPS;) {
        effort_undo(e, acts);
        if (go(e, w, position, parties, len, n)) {
            for (uint32_t i = n + 1; i < len; i++)
                parties[i - 1] = parties[i];
            len--;
            continue;
        }
        effort_undo(e, acts);
        bool again = go(e, w, position, parties, len, NONE);
        assert(again);
        (void)again;
    }
    if (p->victims->stopped <= effort_most(p))
        return true;
    effort_undo(e, acts);
    return false;
}

/* Returns the nodes that accept the pod by all filters that do not depend on other pods. */
static const uint64_t *able(struct berth_plan *p, struct turn *t)
{
    uint64_t *mask = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    const uint64_t *rules = turn_rules_mask(&p->c, t);
    struct range all = {0, p->c.blocks};
    for (uint32_t b = 0; b < p->c.blocks; b++)
        mask[b] = rules[b];
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
static bool clear_any(struct effort *e, struct wish *w, const struct harm_asker *a, struct turn *t)
{
    struct berth_plan *p = e->p;
    struct victims *v = p->victims;
    const uint64_t *mask = able(p, t);
    uint32_t tries = 0, looks = 0;
    for (uint32_t i = 0; i < v->by_harm_len && looks < LOOKS && tries < TRIES; i++) {
        uint32_t at = v->by_harm[i], len;
        if (v->lowest[at] >= a->tier)
            break;
        if (!bits_has(mask, at))
            continue;
        looks++;
        v->looks++;
        uint32_t *parties = harm_parties(p, a, at, &len);
        if (len == 0 || !could_help(t, p, at, parties, len))
            continue;
        tries++;
        if (clear_node(e, w, at, parties, len))
            return true;
    }
    return false;
}

bool clear_for(struct effort *e, struct wish *w, const struct harm_asker *a)
{
    struct berth_plan *p = e->p;
    struct victims *v = p->victims;
    uint32_t label_set = snapshot_workload(p->s, w->workload)->label_set, state = p->stop_state;
    if (!v->cleared)
        v->cleared = ARENA_ARRAY(&p->arena, struct cleared, p->s->classes.len + 1);
    struct cleared *x = &v->cleared[w->class.v];
    if (v->looks >= LOOKS_ALL || is_in_vain(p, x, label_set, a))
        return false;
    struct turn t;
    turn_begin(&t, &p->c, wish_asker(w), true);
    bool kept_away = ties_any(&t, TIE_APART, true) || ties_any(&t, TIE_SPREAD, true);
    bool done = kept_away && clear_any(e, w, a, &t);
    turn_end(&t);
    if (done)
        return true;
    p->stop_state = state; /* nothing has changed */
    *x = (struct cleared){label_set, state + 1, a->tier, a->keeps_budgets, p->c.acts.len};
    return false;
}
