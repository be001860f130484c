/* pressure.c - refuses a node under memory pressure until the pressure has ended, see core/plan/eviction.h. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->c->under_pressure != NULL;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t b = blocks.from; b < blocks.to; b++)
        bits[b - blocks.from] &= ~t->c->under_pressure[b];
}

const struct filter filter_pressure = {
    .name = "pressure",
    .text = "is not under memory pressure",
    .reason = REASON_PRESSURE,
    .when = FILTER_ATTEMPT,
    .always = true,
    .applies = applies,
    .mask = mask,
};
