/* over.c - refuses a node that holds more than it has, until enough has been freed. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->c->any_over;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t b = blocks.from; b < blocks.to; b++)
        bits[b - blocks.from] &= ~t->c->over[b];
}

const struct filter filter_over = {
    .name = "over",
    .text = "has no more allocated than allocatable",
    .reason = REASON_OVER,
    .when = FILTER_ATTEMPT,
    .always = true,
    .applies = applies,
    .mask = mask,
};
