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

int64_t expected_duration_of(const struct berth_plan *p, uint32_t workload)
{
    return expected_duration(snapshot_workload(p->s, workload), snapshot_claim(p->s, workload), &p->policy.backfill);
}

int64_t max_duration_of(const struct berth_plan *p, uint32_t workload)
{
    const struct claim *t = snapshot_claim(p->s, workload);
    return t && t->limit_ns ? t->limit_ns : expected_duration_of(p, workload);
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

int64_t expected_end_of(const struct berth_plan *p, const struct instance *i)
{
    return expected_end(snapshot_workload(p->s, i->workload.v), snapshot_claim(p->s, i->workload.v),
                        &p->policy.backfill, i->since_ns, p->s->now_ns);
}

/* Returns for how long a pod that starts now will be expected to run once it has started. */
static int64_t expected_hold_ns(const struct berth_plan *p, const struct demand *w)
{
    const struct claim *t = snapshot_claim(p->s, w->workload);
    bool until_limit = p->policy.backfill.until_limit && t && t->limit_ns && w->duration_ns < BERTH_NEVER_NS;
    return until_limit ? t->limit_ns : w->duration_ns;
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

static uint32_t *chain_heads_new(struct berth_plan *p)
{
    uint32_t *first = arena_alloc(&p->arena, ((size_t)p->c.len + 1) * sizeof *first);
    memset(first, 0xff, ((size_t)p->c.len + 1) * sizeof *first);
    return first;
}

void reservations_begin(struct berth_plan *p)
{
    struct reservation_state *f = ARENA_NEW(&p->arena, struct reservation_state);
    f->p = p;
    f->reserved = ARENA_ARRAY(&p->arena, uint64_t, p->c.blocks + 1);
    f->with_reservation = ARENA_ARRAY(&p->arena, uint64_t, bits_words(p->s->workloads.len) + 1);
    f->alike = ARENA_ARRAY(&p->arena, uint32_t, p->s->constraints.len + 1);
    f->kept_of = chain_heads_new(p);
    f->fresh_of = chain_heads_new(p);
    f->failed_search = arena_zalloc(&p->arena, ((size_t)p->s->classes.len + 1) * sizeof *f->failed_search);
    f->unpredictable = ARENA_ARRAY(&p->arena, struct failed_search, p->s->classes.len + 1);
    f->round = 1;
    p->c.reservation_state = f;
    windows_resolve(f);
}

void reservations_done(struct berth_plan *p)
{
    struct reservation_state *f = p->c.reservation_state;
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
static void clear_reservations(struct berth_plan *p)
{
    struct reservation_state *f = p->c.reservation_state;
    if (f->reuse) {
        for (size_t i = 0; i < f->made.len; i++)
            for (uint32_t n = 0; n < f->made.at[i]->places_len; n++)
                p->demands.at[f->made.at[i]->places[n].demand].reservation = NULL;
        return;
    }
    for (size_t i = 0; i < p->demands.len; i++)
        p->demands.at[i].reservation = NULL;
}

bool reservations_allow_stay(struct berth_plan *p, const struct instance *i)
{
    struct reservation_state *f = p->c.reservation_state;
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t at = snapshot_position(p->s, i);
    int64_t end = expected_end_of(p, i);
    struct node_free low;
    if (!bits_has(f->reserved, at))
        return true;
    if (!timeline_min_room(f, k, at, p->s->now_ns, end == BERTH_NEVER_NS ? end : end - p->s->now_ns, &low))
        return false;
    return node_free_fits_needs(k, &low, 1) && (i->gpus & ~node_free_devices(k, &low)) == 0;
}

void reservations_node_changed(struct berth_plan *p, uint32_t position)
{
    timeline_changed(p->c.reservation_state, position);
}

void reservations_restart(struct berth_plan *p)
{
    struct reservation_state *f = p->c.reservation_state;
    f->reuse = f->round_wishes == p->demands.len;
    clear_reservations(p);
    memset(f->with_reservation, 0, bits_words(p->s->workloads.len) * sizeof *f->with_reservation);
    memset(f->alike, 0, p->s->constraints.len * sizeof *f->alike);
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
    f->round_wishes = p->demands.len;
    f->round_placements = f->placements;
    f->round++;
}

uint32_t reservations_round(const struct berth_plan *p)
{
    return p->c.reservation_state->round;
}

bool reservations_moved(const struct berth_plan *p)
{
    const struct reservation_state *f = p->c.reservation_state;
    return f->round > 2 && f->made_hash != f->made_before; /* the first round is round 2 */
}

/* ---- pods that this plan places --------------------------------------------------------------------------------- */

static void fresh_drop(struct reservation_state *f, uint32_t position, uint64_t gpus, int64_t at_ns)
{
    uint32_t i = f->fresh_of[position];
    if (i != NONE && i + 1 == f->fresh.len && f->fresh_order.len < f->fresh.len && f->fresh.at[i].gpus == gpus &&
        f->fresh.at[i].at_ns == at_ns) {
        f->fresh_of[position] = f->fresh.at[i].next;
        f->fresh.len--;
        return;
    }
    for (; i != NONE; i = f->fresh.at[i].next) {
        struct new_pod_end *e = &f->fresh.at[i];
        if (!e->gone && e->gpus == gpus && e->at_ns == at_ns) {
            e->gone = true;
            return;
        }
    }
}

void reservations_note_placed(struct berth_plan *p, const struct demand *w, uint32_t position, uint64_t gpus, int sign)
{
    struct reservation_state *f = p->c.reservation_state;
    int64_t end = add_ns(p->s->now_ns, expected_hold_ns(p, w));
    f->placements += (uint64_t)(int64_t)sign;
    if (end == BERTH_NEVER_NS)
        return;
    timeline_changed(f, position);
    if (sign < 0) {
        fresh_drop(f, position, gpus, end);
        return;
    }
    struct new_pod_end e = {end, snapshot_class(p->s, w->class), gpus, position, f->fresh_of[position], false};
    f->fresh_of[position] = (uint32_t)f->fresh.len;
    vec_push(&f->fresh, e);
}

/* ---- constraints by reservations -------------------------------------------------------------------------------- */

bool reservations_bind(const struct attempt *t)
{
    const struct reservation_state *f = t->c->reservation_state;
    return f && f->kept.len > 0;
}

/* Computes the minimum that is free beside the reservations while a pod of the placement attempt would run. */
static bool min_room_for(const struct attempt *t, uint32_t position, struct node_free *ret)
{
    struct reservation_state *f = t->c->reservation_state;
    int64_t duration = expected_duration_of(f->p, t->workload);
    return timeline_min_room(f, t->k, position, f->p->s->now_ns, duration, ret);
}

uint64_t reservations_devices(const struct attempt *t, uint32_t position)
{
    struct node_free low;
    if (!reservations_bind(t) || !bits_has(t->c->reservation_state->reserved, position) ||
        !min_room_for(t, position, &low))
        return UINT64_MAX;
    return node_free_devices(t->k, &low);
}

/* Returns the latest start of a place reserved on the node that begins before timeout_at_ns; INT64_MIN: none. After
 * that moment no reservation takes anything, so later moments need no check. */
static int64_t last_reserved_start(const struct reservation_state *f, uint32_t position, int64_t until_ns)
{
    int64_t last = INT64_MIN;
    for (uint32_t i = f->kept_of[position]; i != NONE; i = f->kept.at[i].next) {
        int64_t start = f->kept.at[i].of->start_ns;
        last = start < until_ns && start > last ? start : last;
    }
    return last;
}

static bool delays(const struct attempt *t, uint32_t position)
{
    struct reservation_state *f = t->c->reservation_state;
    struct node_free low;
    int64_t last = last_reserved_start(f, position, add_ns(f->p->s->now_ns, expected_duration_of(f->p, t->workload)));

    if (last == INT64_MIN)
        return false;
    if (!t->k->gpu.count)
        return !timeline_always_fits(f, t->k, position, last);
    if (!min_room_for(t, position, &low))
        return false;
    if (!node_free_fits_needs(t->k, &low, 1))
        return true;
    uint32_t found = 0;
    BITS_EACH (d, node_free_devices(t->k, &low))
        found += gpu_device_fits(t, t->c->l->device[position] + (uint32_t)d);
    return found < t->k->gpu.count;
}

void reservations_mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    struct reservation_state *f = t->c->reservation_state;
    for (uint32_t b = blocks.from; b < blocks.to; b++)
        BITS_EACH (i, bits[b - blocks.from] & f->reserved[b])
            if (delays(t, b * BLOCK + (uint32_t)i)) {
                bits[b - blocks.from] &= ~((uint64_t)1 << i);
                f->refused = true;
            }
}

bool deadline_missed(const struct attempt *t)
{
    const struct reservation_state *f = t->c->reservation_state;
    const struct claim *claim = f ? snapshot_claim(f->p->s, t->workload) : NULL;
    return claim && claim->deadline_ns &&
           add_ns(f->p->s->now_ns, expected_duration_of(f->p, t->workload)) > claim->deadline_ns;
}

void deadline_mask_all(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    t->c->reservation_state->refused = true;
    memset(bits, 0, (blocks.to - blocks.from) * sizeof *bits);
}

void reservations_attempt_begin(struct attempt *t)
{
    if (!t->c->reservation_state)
        return;
    t->c->reservation_state->refused = false;
    t->awaited = reservations_bind(t) || windows_bind(t) || deadline_missed(t);
}

/* ---- searches that need not be repeated ------------------------------------------------------------------------- */

bool reservations_refused_node(const struct berth_plan *p)
{
    return p->c.reservation_state->refused;
}

bool is_placement_known_to_fail(const struct berth_plan *p, const struct demand *w, uint32_t pods)
{
    const struct reservation_state *f = p->c.reservation_state;
    const struct failed_search *h = f->failed_search[w->class.v];
    for (uint32_t i = 0; i < 2; i++)
        if (h[i].round == f->round && pods >= h[i].pods && w->duration_ns >= h[i].duration_ns &&
            windows_of_others(f, w->workload) == h[i].foreign &&
            (h[i].foreign == 0 || max_duration_of(p, w->workload) >= h[i].longest_ns))
            return true;
    return false;
}

void placement_note_failure(struct berth_plan *p, const struct demand *w, uint32_t pods)
{
    struct reservation_state *f = p->c.reservation_state;
    const struct attempt t = {.c = &p->c, .workload = w->workload};
    if (deadline_missed(&t))
        return; /* other demands of the class may meet their deadlines */
    f->failed_search[w->class.v][pods > 1] = (struct failed_search){.duration_ns = w->duration_ns,
                                                                    .longest_ns = max_duration_of(p, w->workload),
                                                                    .foreign = windows_of_others(f, w->workload),
                                                                    .pods = pods,
                                                                    .round = f->round};
}
