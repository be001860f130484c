/* reserve.c - makes reservations: for one role by a sweep (earliest_start.c), for several roles by trying moments. */
#include "base/bits.h"
#include "base/hash.h"
#include "core/backfill/timeline.h"

enum { MOMENTS_MAX = 32, TRIES_MAX = 64 };

/* All pods that must be placed at once. */
struct party {
    struct pods_wanted *at;
    uint32_t len;
    int64_t duration_ns;
    int64_t latest_ns; /* the latest start that meets every deadline */
};

static void party_add(struct berth_plan *p, struct party *y, const struct wish *w, uint32_t pods)
{
    const struct claim *t = snapshot_claim(p->s, w->workload);
    int64_t duration = w->duration_ns;
    y->at[y->len++] = (struct pods_wanted){.k = snapshot_class(p->s, w->class),
                                           .wish = (uint32_t)(w - p->wishes.at),
                                           .workload = w->workload,
                                           .pods = pods,
                                           .only = w->bound ? w->only : NONE,
                                           .foreign = windows_foreign(p->c.future, w->workload),
                                           .longest_ns = future_longest(p, w->workload)};
    y->duration_ns = duration > y->duration_ns ? duration : y->duration_ns;
    if (t && t->deadline_ns) {
        int64_t latest = duration == BERTH_NEVER_NS ? INT64_MIN : t->deadline_ns - duration;
        y->latest_ns = latest < y->latest_ns ? latest : y->latest_ns;
        plan_recheck(p, latest == INT64_MIN ? latest : latest + 1); /* from then on it is too late */
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

/* Finds places for all roles at that moment, one role after another; the places of one role are kept from the next. */
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

/* Returns all moments after that one at which a node may gain resources, in order, each once. */
static const struct keyed *moments(struct future *f, int64_t after_ns, size_t *ret_len)
{
    struct arena *a = &f->p->scratch;
    size_t n = 0, len = 0, most = f->ends_len + f->fresh.len + f->made.len + f->windows_len;
    struct keyed *rows = arena_alloc(a, (2 * most + 1) * sizeof *rows);

    for (uint32_t i = 0; i < f->ends_len; i++)
        if (!bits_has(f->p->c.stopped, f->ends[i].slot))
            rows[n++].key = (uint64_t)f->ends[i].at_ns;
    for (size_t i = 0; i < f->fresh.len; i++)
        if (!f->fresh.at[i].gone)
            rows[n++].key = (uint64_t)f->fresh.at[i].at_ns;
    for (size_t i = 0; i < f->made.len; i++)
        rows[n++].key = (uint64_t)f->made.at[i]->end_ns;
    for (uint32_t i = 0; i < f->windows_len; i++)
        rows[n++].key = (uint64_t)f->windows[i].end_ns;
    for (size_t i = 0; i < n; i++) { /* later moments only, as the difference to after_ns */
        int64_t at = (int64_t)rows[i].key;
        if (at > after_ns && at != BERTH_NEVER_NS)
            rows[len++].key = (uint64_t)at - (uint64_t)after_ns;
    }
    sort_keyed(rows, rows + most, len);
    n = 0;
    for (size_t i = 0; i < len; i++)
        if (i == 0 || rows[i].key != rows[i - 1].key)
            rows[n++].key = rows[i].key;
    *ret_len = n;
    return rows;
}

/* Tries moments from the first one on at which each role alone would fit: every moment at first, then with growing
 * distance. */
static bool try_after(struct future *f, const struct party *y, struct reservation *r, place_list *places)
{
    size_t len, at = 0, stride = 1;
    int64_t first = r->start_ns;
    if (try_at(f, y, r, places))
        return true;
    const struct keyed *rows = moments(f, first, &len);
    for (uint32_t tries = 0; tries < MOMENTS_MAX && at < len; tries++, at += stride) {
        stride *= tries >= MOMENTS_MAX / 4 ? 2 : 1;
        r->start_ns = first + (int64_t)rows[at].key;
        r->end_ns = add_ns(r->start_ns, y->duration_ns);
        if (try_at(f, y, r, places))
            return true;
    }
    return false;
}

/* For a single role: the sweep finds the moment and the places. */
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

/* Returns whether an earlier search shows that no start can be predicted. Pods that would fit now were refused for a
 * reason that cannot be predicted. */
static bool is_unforeseen(const struct future *f, const struct party *y)
{
    const struct wish *w = &f->p->wishes.at[y->at->wish];
    const struct hopeless *h = &f->unforeseen[w->class.v];
    if (y->len > 1 || y->at->only != NONE || h->round != f->round || y->at->foreign != h->foreign)
        return false;
    if (h->foreign && (h->fits ? y->at->longest_ns > h->longest_ns : y->at->longest_ns < h->longest_ns))
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
    bool foreseen = found && r->start_ns > f->p->s->now_ns; /* pods that fit now were refused for another reason */
    f->tries += !foreseen && (ever || y->len > 1);
    if (!foreseen && y->len == 1 && y->at->only == NONE) {
        const struct wish *w = &f->p->wishes.at[y->at->wish];
        f->unforeseen[w->class.v] = (struct hopeless){.duration_ns = y->duration_ns,
                                                      .longest_ns = y->at->longest_ns,
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

static uint32_t rules_of(const struct berth_plan *p, const struct wish *w)
{
    return snapshot_class(p->s, w->class)->rules.v;
}

static void enter(struct future *f, struct reservation *r)
{
    keep(f, r, r->places, r->places_len);
    vec_push(&f->made, r);
    f->made_hash = hash_made(r, f->made_hash);
    f->horizon_ns = r->start_ns > f->horizon_ns ? r->start_ns : f->horizon_ns;
    f->alike[rules_of(f->p, &f->p->wishes.at[r->wish])]++;
    for (uint32_t i = 0; i < r->places_len; i++) {
        struct wish *w = &f->p->wishes.at[r->places[i].wish];
        w->reservation = r;
        bits_add(f->having, w->workload);
    }
}

/* Returns the demand's reservation of the round before, if everything before it is as it was then. */
static struct reservation *found_before(struct future *f, uint32_t wish)
{
    f->reuse = f->reuse && f->placements == f->round_placements;
    struct reservation *r = f->reuse && f->before_at < f->before.len ? f->before.at[f->before_at] : NULL;
    if (r && r->wish < wish)
        f->reuse = false; /* an earlier demand with a reservation is gone */
    return r && r->wish == wish ? f->before.at[f->before_at++] : NULL;
}

static struct reservation *reserve_anew(struct future *f, const struct party *y, uint32_t wish)
{
    struct arena *a = &f->p->arena;
    struct reservation found = {.wish = wish, .stops = f->p->stop_state}, *r = NULL;
    place_list places = {0};
    bool in_time = y->latest_ns > f->p->s->now_ns;
    f->asked = true;
    if (in_time && !is_unforeseen(f, y) && find(f, y, &found, &places)) {
        found.places = arena_dup(a, places.at, places.len * sizeof *places.at);
        found.places_len = (uint32_t)places.len;
        r = arena_dup(a, &found, sizeof found);
    }
    vec_done(&places);
    return r;
}

/* Returns whether another demand of the same workload has a reservation. A workload has one reservation for all its
 * pods: those of another tier, of a move that was given up, victims, and missing ones. A gang has one for all that it
 * needs. */
static bool is_reserved(const struct future *f, const struct wish *w)
{
    return w->group == NONE && bits_has(f->having, w->workload);
}

/* Returns whether the demands with the same constraints have as many reservations as the policy allows. Which demands
 * have them follows from the order alone, so the next plan reserves for the same ones. */
static bool alike_full(const struct berth_plan *p, const struct wish *w)
{
    uint32_t most = p->policy.backfill.alike;
    return most && p->c.future->alike[rules_of(p, w)] >= most;
}

/* Returns whether the policy allows the demand a reservation. */
static bool is_eligible(const struct berth_plan *p, const struct wish *w)
{
    return !p->policy.backfill.queued || w->queue != NONE;
}

/* The search begins at the last demand found: during a round, ever fewer demands may get a reservation. */
bool future_full(const struct berth_plan *p, size_t next)
{
    struct future *f = p->c.future;
    if (p->policy.backfill.reservations == 0 || f->made.len >= p->policy.backfill.reservations)
        return p->policy.backfill.reservations;
    if (p->policy.backfill.alike == 0 && !p->policy.backfill.queued)
        return false;
    f->open = f->open > next ? f->open : next;
    while (f->open < p->wishes.len &&
           (!is_eligible(p, &p->wishes.at[f->open]) || alike_full(p, &p->wishes.at[f->open])))
        f->open++;
    return f->open == p->wishes.len;
}

bool future_reserves(const struct berth_plan *p, const struct wish *w)
{
    const struct future *f = p->c.future;
    uint32_t most = p->policy.backfill.reservations;
    return f->made.len < most && is_eligible(p, w) && !is_reserved(f, w) && !alike_full(p, w) &&
           f->tries <= 2 * (size_t)most + TRIES_MAX;
}

bool future_reserve(struct berth_plan *p, struct wish *w, uint32_t len)
{
    struct future *f = p->c.future;
    uint32_t wish = (uint32_t)(w - p->wishes.at);
    if (!future_reserves(p, w))
        return false;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct party y = party_of(p, w, len);
    struct reservation *before = y.len ? found_before(f, wish) : NULL;
    /* All pods placed since then come after this demand and took nothing that it needs: with a single role the
     * reservation is still the best, if nothing was stopped since. */
    bool stands = before && y.len == 1 && before->stops == p->stop_state;
    struct reservation *r = stands ? before : y.len ? reserve_anew(f, &y, wish) : NULL;
    f->reuse = f->reuse && (r ? before && hash_made(r, 0) == hash_made(before, 0) : !before);
    if (r)
        enter(f, r);
    arena_rewind(&p->scratch, mark);
    return r;
}
