/* per_node.c - refuses a node that has the maximum number of pods of the workload. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->k->max_per_node > 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (ts->topology_constraint)
            continue;
        EACH_NODE (p, blocks, bits)
            if ((uint32_t)ts->count[p] >= t->k->max_per_node)
                REFUSE_NODE(p, blocks, bits);
    }
}

const struct filter filter_per_node = {
    .name = "per_node",
    .text = "has fewer pods of the workload than the limit per node",
    .reason = REASON_PER_NODE,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
};
