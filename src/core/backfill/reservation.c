/* reservation.c - expected ends, the constraints that reservations impose, and searches that need not be repeated. */
#include "core/backfill/reservation.h"

#include <string.h>

#include "base/bits.h"
#include "core/backfill/timeline.h"
#include "core/gpu/gpu.h"

#define SECOND_NS ((int64_t)1000000000)
#define HOUR_NS (3600 * SECOND_NS)

/* ---- durations -------------------------------------------------------------------------------------------------- */

int64_t expected_duration(const struct workload *w, const struct claim *t, const struct berth_backfill *by)
{
    if (w->kind != BERTH_JOB)
        return BERTH_NEVER_NS;
    int64_t limit = t && t->limit_ns ? t->limit_ns : BERTH_NEVER_NS;
    int64_t expected = t && t->estimate_ns ? t->estimate_ns : limit;
    if (expected == BERTH_NEVER_NS)
        expected = by->estimate_ns ? by->estimate_ns : HOUR_NS;
    return expected < limit ? expected : limit;
}

int64_t future_duration(const struct berth_plan *p, uint32_t workload)
{
    return expected_duration(snapshot_workload(p->s, workload), snapshot_claim(p->s, workload), &p->policy.backfill);
}

int64_t future_longest(const struct berth_plan *p, uint32_t workload)
{
    const struct claim *t = snapshot_claim(p->s, workload);
    return t && t->limit_ns ? t->limit_ns : future_duration(p, workload);
}

int64_t expected_end(const struct workload *w, const struct claim *t, const struct berth_backfill *by, int64_t since_ns,
                     int64_t now_ns)
{
    int64_t duration = expected_duration(w, t, by);
    int64_t limit = t && t->limit_ns ? add_ns(since_ns, t->limit_ns) : BERTH_NEVER_NS;

    if (duration == BERTH_NEVER_NS)
        return duration;
    if (by->until_limit && limit < BERTH_NEVER_NS)
        duration = t->limit_ns;
    while (add_ns(since_ns, duration) <= now_ns)
        duration = add_ns(duration, duration);
    int64_t end = add_ns(since_ns, duration);
    if (end < limit)
        return end;
    return limit > now_ns ? limit : add_ns(now_ns, SECOND_NS);
}

int64_t future_end(const struct berth_plan *p, const struct instance *i)
{
    return expected_end(snapshot_workload(p->s, i->workload.v), snapshot_claim(p->s, i->workload.v),
                        &p->policy.backfill, i->since_ns, p->s->now_ns);
}

/* Returns for how long a pod that starts now will be expected to run once it has started. */
static int64_t hold_of(const struct berth_plan *p, const struct wish *w)
{
    const struct claim *t = snapshot_claim(p->s, w->workload);
    bool until_limit = p->policy.backfill.until_limit && t && t->limit_ns && w->duration_ns < BERTH_NEVER_NS;
    return until_limit ? t->limit_ns : w->duration_ns;
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

static uint32_t *chains(struct berth_plan *p)
{
    uint32_t *first = arena_alloc(&p->arena, ((size_t)p->c.len + 1) * sizeof *first);
    memset(first, 0xff, ((size_t)p->c.len + 1) * sizeof *first);
    return first;
}

void future_begin(struct berth_plan *p)
{
    struct future *f = ARENA_NEW(&p->arena, struct future);
    f->p = p;
    f->reserved = ARENA_ARRAY(&p->arena, uint64_t, p->c.blocks + 1);
    f->having = ARENA_ARRAY(&p->arena, uint64_t, bits_words(p->s->workloads.len) + 1);
    f->alike = ARENA_ARRAY(&p->arena, uint32_t, p->s->rules.len + 1);
    f->kept_of = chains(p);
    f->fresh_of = chains(p);
    f->hopeless = arena_zalloc(&p->arena, ((size_t)p->s->classes.len + 1) * sizeof *f->hopeless);
    f->unforeseen = ARENA_ARRAY(&p->arena, struct hopeless, p->s->classes.len + 1);
    f->round = 1;
    p->c.future = f;
    windows_resolve(f);
}

void future_done(struct berth_plan *p)
{
    struct future *f = p->c.future;
    if (!f)
        return;
    vec_done(&f->fresh);
    vec_done(&f->fresh_order);
    vec_done(&f->made);
    vec_done(&f->before);
    vec_done(&f->kept);
    for (uint32_t i = 0; f->changes && i < p->c.len; i++)
        vec_done(&f->changes[i]);
}

/* Clears the reservations of all demands, because demands may have been added or moved. */
static void forget_all(struct berth_plan *p)
{
    struct future *f = p->c.future;
    if (f->reuse) {
        for (size_t i = 0; i < f->made.len; i++)
            for (uint32_t n = 0; n < f->made.at[i]->places_len; n++)
                p->wishes.at[f->made.at[i]->places[n].wish].reservation = NULL;
        return;
    }
    for (size_t i = 0; i < p->wishes.len; i++)
        p->wishes.at[i].reservation = NULL;
}

bool future_may_stay(struct berth_plan *p, const struct instance *i)
{
    struct future *f = p->c.future;
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t at = snapshot_position(p->s, i);
    int64_t end = future_end(p, i);
    struct room low;
    if (!bits_has(f->reserved, at))
        return true;
    if (!timeline_low(f, k, at, p->s->now_ns, end == BERTH_NEVER_NS ? end : end - p->s->now_ns, &low))
        return false;
    return room_fits_needs(k, &low, 1) && (i->gpus & ~room_devices(k, &low)) == 0;
}

void future_changed(struct berth_plan *p, uint32_t position)
{
    timeline_changed(p->c.future, position);
}

void future_restart(struct berth_plan *p)
{
    struct future *f = p->c.future;
    f->reuse = f->round_wishes == p->wishes.len;
    forget_all(p);
    memset(f->having, 0, bits_words(p->s->workloads.len) * sizeof *f->having);
    memset(f->alike, 0, p->s->rules.len * sizeof *f->alike);
    f->open = 0;
    f->before.len = 0;
    for (size_t i = 0; i < f->made.len; i++)
        vec_push(&f->before, f->made.at[i]);
    for (size_t i = 0; i < f->kept.len; i++) {
        uint32_t at = f->kept.at[i].place.position;
        f->kept_of[at] = NONE;
        bits_drop(f->reserved, at);
        timeline_changed(f, at);
    }
    f->made.len = f->kept.len = f->before_at = 0;
    f->made_before = f->made_hash;
    f->made_hash = 0;
    f->tries = 0;
    f->horizon_ns = 0;
    f->round_wishes = p->wishes.len;
    f->round_placements = f->placements;
    f->round++;
}

uint32_t future_round(const struct berth_plan *p)
{
    return p->c.future->round;
}

bool future_moved(const struct berth_plan *p)
{
    const struct future *f = p->c.future;
    return f->round > 2 && f->made_hash != f->made_before; /* the first round is round 2 */
}

/* ---- pods that this plan places --------------------------------------------------------------------------------- */

static void fresh_drop(struct future *f, uint32_t position, uint64_t gpus, int64_t at_ns)
{
    uint32_t i = f->fresh_of[position];
    if (i != NONE && i + 1 == f->fresh.len && f->fresh_order.len < f->fresh.len && f->fresh.at[i].gpus == gpus &&
        f->fresh.at[i].at_ns == at_ns) {
        f->fresh_of[position] = f->fresh.at[i].next;
        f->fresh.len--;
        return;
    }
    for (; i != NONE; i = f->fresh.at[i].next) {
        struct fresh_end *e = &f->fresh.at[i];
        if (!e->gone && e->gpus == gpus && e->at_ns == at_ns) {
            e->gone = true;
            return;
        }
    }
}

void future_placed(struct berth_plan *p, const struct wish *w, uint32_t position, uint64_t gpus, int sign)
{
    struct future *f = p->c.future;
    int64_t end = add_ns(p->s->now_ns, hold_of(p, w));
    f->placements += (uint64_t)(int64_t)sign;
    if (end == BERTH_NEVER_NS)
        return;
    timeline_changed(f, position);
    if (sign < 0) {
        fresh_drop(f, position, gpus, end);
        return;
    }
    struct fresh_end e = {end, snapshot_class(p->s, w->class), gpus, position, f->fresh_of[position], false};
    f->fresh_of[position] = (uint32_t)f->fresh.len;
    vec_push(&f->fresh, e);
}

/* ---- constraints by reservations -------------------------------------------------------------------------------- */

bool future_binds(const struct turn *t)
{
    const struct future *f = t->c->future;
    return f && f->kept.len > 0;
}

/* Computes the minimum that is free beside the reservations while a pod of the placement attempt would run. */
static bool low_for(const struct turn *t, uint32_t position, struct room *ret)
{
    struct future *f = t->c->future;
    int64_t duration = future_duration(f->p, t->workload);
    return timeline_low(f, t->k, position, f->p->s->now_ns, duration, ret);
}

uint64_t future_devices(const struct turn *t, uint32_t position)
{
    struct room low;
    if (!future_binds(t) || !bits_has(t->c->future->reserved, position) || !low_for(t, position, &low))
        return UINT64_MAX;
    return room_devices(t->k, &low);
}

/* Returns the latest start of a place reserved on the node that begins before until_ns; INT64_MIN: none. After that
 * moment no reservation takes anything, so later moments need no check. */
static int64_t last_kept(const struct future *f, uint32_t position, int64_t until_ns)
{
    int64_t last = INT64_MIN;
    for (uint32_t i = f->kept_of[position]; i != NONE; i = f->kept.at[i].next) {
        int64_t start = f->kept.at[i].of->start_ns;
        last = start < until_ns && start > last ? start : last;
    }
    return last;
}

static bool delays(const struct turn *t, uint32_t position)
{
    struct future *f = t->c->future;
    struct room low;
    int64_t last = last_kept(f, position, add_ns(f->p->s->now_ns, future_duration(f->p, t->workload)));

    if (last == INT64_MIN)
        return false;
    if (!t->k->gpu.count)
        return !timeline_holds(f, t->k, position, last);
    if (!low_for(t, position, &low))
        return false;
    if (!room_fits_needs(t->k, &low, 1))
        return true;
    uint32_t found = 0;
    BITS_EACH (d, room_devices(t->k, &low))
        found += gpu_device_fits(t, t->c->l->device[position] + (uint32_t)d);
    return found < t->k->gpu.count;
}

void future_mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    struct future *f = t->c->future;
    for (uint32_t b = blocks.from; b < blocks.to; b++)
        BITS_EACH (i, bits[b - blocks.from] & f->reserved[b])
            if (delays(t, b * BLOCK + (uint32_t)i)) {
                bits[b - blocks.from] &= ~((uint64_t)1 << i);
                f->refused = true;
            }
}

bool future_too_late(const struct turn *t)
{
    const struct future *f = t->c->future;
    const struct claim *claim = f ? snapshot_claim(f->p->s, t->workload) : NULL;
    return claim && claim->deadline_ns &&
           add_ns(f->p->s->now_ns, future_duration(f->p, t->workload)) > claim->deadline_ns;
}

void future_mask_all(const struct turn *t, struct range blocks, uint64_t *bits)
{
    t->c->future->refused = true;
    memset(bits, 0, (blocks.to - blocks.from) * sizeof *bits);
}

void future_turn(struct turn *t)
{
    if (!t->c->future)
        return;
    t->c->future->refused = false;
    t->awaited = future_binds(t) || windows_bind(t) || future_too_late(t);
}

/* ---- searches that need not be repeated ------------------------------------------------------------------------- */

bool future_refused(const struct berth_plan *p)
{
    return p->c.future->refused;
}

bool future_hopeless(const struct berth_plan *p, const struct wish *w, uint32_t pods)
{
    const struct future *f = p->c.future;
    const struct hopeless *h = f->hopeless[w->class.v];
    for (uint32_t i = 0; i < 2; i++)
        if (h[i].round == f->round && pods >= h[i].pods && w->duration_ns >= h[i].duration_ns &&
            windows_foreign(f, w->workload) == h[i].foreign &&
            (h[i].foreign == 0 || future_longest(p, w->workload) >= h[i].longest_ns))
            return true;
    return false;
}

void future_failed(struct berth_plan *p, const struct wish *w, uint32_t pods)
{
    struct future *f = p->c.future;
    const struct turn t = {.c = &p->c, .workload = w->workload};
    if (future_too_late(&t))
        return; /* other demands of the class may meet their deadlines */
    f->hopeless[w->class.v][pods > 1] = (struct hopeless){.duration_ns = w->duration_ns,
                                                          .longest_ns = future_longest(p, w->workload),
                                                          .foreign = windows_foreign(f, w->workload),
                                                          .pods = pods,
                                                          .round = f->round};
}
