/* adjust_limits.c - adjusts limits to use: raises a limit under load where the node has room, lowers it again when
 * idle.
 *
 * Use and limit must both have been stable for a while, so that the next plan never undoes a change. Room on a node is
 * what neither requests nor limits in force take.
 */
#include "base/bits.h"
#include "base/sort.h"
#include "core/plan/plan.h"

#define SECOND_NS ((int64_t)1000000000)
#define BUSY_HOLD_NS (30 * SECOND_NS)
#define IDLE_HOLD_NS (300 * SECOND_NS)

enum { BUSY_PERCENT = 90, IDLE_PERCENT = 50, ROOM_PERCENT = 150 };

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns whether use and limit have been stable long enough; if not, the plan is rechecked when they have. */
static bool is_stable(struct berth_plan *p, const struct usage *u, int64_t hold_ns)
{
    int64_t ripe;
    if (__builtin_add_overflow(later_of(u->used_since_ns, u->limit_since_ns), hold_ns, &ripe))
        return false;
    if (p->s->now_ns >= ripe)
        return true;
    plan_recheck(p, ripe);
    return false;
}

/* The amounts by which limits exceed requests, by resource and node. */
struct raised_limits {
    struct berth_plan *p;
    int64_t **at; /* [resource][position]; NULL: none */
};

static int64_t *raised_limits_at(struct raised_limits *r, uint32_t resource, uint32_t position)
{
    if (!r->at[resource])
        r->at[resource] = ARENA_ARRAY(&r->p->scratch, int64_t, r->p->c.len + 1);
    return &r->at[resource][position];
}

/* Returns what neither a request nor a limit in force takes on the node. */
static int64_t room(struct raised_limits *r, uint32_t resource, uint32_t position)
{
    const int64_t *free = cycle_column(&r->p->c, resource, false);
    return (free ? free[position] : 0) - *raised_limits_at(r, resource, position);
}

static int64_t limit_of(const struct limit *l, const struct usage *u)
{
    return u->limit ? u->limit : l->amount;
}

/* Compares the ratio of a to b with a percentage; returns -1, 0 or 1. */
static int compare_percent(int64_t a, int64_t b, int percent)
{
    __int128 left = (__int128)a * 100, right = (__int128)b * percent;
    return (left > right) - (left < right);
}

/* Returns the amount by which a limit exceeds the request. */
static int64_t above(const struct class *k, const struct limit *l, int64_t limit)
{
    return later_of(0, limit - class_need(k, l->resource));
}

/* Called for each adjustable limit of an instance, with the instance's use. */
typedef void limit_visit(struct raised_limits *r, uint32_t slot, const struct limit *l, const struct usage *u);

static void count_raised(struct raised_limits *r, uint32_t slot, const struct limit *l, const struct usage *u)
{
    const struct instance *i = snapshot_instance(r->p->s, slot);
    const struct class *k = snapshot_class(r->p->s, i->class);
    *raised_limits_at(r, l->resource, snapshot_position(r->p->s, i)) += above(k, l, limit_of(l, u));
}

static void set_limit(struct raised_limits *r, uint32_t slot, const struct limit *l, const struct usage *u, int64_t to,
                      enum berth_cause cause)
{
    const struct instance *i = snapshot_instance(r->p->s, slot);
    const struct class *k = snapshot_class(r->p->s, i->class);
    *raised_limits_at(r, l->resource, snapshot_position(r->p->s, i)) += above(k, l, to) - above(k, l, limit_of(l, u));
    struct plan_act *a = plan_act(r->p, BERTH_ADJUST, cause, slot);
    a->aux = l->resource;
    a->limit = to;
}

static void lower_idle(struct raised_limits *r, uint32_t slot, const struct limit *l, const struct usage *u)
{
    int64_t limit = limit_of(l, u), to = later_of(l->amount, (int64_t)((__int128)u->used * ROOM_PERCENT / 100));
    if (limit > l->amount && compare_percent(u->used, limit, IDLE_PERCENT) <= 0 && to < limit &&
        is_stable(r->p, u, IDLE_HOLD_NS))
        set_limit(r, slot, l, u, to, BERTH_CAUSE_IDLE);
}

static void raise_busy(struct raised_limits *r, uint32_t slot, const struct limit *l, const struct usage *u)
{
    uint32_t position = snapshot_position(r->p->s, snapshot_instance(r->p->s, slot));
    int64_t limit = limit_of(l, u), step = later_of(1, limit / 4);
    int64_t to = limit + step < l->max ? limit + step : l->max;
    if (limit < l->max && compare_percent(u->used, limit, BUSY_PERCENT) >= 0 &&
        to - limit <= room(r, l->resource, position) && is_stable(r->p, u, BUSY_HOLD_NS))
        set_limit(r, slot, l, u, to, BERTH_CAUSE_BUSY);
}

static void visit_limits(struct raised_limits *r, uint32_t slot, limit_visit *visit)
{
    const struct berth_plan *p = r->p;
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct class *k = snapshot_class(p->s, i->class);
    const struct usage *u;

    if (i->state != BERTH_RUNNING || bits_has(p->c.stopped, slot) || bits_has(p->c.removed, slot))
        return;
    for (uint32_t n = 0; n < k->limits_len; n++) {
        if (k->limits[n].kind != BERTH_ABSOLUTE || k->limits[n].max <= k->limits[n].amount)
            continue;
        for (uint32_t at = i->usage; at != NONE; at = u->more) {
            u = pages_at(&p->s->usages, at);
            if (u->resource == k->limits[n].resource)
                visit(r, slot, &k->limits[n], u);
        }
    }
}

void adjust(struct berth_plan *p)
{
    size_t len = bits_count(p->s->watched, p->s->watched_len), next = 0;
    struct keyed *rows = arena_alloc(&p->scratch, (2 * len + 1) * sizeof *rows);

    for (uint32_t w = 0; w < p->s->watched_len; w++)
        BITS_EACH (i, p->s->watched[w]) {
            uint32_t slot = w * 64 + (uint32_t)i;
            rows[next++] = (struct keyed){snapshot_instance(p->s, slot)->id, slot};
        }
    sort_keyed(rows, rows + len, len);
    struct raised_limits raised = {p, ARENA_ARRAY(&p->scratch, int64_t *, p->s->resources_len + 1)};
    /* Idle instances are lowered first, so that busy ones get the room in the same plan and none is left for the
     * next. */
    static limit_visit *const passes[] = {count_raised, lower_idle, raise_busy};
    for (size_t n = 0; n < sizeof passes / sizeof *passes; n++)
        for (size_t i = 0; i < len; i++)
            visit_limits(&raised, rows[i].value, passes[n]);
}
