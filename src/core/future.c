/* future.c - reservations: made, kept in mind, remembered. */
#include "core/future.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "core/gpu.h"
#include "core/timeline.h"

#define SECOND_NS ((int64_t)1000000000)
#define HOUR_NS (3600 * SECOND_NS)

enum { MOMENTS_MAX = 32, TRIES_MAX = 64 };

/* ---- how long --------------------------------------------------------------------------------------------------- */

int64_t future_duration(const struct berth_plan *p, uint32_t workload)
{
    const struct workload *w = snapshot_workload(p->s, workload);
    const struct claim *t = snapshot_claim(p->s, workload);
    if (w->kind != BERTH_JOB)
        return BERTH_NEVER_NS;
    int64_t limit = t && t->limit_ns ? t->limit_ns : BERTH_NEVER_NS;
    int64_t expected = t && t->estimate_ns ? t->estimate_ns : limit;
    if (expected == BERTH_NEVER_NS)
        expected = p->policy.backfill.estimate_ns ? p->policy.backfill.estimate_ns : HOUR_NS;
    return expected < limit ? expected : limit;
}

int64_t future_end(const struct berth_plan *p, const struct instance *i)
{
    const struct claim *t = snapshot_claim(p->s, i->workload.v);
    int64_t duration = future_duration(p, i->workload.v), now = p->s->now_ns;
    int64_t limit = t && t->limit_ns ? add_ns(i->since_ns, t->limit_ns) : BERTH_NEVER_NS;

    if (duration == BERTH_NEVER_NS)
        return duration;
    while (add_ns(i->since_ns, duration) <= now)
        duration = add_ns(duration, duration);
    int64_t end = add_ns(i->since_ns, duration);
    if (end < limit)
        return end;
    return limit > now ? limit : add_ns(now, SECOND_NS);
}

/* ---- beginning and ending --------------------------------------------------------------------------------------- */

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
    f->kept_of = chains(p);
    f->fresh_of = chains(p);
    f->hopeless = arena_zalloc(&p->arena, ((size_t)p->s->classes.len + 1) * sizeof *f->hopeless);
    f->unforeseen = ARENA_ARRAY(&p->arena, struct hopeless, p->s->classes.len + 1);
    f->round = 1;
    f->round_stops = p->stops;
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

/* Wishes may have been added or moved since. */
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

void future_restart(struct berth_plan *p)
{
    struct future *f = p->c.future;
    f->reuse = f->round_stops == p->stops && f->round_wishes == p->wishes.len;
    forget_all(p);
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
    f->round_stops = p->stops;
    f->round_wishes = p->wishes.len;
    f->round_placements = f->placements;
    f->round++;
}

bool future_moved(const struct berth_plan *p)
{
    const struct future *f = p->c.future;
    return f->round > 2 && f->made_hash != f->made_before; /* the first is round 2 */
}

/* ---- what this plan places -------------------------------------------------------------------------------------- */

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
    int64_t end = add_ns(p->s->now_ns, future_duration(p, w->workload));
    f->placements++;
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

/* ---- reserving -------------------------------------------------------------------------------------------------- */

/* All that is to be placed at once. */
struct party {
    struct pods_wanted *at;
    uint32_t len;
    int64_t duration_ns;
    int64_t latest_ns; /* at which it may begin and meet every deadline */
};

static void party_add(struct berth_plan *p, struct party *y, const struct wish *w, uint32_t pods)
{
    const struct claim *t = snapshot_claim(p->s, w->workload);
    int64_t duration = future_duration(p, w->workload);
    y->at[y->len++] = (struct pods_wanted){.k = snapshot_class(p->s, w->class),
                                           .wish = (uint32_t)(w - p->wishes.at),
                                           .workload = w->workload,
                                           .pods = pods,
                                           .only = w->bound ? w->only : NONE,
                                           .foreign = windows_foreign(p->c.future, w->workload)};
    y->duration_ns = duration > y->duration_ns ? duration : y->duration_ns;
    if (t && t->deadline_ns) {
        int64_t latest = duration == BERTH_NEVER_NS ? INT64_MIN : t->deadline_ns - duration;
        y->latest_ns = latest < y->latest_ns ? latest : y->latest_ns;
        plan_recheck(p, latest == INT64_MIN ? latest : latest + 1); /* then it is too late */
    }
}

static struct party party_of(struct berth_plan *p, const struct wish *w, uint32_t len)
{
    struct party y = {.at = ARENA_ARRAY(&p->scratch, struct pods_wanted, len + 1), .latest_ns = BERTH_NEVER_NS};
    if (w->group == NONE) {
        if (w->replaces == NONE && w->placed < w->len)
            party_add(p, &y, w, 1);
        return y;
    }
    for (uint32_t i = 0; i < len; i++)
        if (w[i].needed > w[i].placed)
            party_add(p, &y, &w[i], w[i].needed - w[i].placed);
    return y;
}

static void keep(struct future *f, const struct reservation *r, const struct reserved_place *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct class *k = snapshot_class(f->p->s, f->p->wishes.at[at[i].wish].class);
        struct kept x = {r, at[i], k, f->kept_of[at[i].position]};
        f->kept_of[at[i].position] = (uint32_t)f->kept.len;
        bits_add(f->reserved, at[i].position);
        timeline_changed(f, at[i].position);
        vec_push(&f->kept, x);
    }
}

static void unkeep(struct future *f, size_t to)
{
    while (f->kept.len > to) {
        struct kept k = f->kept.at[--f->kept.len];
        f->kept_of[k.place.position] = k.next;
        timeline_changed(f, k.place.position);
        if (k.next == NONE)
            bits_drop(f->reserved, k.place.position);
    }
}

/* All of them at that moment, one role after the other; the places of one are kept from the next. */
static bool try_at(struct future *f, const struct party *y, struct reservation *r, place_list *places)
{
    size_t before = f->kept.len;
    bool ok = true;
    places->len = 0;
    for (uint32_t i = 0; i < y->len && ok; i++) {
        size_t from = places->len;
        ok = places_at(f, &y->at[i], r->start_ns, y->duration_ns, places);
        if (ok && i + 1 < y->len)
            keep(f, r, places->at + from, places->len - from);
    }
    unkeep(f, before);
    return ok;
}

/* Tries some moments of what is expected after the first at which each role alone would fit: all at first, then ever
 * fewer. */
static bool try_after(struct future *f, const struct party *y, struct reservation *r, place_list *places)
{
    uint32_t at = 0, stride = 1;
    if (try_at(f, y, r, places))
        return true;
    while (at < f->ends_len && f->ends[at].at_ns <= r->start_ns)
        at++;
    for (uint32_t tries = 0; y->len > 1 && tries < MOMENTS_MAX && at < f->ends_len; tries++, at += stride) {
        stride *= tries >= MOMENTS_MAX / 4 ? 2 : 1;
        r->start_ns = f->ends[at].at_ns;
        r->end_ns = add_ns(r->start_ns, y->duration_ns);
        if (try_at(f, y, r, places))
            return true;
    }
    return false;
}

/* One role alone: its places come with the moment. */
static bool find_one(struct future *f, const struct party *y, struct reservation *r, place_list *places)
{
    r->start_ns = earliest(f, y->at, y->duration_ns, places);
    r->end_ns = add_ns(r->start_ns, y->duration_ns);
    return r->start_ns != BERTH_NEVER_NS;
}

static bool find_many(struct future *f, const struct party *y, struct reservation *r, place_list *places)
{
    r->start_ns = f->p->s->now_ns;
    for (uint32_t i = 0; i < y->len; i++) {
        places->len = 0;
        int64_t at = earliest(f, &y->at[i], y->duration_ns, places);
        r->start_ns = at > r->start_ns ? at : r->start_ns;
        if (at == BERTH_NEVER_NS || r->start_ns > y->latest_ns)
            return false;
    }
    r->end_ns = add_ns(r->start_ns, y->duration_ns);
    return try_after(f, y, r, places);
}

/* Is it known that nobody can say when it fits? What would fit now was refused for something that cannot be foreseen. */
static bool is_unforeseen(const struct future *f, const struct party *y)
{
    const struct wish *w = &f->p->wishes.at[y->at->wish];
    const struct hopeless *h = &f->unforeseen[w->class.v];
    if (y->len > 1 || y->at->only != NONE || h->round != f->round || y->at->foreign != h->foreign)
        return false;
    return h->fits ? y->at->pods <= h->pods && y->duration_ns <= h->duration_ns
                   : y->at->pods >= h->pods && y->duration_ns >= h->duration_ns;
}

static bool could_ever(struct future *f, const struct party *y)
{
    for (uint32_t i = 0; i < y->len; i++)
        if (!timeline_ever(f, y->at[i].k, y->at[i].pods))
            return false;
    return true;
}

static bool find(struct future *f, const struct party *y, struct reservation *r, place_list *places)
{
    bool ever = could_ever(f, y);
    bool found = ever && (y->len == 1 ? find_one(f, y, r, places) : find_many(f, y, r, places));
    bool foreseen = found && r->start_ns > f->p->s->now_ns; /* what fits now was refused for something else */
    f->tries += !foreseen && (ever || y->len > 1);
    if (!foreseen && y->len == 1 && y->at->only == NONE) {
        const struct wish *w = &f->p->wishes.at[y->at->wish];
        f->unforeseen[w->class.v] = (struct hopeless){.duration_ns = y->duration_ns,
                                                      .foreign = y->at->foreign,
                                                      .pods = y->at->pods,
                                                      .round = f->round,
                                                      .fits = found};
    }
    f->tries += foreseen && r->start_ns > y->latest_ns;
    return foreseen && r->start_ns <= y->latest_ns;
}

static uint64_t hash_made(const struct reservation *r, uint64_t h)
{
    uint64_t words[] = {r->wish, (uint64_t)r->start_ns, (uint64_t)r->end_ns};
    h = hash_bytes(words, sizeof words, h);
    for (uint32_t i = 0; i < r->places_len; i++) {
        const struct reserved_place *x = &r->places[i];
        uint64_t place[] = {x->wish, x->position, x->pods, x->gpus};
        h = hash_bytes(place, sizeof place, h);
    }
    return h;
}

static void enter(struct future *f, struct reservation *r)
{
    keep(f, r, r->places, r->places_len);
    vec_push(&f->made, r);
    f->made_hash = hash_made(r, f->made_hash);
    f->horizon_ns = r->start_ns > f->horizon_ns ? r->start_ns : f->horizon_ns;
    for (uint32_t i = 0; i < r->places_len; i++)
        f->p->wishes.at[r->places[i].wish].reservation = r;
}

/* What the round before reserved for it, if that must still be the best: all that was placed since stood behind it. */
static struct reservation *found_before(struct future *f, uint32_t wish)
{
    f->reuse = f->reuse && f->placements == f->round_placements && f->round_stops == f->p->stops;
    struct reservation *r = f->reuse && f->before_at < f->before.len ? f->before.at[f->before_at] : NULL;
    if (r && r->wish < wish)
        f->reuse = false; /* one before it is no longer there */
    return r && r->wish == wish ? f->before.at[f->before_at++] : NULL;
}

void future_reserve(struct berth_plan *p, struct wish *w, uint32_t len)
{
    struct future *f = p->c.future;
    uint32_t most = p->policy.backfill.reservations, wish = (uint32_t)(w - p->wishes.at);
    if (f->made.len >= most || f->tries > 2 * (size_t)most + TRIES_MAX)
        return;
    struct reservation *r = found_before(f, wish), found = {.wish = wish};
    if (r) {
        enter(f, r);
        return;
    }
    struct arena_mark mark = arena_mark(&p->scratch);
    struct party y = party_of(p, w, len);
    place_list places = {0};

    f->asked |= y.len > 0;
    if (y.len && y.latest_ns > p->s->now_ns && !is_unforeseen(f, &y) && find(f, &y, &found, &places)) {
        found.places = arena_dup(&p->arena, places.at, places.len * sizeof *places.at);
        found.places_len = (uint32_t)places.len;
        enter(f, arena_dup(&p->arena, &found, sizeof found));
        f->reuse = false;
    }
    vec_done(&places);
    arena_rewind(&p->scratch, mark);
}

/* ---- whom reservations bind ------------------------------------------------------------------------------------- */

bool future_binds(const struct turn *t)
{
    const struct future *f = t->c->future;
    return f && f->kept.len > 0;
}

/* The least that is free there while a pod of the turn would run, beside what is reserved for those before it. */
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

/* Would it still run when something that is reserved there begins? */
static bool meets_kept(const struct future *f, uint32_t position, int64_t until_ns)
{
    for (uint32_t i = f->kept_of[position]; i != NONE; i = f->kept.at[i].next)
        if (f->kept.at[i].of->start_ns < until_ns)
            return true;
    return false;
}

static bool delays(const struct turn *t, uint32_t position)
{
    struct future *f = t->c->future;
    struct room low;
    int64_t duration = future_duration(f->p, t->workload);

    if (!meets_kept(f, position, add_ns(f->p->s->now_ns, duration)))
        return false;
    if (!t->k->gpu.count)
        return !timeline_holds(f, t->k, position, duration);
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

/* ---- what need not be tried ------------------------------------------------------------------------------------- */

bool future_refused(const struct berth_plan *p)
{
    return p->c.future->refused;
}

bool future_hopeless(const struct berth_plan *p, const struct wish *w, uint32_t pods)
{
    const struct future *f = p->c.future;
    const struct hopeless *h = f->hopeless[w->class.v];
    for (uint32_t i = 0; i < 2; i++)
        if (h[i].round == f->round && pods >= h[i].pods && future_duration(p, w->workload) >= h[i].duration_ns &&
            windows_foreign(f, w->workload) == h[i].foreign)
            return true;
    return false;
}

void future_failed(struct berth_plan *p, const struct wish *w, uint32_t pods)
{
    struct future *f = p->c.future;
    const struct turn t = {.c = &p->c, .workload = w->workload};
    if (future_too_late(&t))
        return; /* others of the class may still be in time */
    f->hopeless[w->class.v][pods > 1] = (struct hopeless){.duration_ns = future_duration(p, w->workload),
                                                          .foreign = windows_foreign(f, w->workload),
                                                          .pods = pods,
                                                          .round = f->round};
}
