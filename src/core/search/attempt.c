/* attempt.c - begins and ends a placement attempt. */
#include "core/search/attempt.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "core/backfill/reservation.h"
#include "core/gpu/gpu.h"
#include "core/plan/headroom.h"
#include "core/plan/profile_view.h"

static bool filter_on(const struct cycle *c, size_t f)
{
    return c->profile.filters >> f & 1;
}

const uint64_t *attempt_constraints_mask(struct cycle *c, const struct attempt *t)
{
    uint64_t **slot = &c->constraints_mask[t->k->constraints.v];
    if (*slot)
        return *slot;
    uint64_t *mask = arena_alloc(c->arena, (c->blocks + 1) * sizeof *mask);
    for (uint32_t b = 0; b < c->blocks; b++)
        mask[b] = layout_block_bits(c->l, b);
    for (size_t f = 0; f < filters_len; f++)
        if (filter_rows[f]->when == FILTER_STATIC && filter_on(c, f) && filter_rows[f]->applies(t))
            filter_rows[f]->mask(t, (struct block_range){0, c->blocks}, mask);
    *slot = mask;
    return mask;
}

/* ---- preferences ------------------------------------------------------------------------------------------------ */

static bool preferences_neutral(const struct cycle *c, const struct preferences *preferences)
{
    return preferences->prefer.len == 0 && preferences->images.len == 0 && preferences->near_zone == 0 &&
           !c->l->soft_taints;
}

static void preference_bounds(struct cycle *c, struct preference_column *col)
{
    for (uint32_t level = 1; level <= c->l->levels; level++) {
        uint32_t len = c->l->level[level].len;
        const int32_t *below = level == 1 ? col->at : col->max[level - 1];
        col->max[level] = arena_alloc(c->arena, (len + 1) * sizeof(int32_t));
        for (uint32_t i = 0; i < len; i++) {
            struct span of = layout_below(c->l, level, i);
            int32_t most = INT32_MIN;
            for (uint32_t j = of.from; j < of.to; j++)
                most = below[j] > most ? below[j] : most;
            col->max[level][i] = most;
        }
    }
}

static const struct preference_column *preference_column_of(struct cycle *c, const struct attempt *t)
{
    uint32_t ix = t->k->preferences.v;
    struct preference_column *col = &c->preference_sets[ix];
    if (c->preference_state[ix] == 0) {
        const struct preferences *preferences = snapshot_preferences(c->s, t->k->preferences);
        c->preference_state[ix] = 1;
        if (!preferences_neutral(c, preferences)) {
            col->at = arena_column(c->arena, (size_t)c->blocks * BLOCK + 1, sizeof *col->at);
            for (uint32_t i = 0; i < c->profile.scores_len; i++)
                if (c->profile.scores[i].score->when == SCORE_STATIC)
                    c->profile.scores[i].score->fill(c, preferences, c->profile.scores[i].weight, col->at);
            preference_bounds(c, col);
            c->preference_state[ix] = 2;
        }
    }
    return c->preference_state[ix] == 2 ? col : NULL;
}

/* ---- placement attempts ----------------------------------------------------------------------------------------- */

/* Builds the attempt's node mask. Filters that depend on held resources get a copy of the shared mask. */
static void attempt_build_mask(struct attempt *t)
{
    struct cycle *c = t->c;
    const uint64_t *constraints = attempt_constraints_mask(c, t);

    t->mask = (uint64_t *)(uintptr_t)constraints; /* only read, unless copied below */
    for (size_t f = 0; f < filters_len; f++) {
        if (!filter_on(c, f) || filter_rows[f]->when == FILTER_STATIC || !filter_rows[f]->applies(t))
            continue;
        if (filter_rows[f]->when == FILTER_BLOCK) {
            assert(t->dynamic_len < sizeof t->dynamic / sizeof *t->dynamic);
            t->dynamic[t->dynamic_len++] = filter_rows[f];
            continue;
        }
        if (t->mask == constraints)
            t->mask = arena_dup(c->scratch, constraints, (c->blocks + 1) * sizeof *constraints);
        filter_rows[f]->mask(t, (struct block_range){0, c->blocks}, t->mask);
    }
}

void attempt_begin(struct attempt *t, struct cycle *c, struct attempt_spec who, bool later)
{
    *t = (struct attempt){.c = c,
                          .w = snapshot_workload(c->s, who.workload),
                          .k = snapshot_class(c->s, who.class),
                          .workload = who.workload,
                          .class = who.class.v,
                          .replaces = who.replaces,
                          .only = who.only,
                          .but = who.but,
                          .later = later,
                          .outer = c->view};
    if (c->views)
        view_enter(c, view_of(c, t->k));
    bool kept = c->headroom && headroom_binds(c->headroom, t);
    t->confined = kept || t->only != NONE || t->but != NONE;
    reservations_attempt_begin(t);
    t->mark = arena_mark(c->scratch);
    t->preferences = preference_column_of(c, t);
    t->entangled = t->k->volumes_len > 0 || kept;
    topology_begin(t);
    attempt_build_mask(t);
    t->flat = true;
    for (uint32_t i = 0; i < c->profile.scores_len; i++) {
        const struct score *s = c->profile.scores[i].score;
        if (s->when != SCORE_BLOCK || !s->applies(t))
            continue;
        t->flat &= s->gpus_only && t->k->gpu.count == 0;
        t->plain += s->gpus_only ? c->profile.scores[i].weight * SCORE_ONE : 0;
        t->live[t->live_len].score = s;
        t->live[t->live_len++].weight = c->profile.scores[i].weight;
    }
}

bool attempt_is_class_wide(struct cycle *c, struct attempt_spec who)
{
    const struct class *k = snapshot_class(c->s, who.class);
    if (who.only != NONE || who.but != NONE || k->topology_constraints_len || k->max_per_node)
        return false;
    if (!c->headroom && c->s->topology_constraint_uses.len == 0)
        return true;
    struct attempt t = {.c = c,
                        .w = snapshot_workload(c->s, who.workload),
                        .k = k,
                        .workload = who.workload,
                        .class = who.class.v,
                        .replaces = who.replaces};
    return !(c->headroom && headroom_binds(c->headroom, &t)) && topology_states_needed(&t) == 0;
}

void attempt_placed(struct attempt *t, uint32_t position)
{
    struct cycle *c = t->c;

    if (t->topology_constraints_len)
        topology_placed(t, position);
    if (t->k->ports_len) /* two pods of one class never share a node's ports */
        bits_drop(t->mask, position);
    for (size_t f = 0; t->k->volumes_len && f < filters_len; f++) /* a volume binds pods to one node */
        if (filter_rows[f]->when == FILTER_ATTEMPT && filter_on(c, f) && filter_rows[f]->applies(t))
            filter_rows[f]->mask(t, (struct block_range){0, c->blocks}, t->mask);
}

void attempt_end(struct attempt *t)
{
    if (t->c->views)
        view_enter(t->c, t->outer);
    arena_rewind(t->c->scratch, t->mark);
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

uint64_t attempt_pick_gpus(const struct attempt *t, uint32_t position)
{
    return t->k->gpu.count ? gpu_pick(t, position) : 0;
}
