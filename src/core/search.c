/* search.c - branch and bound for the best node. */
#include "core/search.h"

#include <assert.h>

#include "base/bits.h"

/* An entry is a score, the first position it covers and its level in one word, so that the greatest word is the best
 * score, then the lowest position, then the coarsest entry. */
enum { LEVEL_BITS = 3, POSITION_BITS = 29 };
#define POSITION_MASK (((uint64_t)1 << POSITION_BITS) - 1)

static uint64_t entry_pack(int32_t score, uint32_t position, uint32_t level)
{
    uint64_t biased = (uint32_t)score ^ 0x80000000u;
    return biased << 32 | (POSITION_MASK - position) << LEVEL_BITS | level;
}

static int32_t entry_score(uint64_t e)
{
    return (int32_t)((uint32_t)(e >> 32) ^ 0x80000000u);
}

static uint32_t entry_position(uint64_t e)
{
    return (uint32_t)(POSITION_MASK - (e >> LEVEL_BITS & POSITION_MASK));
}

static void heap_push(struct search *s, uint64_t e)
{
    uint32_t i = s->len++;
    while (i > 0 && s->heap[(i - 1) / 2] < e) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = e;
}

static uint64_t heap_pop(struct search *s)
{
    uint64_t top = s->heap[0], last = s->heap[--s->len];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < s->len; i = child) {
        if (child + 1 < s->len && s->heap[child + 1] > s->heap[child])
            child++;
        if (s->heap[child] <= last)
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

/* What the shape takes from the key at least (`low`), for inverses of one node or the extremes of an entry. */
static int32_t shape_part(const struct search *s, uint64_t *const *min, uint64_t *const *max, uint32_t i)
{
    const struct profile *f = &s->t->c->profile;
    int32_t part = 0;
    for (uint32_t n = 0; n < f->resources_len; n++) {
        uint32_t r = f->resources[n];
        if (s->need[n] == 0 || f->linear[n] == 0)
            continue;
        part += f->linear[n] * share_of(s->need[n], (f->linear[n] > 0 ? min : max)[r][i]);
    }
    return part;
}

/* Does no single column rule the entry out? */
static bool entry_open(const struct search *s, uint32_t level, uint32_t e)
{
    const struct turn *t = s->t;
    const struct bounds *b = &t->c->bounds[level];

    if (level == 1 && t->mask[e] == 0)
        return false;
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        if (b->max[t->k->needs[i].resource][e] < t->k->needs[i].amount)
            return false;
    if (t->k->gpu.count == 0)
        return true;
    int64_t whole = b->max[cycle_gpu_column(t->c, GPU_FREE)][e];
    if (t->k->gpu.milli == BERTH_GPU_MILLI)
        return whole >= t->k->gpu.count;
    return whole > 0 || b->max[cycle_gpu_column(t->c, GPU_PART)][e] >= t->k->gpu.milli;
}

static int32_t entry_bound(const struct search *s, uint32_t level, uint32_t e)
{
    const struct turn *t = s->t;
    const struct level *l = &t->c->l->level[level];
    int32_t bound = t->c->bounds[level].key[e] - shape_part(s, l->inverse_min, l->inverse_max, e);

    if (t->taste)
        bound += t->taste->max[level][e];
    for (uint32_t i = 0; i < t->live_len; i++)
        bound += t->live[i].weight * (t->live[i].score->bound ? t->live[i].score->bound(t, level, e) : SCORE_ONE);
    return bound;
}

static void push_entry(struct search *s, uint32_t level, uint32_t e)
{
    uint32_t span = BLOCK;
    for (uint32_t l = 1; l < level; l++)
        span *= FANOUT;
    if (entry_open(s, level, e))
        heap_push(s, entry_pack(entry_bound(s, level, e), e * span, level));
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* The nodes of a block that pass every filter. */
static uint64_t block_fits(const struct turn *t, uint32_t block, uint64_t bits)
{
    for (uint32_t i = 0; i < t->dynamic_len && bits; i++)
        t->dynamic[i]->mask(t, (struct range){block, block + 1}, &bits);
    return bits;
}

static void block_scores(const struct search *s, uint32_t block, uint64_t bits, int32_t out[BLOCK])
{
    const struct turn *t = s->t;
    const struct cycle *c = t->c;
    uint32_t first = block * BLOCK, last = first + BLOCK - 1 < c->len ? first + BLOCK - 1 : c->len - 1;

    if (c->profile.uniform && c->l->kind[first] == c->l->kind[last]) {
        int32_t part = shape_part(s, c->l->inverse, c->l->inverse, first);
        for (uint32_t i = 0; i < BLOCK; i++)
            out[i] = c->key[first + i] - part;
    } else {
        BITS_EACH(i, bits)
        out[i] = c->key[first + i] - shape_part(s, c->l->inverse, c->l->inverse, first + (uint32_t)i);
    }
    if (t->taste)
        for (uint32_t i = 0; i < BLOCK; i++)
            out[i] += t->taste->at[first + i];
    for (uint32_t n = 0; n < t->live_len; n++)
        t->live[n].score->add(t, block, bits, t->live[n].weight, out);
}

struct best {
    uint32_t lane;
    int32_t score, second;
};

static bool block_best(const struct search *s, uint32_t block, uint64_t within, struct best *ret)
{
    int32_t out[BLOCK];
    uint64_t bits = block_fits(s->t, block, within);
    if (!bits)
        return false;
    block_scores(s, block, bits, out);
    *ret = (struct best){0, INT32_MIN, INT32_MIN};
    BITS_EACH(i, bits)
    {
        if (out[i] > ret->score) {
            ret->second = ret->score;
            ret->score = out[i];
            ret->lane = (uint32_t)i;
        } else if (out[i] > ret->second) {
            ret->second = out[i];
        }
    }
    return true;
}

/* ---- searching -------------------------------------------------------------------------------------------------- */

static void seed(struct search *s)
{
    const struct cycle *c = s->t->c;
    s->len = 0;
    for (uint32_t e = 0; c->blocks && e < c->bounds[c->l->levels].len; e++)
        push_entry(s, c->l->levels, e);
}

static void search_init(struct search *s, struct turn *t)
{
    const struct profile *f = &t->c->profile;
    *s = (struct search){.t = t, .heap = t->c->heap, .block = NONE};
    for (uint32_t n = 0; n < f->resources_len; n++)
        for (uint32_t i = 0; i < t->k->needs_len; i++)
            if (t->k->needs[i].resource == f->resources[n] && cycle_column(t->c, f->resources[n], false))
                s->need[n] = t->k->needs[i].amount;
}

void search_begin(struct search *s, struct turn *t)
{
    search_init(s, t);
    t->c->searches++;
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        if (!cycle_column(t->c, t->k->needs[i].resource, false))
            return; /* nobody has any */
    if (t->k->gpu.count && !cycle_column(t->c, cycle_gpu_column(t->c, GPU_FREE), false))
        return;
    cycle_refresh(t->c);
    seed(s);
}

bool search_next(struct search *s, uint32_t *ret_position)
{
    struct cycle *c = s->t->c;
    while (s->len) {
        uint64_t e = heap_pop(s);
        uint32_t level = e & ((1 << LEVEL_BITS) - 1), position = entry_position(e);
        if (level > 1) {
            uint32_t span = BLOCK;
            for (uint32_t l = 2; l < level; l++)
                span *= FANOUT;
            uint32_t first = position / span;
            for (uint32_t i = first; i < first + FANOUT && i < c->bounds[level - 1].len; i++)
                push_entry(s, level - 1, i);
            continue;
        }
        struct best best;
        uint32_t block = position / BLOCK;
        c->opened++;
        if (!block_best(s, block, s->t->mask[block], &best))
            continue;
        if (best.score < entry_score(e)) {
            heap_push(s, entry_pack(best.score, block * BLOCK, 1)); /* exact now */
            if (s->heap[0] != entry_pack(best.score, block * BLOCK, 1))
                continue;
            (void)heap_pop(s);
        }
        s->block = block;
        s->second = best.second;
        *ret_position = block * BLOCK + best.lane;
        return true;
    }
    return false;
}

void search_placed(struct search *s, uint32_t position)
{
    struct turn *t = s->t;
    if (t->rose) {
        t->rose = false;
        cycle_refresh(t->c);
        seed(s);
        return;
    }
    uint32_t block = position / BLOCK;
    struct best again;
    int32_t bound = s->second;
    assert(block == s->block);
    if (block_best(s, block, t->mask[block] & (uint64_t)1 << (position % BLOCK), &again) && again.score > bound)
        bound = again.score;
    if (bound > INT32_MIN)
        heap_push(s, entry_pack(bound, block * BLOCK, 1));
}

bool search_later(struct turn *t, uint32_t *ret_position)
{
    struct search s;
    int32_t best_score = INT32_MIN;
    bool found = false;

    search_init(&s, t);
    t->c->searches++;
    for (uint32_t b = 0; b < t->c->blocks; b++) {
        struct best best;
        uint64_t within = t->mask[b] & t->c->leaving[b];
        if (!within || !block_best(&s, b, within, &best))
            continue;
        t->c->opened++;
        if (!found || best.score > best_score) {
            found = true;
            best_score = best.score;
            *ret_position = b * BLOCK + best.lane;
        }
    }
    return found;
}

bool search_check(struct turn *t, uint32_t position)
{
    uint64_t bit = (uint64_t)1 << (position % BLOCK);
    return block_fits(t, position / BLOCK, t->mask[position / BLOCK] & bit) != 0;
}
