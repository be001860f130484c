/* demand_order.c - visits demands in order: first by tier.c, after the reservations by the backfill ranking, and merges
 * demands added meanwhile.
 */
#include "core/plan/demand_order.h"

#include "base/sort.h"
#include "core/backfill/reservation.h"
#include "core/queue/rank.h"

static bool has_order(const struct berth_plan *p)
{
    const char *name = p->policy.backfill.ranking.name;
    return name && *name;
}

/* Returns how many demands, from index i on, belong to the same group. */
static uint32_t group_len(const struct berth_plan *p, size_t i, size_t end)
{
    uint32_t len = 1;
    if (p->demands.at[i].group == NONE)
        return 1;
    while (i + len < end && p->demands.at[i + len].group == p->demands.at[i].group)
        len++;
    return len;
}

struct demand_visit visit_begin(const struct berth_plan *p)
{
    return (struct demand_visit){.end = p->demands.len};
}

void visit_done(struct demand_visit *v)
{
    vec_done(&v->late);
}

int visit_fill_keys(struct berth_plan *p, size_t from, struct berth_err *err)
{
    size_t len = p->demands.len - from;
    if (!has_order(p) || len == 0)
        return 0;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint32_t *workloads = arena_alloc(&p->scratch, len * sizeof *workloads);
    int64_t *keys = arena_alloc(&p->scratch, len * sizeof *keys);
    for (size_t i = 0; i < len; i++)
        workloads[i] = p->demands.at[from + i].workload;
    int rc = rank_keys_by(p, &p->policy.backfill.ranking, workloads, (uint32_t)len, keys, err);
    for (size_t i = 0; rc == 0 && i < len; i++)
        p->demands.at[from + i].backfill_key = keys[i];
    arena_rewind(&p->scratch, mark);
    return rc ? err_prefix(err, "backfill") : 0;
}

static uint64_t descending(int64_t v)
{
    return ~((uint64_t)v ^ (uint64_t)1 << 63);
}

/* Returns sort keys from the least (0) to the most significant (3). */
static uint64_t key_of(const struct demand *w, unsigned by)
{
    switch (by) {
    case 0: return w->waited ? 0 : descending(w->backfill_key);
    case 1: return w->waited ? 0 : descending(w->queue_priority);
    case 2: return !w->waited;
    default: return descending(w->tier);
    }
}

/* Sorts the demands that are left by the backfill ranking. The sort is stable, so equals keep their order. */
static void sort_tail(struct berth_plan *p, struct demand_visit *v)
{
    struct arena_mark mark = arena_mark(&p->scratch);
    size_t most = v->end - v->next, len = 0;
    uint32_t *tail = arena_alloc(&p->arena, (most + 1) * sizeof *tail);
    struct keyed *rows = arena_alloc(&p->scratch, (2 * most + 1) * sizeof *rows);
    for (size_t i = v->next; i < v->end; i += group_len(p, i, v->end))
        rows[len++].value = (uint32_t)i;
    for (unsigned by = 0; by < 4; by++) {
        for (size_t i = 0; i < len; i++)
            rows[i].key = key_of(&p->demands.at[rows[i].value], by);
        sort_keyed(rows, rows + len, len);
    }
    for (size_t i = 0; i < len; i++)
        tail[i] = rows[i].value;
    arena_rewind(&p->scratch, mark);
    v->tail = tail;
    v->tail_len = len;
}

/* ---- demands added meanwhile ------------------------------------------------------------------------------------ */

static uint64_t late_key(const struct berth_plan *p, const struct demand_visit *v, const struct demand *w, unsigned by)
{
    switch (by) {
    case 0: return descending(w->tier);
    case 1: return !w->waited;
    case 2: return w->waited ? 0 : descending(w->queue_priority);
    case 3: return w->waited || !v->tail ? 0 : descending(w->backfill_key);
    case 4: return w->waited ? 0 : descending(w->key);
    case 5: return (uint64_t)snapshot_workload(p->s, w->workload)->created_ns ^ (uint64_t)1 << 63;
    default: return p->s->ranks[w->workload];
    }
}

/* Orders demands as tier.c or sort_tail does. An added demand comes after all its equals. */
static bool is_before(const struct berth_plan *p, const struct demand_visit *v, size_t a, size_t b)
{
    for (unsigned by = 0; by <= 6; by++) {
        uint64_t x = late_key(p, v, &p->demands.at[a], by), y = late_key(p, v, &p->demands.at[b], by);
        if (x != y)
            return x < y;
    }
    return a < b;
}

static void find_first_late(const struct berth_plan *p, struct demand_visit *v)
{
    v->first_late = 0;
    for (size_t i = 1; i < v->late.len; i++)
        if (is_before(p, v, v->late.at[i], v->late.at[v->first_late]))
            v->first_late = i;
}

void visit_add(const struct berth_plan *p, struct demand_visit *v, size_t from)
{
    for (size_t i = from; i < p->demands.len; i += group_len(p, i, p->demands.len))
        vec_push(&v->late, (uint32_t)i);
    find_first_late(p, v);
}

static struct visited_group take_late(const struct berth_plan *p, struct demand_visit *v)
{
    size_t demand = v->late.at[v->first_late];
    v->late.at[v->first_late] = v->late.at[--v->late.len];
    find_first_late(p, v);
    return (struct visited_group){demand, group_len(p, demand, p->demands.len), true};
}

bool visit_next(struct berth_plan *p, struct demand_visit *v, struct visited_group *ret)
{
    if (!v->tail && has_order(p) && reservations_full(p, v->next)) {
        sort_tail(p, v);
        find_first_late(p, v);
    }
    bool more = v->tail ? v->tail_at < v->tail_len : v->next < v->end;
    size_t demand = !more ? v->end : v->tail ? v->tail[v->tail_at] : v->next;
    if (v->late.len && (!more || is_before(p, v, v->late.at[v->first_late], demand))) {
        *ret = take_late(p, v);
        return true;
    }
    if (!more)
        return false;
    *ret = (struct visited_group){demand, group_len(p, demand, v->end), false};
    if (v->tail)
        v->tail_at++;
    else
        v->next += ret->len;
    return true;
}
