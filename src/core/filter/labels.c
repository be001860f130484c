/* labels.c - refuses a node that satisfies none of the required label terms. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->require.len > 0;
}

/* Returns the bits of the block for which every condition of the term holds. */
static uint64_t term_bits(const struct attempt *t, const struct term *term, uint32_t block, uint64_t bits)
{
    for (uint32_t i = 0; i < term->exprs_len && bits; i++) {
        const sym *column = cycle_labels(t->c, term->exprs[i].key) + (size_t)block * BLOCK;
        BITS_EACH (lane, bits)
            if (!expr_holds(&t->c->s->names, &term->exprs[i], column[lane], column[lane] != MAP_NONE))
                bits &= ~((uint64_t)1 << lane);
    }
    return term->exprs_len ? bits : 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    const struct terms *require = &turn_rules(t)->require;
    for (uint32_t b = blocks.from; b < blocks.to; b++) {
        uint64_t any = 0;
        for (uint32_t i = 0; i < require->len; i++)
            any |= term_bits(t, &require->at[i], b, bits[b - blocks.from]);
        bits[b - blocks.from] = any;
    }
}

const struct filter filter_labels = {
    .name = "labels",
    .text = "has the required labels",
    .reason = REASON_LABELS,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
