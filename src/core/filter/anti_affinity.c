/* anti_affinity.c - refuses a node whose domain has pods that must stay apart from this one; the anti-affinity may be
 * declared by either side.
 *
 * For a reservation, instances that stop on the node do not count.
 */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return has_topology_constraint(t, TOPOLOGY_ANTI_AFFINITY, true);
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (!ts->topology_constraint || ts->topology_constraint->kind != TOPOLOGY_ANTI_AFFINITY ||
            ts->topology_constraint->weight)
            continue;
        EACH_NODE (p, blocks, bits) {
            uint32_t d = topology_state_domain(ts, p);
            if (d != NONE && ts->count[d] > (ts->leaving ? ts->leaving[p] : 0))
                REFUSE_NODE(p, blocks, bits);
        }
    }
}

const struct filter filter_anti_affinity = {
    .name = "anti_affinity",
    .text = "satisfies the required pod anti-affinity",
    .reason = REASON_ANTI_AFFINITY,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
};
