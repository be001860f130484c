/* reserve.c - makes reservations: for one role by a sweep (earliest_start.c), for several roles by trying moments. */
#include "base/bits.h"
#include "base/hash.h"
#include "core/backfill/timeline.h"

enum { MOMENTS_MAX = 32, TRIES_MAX = 64 };

/* All pods that must be placed at once. */
struct reservation_request {
    struct pods_request *at;
    uint32_t len;
    int64_t duration_ns;
    int64_t latest_ns; /* the latest start that meets every deadline */
};

static void request_add_role(struct berth_plan *p, struct reservation_request *y, const struct demand *w, uint32_t pods)
{
    const struct claim *t = snapshot_claim(p->s, w->workload);
    int64_t duration = w->duration_ns;
    y->at[y->len++] = (struct pods_request){.k = snapshot_class(p->s, w->class),
                                            .demand = (uint32_t)(w - p->demands.at),
                                            .workload = w->workload,
                                            .pods = pods,
                                            .only = w->bound ? w->only : NONE,
                                            .foreign = windows_of_others(p->c.reservation_state, w->workload),
                                            .longest_ns = max_duration_of(p, w->workload)};
    y->duration_ns = duration > y->duration_ns ? duration : y->duration_ns;
    if (t && t->deadline_ns) {
        int64_t latest = duration == BERTH_NEVER_NS ? INT64_MIN : t->deadline_ns - duration;
        y->latest_ns = latest < y->latest_ns ? latest : y->latest_ns;
        plan_recheck(p, latest == INT64_MIN ? latest : latest + 1); /* from then on it is too late */
    }
}

static struct reservation_request request_of(struct berth_plan *p, const struct demand *w, uint32_t len)
{
    struct reservation_request y = {.at = ARENA_ARRAY(&p->scratch, struct pods_request, len + 1),
                                    .latest_ns = BERTH_NEVER_NS};
    if (w->group == NONE) {
        if (w->replaces == NONE && w->placed < w->len)
            request_add_role(p, &y, w, 1);
        return y;
    }
    for (uint32_t i = 0; i < len; i++)
        if (w[i].needed > w[i].placed)
            request_add_role(p, &y, &w[i], w[i].needed - w[i].placed);
    return y;
}

static void reserve_places(struct reservation_state *f, const struct reservation *r, const struct reserved_place *at,
                           size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct class *k = snapshot_class(f->p->s, f->p->demands.at[at[i].demand].class);
        struct node_reservation x = {r, at[i], k, f->kept_of[at[i].position]};
        f->kept_of[at[i].position] = (uint32_t)f->kept.len;
        bits_add(f->reserved, at[i].position);
        timeline_changed(f, at[i].position);
        vec_push(&f->kept, x);
    }
}

static void unreserve_places(struct reservation_state *f, size_t to)
{
    while (f->kept.len > to) {
        struct node_reservation k = f->kept.at[--f->kept.len];
        f->kept_of[k.place.position] = k.next;
        timeline_changed(f, k.place.position);
        if (k.next == NONE)
            bits_drop(f->reserved, k.place.position);
    }
}

/* Finds places for all roles at that moment, one role after another; the places of one role are kept from the next. */
static bool try_at(struct reservation_state *f, const struct reservation_request *y, struct reservation *r,
                   place_list *places)
{
    size_t before = f->kept.len;
    bool ok = true;
    places->len = 0;
    for (uint32_t i = 0; i < y->len && ok; i++) {
        size_t from = places->len;
        ok = places_at(f, &y->at[i], r->start_ns, y->duration_ns, places);
        if (ok && i + 1 < y->len)
            reserve_places(f, r, places->at + from, places->len - from);
    }
    unreserve_places(f, before);
    return ok;
}

/* Returns all moments after that one at which a node may gain resources, in order, each once. */
static const struct keyed *moments(struct reservation_state *f, int64_t after_ns, size_t *ret_len)
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
static bool try_after(struct reservation_state *f, const struct reservation_request *y, struct reservation *r,
                      place_list *places)
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
static bool find_single_role(struct reservation_state *f, const struct reservation_request *y, struct reservation *r,
                             place_list *places)
{
    r->start_ns = find_earliest_start(f, y->at, y->duration_ns, places);
    r->end_ns = add_ns(r->start_ns, y->duration_ns);
    return r->start_ns != BERTH_NEVER_NS;
}

static bool find_all_roles(struct reservation_state *f, const struct reservation_request *y, struct reservation *r,
                           place_list *places)
{
    r->start_ns = f->p->s->now_ns;
    for (uint32_t i = 0; i < y->len; i++) {
        places->len = 0;
        int64_t at = find_earliest_start(f, &y->at[i], y->duration_ns, places);
        r->start_ns = at > r->start_ns ? at : r->start_ns;
        if (at == BERTH_NEVER_NS || r->start_ns > y->latest_ns)
            return false;
    }
    r->end_ns = add_ns(r->start_ns, y->duration_ns);
    return try_after(f, y, r, places);
}

/* Returns whether an earlier search shows that no start can be predicted. Pods that would fit now were refused for a
 * reason that cannot be predicted. */
static bool is_unpredictable(const struct reservation_state *f, const struct reservation_request *y)
{
    const struct demand *w = &f->p->demands.at[y->at->demand];
    const struct failed_search *h = &f->unpredictable[w->class.v];
    if (y->len > 1 || y->at->only != NONE || h->round != f->round || y->at->foreign != h->foreign)
        return false;
    if (h->foreign && (h->fits ? y->at->longest_ns > h->longest_ns : y->at->longest_ns < h->longest_ns))
        return false;
    return h->fits ? y->at->pods <= h->pods && y->duration_ns <= h->duration_ns
                   : y->at->pods >= h->pods && y->duration_ns >= h->duration_ns;
}

static bool could_ever(struct reservation_state *f, const struct reservation_request *y)
{
    for (uint32_t i = 0; i < y->len; i++)
        if (!timeline_fits_eventually(f, y->at[i].k, y->at[i].pods))
            return false;
    return true;
}

static bool find(struct reservation_state *f, const struct reservation_request *y, struct reservation *r,
                 place_list *places)
{
    bool ever = could_ever(f, y);
    bool found = ever && (y->len == 1 ? find_single_role(f, y, r, places) : find_all_roles(f, y, r, places));
    bool foreseen = found && r->start_ns > f->p->s->now_ns; /* pods that fit now were refused for another reason */
    f->tries += !foreseen && (ever || y->len > 1);
    if (!foreseen && y->len == 1 && y->at->only == NONE) {
        const struct demand *w = &f->p->demands.at[y->at->demand];
        f->unpredictable[w->class.v] = (struct failed_search){.duration_ns = y->duration_ns,
                                                              .longest_ns = y->at->longest_ns,
                                                              .foreign = y->at->foreign,
                                                              .pods = y->at->pods,
                                                              .round = f->round,
                                                              .fits = found};
    }
    f->tries += foreseen && r->start_ns > y->latest_ns;
    return foreseen && r->start_ns <= y->latest_ns;
}

static uint64_t hash_reservation(const struct reservation *r, uint64_t h)
{
    uint64_t words[] = {r->demand, (uint64_t)r->start_ns, (uint64_t)r->end_ns};
    h = hash_bytes(words, sizeof words, h);
    for (uint32_t i = 0; i < r->places_len; i++) {
        const struct reserved_place *x = &r->places[i];
        uint64_t place[] = {x->demand, x->position, x->pods, x->gpus};
        h = hash_bytes(place, sizeof place, h);
    }
    return h;
}

static uint32_t rules_of(const struct berth_plan *p, const struct demand *w)
{
    return snapshot_class(p->s, w->class)->constraints.v;
}

static void reservation_enter(struct reservation_state *f, struct reservation *r)
{
    reserve_places(f, r, r->places, r->places_len);
    vec_push(&f->made, r);
    f->made_hash = hash_reservation(r, f->made_hash);
    f->horizon_ns = r->start_ns > f->horizon_ns ? r->start_ns : f->horizon_ns;
    f->alike[rules_of(f->p, &f->p->demands.at[r->demand])]++;
    for (uint32_t i = 0; i < r->places_len; i++) {
        struct demand *w = &f->p->demands.at[r->places[i].demand];
        w->reservation = r;
        bits_add(f->with_reservation, w->workload);
    }
}

/* Returns the demand's reservation of the round before, if everything before it is as it was then. */
static struct reservation *reservation_of_last_round(struct reservation_state *f, uint32_t demand)
{
    f->reuse = f->reuse && f->placements == f->round_placements;
    struct reservation *r = f->reuse && f->before_at < f->before.len ? f->before.at[f->before_at] : NULL;
    if (r && r->demand < demand)
        f->reuse = false; /* an earlier demand with a reservation is gone */
    return r && r->demand == demand ? f->before.at[f->before_at++] : NULL;
}

static struct reservation *reservation_search(struct reservation_state *f, const struct reservation_request *y,
                                              uint32_t demand)
{
    struct arena *a = &f->p->arena;
    struct reservation found = {.demand = demand, .stops = f->p->stop_set}, *r = NULL;
    place_list places = {0};
    bool in_time = y->latest_ns > f->p->s->now_ns;
    f->asked = true;
    if (in_time && !is_unpredictable(f, y) && find(f, y, &found, &places)) {
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
static bool is_reserved(const struct reservation_state *f, const struct demand *w)
{
    return w->group == NONE && bits_has(f->with_reservation, w->workload);
}

/* Returns whether the demands with the same constraints have as many reservations as the policy allows. Which demands
 * have them follows from the order alone, so the next plan reserves for the same ones. */
static bool constraints_full(const struct berth_plan *p, const struct demand *w)
{
    uint32_t most = p->policy.backfill.alike;
    return most && p->c.reservation_state->alike[rules_of(p, w)] >= most;
}

/* Returns whether the policy allows the demand a reservation. */
static bool is_eligible(const struct berth_plan *p, const struct demand *w)
{
    return !p->policy.backfill.queued || w->queue != NONE;
}

/* The search begins at the last demand found: during a round, ever fewer demands may get a reservation. */
bool reservations_full(const struct berth_plan *p, size_t next)
{
    struct reservation_state *f = p->c.reservation_state;
    if (p->policy.backfill.reservations == 0 || f->made.len >= p->policy.backfill.reservations)
        return p->policy.backfill.reservations;
    if (p->policy.backfill.alike == 0 && !p->policy.backfill.queued)
        return false;
    f->open = f->open > next ? f->open : next;
    while (f->open < p->demands.len &&
           (!is_eligible(p, &p->demands.at[f->open]) || constraints_full(p, &p->demands.at[f->open])))
        f->open++;
    return f->open == p->demands.len;
}

bool reservation_allowed(const struct berth_plan *p, const struct demand *w)
{
    const struct reservation_state *f = p->c.reservation_state;
    uint32_t most = p->policy.backfill.reservations;
    return f->made.len < most && is_eligible(p, w) && !is_reserved(f, w) && !constraints_full(p, w) &&
           f->tries <= 2 * (size_t)most + TRIES_MAX;
}

bool reservation_make(struct berth_plan *p, struct demand *w, uint32_t len)
{
    struct reservation_state *f = p->c.reservation_state;
    uint32_t demand = (uint32_t)(w - p->demands.at);
    if (!reservation_allowed(p, w))
        return false;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct reservation_request y = request_of(p, w, len);
    struct reservation *before = y.len ? reservation_of_last_round(f, demand) : NULL;
    /* All pods placed since then come after this demand and took nothing that it needs: with a single role the
     * reservation is still the best, if nothing was stopped since. */
    bool stands = before && y.len == 1 && before->stops == p->stop_set;
    struct reservation *r = stands ? before : y.len ? reservation_search(f, &y, demand) : NULL;
    f->reuse = f->reuse && (r ? before && hash_reservation(r, 0) == hash_reservation(before, 0) : !before);
    if (r)
        reservation_enter(f, r);
    arena_rewind(&p->scratch, mark);
    return r;
}
