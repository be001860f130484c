/* preempt_node.c - finds the cheapest node to preempt on; examines nodes in the order of a lower bound on the cost. */
#include "base/hash.h"
#include "core/backfill/reservation.h"
#include "core/preempt/disruption_budget.h"
#include "core/preempt/preempt_cost.h"

enum { MEMO_BYTES_MAX = 64 << 20 };

struct preempt_costs {
    struct preempt_costs *next;
    int64_t tier;
    /* 0, or a hash of the full quotas or of the own workload; with it the number of stops and the round */
    uint64_t account;
    uint32_t root; /* of the preemptor */
    uint32_t stops, round, budgets;
    uint32_t as_of; /* index into victims.changed: entries before it are handled */
    size_t placed_as_of;
    uint32_t looked; /* index into victims.by_harm: nodes from it on were not examined yet */
    uint32_t possible;
    const uint64_t *mask;
    struct preempt_cost *at; /* [position] */
};

static void examine_node(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h, uint32_t position)
{
    h->possible -= h->at[position].possible;
    h->at[position] =
        bits_has(h->mask, position) ? preempt_cost_on_node(p, a, position, NULL, NULL) : (struct preempt_cost){0};
    h->at[position].known = true;
    h->possible += h->at[position].possible;
}

/* Examines the next node; returns false if preemption is possible on no further node. */
static bool examine_next(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h)
{
    const struct victims *v = p->victims;
    if (h->looked == v->by_min_cost_len || v->lowest[v->by_min_cost[h->looked]] >= a->tier)
        return false;
    examine_node(p, a, h, v->by_min_cost[h->looked++]);
    return true;
}

static bool is_any_possible(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h)
{
    while (h->possible == 0 && examine_next(p, a, h))
        ;
    return h->possible > 0;
}

static void refresh(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h)
{
    const struct victims *v = p->victims;
    for (; h->placed_as_of < v->placed.len; h->placed_as_of++)
        if (h->at[v->placed.at[h->placed_as_of]].has_room)
            examine_node(p, a, h, v->placed.at[h->placed_as_of]);
    for (; h->as_of < v->changed_len; h->as_of++)
        if (h->at[v->changed[h->as_of]].known)
            examine_node(p, a, h, v->changed[h->as_of]);
}

/* Returns what the cached costs of a class depend on besides the class: 0 for most preemptors; a hash of the quotas for
 * those whose quotas are full; and the workload for those that have possible victims of their own. */
static uint64_t cache_key_of(const struct berth_plan *p, const struct preemptor *a)
{
    const struct claim *claim = a->quota ? snapshot_claim(p->s, a->workload) : NULL;
    uint64_t account = claim ? hash_bytes(claim->quotas, claim->quotas_len * sizeof *claim->quotas, 1) | 1 : 0;
    uint32_t gang = snapshot_workload(p->s, a->workload)->gang, at = NONE;
    bool own = bits_has(p->victims->present, a->workload);
    if (gang != NONE)
        at = ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (; at != NONE && !own; at = snapshot_workload(p->s, at)->next_in_gang)
        own = bits_has(p->victims->present, at);
    return own ? hash_pair(account, a->workload) | 1 : account;
}

/* Brings the cached costs up to date. With full quotas they are valid only as long as nothing more was stopped and no
 * quota kept for reservations was freed. */
static bool is_valid(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h)
{
    if (h->account && (h->stops != p->stop_generation || h->round != reservations_round(p)))
        return false;
    if (h->budgets != budgets_generation(p))
        return false; /* instances that could not be stopped may be victims again */
    refresh(p, a, h);
    return true;
}

static struct preempt_costs *preempt_costs_new(struct berth_plan *p, const struct preemptor *a, struct arena *arena)
{
    /* enough for filters that depend only on fixed properties of nodes */
    const struct attempt fixed = {.c = &p->c, .k = a->k};
    struct preempt_costs *h = ARENA_NEW(arena, struct preempt_costs);
    h->at = ARENA_ARRAY(arena, struct preempt_cost, p->c.len + 1);
    h->tier = a->tier;
    h->account = cache_key_of(p, a);
    h->root = a->root;
    h->mask = attempt_constraints_mask(&p->c, &fixed);
    h->as_of = p->victims->changed_len;
    h->placed_as_of = p->victims->placed.len;
    h->stops = p->stop_generation;
    h->budgets = budgets_generation(p);
    h->round = reservations_round(p);
    return h;
}

struct preempt_costs *preempt_costs_of(struct berth_plan *p, const struct preemptor *a)
{
    struct victims *v = p->victims;
    uint64_t account = cache_key_of(p, a);
    victims_catch_up(p);
    struct preempt_costs **list = &v->memos[a->class.v], *found = NULL;
    size_t bytes = sizeof *found + (p->c.len + 1) * sizeof *found->at;
    for (struct preempt_costs *h = *list; h && !found; h = h->next) {
        struct preemptor then = *a;
        then.tier = h->tier;
        if (h->account != account || h->root != a->root || h->tier < a->tier || !is_valid(p, &then, h))
            continue;
        bool above = a->root == NONE ||
                     (uint32_t)h->tier >= (uint32_t)a->tier; /* also by priority alone: see is_same_root_quota */
        if (above && !is_any_possible(p, &then, h))
            return NULL; /* nothing is possible for this tier or a lower one */
        if (h->tier == a->tier)
            found = h;
    }
    if (!found) {
        bool keep = v->memo_bytes + bytes <= MEMO_BYTES_MAX;
        found = preempt_costs_new(p, a, keep ? &p->arena : &p->scratch);
        if (keep) {
            v->memo_bytes += bytes;
            found->next = *list;
            *list = found;
        }
    }
    return is_any_possible(p, a, found) ? found : NULL;
}

/* Returns whether the node is cheaper than the best so far (or NONE), or equal and earlier. */
static bool is_better(const struct preempt_costs *h, const uint64_t *mask, uint32_t at, uint32_t best)
{
    if (!h->at[at].possible || !bits_has(mask, at))
        return false;
    int c = best == NONE ? -1 : preempt_cost_compare(&h->at[at], &h->at[best]);
    return c < 0 || (c == 0 && at < best);
}

/* Returns whether a node that was not examined yet could be as cheap. */
static bool is_unexamined_as_cheap(const struct berth_plan *p, const struct preempt_costs *h, uint32_t best)
{
    const struct victims *v = p->victims;
    if (best == NONE || h->looked == v->by_min_cost_len)
        return best == NONE;
    uint32_t next = v->by_min_cost[h->looked];
    struct preempt_cost least = {.tier = v->lowest[next], .lost = v->least_lost[next], .pods = 1, .id = UINT64_MAX};
    return preempt_cost_compare(&least, &h->at[best]) <= 0;
}

uint32_t preempt_costs_cheapest(struct berth_plan *p, const struct preemptor *a, struct preempt_costs *h,
                                const uint64_t *mask)
{
    const struct victims *v = p->victims;
    for (;;) {
        uint32_t best = NONE;
        for (uint32_t i = 0; i < h->looked; i++)
            best = is_better(h, mask, v->by_min_cost[i], best) ? v->by_min_cost[i] : best;
        while (is_unexamined_as_cheap(p, h, best) && examine_next(p, a, h)) {
            uint32_t at = v->by_min_cost[h->looked - 1];
            best = is_better(h, mask, at, best) ? at : best;
        }
        if (best == NONE)
            return NONE;
        struct preempt_cost before = h->at[best];
        examine_node(p, a, h, best);
        if (h->at[best].possible && preempt_cost_compare(&h->at[best], &before) == 0)
            return best;
    }
}
