/* state.c - refuses a node that is not ready: joining, cordoned, draining or lost. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    (void)t;
    return true;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    const uint8_t *state = t->c->s->state;
    EACH_NODE (p, blocks, bits)
        if (state[p] != BERTH_NODE_READY)
            REFUSE_NODE(p, blocks, bits);
}

const struct filter filter_state = {
    .name = "state",
    .text = "is ready and not cordoned",
    .reason = REASON_STATE,
    .when = FILTER_STATIC,
    .always = true,
    .applies = applies,
    .mask = mask,
};
