/* order.c - which workloads a plan examines, and in which order. */
#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/plan/eviction.h"
#include "core/plan/migration.h"

enum { PREFETCH = 8 }; /* workloads in order are scattered in memory, so they are prefetched */

static void mark_gang(const struct berth_snapshot *s, uint64_t *bits, uint32_t workload)
{
    const struct workload *w = snapshot_workload(s, workload);
    if (w->gang == NONE)
        return;
    uint32_t at = ((const struct gang *)pages_at(&s->gangs, w->gang))->first;
    for (; at != NONE; at = snapshot_workload(s, at)->next_in_gang)
        bits_add(bits, at);
}

static bool has_expired(struct berth_plan *p, uint32_t workload)
{
    const struct claim *claim = snapshot_claim(p->s, workload);
    bool over = false;
    for (uint32_t at = snapshot_workload(p->s, workload)->first; at != NONE;
         at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(p->s, at);
        int64_t expiry = claim && i->state == BERTH_RUNNING ? instance_expiry(claim, i) : BERTH_NEVER_NS;
        over |= expiry <= p->s->now_ns;
        if (expiry > p->s->now_ns)
            plan_recheck(p, expiry);
    }
    return over;
}

/* Marks workloads with pods that have exceeded their time limit. */
static void mark_expired(struct berth_plan *p, uint64_t *bits)
{
    const struct berth_snapshot *s = p->s;
    if (s->expires_ns > s->now_ns)
        return;
    for (uint32_t w = 0; w < s->accounted_len && w < s->unsettled_len; w++)
        BITS_EACH (i, s->timed[w] & ~bits[w])
            if (has_expired(p, w * 64 + (uint32_t)i))
                bits_add(bits, w * 64 + (uint32_t)i);
}

/* Marks unsettled workloads, workloads with instances on nodes that are not ready, and the other workloads of their
 * gangs. */
static uint64_t *mark(struct berth_plan *p)
{
    const struct berth_snapshot *s = p->s;
    uint64_t *bits = arena_dup(&p->scratch, s->unsettled, (size_t)s->unsettled_len * sizeof *bits);

    for (uint32_t i = 0; i < s->idle_len; i++) {
        const struct node *n = pages_at(&s->nodes, s->layout->slot[s->idle[i]]);
        for (uint32_t at = n->first; at != NONE; at = snapshot_instance(s, at)->next_of_node)
            bits_add(bits, snapshot_instance(s, at)->workload.v);
    }
    migrations_mark_workloads(p, bits);
    evictions_mark_workloads(p, bits);
    mark_expired(p, bits);
    for (uint32_t w = 0; s->gangs.len && w < s->unsettled_len; w++)
        BITS_EACH (i, bits[w])
            mark_gang(s, bits, w * 64 + (uint32_t)i);
    return bits;
}

/* Returns the sort key of one round of a stable sort, from the least to the most significant. */
static uint64_t key_of(const struct berth_snapshot *s, unsigned round, uint32_t workload)
{
    const struct workload *w = snapshot_workload(s, workload);
    switch (round) {
    case 0: return s->ranks[workload];
    case 1: return (uint64_t)w->created_ns ^ (uint64_t)1 << 63;
    default: return ~(uint64_t)((uint32_t)w->priority ^ 0x80000000u);
    }
}

/* Returns the marked workloads by priority, creation time, id. */
static uint32_t *sorted(struct berth_plan *p, const uint64_t *bits, uint32_t words, uint32_t *ret_len)
{
    const struct berth_snapshot *s = p->s;
    size_t len = bits_count(bits, words), n = 0;
    struct keyed *rows = arena_alloc(&p->scratch, (2 * len + 1) * sizeof *rows);

    for (uint32_t w = 0; w < words; w++)
        BITS_EACH (i, bits[w])
            rows[n++].value = w * 64 + (uint32_t)i;
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < len; i++) {
            if (round && i + PREFETCH < len)
                __builtin_prefetch(snapshot_workload(s, rows[i + PREFETCH].value));
            rows[i].key = key_of(s, round, rows[i].value);
        }
        sort_keyed(rows, rows + len, len);
    }
    uint32_t *order = arena_alloc(&p->arena, (len + 1) * sizeof *order);
    for (size_t i = 0; i < len; i++)
        order[i] = rows[i].value;
    *ret_len = (uint32_t)len;
    return order;
}

/* Returns the workloads of the list that are marked. */
static uint32_t *keep_marked(struct berth_plan *p, const uint32_t *list, uint32_t len, const uint64_t *bits,
                             uint32_t words, uint32_t *ret_len)
{
    uint32_t *to = arena_alloc(&p->arena, ((size_t)len + 1) * sizeof *to), n = 0;
    for (uint32_t i = 0; i < len; i++)
        if (list[i] / 64 < words && bits_has(bits, list[i]))
            to[n++] = list[i];
    *ret_len = n;
    return to;
}

/* Guaranteed pods are determined in the same order (p->accounted_order), so both lists are sorted together. */
uint32_t *order_make(struct berth_plan *p, uint32_t *ret_len)
{
    const struct berth_snapshot *s = p->s;
    const uint64_t *bits = mark(p);
    if (!s->guaranteed)
        return sorted(p, bits, s->unsettled_len, ret_len);
    uint32_t words = s->unsettled_len > s->accounted_len ? s->unsettled_len : s->accounted_len, len;
    uint64_t *all = ARENA_ARRAY(&p->scratch, uint64_t, words + 1);
    for (uint32_t w = 0; w < words; w++)
        all[w] = (w < s->unsettled_len ? bits[w] : 0) | (w < s->accounted_len ? s->accounted[w] : 0);
    const uint32_t *both = sorted(p, all, words, &len);
    p->accounted_order = keep_marked(p, both, len, s->accounted, s->accounted_len, &p->accounted_order_len);
    return keep_marked(p, both, len, bits, s->unsettled_len, ret_len);
}
