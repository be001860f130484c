/* fair.c - the fair tree: a position for each account by its fair share.
 *
 * At each level of the quota tree, siblings are ordered by share over usage: the quota's part of the siblings' weights,
 * divided by its part of the siblings' usage. All accounts below one sibling come before all accounts below the next
 * one. Equal siblings are ranked as one: their children are compared as if they had one parent. The usage of an account
 * is decayed; the usage of a parent is the sum of the usage below it. Only quotas that are the account of some
 * workload, and their parents, take part.
 */
#include <assert.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/map.h"
#include "core/model/usage.h"
#include "core/queue/factor.h"

enum { PREFETCH = 8 };

const uint32_t loads[LOADS] = {RESOURCE_CPU, RESOURCE_MEMORY, QUOTA_GPU};

/* ---- all admitted work ------------------------------------------------------------------------------------------ */

/* Returns the cost of a pod of the class for each second. Caches it in rates[], where -1 means not computed yet. */
static int64_t class_rate(struct ranks *r, int64_t *rates, struct class_ix k)
{
    if (rates[k.v] >= 0)
        return rates[k.v];
    const struct class *class = snapshot_class(r->s, k);
    int64_t rate = usage_cost(quota_need(class, QUOTA_GPU), usage_charge(&r->order, "gpu"), "gpu");
    for (uint32_t i = 0; i < class->needs_len; i++) {
        const char *name = snapshot_text(r->s, r->s->resources[class->needs[i].resource].name);
        rate = usage_sum(rate, usage_cost(class->needs[i].amount, usage_charge(&r->order, name), name));
    }
    rates[k.v] = rate;
    return rate;
}

/* Returns whether the instance counts as running. Instances on lost nodes do not count: it is not known what still runs
 * there, and they must not have counted before a plan gives them up. */
static bool is_up(const struct ranks *r, const struct instance *i)
{
    return state_active(i->state) && i->counted_ns && r->s->state[snapshot_position(r->s, i)] != BERTH_NODE_LOST;
}

/* Returns whether the instance adds usage. In a move, the old instance counts as long as it is active. */
static bool runs(const struct ranks *r, const struct instance *i)
{
    uint32_t old = is_up(r, i) ? snapshot_replaced(r->s, i) : NONE;
    return is_up(r, i) && (old == NONE || !is_up(r, snapshot_instance(r->s, old)));
}

static int64_t workload_used(struct ranks *r, int64_t *rates, const struct workload *w)
{
    int64_t sum = 0, half = usage_half_life_ns(&r->order);
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(r->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(r->s, at);
        if (runs(r, i))
            sum = usage_sum(sum,
                            berth_usage_add(class_rate(r, rates, i->class), i->counted_ns, r->now_ns, r->now_ns, half));
    }
    return sum;
}

static int64_t sum_up_to_max(int64_t sum, int64_t pods, int64_t need)
{
    __int128 more = (__int128)pods * need + sum;
    return more < INT64_MAX / 2 ? (int64_t)more : INT64_MAX / 2;
}

static bool quota_is(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct quota *)ctx)[value].id == *(const sym *)key;
}

/* Adds the past usage that is recorded as facts. */
static void add_facts(struct ranks *r, struct account_usage *a)
{
    const struct berth_snapshot *s = r->s;
    struct map by_id = {0};
    for (uint32_t q = 0; q < s->quotas_len; q++)
        map_add(&by_id, hash_u64(s->quotas[q].id), q);
    for (uint32_t i = 0; i < s->facts.len; i++) {
        const struct fact *f = pages_at(&s->facts, i);
        if (!f->live || f->kind != BERTH_FACT_USAGE || f->subject)
            continue;
        uint32_t q = map_find(&by_id, hash_u64(f->key), quota_is, s->quotas, &f->key);
        if (q == MAP_NONE)
            continue;
        a->account[q] = 1;
        a->used[q] =
            usage_sum(a->used[q], berth_usage_decay(f->value, f->at_ns, r->now_ns, usage_half_life_ns(&r->order)));
    }
    map_done(&by_id);
}

static void admit(struct ranks *r, struct account_usage *a, int64_t *rates, uint32_t workload)
{
    const struct workload *w = snapshot_workload(r->s, workload);
    const struct claim *t = snapshot_claim(r->s, workload);
    const struct class *k = snapshot_class(r->s, w->class);
    int64_t pods = w->suspended || w->ended >= w->replicas ? 0 : w->replicas - w->ended;
    for (uint32_t i = 0; pods && i < LOADS; i++)
        a->asked[i] = sum_up_to_max(a->asked[i], pods, quota_need(k, loads[i]));
    a->account[t->quotas[0]] = 1;
    if (w->first != NONE)
        a->used[t->quotas[0]] = usage_sum(a->used[t->quotas[0]], workload_used(r, rates, w));
}

void account_usage_make(struct ranks *r)
{
    const struct berth_snapshot *s = r->s;
    struct arena *arena = &r->p->arena;
    struct account_usage *a = ARENA_NEW(arena, struct account_usage);
    int64_t *rates = ARENA_ARRAY(arena, int64_t, s->classes.len + 1);
    for (uint32_t k = 0; k < s->classes.len; k++)
        rates[k] = -1;
    a->account = ARENA_ARRAY(arena, uint8_t, s->quotas_len + 1);
    a->used = ARENA_ARRAY(arena, int64_t, s->quotas_len + 1);
    for (uint32_t word = 0; word < s->accounted_len; word++)
        BITS_EACH (bit, s->accounted[word])
            admit(r, a, rates, word * 64 + (uint32_t)bit);
    add_facts(r, a);
    r->admitted = a;
}

/* ---- the tree --------------------------------------------------------------------------------------------------- */

struct fair_tree {
    struct ranks *r;
    const struct quota *quotas;
    uint8_t *part;   /* [quota]: it is an account, or above one */
    int64_t *used;   /* [quota]: usage of it and of all quotas below it */
    uint32_t *next;  /* [quota]: the next sibling, or NONE */
    uint32_t *first; /* [quota + 1]: the first child; [0]: the first quota without a parent */
    double *level;   /* [quota]: its share over its usage */
    uint32_t accounts, given;
};

static uint32_t slot_of_parent(const struct fair_tree *t, uint32_t q)
{
    return t->quotas[q].parent == NONE ? 0 : t->quotas[q].parent + 1;
}

static void tree_fill(struct fair_tree *t, const struct account_usage *a, uint32_t len)
{
    for (uint32_t q = 0; q < len; q++) {
        t->accounts += a->account[q];
        for (uint32_t at = q; a->account[q] && at != NONE; at = t->quotas[at].parent) {
            t->part[at] = 1;
            t->used[at] = usage_sum(t->used[at], a->used[q]);
        }
    }
    for (uint32_t q = 0; q <= len; q++)
        t->first[q] = NONE;
    for (uint32_t q = 0; q < len; q++)
        if (t->part[q]) {
            t->next[q] = t->first[slot_of_parent(t, q)];
            t->first[slot_of_parent(t, q)] = q;
        }
}

/* Computes the level of all siblings. The sums are of integers, so the order of the siblings changes nothing. */
static void tree_levels(struct fair_tree *t, uint32_t first)
{
    int64_t weights = 0, used = 0;
    for (uint32_t q = first; q != NONE; q = t->next[q]) {
        weights += t->quotas[q].weight;
        used = usage_sum(used, t->used[q]);
    }
    for (uint32_t q = first; q != NONE; q = t->next[q])
        t->level[q] = t->used[q] == 0
                          ? __builtin_inf()
                          : (double)t->quotas[q].weight / (double)weights / ((double)t->used[q] / (double)used);
}

static uint64_t highest_first(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits); /* x is not negative, so its bits compare like x */
    return ~bits;
}

/* Assigns positions to all accounts at and below these quotas, those of the highest level first. */
static void assign_positions(struct fair_tree *t, const uint32_t *at, uint32_t len)
{
    struct arena *scratch = &t->r->p->scratch;
    struct keyed *rows = arena_alloc(scratch, (2 * (size_t)len + 1) * sizeof *rows);
    for (uint32_t i = 0; i < len; i++)
        rows[i] = (struct keyed){highest_first(t->level[at[i]]), at[i]};
    sort_keyed(rows, rows + len, len);
    for (uint32_t i = 0, end; i < len; i = end) {
        uint32_t below_len = 0, here = t->given;
        for (end = i; end < len && rows[end].key == rows[i].key; end++) {
            uint32_t q = rows[end].value;
            if (t->r->admitted->account[q]) {
                t->r->fair[q] = (int32_t)((int64_t)(t->accounts - here) * MILLION / t->accounts);
                t->given++;
            }
            for (uint32_t child = t->first[q + 1]; child != NONE; child = t->next[child])
                below_len++;
        }
        if (below_len == 0)
            continue;
        /* Accounts that are equal to quotas with children get the position of the first account below those. */
        uint32_t same = t->given - here, n = 0;
        uint32_t *below = arena_alloc(scratch, below_len * sizeof *below);
        for (uint32_t j = i; j < end; j++)
            for (uint32_t child = t->first[rows[j].value + 1]; child != NONE; child = t->next[child])
                below[n++] = child;
        t->given = here;
        assign_positions(t, below, below_len);
        t->given += same;
    }
}

void fair_make(struct ranks *r)
{
    const struct berth_snapshot *s = r->s;
    uint32_t len = s->quotas_len, n = 0;
    if (!r->admitted)
        account_usage_make(r);
    struct arena_mark mark = arena_mark(&r->p->scratch);
    struct fair_tree t = {.r = r,
                          .quotas = s->quotas,
                          .part = ARENA_ARRAY(&r->p->scratch, uint8_t, len + 1),
                          .used = ARENA_ARRAY(&r->p->scratch, int64_t, len + 1),
                          .next = ARENA_ARRAY(&r->p->scratch, uint32_t, len + 1),
                          .first = ARENA_ARRAY(&r->p->scratch, uint32_t, len + 1),
                          .level = ARENA_ARRAY(&r->p->scratch, double, len + 1)};
    r->fair = ARENA_ARRAY(&r->p->arena, int32_t, len + 1);
    tree_fill(&t, r->admitted, len);
    for (uint32_t q = 0; q <= len; q++)
        tree_levels(&t, t.first[q]);
    uint32_t *roots = arena_alloc(&r->p->scratch, (len + 1) * sizeof *roots);
    for (uint32_t q = t.first[0]; q != NONE; q = t.next[q])
        roots[n++] = q;
    assign_positions(&t, roots, n);
    assert(t.given == t.accounts);
    arena_rewind(&r->p->scratch, mark);
}

void fair_report(struct ranks *r, void (*tell)(void *ctx, const struct berth_share *share), void *ctx)
{
    const struct berth_snapshot *s = r->s;
    if (!r->fair)
        fair_make(r);
    for (uint32_t q = 0; q < s->quotas_len; q++)
        if (r->admitted->account[q])
            tell(ctx, &(struct berth_share){.quota = snapshot_text(s, s->quotas[q].id),
                                            .weight = s->quotas[q].weight,
                                            .used = r->admitted->used[q],
                                            .factor = r->fair[q]});
}
