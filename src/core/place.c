/* place.c - granting wishes: the best node for each pod, gangs as a whole, places reserved on what will be free.
 *
 * One pass in order. A pod that fits nowhere leaves everything as it was. Passes are repeated while something changed
 * that could help what was left over: a pod placed that another must be near, a spread that evened out, or a stop that
 * was decided because a replacement found no place. So nothing is left that the next plan would do at the same moment.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/holds.h"
#include "core/migration.h"
#include "core/score/scores.h"
#include "core/search.h"

enum { PROGRESS_EVERY = 1024 };

/* ---- one pod ---------------------------------------------------------------------------------------------------- */

/* The ids of the instances on the node that are about to stop, ascending. A promise also needs room before it is kept, so
 * of very many the first are enough. */
static void note_waits(struct berth_plan *p, struct act *a)
{
    struct cycle *c = &p->c;
    const struct node *n = pages_at(&p->s->nodes, p->s->layout->slot[a->position]);
    struct arena_mark mark = arena_mark(&p->scratch);
    struct keyed *rows = arena_alloc(&p->scratch, 2 * (size_t)n->instances * sizeof *rows);
    size_t len = 0;

    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_node) {
        const struct instance *i = snapshot_instance(p->s, at);
        if ((i->state == BERTH_STOPPING || bits_has(c->stopped, at)) && !bits_has(c->removed, at))
            rows[len++].key = i->id;
    }
    sort_keyed(rows, rows + n->instances, len);
    a->aux = (uint32_t)c->waits.len;
    a->aux_len = (uint32_t)(len < BERTH_LIST_MAX ? len : BERTH_LIST_MAX);
    for (uint32_t i = 0; i < a->aux_len; i++)
        vec_push(&c->waits, rows[i].key);
    arena_rewind(&p->scratch, mark);
}

static void grant(struct berth_plan *p, struct turn *t, struct wish *w, uint32_t position)
{
    struct cycle *c = &p->c;
    struct act a = {.op = t->later ? BERTH_RESERVE : BERTH_PLACE,
                    .cause = w->cause,
                    .workload = w->workload,
                    .ordinal = wish_ordinal(w, w->placed),
                    .position = position,
                    .instance = NONE,
                    .replaces = w->replaces,
                    .next = c->fresh[w->workload],
                    .gpus = turn_pick_gpus(t, position)};
    if (t->later)
        note_waits(p, &a);
    cycle_take(c, t->k, position, a.gpus, t->later, 1);
    holds_take(c, t->k, position);
    if (a.gpus)
        gpu_cluster_count(c, &t->k->gpu, position, 1);
    if (w->replaces != NONE)
        migration_note(p, snapshot_instance(p->s, w->replaces)->id, BERTH_MIGRATION_STARTING,
                       (enum berth_cause)w->cause);
    c->fresh[w->workload] = (uint32_t)c->acts.len;
    vec_push(&c->acts, a);
    w->placed++;
    turn_placed(t, position);
}

/* Takes back the last action, which is a placement of this wish. */
void place_revoke(struct berth_plan *p, struct wish *w)
{
    struct cycle *c = &p->c;
    struct act a = c->acts.at[--c->acts.len];
    const struct class *k = snapshot_class(p->s, w->class);

    assert(a.workload == w->workload && w->placed > 0);
    if (a.op == BERTH_RESERVE)
        c->waits.len = a.aux;
    holds_give(c, k, a.position);
    cycle_take(c, k, a.position, a.gpus, a.op == BERTH_RESERVE, -1);
    if (a.gpus)
        gpu_cluster_count(c, &k->gpu, a.position, -1);
    c->fresh[w->workload] = a.next;
    w->placed--;
}

/* ---- one wish --------------------------------------------------------------------------------------------------- */

/* Returns whether nothing but what is free on single nodes counted. */
static bool place_now(struct berth_plan *p, struct wish *w, uint32_t upto)
{
    struct turn t;
    struct search s;
    uint32_t position;

    turn_begin(&t, &p->c, wish_asker(w), false);
    search_begin(&s, &t);
    while (w->placed < upto && search_next(&s, &position)) {
        grant(p, &t, w, position);
        if (w->placed < upto)
            search_placed(&s, position);
    }
    bool plain = !t.confined && t.ties_len == 0 && t.k->ports_len == 0 && t.k->volumes_len == 0;
    turn_end(&t);
    return plain;
}

void place_later(struct berth_plan *p, struct wish *w, uint32_t upto, const uint64_t *only)
{
    struct turn t;
    uint32_t position;

    turn_begin(&t, &p->c, wish_asker(w), true);
    for (uint32_t b = 0; only && b < p->c.blocks; b++)
        t.mask[b] &= only[b];
    while (w->placed < upto && search_later(&t, &position))
        grant(p, &t, w, position);
    turn_end(&t);
}

bool place_move(struct berth_plan *p, struct wish *w)
{
    (void)place_now(p, w, w->len);
    return w->placed == w->len;
}

/* A class that found no place leaves none for others of its class, for nothing is freed while wishes are granted, except
 * by a gang that gives back: `tentative` placements may be given back. */
static void place_wish(struct berth_plan *p, struct wish *w, uint32_t upto, bool tentative)
{
    uint8_t *dead = &p->c.dead[w->class.v];

    if (w->placed >= upto)
        return;
    if (!*dead) {
        bool plain = place_now(p, w, upto);
        *dead = plain && !tentative && w->placed < upto;
    }
    if (w->placed < upto && p->c.any_leaving)
        place_later(p, w, upto, NULL);
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

static void gang_fail(struct berth_plan *p, struct wish *w, uint32_t len, uint32_t needs)
{
    uint32_t fits = 0;
    for (uint32_t i = 0; i < len; i++)
        fits += w[i].placed;
    for (uint32_t i = len; i-- > 0;) {
        while (w[i].placed)
            place_revoke(p, &w[i]);
        w[i].gang_failed = true;
    }
    for (uint32_t i = 0; i < len; i++) { /* of all rounds, the best */
        w[i].gang_fits = fits > w[i].gang_fits ? fits : w[i].gang_fits;
        w[i].gang_needs = needs;
    }
}

/* The minimum of every workload of the gang, or nothing; then the rest, as far as it goes. */
static void place_gang(struct berth_plan *p, struct wish *w, uint32_t len)
{
    uint32_t needs = 0, started = 0;
    for (uint32_t i = 0; i < len; i++) {
        needs += w[i].needed;
        started += w[i].placed;
    }
    if (needs && w[0].blocked) {
        gang_fail(p, w, len, needs);
        return;
    }
    for (uint32_t i = 0; needs && started == 0 && i < len; i++) {
        place_wish(p, &w[i], w[i].needed, true);
        if (w[i].placed < w[i].needed) {
            gang_fail(p, w, len, needs);
            return;
        }
    }
    for (uint32_t i = 0; i < len; i++) {
        w[i].gang_failed = false;
        place_wish(p, &w[i], w[i].len, false);
    }
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

/* Could something placed by others make room for it? */
static bool may_rise(const struct berth_plan *p, const struct wish *w)
{
    const struct class *k = snapshot_class(p->s, w->class);
    for (uint32_t i = 0; i < k->ties_len; i++) {
        const struct tie *tie = snapshot_tie(p->s, k->ties[i]);
        if (tie->weight == 0 && tie->kind != TIE_APART)
            return true;
    }
    return false;
}

/* A gang that failed may succeed once others have taken what its first members would have chosen. */
static bool wants_round(const struct berth_plan *p, const struct wish *w, uint32_t len, bool all)
{
    bool left = false, rise = all || w->group != NONE;
    for (uint32_t i = 0; i < len; i++) {
        left |= w[i].placed < w[i].len;
        rise = rise || may_rise(p, &w[i]);
    }
    return left && rise;
}

static uint32_t group_len(const struct berth_plan *p, size_t i)
{
    uint32_t len = 1;
    if (p->wishes.at[i].group == NONE)
        return 1;
    while (i + len < p->wishes.len && p->wishes.at[i + len].group == p->wishes.at[i].group)
        len++;
    return len;
}

/* One pass over what is left; `all`: also over what could not profit from placements. */
static void round_go(struct berth_plan *p, bool all)
{
    for (size_t i = 0; i < p->wishes.len;) {
        uint32_t len = group_len(p, i);
        struct wish *w = &p->wishes.at[i];
        if (p->policy.progress && i % PROGRESS_EVERY == 0)
            p->policy.progress(p->policy.ctx, i, p->wishes.len);
        if (wants_round(p, w, len, all)) {
            if (w->group == NONE)
                place_wish(p, w, w->len, false);
            else
                place_gang(p, w, len);
        }
        i += len;
    }
}

/* A replacement that found no place: where enough others are available, the old one stops without it and its pod is
 * placed like any other that is missing. */
static bool give_way(struct berth_plan *p)
{
    bool any = false;
    for (size_t i = 0; i < p->wishes.len; i++) {
        struct wish *w = &p->wishes.at[i];
        if (w->replaces == NONE || w->placed || w->cause == BERTH_CAUSE_BY_HAND)
            continue;
        const struct workload *of = snapshot_workload(p->s, w->workload);
        const struct instance *old = snapshot_instance(p->s, w->replaces);
        bool counts = old->ready && old->state == BERTH_RUNNING;
        if (counts && w->movable <= of->min_available)
            continue;
        plan_stop(p, w->replaces, (enum berth_cause)w->cause);
        for (size_t j = i; counts && j < p->wishes.len && p->wishes.at[j].workload == w->workload; j++)
            p->wishes.at[j].movable--;
        w->replaces = NONE;
        any = true;
        if (of->on_lost != BERTH_LOST_REPLACE)
            w->len = 0; /* it must not run twice: it waits for the stop */
    }
    if (any) /* what was short of promises may have room again */
        memset(p->c.dead, 0, p->s->classes.len);
    return any;
}

void place(struct berth_plan *p)
{
    bool all = true;
    for (;;) {
        size_t before = p->c.acts.len;
        round_go(p, all);
        all = give_way(p);
        if (!all && p->c.acts.len == before)
            return;
    }
}
