/* target.c - for a move: refuses the node that the pod leaves, and all nodes except the requested one. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->only != NONE || t->but != NONE;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    EACH_NODE (p, blocks, bits)
        if (p == t->but || (t->only != NONE && p != t->only))
            REFUSE_NODE(p, blocks, bits);
}

const struct filter filter_target = {
    .name = "target",
    .text = "is the target of the pod's migration",
    .reason = REASON_TARGET,
    .when = FILTER_ATTEMPT,
    .always = true,
    .applies = applies,
    .mask = mask,
};
