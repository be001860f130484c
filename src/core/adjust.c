/* adjust.c - limits follow use: up under load where the node has room, down again when idle.
 *
 * Both need the use and the limit to have stood for a while, so that a change is never undone by the next plan.
 */
#include "base/bits.h"
#include "base/sort.h"
#include "core/plan.h"

#define SECOND_NS ((int64_t)1000000000)
#define BUSY_HOLD_NS (30 * SECOND_NS)
#define IDLE_HOLD_NS (300 * SECOND_NS)

enum { BUSY_PERCENT = 90, IDLE_PERCENT = 50, ROOM_PERCENT = 150 };

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Has it stood long enough? If not, the plan is to be looked at again then. */
static bool held(struct berth_plan *p, const struct usage *u, int64_t hold_ns)
{
    int64_t ripe;
    if (__builtin_add_overflow(later_of(u->used_since_ns, u->limit_since_ns), hold_ns, &ripe))
        return false;
    if (p->s->now_ns >= ripe)
        return true;
    plan_recheck(p, ripe);
    return false;
}

/* What nobody has been promised on the node. */
static int64_t room(const struct berth_plan *p, uint32_t resource, uint32_t position)
{
    const int64_t *free = cycle_column(&p->c, resource, false);
    return free ? free[position] : 0;
}

/* a of b, compared with so many percent. */
static int compare_percent(int64_t a, int64_t b, int percent)
{
    __int128 left = (__int128)a * 100, right = (__int128)b * percent;
    return (left > right) - (left < right);
}

static void adjust_one(struct berth_plan *p, uint32_t slot, const struct limit *l, const struct usage *u)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    int64_t limit = u->limit ? u->limit : l->amount, to = limit;
    enum berth_cause cause = BERTH_CAUSE_BUSY;

    if (limit < l->max && compare_percent(u->used, limit, BUSY_PERCENT) >= 0) {
        int64_t step = limit / 4 > 0 ? limit / 4 : 1;
        to = limit + step < l->max ? limit + step : l->max;
        if (to - limit > room(p, l->resource, snapshot_position(p->s, i)) || !held(p, u, BUSY_HOLD_NS))
            return;
    } else if (limit > l->amount && compare_percent(u->used, limit, IDLE_PERCENT) <= 0) {
        cause = BERTH_CAUSE_IDLE;
        to = later_of(l->amount, (int64_t)((__int128)u->used * ROOM_PERCENT / 100));
        if (to >= limit || !held(p, u, IDLE_HOLD_NS))
            return;
    }
    if (to == limit)
        return;
    struct act *a = plan_act(p, BERTH_ADJUST, cause, slot);
    a->aux = l->resource;
    a->limit = to;
}

static void adjust_instance(struct berth_plan *p, uint32_t slot)
{
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
                adjust_one(p, slot, &k->limits[n], u);
        }
    }
}

void adjust(struct berth_plan *p)
{
    size_t len = bits_count(p->s->watched, p->s->watched_len), n = 0;
    struct keyed *rows = arena_alloc(&p->scratch, (2 * len + 1) * sizeof *rows);

    for (uint32_t w = 0; w < p->s->watched_len; w++)
        BITS_EACH (i, p->s->watched[w]) {
            uint32_t slot = w * 64 + (uint32_t)i;
            rows[n++] = (struct keyed){snapshot_instance(p->s, slot)->id, slot};
        }
    sort_keyed(rows, rows + len, len);
    for (size_t i = 0; i < len; i++)
        adjust_instance(p, rows[i].value);
}
