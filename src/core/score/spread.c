/* spread.c - prefers domains with fewer pods, for spreads that are only a preference.
 *
 * The score of a node decreases during a placement attempt; search.c takes that into account.
 */
#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    return has_topology_constraint(t, TOPOLOGY_SPREAD, false);
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    int64_t sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (!ts->topology_constraint || ts->topology_constraint->kind != TOPOLOGY_SPREAD || topology_state_required(ts))
            continue;
        uint32_t d = topology_state_domain(ts, p);
        sum += d == NONE ? 0 : SCORE_ONE / (1 + ts->count[d]);
        n++;
    }
    return n ? (int32_t)(sum / n) : 0;
}

SCORE_ADD(score_of)

const struct score score_spread = {
    .name = "spread",
    .text = "follows the preferred spread constraints",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
};
