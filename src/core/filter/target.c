/* target.c - of a pod that is to move: refuses the node it leaves, and all but the one that was wished for. */
#include "core/filter/filters.h"

static bool applies(const struct turn *t)
{
    return t->only != NONE || t->but != NONE;
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    EACH_NODE (p, blocks, bits)
        if (p == t->but || (t->only != NONE && p != t->only))
            NODE_REFUSES(p, blocks, bits);
}

const struct filter filter_target = {
    .name = "target",
    .text = "is where the pod is to move",
    .reason = REASON_TARGET,
    .when = FILTER_TURN,
    .always = true,
    .applies = applies,
    .mask = mask,
};
