/* preempt_node.c - the node on which room is made with the least harm, of all: looked at from the one on which it could be least. */
#include "base/hash.h"
#include "core/backfill/reservation.h"
#include "core/preempt/disruption_budget.h"
#include "core/preempt/preempt_cost.h"

enum { MEMO_BYTES_MAX = 64 << 20 };

struct harms {
    struct harms *next;
    int64_t tier;
    uint64_t account; /* of those whose quotas are full: which; and as of how many stops, in which round */
    uint32_t root;    /* of who asks */
    uint32_t stops, round, budgets;
    uint32_t as_of; /* of victims.changed */
    size_t placed_as_of;
    uint32_t looked; /* of victims.by_harm: those from there on were not looked at yet */
    uint32_t possible;
    const uint64_t *mask;
    struct harm *at; /* [position] */
};

static void look(struct berth_plan *p, const struct harm_asker *a, struct harms *h, uint32_t position)
{
    h->possible -= h->at[position].possible;
    h->at[position] = bits_has(h->mask, position) ? harm_at(p, a, position, NULL, NULL) : (struct harm){0};
    h->at[position].known = true;
    h->possible += h->at[position].possible;
}

/* The next one; false: there is none on which anything could be had. */
static bool look_further(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    const struct victims *v = p->victims;
    if (h->looked == v->by_harm_len || v->lowest[v->by_harm[h->looked]] >= a->tier)
        return false;
    look(p, a, h, v->by_harm[h->looked++]);
    return true;
}

static bool is_any_possible(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    while (h->possible == 0 && look_further(p, a, h))
        ;
    return h->possible > 0;
}

static void refresh(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    const struct victims *v = p->victims;
    for (; h->placed_as_of < v->placed.len; h->placed_as_of++)
        if (h->at[v->placed.at[h->placed_as_of]].has_room)
            look(p, a, h, v->placed.at[h->placed_as_of]);
    for (; h->as_of < v->changed_len; h->as_of++)
        if (h->at[v->changed[h->as_of]].known)
            look(p, a, h, v->changed[h->as_of]);
}

/* Who may share what is remembered of a class: all, but those whose quotas are full with those of the same quotas, and who
 * has pods among those that could go with nobody. */
static uint64_t account_of(const struct berth_plan *p, const struct harm_asker *a)
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

/* What is remembered, as it is now; of quotas only while nothing more was stopped, and nothing they keep for later was given up. */
static bool is_valid(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    if (h->account && (h->stops != p->stop_turns || h->round != future_round(p)))
        return false;
    if (h->budgets != budgets_turn(p))
        return false; /* what could not be stopped may be again */
    refresh(p, a, h);
    return true;
}

static struct harms *harms_new(struct berth_plan *p, const struct harm_asker *a, struct arena *arena)
{
    const struct turn fixed = {.c = &p->c, .k = a->k}; /* enough for filters that look at what is fixed of a node */
    struct harms *h = ARENA_NEW(arena, struct harms);
    h->at = ARENA_ARRAY(arena, struct harm, p->c.len + 1);
    h->tier = a->tier;
    h->account = account_of(p, a);
    h->root = a->root;
    h->mask = turn_rules_mask(&p->c, &fixed);
    h->as_of = p->victims->changed_len;
    h->placed_as_of = p->victims->placed.len;
    h->stops = p->stop_turns;
    h->budgets = budgets_turn(p);
    h->round = future_round(p);
    return h;
}

struct harms *harms_of(struct berth_plan *p, const struct harm_asker *a)
{
    struct victims *v = p->victims;
    uint64_t account = account_of(p, a);
    victims_catch_up(p);
    struct harms **list = &v->memos[a->class.v], *found = NULL;
    size_t bytes = sizeof *found + (p->c.len + 1) * sizeof *found->at;
    for (struct harms *h = *list; h && !found; h = h->next) {
        struct harm_asker then = *a;
        then.tier = h->tier;
        if (h->account != account || h->root != a->root || h->tier < a->tier || !is_valid(p, &then, h))
            continue;
        bool above = a->root == NONE || (uint32_t)h->tier >= (uint32_t)a->tier; /* in priority, too: see is_kin */
        if (above && !is_any_possible(p, &then, h))
            return NULL; /* and nothing for who comes after it */
        if (h->tier == a->tier)
            found = h;
    }
    if (!found) {
        bool keep = v->memo_bytes + bytes <= MEMO_BYTES_MAX;
        found = harms_new(p, a, keep ? &p->arena : &p->scratch);
        if (keep) {
            v->memo_bytes += bytes;
            found->next = *list;
            *list = found;
        }
    }
    return is_any_possible(p, a, found) ? found : NULL;
}

/* Is the node cheaper than the best so far (or NONE), or the first of equals? */
static bool is_better(const struct harms *h, const uint64_t *mask, uint32_t at, uint32_t best)
{
    if (!h->at[at].possible || !bits_has(mask, at))
        return false;
    int c = best == NONE ? -1 : harm_compare(&h->at[at], &h->at[best]);
    return c < 0 || (c == 0 && at < best);
}

/* Could one that was not looked at yet be as cheap? */
static bool is_further_to_look(const struct berth_plan *p, const struct harms *h, uint32_t best)
{
    const struct victims *v = p->victims;
    if (best == NONE || h->looked == v->by_harm_len)
        return best == NONE;
    uint32_t next = v->by_harm[h->looked];
    struct harm least = {.tier = v->lowest[next], .lost = v->least_lost[next], .pods = 1, .id = UINT64_MAX};
    return harm_compare(&least, &h->at[best]) <= 0;
}

uint32_t harms_best(struct berth_plan *p, const struct harm_asker *a, struct harms *h, const uint64_t *mask)
{
    const struct victims *v = p->victims;
    for (;;) {
        uint32_t best = NONE;
        for (uint32_t i = 0; i < h->looked; i++)
            best = is_better(h, mask, v->by_harm[i], best) ? v->by_harm[i] : best;
        while (is_further_to_look(p, h, best) && look_further(p, a, h)) {
            uint32_t at = v->by_harm[h->looked - 1];
            best = is_better(h, mask, at, best) ? at : best;
        }
        if (best == NONE)
            return NONE;
        struct harm before = h->at[best];
        look(p, a, h, best);
        if (h->at[best].possible && harm_compare(&h->at[best], &before) == 0)
            return best;
    }
}
