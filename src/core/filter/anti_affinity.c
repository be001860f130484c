/* anti_affinity.c - refuses a node whose domain has pods that must stay apart from this one; the anti-affinity may be
 * declared by either side.
 *
 * For a reservation, instances that stop on the node do not count.
 */
#include "core/filter/filters.h"

static bool applies(const struct turn *t)
{
    return ties_any(t, TIE_APART, true);
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->ties_len; i++) {
        const struct tie_state *ts = &t->ties[i];
        if (!ts->tie || ts->tie->kind != TIE_APART || ts->tie->weight)
            continue;
        EACH_NODE (p, blocks, bits) {
            uint32_t d = tie_domain(ts, p);
            if (d != NONE && ts->count[d] > (ts->leaving ? ts->leaving[p] : 0))
                NODE_REFUSES(p, blocks, bits);
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
