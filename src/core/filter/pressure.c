/* pressure.c - refuses a node under memory pressure until the pressure has ended, see core/plan/eviction.h. */
#include "core/filter/filters.h"

static bool applies(const struct turn *t)
{
    return t->c->pressed != NULL;
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    for (uint32_t b = blocks.from; b < blocks.to; b++)
        bits[b - blocks.from] &= ~t->c->pressed[b];
}

const struct filter filter_pressure = {
    .name = "pressure",
    .text = "is not under memory pressure",
    .reason = REASON_PRESSURE,
    .when = FILTER_TURN,
    .always = true,
    .applies = applies,
    .mask = mask,
};
