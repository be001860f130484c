/* affinity.c - refuses a node whose domain has none of the pods that a required affinity selects.
 *
 * The first pod of a workload that selects itself may use any node that has a domain.
 */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return has_topology_constraint(t, TOPOLOGY_AFFINITY, true);
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (!ts->topology_constraint || ts->topology_constraint->kind != TOPOLOGY_AFFINITY ||
            ts->topology_constraint->weight)
            continue;
        bool first = ts->total == 0 && ts->self;
        EACH_NODE (p, blocks, bits) {
            uint32_t d = topology_state_domain(ts, p);
            if (d == NONE || (ts->count[d] == 0 && !first))
                REFUSE_NODE(p, blocks, bits);
        }
    }
}

const struct filter filter_affinity = {
    .name = "affinity",
    .text = "satisfies the required pod affinity",
    .reason = REASON_AFFINITY,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
};
