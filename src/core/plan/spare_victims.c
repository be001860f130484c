/* spare_victims.c - finds the victims of a complete plan that need not have been stopped. */
#include "core/plan/spare_victims.h"

#include <assert.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/filter/filters.h"
#include "core/preempt/disruption_budget.h"
#include "core/preempt/preempt_attempt.h"

/* Victims of a plan that are put back into the books, one group after another, and the plan's reserving actions that
 * replace them. */
struct spare_trial {
    struct berth_plan *p;
    uint32_t *groups; /* indices of victims.parties, the most valuable first */
    uint32_t len;
    uint64_t *tried;        /* [group] */
    uint64_t *victims;      /* positions of all victims */
    VEC(uint32_t) reserves; /* reserving actions on these positions */
    VEC(uint32_t) stays;    /* slots of instances that are in the books as if not stopped */
};

static int compare_groups(const void *ctx, uint32_t a, uint32_t b)
{
    const struct victim_group *x = &((const struct victims *)ctx)->victim_groups[a],
                              *y = &((const struct victims *)ctx)->victim_groups[b];
    if (x->tier != y->tier)
        return x->tier > y->tier ? -1 : 1;
    if (x->lost != y->lost)
        return x->lost > y->lost ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_victim(const struct plan_act *a)
{
    return a->op == BERTH_STOP && a->cause == BERTH_CAUSE_PREEMPTED;
}

static void trial_begin(struct spare_trial *t, struct berth_plan *p)
{
    const struct victims *v = p->victims;
    uint32_t *room = arena_alloc(&p->scratch, ((size_t)v->gone_len + 1) * sizeof *room);
    *t = (struct spare_trial){.p = p, .len = v->gone_len};
    t->groups = arena_dup(&p->scratch, v->gone, (v->gone_len + 1) * sizeof *v->gone);
    sort_indices(t->groups, room, t->len, compare_groups, v);
    t->tried = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(t->len) + 1);
    t->victims = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    for (size_t i = 0; i < p->c.acts.len; i++)
        if (is_victim(&p->c.acts.at[i]))
            bits_add(t->victims, p->c.acts.at[i].position);
    for (uint32_t i = 0; i < p->c.acts.len; i++)
        if (p->c.acts.at[i].op == BERTH_RESERVE && bits_has(t->victims, p->c.acts.at[i].position))
            vec_push(&t->reserves, i);
}

static void trial_end(struct spare_trial *t)
{
    vec_done(&t->reserves);
    vec_done(&t->stays);
}

static void reprieves_undo(struct spare_trial *t, size_t to)
{
    while (t->stays.len > to)
        reprieve_undo(t->p, t->stays.at[--t->stays.len]);
}

/* ---- reprieve trials -------------------------------------------------------------------------------------------- */

/* Puts the victims of a group back as long as there is room. Fails for a node over capacity, which was to be
 * relieved. */
static bool group_fits(struct spare_trial *t, const struct victim_group *x)
{
    struct berth_plan *p = t->p;
    for (uint32_t m = 0; m < x->len; m++) {
        uint32_t slot = p->victims->members[x->first + m];
        if (!bits_has(p->c.stopped, slot))
            continue; /* already a member of another group of its gang */
        if (bits_has(p->s->over, snapshot_position(p->s, snapshot_instance(p->s, slot))) ||
            !reprieve_has_room(p, slot, true))
            return false;
        reprieve_stay(p, slot);
        vec_push(&t->stays, slot);
    }
    return true;
}

/* Returns whether topology constraints keep the pod of a reserving action off its node, as the books are now. */
static bool is_refused_by_topology(struct berth_plan *p, uint32_t act)
{
    struct cycle *c = &p->c;
    struct plan_act *a = &c->acts.at[act];
    uint32_t *link = &c->fresh[a->workload];
    struct block_range block = {a->position / BLOCK, a->position / BLOCK + 1};
    uint64_t bits = (uint64_t)1 << a->position % BLOCK;
    struct attempt t;

    while (*link != act) {
        assert(*link != NONE);
        link = &c->acts.at[*link].next;
    }
    *link = a->next; /* the pod does not count itself */
    c->revocations++;
    attempt_begin(
        &t, c, (struct attempt_spec){a->workload, snapshot_workload(p->s, a->workload)->class, a->replaces, NONE, NONE},
        true);
    for (size_t f = 0; f < filters_len; f++) {
        const struct filter *x = filter_rows[f];
        bool counts = x == &filter_spread || x == &filter_anti_affinity;
        if (counts && c->profile.filters >> f & 1 && x->applies(&t))
            x->mask(&t, block, &bits);
    }
    attempt_end(&t);
    *link = act;
    c->revocations++;
    return bits == 0;
}

/* Returns whether a pod of a reserving action on a node of these victims would lose its place. */
static bool blocks_reserving_action(struct spare_trial *t, size_t from)
{
    struct berth_plan *p = t->p;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint64_t *at = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    bool is = false;
    for (size_t i = from; i < t->stays.len; i++)
        bits_add(at, snapshot_position(p->s, snapshot_instance(p->s, t->stays.at[i])));
    for (size_t i = 0; i < t->reserves.len && !is; i++)
        is = bits_has(at, p->c.acts.at[t->reserves.at[i]].position) && is_refused_by_topology(p, t->reserves.at[i]);
    arena_rewind(&p->scratch, mark);
    return is;
}

/* Groups of one gang stay together or not at all: ranks have no gaps. */
static bool is_together(const struct spare_trial *t, uint32_t a, uint32_t b)
{
    const struct victim_group *all = t->p->victims->victim_groups;
    uint32_t gang = all[t->groups[a]].of_gang;
    return a == b || (gang != NONE && all[t->groups[b]].of_gang == gang);
}

/* Puts a group back, with the other groups of its gang. Returns false and changes nothing if it could not have
 * stayed. */
static bool could_stay(struct spare_trial *t, uint32_t group)
{
    size_t from = t->stays.len;
    bool fits = true;
    for (uint32_t n = group; n < t->len; n++)
        if (is_together(t, group, n)) {
            bits_add(t->tried, n);
            fits = fits && group_fits(t, &t->p->victims->victim_groups[t->groups[n]]);
        }
    if (fits && t->stays.len > from && !blocks_reserving_action(t, from))
        return true;
    reprieves_undo(t, from);
    return false;
}

struct preemption_waste preemption_waste_of(struct berth_plan *p, struct victim_protection *add, bool *ret_more)
{
    struct preemption_waste w = {0};
    struct spare_trial t;
    *ret_more = false;
    if (!p->victims || p->victims->gone_len == 0)
        return w;
    struct arena_mark mark = arena_mark(&p->scratch);
    w.broken = budgets_exceeded_by(p);
    *ret_more = w.broken && !add->keeps_budgets;
    add->keeps_budgets |= w.broken > 0;
    for (size_t i = 0; i < p->c.acts.len; i++)
        w.stops += is_victim(&p->c.acts.at[i]);
    trial_begin(&t, p);
    for (uint32_t n = 0; n < t.len; n++)
        w.needless += !bits_has(t.tried, n) && could_stay(&t, n);
    for (size_t i = 0; i < t.stays.len; i++) {
        *ret_more |= !bits_has(add->instances, t.stays.at[i]);
        bits_add(add->instances, t.stays.at[i]);
    }
    reprieves_undo(&t, 0);
    trial_end(&t);
    arena_rewind(&p->scratch, mark);
    return w;
}

/* ---- comparison of two plans ------------------------------------------------------------------------------------ */

/* Adds, for each workload, the waiting pods and the pods stopped for others, times `sign`. */
static void effects_add(const struct berth_plan *p, int sign, int32_t *waiting, int32_t *stopped)
{
    for (size_t i = 0; i < p->demands.len; i++)
        waiting[p->demands.at[i].workload] += sign * (int32_t)(p->demands.at[i].len - p->demands.at[i].placed);
    for (size_t i = 0; i < p->c.acts.len; i++)
        stopped[p->c.acts.at[i].workload] += sign * is_victim(&p->c.acts.at[i]);
}

/* Compares two plans in which the same pods wait. */
static bool is_less(struct preemption_waste a, struct preemption_waste b, bool others_stopped)
{
    if (a.broken != b.broken)
        return a.broken < b.broken;
    return a.needless < b.needless && a.stops <= b.stops && !others_stopped;
}

bool wastes_less(const struct berth_plan *again, struct preemption_waste of_again, const struct berth_plan *first,
                 struct preemption_waste of_first)
{
    uint32_t len = first->s->workloads.len;
    int32_t *waiting = mem_zarray((size_t)len + 1, sizeof *waiting),
            *stopped = mem_zarray((size_t)len + 1, sizeof *stopped);
    bool longer = false, shorter = false, others = false;
    effects_add(again, 1, waiting, stopped);
    effects_add(first, -1, waiting, stopped);
    for (uint32_t w = 0; w < len; w++) {
        longer |= waiting[w] > 0;
        shorter |= waiting[w] < 0;
        others |= stopped[w] > 0;
    }
    mem_free(waiting);
    mem_free(stopped);
    return !longer && (shorter || is_less(of_again, of_first, others));
}
