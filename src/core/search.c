/* search.c - branch and bound for the best node. */
#include "core/search.h"

#include "base/bits.h"
#include "base/lanes.h"

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

/* Entries of one hardware kind share what the shape takes: worked out once per search. */
static int32_t entry_part(const struct search *s, uint32_t level, uint32_t e)
{
    struct cycle *c = s->t->c;
    const struct level *l = &c->l->level[level];
    uint32_t kind = l->kind[e];

    if (kind == NONE || !c->profile.uniform)
        return shape_part(s, l->inverse_min, l->inverse_max, e);
    if (c->kind_search[kind] != s->id) {
        c->kind_search[kind] = s->id;
        c->kind_part[kind] = shape_part(s, l->inverse_min, l->inverse_max, e);
    }
    return c->kind_part[kind];
}

static int32_t entry_bound(const struct search *s, uint32_t level, uint32_t e)
{
    const struct turn *t = s->t;
    int32_t bound = t->c->bounds[level].key[e] - entry_part(s, level, e);

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

enum { UNFIT = INT32_MIN };

/* The nodes of a block that pass every filter. */
static uint64_t block_fits(const struct turn *t, uint32_t block, uint64_t bits)
{
    for (uint32_t i = 0; i < t->dynamic_len && bits; i++)
        t->dynamic[i]->mask(t, (struct range){block, block + 1}, &bits);
    return bits;
}

/* What scores beyond the key add for the nodes in `bits`. */
static void block_extras(const struct turn *t, uint32_t block, uint64_t bits, int32_t out[BLOCK])
{
    if (t->taste)
        BITS_EACH(i, bits)
        out[i] += t->taste->at[block * BLOCK + i];
    for (uint32_t n = 0; n < t->live_len; n++)
        t->live[n].score->add(t, block, bits, t->live[n].weight, out);
}

/* The key of each node of the block less what the shape takes from it: the same for neighbours of one hardware kind. */
static void block_keys(const struct search *s, uint32_t first, int32_t out[BLOCK])
{
    const struct cycle *c = s->t->c;
    const uint32_t *kind = c->l->kind + first;

    for (uint32_t i = 0; i < BLOCK;) {
        uint32_t end = BLOCK;
        int32_t part = shape_part(s, c->l->inverse, c->l->inverse, first + i);
        if (kind[i] != kind[BLOCK - 1] || !c->profile.uniform)
            for (end = i + 1; c->profile.uniform && kind[end] == kind[i]; end++)
                ;
        for (; i < end; i++)
            out[i] = c->key[first + i] - part;
    }
}

/* Fills the block's scores, UNFIT where the node refuses; returns the best. */
static int32_t block_open(const struct search *s, uint32_t block, uint64_t within)
{
    const struct turn *t = s->t;
    struct cycle *c = t->c;
    uint32_t first = block * BLOCK;
    int32_t *out = c->score + first;
    uint64_t bits = block_fits(t, block, within);

    c->opened++;
    if (!bits) {
        if (!t->later)
            cycle_tighten(c, block);
        return UNFIT;
    }
    block_keys(s, first, out);
    if (t->taste || t->live_len)
        block_extras(t, block, bits, out);
    BITS_EACH(i, ~bits)
    out[i] = UNFIT;
    c->opened_by[block] = s->id;
    return lanes_max32(out);
}

/* The same for the one node on which something was placed, in a block that is open. */
static int32_t block_again(const struct search *s, uint32_t position)
{
    const struct turn *t = s->t;
    struct cycle *c = t->c;
    uint32_t block = position / BLOCK, lane = position % BLOCK;
    int32_t *out = c->score + (size_t)block * BLOCK;
    uint64_t bit = block_fits(t, block, t->mask[block] & (uint64_t)1 << lane);

    if (bit) {
        out[lane] = c->key[position] - shape_part(s, c->l->inverse, c->l->inverse, position);
        block_extras(t, block, bit, out);
    } else {
        out[lane] = UNFIT;
    }
    return lanes_max32(out);
}

/* Where only keys count, the node with the greatest key is the best of a uniform block, if it fits: then the block need
 * not be opened, and the bound was exact. */
static bool block_peek(const struct search *s, uint32_t block, uint32_t *ret_position)
{
    const struct turn *t = s->t;
    const struct cycle *c = t->c;
    uint32_t first = block * BLOCK;

    if (t->taste || t->live_len || !c->profile.uniform || c->l->level[1].kind[block] == NONE)
        return false;
    uint32_t lane = lanes_find32(c->key + first, c->bounds[1].key[block]);
    if (!block_fits(t, block, t->mask[block] & (uint64_t)1 << lane))
        return false;
    *ret_position = first + lane;
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
    *s = (struct search){.t = t, .heap = t->c->heap, .id = ++t->c->searches};
    for (uint32_t n = 0; n < f->resources_len; n++)
        for (uint32_t i = 0; i < t->k->needs_len; i++)
            if (t->k->needs[i].resource == f->resources[n] && cycle_column(t->c, f->resources[n], false))
                s->need[n] = t->k->needs[i].amount;
}

void search_begin(struct search *s, struct turn *t)
{
    search_init(s, t);
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        if (!cycle_column(t->c, t->k->needs[i].resource, false))
            return; /* nobody has any */
    if (t->k->gpu.count && !cycle_column(t->c, cycle_gpu_column(t->c, GPU_FREE), false))
        return;
    cycle_refresh(t->c);
    seed(s);
}

/* A bound that turned out to be too high goes back with the exact score, unless it still leads. */
static bool leads(struct search *s, uint64_t exact)
{
    if (s->len == 0 || exact > s->heap[0])
        return true;
    heap_push(s, exact);
    return false;
}

static void expand(struct search *s, uint32_t level, uint32_t position)
{
    uint32_t span = BLOCK;
    for (uint32_t l = 2; l < level; l++)
        span *= FANOUT;
    uint32_t first = position / span, len = s->t->c->bounds[level - 1].len;
    for (uint32_t i = first; i < first + FANOUT && i < len; i++)
        push_entry(s, level - 1, i);
}

bool search_next(struct search *s, uint32_t *ret_position)
{
    struct cycle *c = s->t->c;
    while (s->len) {
        uint64_t e = heap_pop(s);
        uint32_t level = e & ((1 << LEVEL_BITS) - 1), position = entry_position(e), block = position / BLOCK;
        if (level > 1) {
            expand(s, level, position);
            continue;
        }
        int32_t best = entry_score(e);
        if (c->opened_by[block] != s->id && block_peek(s, block, ret_position))
            return true;
        /* What the turn itself placed elsewhere may matter here, where ties bind nodes together. */
        if (c->opened_by[block] != s->id || s->t->entangled) {
            best = block_open(s, block, s->t->mask[block]);
            if (best == UNFIT || (best < entry_score(e) && !leads(s, entry_pack(best, position, 1))))
                continue;
        }
        *ret_position = position + lanes_find32(c->score + position, best);
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
    if (t->c->opened_by[block] != s->id) {
        push_entry(s, 1, block);
        return;
    }
    int32_t best = block_again(s, position);
    if (best != UNFIT)
        heap_push(s, entry_pack(best, block * BLOCK, 1));
}

bool search_later(struct turn *t, uint32_t *ret_position)
{
    struct search s;
    int32_t best = UNFIT;

    search_init(&s, t);
    for (uint32_t b = 0; b < t->c->blocks; b++) {
        uint64_t within = t->mask[b] & t->c->leaving[b];
        int32_t score = within ? block_open(&s, b, within) : UNFIT;
        if (score > best) {
            best = score;
            *ret_position = b * BLOCK + lanes_find32(t->c->score + (size_t)b * BLOCK, score);
        }
    }
    return best != UNFIT;
}
