/* reservation_facts.c - reports reservations: stored facts, and answers about one demand. */
#include <string.h>

#include "base/bits.h"
#include "core/backfill/timeline.h"

enum { BLOCKERS_MAX = 16 };

/* ---- facts ------------------------------------------------------------------------------------------------------ */

/* A reservation that is recorded as a fact. */
struct recorded_reservation {
    const struct fact *fact;
    bool kept; /* the reservation still exists */
};

struct recorded_reservations {
    const struct berth_snapshot *s;
    struct recorded_reservation *at; /* sorted by key */
    uint32_t len;
};

static struct recorded_reservations recorded_load(struct berth_plan *p)
{
    uint32_t len = p->s->facts.len, n = 0;
    struct keyed *rows = arena_alloc(&p->scratch, (2 * (size_t)len + 1) * sizeof *rows);
    for (uint32_t i = 0; i < len; i++) {
        const struct fact *f = pages_at(&p->s->facts, i);
        if (f->live && f->kind == BERTH_FACT_RESERVATION)
            rows[n++] = (struct keyed){f->key, i};
    }
    sort_keyed(rows, rows + len, n);
    struct recorded_reservations m = {p->s, ARENA_ARRAY(&p->scratch, struct recorded_reservation, n + 1), n};
    for (uint32_t i = 0; i < n; i++)
        m.at[i].fact = pages_at(&p->s->facts, rows[i].value);
    return m;
}

static struct recorded_reservation *recorded_find(const struct recorded_reservations *m, sym key)
{
    uint32_t low = 0, high = m->len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (m->at[mid].fact->key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->len && m->at[low].fact->key == key ? &m->at[low] : NULL;
}

static void record_start(struct berth_plan *p, const struct recorded_reservations *m, const struct demand *w)
{
    sym id = snapshot_workload(p->s, w->workload)->id;
    struct recorded_reservation *known = recorded_find(m, id);
    if (known && known->kept)
        return; /* an earlier demand of the same workload has a reservation */
    if (known)
        known->kept = true;
    if (known && known->fact->value == w->reservation->start_ns)
        return;
    struct berth_fact fact = {.kind = BERTH_FACT_RESERVATION,
                              .key = snapshot_text(p->s, id),
                              .value = w->reservation->start_ns,
                              .at_ns = p->s->now_ns};
    vec_push(&p->facts, fact);
}

static int compare_keys(const void *ctx, uint32_t a, uint32_t b)
{
    const struct recorded_reservations *m = ctx;
    return strcmp(snapshot_text(m->s, m->at[a].fact->key), snapshot_text(m->s, m->at[b].fact->key));
}

/* Records the ends of the other reservations, ordered by text, because the numbers of keys depend on history. */
static void record_ends(struct berth_plan *p, const struct recorded_reservations *m)
{
    uint32_t *order = ARENA_ARRAY(&p->scratch, uint32_t, 2 * (size_t)m->len + 1), len = 0;
    for (uint32_t i = 0; i < m->len; i++)
        if (!m->at[i].kept)
            order[len++] = i;
    sort_indices(order, order + m->len, len, compare_keys, m);
    for (uint32_t i = 0; i < len; i++) {
        const struct fact *f = m->at[order[i]].fact;
        struct berth_fact over = {.kind = BERTH_FACT_RESERVATION,
                                  .key = snapshot_text(p->s, f->key),
                                  .value = f->value,
                                  .at_ns = p->s->now_ns,
                                  .over = true};
        vec_push(&p->facts, over);
    }
}

/* Asks for a recheck at the first expected end, when more or less will be known. */
static void note_recheck(struct reservation_state *f)
{
    for (uint32_t i = 0; f->ends && i < f->ends_len; i++)
        if (!bits_has(f->p->c.stopped, f->ends[i].slot)) {
            plan_recheck(f->p, f->ends[i].at_ns);
            break;
        }
    for (size_t i = 0; i < f->fresh.len; i++)
        if (!f->fresh.at[i].gone)
            plan_recheck(f->p, f->fresh.at[i].at_ns);
}

void reservations_record(struct berth_plan *p)
{
    struct reservation_state *f = p->c.reservation_state;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct recorded_reservations m = recorded_load(p);
    uint64_t *noted = ARENA_ARRAY(&p->scratch, uint64_t, bits_words(p->s->workloads.len) + 1);

    for (size_t i = 0; f->made.len && i < p->demands.len; i++) { /* in the order of demands */
        const struct demand *w = &p->demands.at[i];
        if (!w->reservation || bits_has(noted, w->workload))
            continue;
        bits_add(noted, w->workload);
        record_start(p, &m, w);
    }
    record_ends(p, &m);
    if (f->asked)
        note_recheck(f);
    arena_rewind(&p->scratch, mark);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static int compare_ends(const void *ctx, uint32_t a, uint32_t b)
{
    const struct reservation_state *f = ctx;
    const struct expected_end *x = &f->ends[a], *y = &f->ends[b];
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    uint64_t i = snapshot_instance(f->p->s, x->slot)->id, j = snapshot_instance(f->p->s, y->slot)->id;
    return (i > j) - (i < j);
}

/* Lists the instances on the reservation's nodes that are expected to end before its start; if there are many, the last
 * ones. */
static void list_blockers(struct reservation_state *f, const struct reservation *r, struct berth_queue_position *ret)
{
    struct berth_plan *p = f->p;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint64_t *seen = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    VEC(uint32_t) found = {0};

    for (uint32_t i = 0; i < r->places_len; i++) {
        uint32_t at = r->places[i].position;
        if (bits_has(seen, at))
            continue;
        bits_add(seen, at);
        ret->nodes++;
        for (uint32_t e = f->first_end[at]; e < f->first_end[at + 1]; e++) {
            const struct expected_end *x = &f->ends[f->by_node[e]];
            if (x->at_ns <= r->start_ns && !bits_has(p->c.stopped, x->slot))
                vec_push(&found, f->by_node[e]);
        }
    }
    sort_indices(found.at, ARENA_ARRAY(&p->scratch, uint32_t, found.len + 1), found.len, compare_ends, f);
    size_t len = found.len < BLOCKERS_MAX ? found.len : BLOCKERS_MAX;
    uint64_t *ids = ARENA_ARRAY(&p->arena, uint64_t, len + 1);
    for (size_t i = 0; i < len; i++)
        ids[i] = snapshot_instance(p->s, f->ends[found.at[found.len - len + i]].slot)->id;
    ret->blockers = ids;
    ret->blockers_len = len;
    vec_done(&found);
    arena_rewind(&p->scratch, mark);
}

void reservation_describe(struct berth_plan *p, const struct demand *w, struct berth_queue_position *ret)
{
    const struct reservation *r = w->reservation;
    ret->node = "";
    if (!r)
        return;
    ret->start_ns = r->start_ns;
    ret->end_ns = r->end_ns;
    ret->node = snapshot_text(p->s, p->c.l->id[r->places[0].position]);
    list_blockers(p->c.reservation_state, r, ret);
}

/* Rounds a time as it is shown: minutes, or (below 0) hours. */
static int64_t minutes_or_hours(int64_t ns)
{
    int64_t minutes = (ns / 1000000000 + 59) / 60;
    return minutes < 120 ? minutes : -((minutes + 59) / 60);
}

static const char *minutes_text(struct arena *a, int64_t ns)
{
    int64_t time = minutes_or_hours(ns);
    return time < 0 ? arena_fmt(a, "%lld hours", (long long)-time) : arena_fmt(a, "%lld minutes", (long long)time);
}

static struct berth_reason window_why(struct berth_plan *p, uint32_t window, int64_t duration_ns)
{
    const struct resolved_window *w = &p->c.reservation_state->windows[window];
    uint64_t nodes = bits_count(w->nodes, p->c.blocks);
    const char *says = w->start_ns <= p->s->now_ns ? "are reserved for others or for maintenance"
                       : duration_ns == BERTH_NEVER_NS
                           ? "will be reserved for others or for maintenance, and the job has no time limit"
                           : arena_fmt(&p->arena, "will be reserved for others or for maintenance in %s",
                                       minutes_text(&p->arena, w->start_ns - p->s->now_ns));
    const char *text =
        arena_fmt(&p->arena, "%llu of %u nodes %s: %s", (unsigned long long)nodes, p->c.len, says, w->id);
    return (struct berth_reason){reasons[REASON_WINDOW].word, w->id, nodes, 0, text};
}

static bool is_too_late(struct berth_plan *p, const struct demand *w)
{
    const struct attempt t = {.c = &p->c, .workload = w->workload};
    return deadline_missed(&t);
}

static uint64_t windows_of(struct berth_plan *p, const struct demand *w)
{
    const struct attempt t = {.c = &p->c, .workload = w->workload};
    return windows_bind(&t);
}

uint32_t reservation_reasons(struct berth_plan *p, const struct demand *w,
                             struct berth_reason ret[static RESERVATION_REASONS_MAX])
{
    int64_t duration = w->duration_ns;
    uint32_t len = 0;

    if (w->dated && is_too_late(p, w)) {
        const char *text = duration == BERTH_NEVER_NS
                               ? "the job has a deadline but no time limit"
                               : arena_fmt(&p->arena, "the job cannot end by its deadline: its expected run time is %s",
                                           minutes_text(&p->arena, duration));
        ret[len++] = (struct berth_reason){reasons[REASON_DEADLINE].word, "", p->c.len, 0, text};
    }
    BITS_EACH (i, p->policy.windows_len ? windows_of(p, w) : 0)
        if (len + 1 < RESERVATION_REASONS_MAX)
            ret[len++] = window_why(p, (uint32_t)i, duration);
    if (w->refused_in_time && p->c.reservation_state->kept.len) {
        bool ever = duration == BERTH_NEVER_NS;
        const char **text =
            sentence_cache_slot(p, REASON_RESERVED, ever ? BERTH_NEVER_NS : minutes_or_hours(duration), 0);
        if (!*text)
            *text = arena_fmt(&p->arena, "there is room, but not for %s: it is reserved for jobs ahead in the queue",
                              ever ? "ever" : minutes_text(&p->arena, duration));
        ret[len++] = (struct berth_reason){reasons[REASON_RESERVED].word, "", 0, 0, *text};
    }
    return len;
}
