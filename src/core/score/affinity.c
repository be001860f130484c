/* affinity.c - the part of the preferred affinities and anti-affinities that a node satisfies, by weight. */
#include "core/score/scores.h"

static bool is_preference(const struct topology_state *ts)
{
    return ts->topology_constraint && ts->topology_constraint->kind != TOPOLOGY_SPREAD && !topology_state_required(ts);
}

static bool applies(const struct attempt *t)
{
    return has_topology_constraint(t, TOPOLOGY_AFFINITY, false) ||
           has_topology_constraint(t, TOPOLOGY_ANTI_AFFINITY, false);
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    int64_t all = 0, held = 0;
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        const struct topology_state *ts = &t->topology_constraints[i];
        if (!is_preference(ts))
            continue;
        uint32_t d = topology_state_domain(ts, p);
        bool there = d != NONE && ts->count[d] > 0;
        all += ts->topology_constraint->weight;
        held += there == (ts->topology_constraint->kind == TOPOLOGY_AFFINITY) ? ts->topology_constraint->weight : 0;
    }
    return all ? (int32_t)(held * SCORE_ONE / all) : 0;
}

SCORE_ADD(score_of)

const struct score score_affinity = {
    .name = "affinity",
    .text = "follows the preferred pod affinity and anti-affinity",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
};
