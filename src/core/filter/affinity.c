/* affinity.c - refuses a node whose domain has none of the pods that a required affinity selects.
 *
 * The first pod of a workload that selects itself may use any node that has a domain.
 */
#include "core/filter/filters.h"

static bool applies(const struct turn *t)
{
    return ties_any(t, TIE_NEAR, true);
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->ties_len; i++) {
        const struct tie_state *ts = &t->ties[i];
        if (!ts->tie || ts->tie->kind != TIE_NEAR || ts->tie->weight)
            continue;
        bool first = ts->total == 0 && ts->self;
        EACH_NODE (p, blocks, bits) {
            uint32_t d = tie_domain(ts, p);
            if (d == NONE || (ts->count[d] == 0 && !first))
                NODE_REFUSES(p, blocks, bits);
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
