/* spread.c - refuses a node whose domain would exceed the emptiest domain by more than max_skew, now or once all stops
 * are done, and a node without a domain.
 */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return has_topology_constraint(t, TOPOLOGY_SPREAD, true);
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (!ts->eligible)
            continue;
        int32_t above = (int32_t)ts->topology_constraint->max_skew - (ts->self ? 1 : 0);
        EACH_NODE (p, blocks, bits) {
            uint32_t d = topology_state_domain(ts, p);
            if (d == NONE || ts->count[d] > ts->least + above || (ts->after && ts->after[d] > ts->after_least + above))
                REFUSE_NODE(p, blocks, bits);
        }
    }
}

const struct filter filter_spread = {
    .name = "spread",
    .text = "satisfies the spread constraints",
    .reason = REASON_SPREAD,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
};
