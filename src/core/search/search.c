/* search.c - branch and bound for the best node. */
#include "core/search/search.h"

#include "base/bits.h"
#include "base/lanes.h"
#include "core/gpu/gpu_cost.h"

/* A heap entry packs a score, the first position it covers and its level into one word. The greatest word has the best
 * score, then the lowest position, then the coarsest level. */
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

/* Replaces the top of the heap. */
static void heap_replace(struct search *s, uint64_t e)
{
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < s->len; i = child) {
        if (child + 1 < s->len && s->heap[child + 1] > s->heap[child])
            child++;
        if (s->heap[child] <= e)
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = e;
}

static void heap_pop(struct search *s)
{
    if (--s->len)
        heap_replace(s, s->heap[s->len]);
}

/* ---- bounds remembered per class -------------------------------------------------------------------------------- */

/* Upper bounds of scores that earlier searches of a class found, valid up to an index of cycle.given. */
struct search_memo {
    int32_t *bound[LEVELS_MAX + 1]; /* [level][entry] */
    size_t as_of;
};

enum { UNFIT = INT32_MIN, MEMO_BYTES_MAX = 64 << 20 };

static struct search_memo *memo_new(struct cycle *c)
{
    size_t bytes = 0;
    for (uint32_t level = 1; level <= c->l->levels; level++)
        bytes += c->l->level[level].len * sizeof(int32_t);
    if (c->memo_bytes + bytes > MEMO_BYTES_MAX)
        return NULL;
    c->memo_bytes += bytes;
    struct search_memo *m = ARENA_NEW(c->arena, struct search_memo);
    m->as_of = c->given.len;
    for (uint32_t level = 1; level <= c->l->levels; level++) {
        uint32_t len = c->l->level[level].len;
        m->bound[level] = arena_alloc(c->arena, len * sizeof(int32_t));
        for (uint32_t i = 0; i < len; i++)
            m->bound[level][i] = INT32_MAX;
    }
    return m;
}

/* Returns whether bounds may be remembered: the score must consist of key and preferences, and the key must fall as
 * resources are taken. With scores for GPUs this holds only for pods without GPUs, on nodes without GPUs. */
static bool memo_possible(const struct attempt *t)
{
    for (uint32_t i = 0; i < t->c->profile.resources_len; i++)
        if (t->c->profile.linear[i] < 0)
            return false;
    return !t->confined && !t->awaited && t->flat && t->topology_constraints_len == 0 && t->k->ports_len == 0 &&
           t->k->volumes_len == 0;
}

static struct search_memo *memo_of(struct attempt *t)
{
    struct cycle *c = t->c;
    if (!memo_possible(t))
        return NULL;
    struct search_memo **m = &c->memos[t->class];
    if (!*m) {
        *m = memo_new(c);
        return *m;
    }
    for (; (*m)->as_of < c->given.len; (*m)->as_of++)
        for (uint32_t level = 1, e = c->given.at[(*m)->as_of]; level <= c->l->levels; level++, e /= FANOUT)
            (*m)->bound[level][e] = INT32_MAX;
    return *m;
}

static void memo_note(struct search *s, uint32_t level, uint32_t e, int32_t score)
{
    if (s->memo && (score == UNFIT || s->t->live_len == 0 || !gpu_cost_applies(s->t->c, level, e)))
        s->memo->bound[level][e] = score;
}

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

/* Returns how much the shape lowers the key: exactly, with the inverses of one node, or at least, with the extremes of
 * an entry. */
static inline int32_t shape_cost(const struct search *s, uint64_t *const *min, uint64_t *const *max, uint32_t i)
{
    int32_t part = 0;
    for (uint32_t n = 0; n < s->costs_len; n++) {
        const struct resource_cost *c = &s->costs[n];
        part += c->linear * share_of(c->need, (c->linear > 0 ? min : max)[c->resource][i]);
    }
    return part;
}

/* The same for one node; 0 where GPU cost decides, since the key is 0 there. */
static int32_t node_shape_cost(const struct search *s, uint32_t p)
{
    const struct cycle *c = s->t->c;
    return gpu_cost_applies_to_node(c, p) ? 0 : shape_cost(s, c->l->inverse, c->l->inverse, p);
}

static int32_t entry_shape_cost(const struct search *s, uint32_t level, uint32_t e)
{
    const struct layout_level *l = &s->t->c->l->level[level];
    bool worth = gpu_cost_applies(s->t->c, level, e);
    int32_t part = worth && level == 1 ? 0 : shape_cost(s, l->inverse_min, l->inverse_max, e);
    return worth && part > 0 ? 0 : part;
}

/* Returns whether no single column excludes the entry. */
static bool entry_open(const struct search *s, uint32_t level, uint32_t e)
{
    const struct attempt *t = s->t;
    const struct key_bounds *b = &t->c->bounds[level];

    if (level == 1 && (t->mask[t->c->l->segment[e] / BLOCK] & layout_lanes(t->c->l, e)) == 0)
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

/* Returns an upper bound for the scores outside the key. */
static int32_t entry_extras(const struct attempt *t, uint32_t level, uint32_t e)
{
    int32_t most = t->preferences ? t->preferences->max[level][e] : 0;
    for (uint32_t i = 0; i < t->live_len; i++)
        most += t->live[i].weight * (t->live[i].score->bound ? t->live[i].score->bound(t, level, e) : SCORE_ONE);
    return most;
}

/* Pushes the open entries, each with its bound; returns the greatest bound, UNFIT if all are closed. A search with
 * remembered bounds checks whether an entry is open only when it reaches the top, and remembers the result. */
static int32_t push_entries(struct search *s, uint32_t level, uint32_t from, uint32_t to)
{
    const struct attempt *t = s->t;
    const struct layout_level *l = &t->c->l->level[level];
    const int32_t *keys = t->c->bounds[level].key, *memo = s->memo ? s->memo->bound[level] : NULL;
    bool uniform = t->c->profile.uniform, extras = t->preferences || t->live_len;
    uint32_t kind = NONE;
    int32_t part = 0, best = UNFIT;

    for (uint32_t e = from; e < to; e++) {
        int32_t most = memo ? memo[e] : INT32_MAX;
        if (most == UNFIT || (!memo && !entry_open(s, level, e)))
            continue;
        if (!uniform || l->kind[e] == NONE || l->kind[e] != kind) { /* nodes of one kind share the same part */
            part = entry_shape_cost(s, level, e);
            kind = l->kind[e];
        }
        int32_t bound = keys[e] - part;
        if (extras)
            bound += entry_extras(t, level, e);
        if (bound > most)
            bound = most;
        heap_push(s, entry_pack(bound, l->first[e], level));
        best = bound > best ? bound : best;
    }
    return best;
}

/* ---- segments --------------------------------------------------------------------------------------------------- */

/* Returns the nodes of a block that pass every filter. */
static uint64_t block_fits(const struct attempt *t, uint32_t block, uint64_t bits)
{
    for (uint32_t i = 0; i < t->dynamic_len && bits; i++)
        t->dynamic[i]->mask(t, (struct block_range){block, block + 1}, &bits);
    return bits;
}

/* Adds the scores outside the key for the nodes in `bits` of a block. */
static void block_extras(const struct attempt *t, uint32_t block, uint64_t bits, int32_t out[BLOCK])
{
    if (t->preferences)
        BITS_EACH (i, bits)
            out[i] += t->preferences->at[block * BLOCK + i];
    for (uint32_t n = 0; n < t->live_len; n++)
        t->live[n].score->add(t, block, bits, t->live[n].weight, out);
}

static int32_t span_max(const int32_t *column, struct span of)
{
    int32_t most = UNFIT;
    if (of.to - of.from == LANES)
        return lanes_max32(column + of.from);
    for (uint32_t i = of.from; i < of.to; i++)
        most = column[i] > most ? column[i] : most;
    return most;
}

/* Returns the first position with this value. The value must occur. */
static uint32_t span_find(const int32_t *column, struct span of, int32_t value)
{
    if (of.to - of.from == LANES)
        return of.from + lanes_find32(column + of.from, value);
    while (column[of.from] != value)
        of.from++;
    return of.from;
}

/* Fills the scores of a segment, UNFIT where the node refuses; returns the best score. */
static int32_t segment_open(const struct search *s, uint32_t segment, uint64_t within)
{
    const struct attempt *t = s->t;
    struct cycle *c = t->c;
    struct span of = layout_below(c->l, 1, segment);
    uint32_t block = of.from / BLOCK, first = block * BLOCK;
    uint64_t bits = block_fits(t, block, within & layout_lanes(c->l, segment));
    int32_t best = UNFIT, part = node_shape_cost(s, of.from);

    c->opened++;
    if (!bits) {
        if (!t->later)
            cycle_tighten(c, t->k, segment);
        return UNFIT;
    }
    c->opened_by[segment] = s->id;
    for (uint32_t i = of.from; i < of.to; i++)
        c->score[i] = UNFIT;
    BITS_EACH (i, bits) {
        uint32_t p = first + (uint32_t)i;
        if (!c->profile.uniform) /* with uniform resources all nodes of a kind have the same part */
            part = node_shape_cost(s, p);
        c->score[p] = c->key[p] - part;
        best = c->score[p] > best ? c->score[p] : best;
    }
    if (!t->preferences && !t->live_len)
        return best;
    block_extras(t, block, bits, c->score + first);
    return span_max(c->score, of);
}

/* The same for the one node on which a pod was placed, in an open segment. */
static int32_t segment_rescore(const struct search *s, uint32_t segment, uint32_t position)
{
    const struct attempt *t = s->t;
    struct cycle *c = t->c;
    uint32_t block = position / BLOCK, lane = position % BLOCK;
    uint64_t bit = block_fits(t, block, t->mask[block] & (uint64_t)1 << lane);

    if (bit) {
        c->score[position] = c->key[position] - node_shape_cost(s, position);
        block_extras(t, block, bit, c->score + (size_t)block * BLOCK);
    } else {
        c->score[position] = UNFIT;
    }
    return span_max(c->score, layout_below(c->l, 1, segment));
}

/* Tries to skip opening a segment. Where only keys count, the node with the greatest key is the best of its segment if
 * it fits. A bound below the key's score is a remembered one, which says that this node does not fit. */
static bool segment_peek(struct search *s, uint32_t segment, int32_t bound, uint32_t *ret_position)
{
    const struct attempt *t = s->t;
    const struct cycle *c = t->c;

    if (t->preferences || !t->flat || !c->profile.uniform || (t->live_len && gpu_cost_applies(c, 1, segment)))
        return false;
    struct span of = layout_below(c->l, 1, segment);
    int32_t key = c->bounds[1].key[segment];
    s->part = node_shape_cost(s, of.from) - t->plain;
    if (key - s->part != bound)
        return false;
    uint32_t at = span_find(c->key, of, key);
    if (!block_fits(t, at / BLOCK, t->mask[at / BLOCK] & (uint64_t)1 << at % BLOCK))
        return false;
    *ret_position = at;
    return true;
}

/* ---- searching -------------------------------------------------------------------------------------------------- */

static void push_roots(struct search *s)
{
    const struct cycle *c = s->t->c;
    s->len = 0;
    if (c->len)
        (void)push_entries(s, c->l->levels, 0, c->bounds[c->l->levels].len);
}

static void search_init(struct search *s, struct attempt *t)
{
    const struct profile *f = &t->c->profile;
    *s = (struct search){.t = t, .heap = t->c->heap, .id = ++t->c->searches};
    for (uint32_t n = 0; n < f->resources_len; n++)
        for (uint32_t i = 0; f->linear[n] && i < t->k->needs_len; i++)
            if (t->k->needs[i].resource == f->resources[n] && cycle_column(t->c, f->resources[n], false))
                s->costs[s->costs_len++] = (struct resource_cost){f->resources[n], f->linear[n], t->k->needs[i].amount};
}

void search_begin(struct search *s, struct attempt *t)
{
    search_init(s, t);
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        if (!cycle_column(t->c, t->k->needs[i].resource, false))
            return; /* no node has any */
    if (t->k->gpu.count && !t->c->free[cycle_gpu_column(t->c, GPU_FREE)])
        return;
    s->memo = memo_of(t);
    cycle_refresh(t->c);
    push_roots(s);
}

/* Returns the entry of the level that begins at this position. */
static uint32_t entry_at(const struct layout *l, uint32_t level, uint32_t position)
{
    uint32_t e = layout_segment(l, position);
    while (--level)
        e /= FANOUT;
    return e;
}

static void expand(struct search *s, uint32_t level, uint32_t e)
{
    struct span below = layout_below(s->t->c->l, level, e);
    heap_pop(s);
    if (s->memo && !entry_open(s, level, e))
        memo_note(s, level, e, UNFIT);
    else
        memo_note(s, level, e, push_entries(s, level - 1, below.from, below.to));
}

/* Makes the score of the top segment exact; false: it is no longer on top. */
static bool score_top_segment(struct search *s, uint32_t segment)
{
    struct cycle *c = s->t->c;
    int32_t best = UNFIT;
    if (!s->memo || entry_open(s, 1, segment))
        best = segment_open(s, segment, s->t->mask[c->l->segment[segment] / BLOCK]);
    memo_note(s, 1, segment, best);
    if (best == UNFIT) {
        heap_pop(s);
        return false;
    }
    uint64_t exact = entry_pack(best, c->l->segment[segment], 1);
    if (exact != s->heap[0])
        heap_replace(s, exact);
    return exact == s->heap[0];
}

/* Records, for explanations, the score of the top node and a bound for any other. */
static void note_score(struct search *s)
{
    struct attempt *t = s->t;
    t->score = t->rival = entry_score(s->heap[0]);
    if (s->len > 1)
        t->rival = entry_score(s->len > 2 && s->heap[2] > s->heap[1] ? s->heap[2] : s->heap[1]);
}

bool search_next(struct search *s, uint32_t *ret_position)
{
    struct cycle *c = s->t->c;
    while (s->len) {
        uint64_t top = s->heap[0];
        uint32_t level = top & ((1 << LEVEL_BITS) - 1), e = entry_at(c->l, level, entry_position(top));
        if (level > 1) {
            expand(s, level, e);
            continue;
        }
        bool open = c->opened_by[e] == s->id;
        if (!open && segment_peek(s, e, entry_score(top), ret_position)) {
            note_score(s);
            return true;
        }
        /* The attempt's own placements elsewhere may matter here if topology constraints link nodes. */
        if ((!open || s->t->entangled) && !score_top_segment(s, e))
            continue;
        *ret_position = span_find(c->score, layout_below(c->l, 1, e), entry_score(s->heap[0]));
        note_score(s);
        return true;
    }
    return false;
}

void search_placed(struct search *s, uint32_t position)
{
    struct attempt *t = s->t;
    if (t->rose) {
        t->rose = false;
        cycle_refresh(t->c);
        push_roots(s);
        return;
    }
    /* The segment of the node is still on top. */
    uint32_t segment = layout_segment(t->c->l, position);
    int32_t best = t->c->opened_by[segment] == s->id ? segment_rescore(s, segment, position)
                                                     : t->c->bounds[1].key[segment] - s->part;
    if (best == UNFIT)
        heap_pop(s);
    else
        heap_replace(s, entry_pack(best, t->c->l->segment[segment], 1));
}

bool search_later(struct attempt *t, uint32_t *ret_position)
{
    struct search s;
    const struct layout *l = t->c->l;
    int32_t best = UNFIT;

    search_init(&s, t);
    for (uint32_t e = 0; e < l->segments; e++) {
        uint32_t block = l->segment[e] / BLOCK;
        uint64_t within = t->mask[block] & (t->anywhere ? UINT64_MAX : t->c->leaving[block]) & layout_lanes(l, e);
        int32_t score = within ? segment_open(&s, e, within) : UNFIT;
        if (score > best) {
            t->rival = best == UNFIT ? score : best;
            t->score = best = score;
            *ret_position = span_find(t->c->score, layout_below(l, 1, e), score);
        }
    }
    return best != UNFIT;
}
