/* affinity.c - the part of the preferred affinities and anti-affinities that a node satisfies, by weight. */
#include "core/score/scores.h"

static bool wants(const struct tie_state *ts)
{
    return ts->tie && ts->tie->kind != TIE_SPREAD && !tie_required(ts);
}

static bool applies(const struct turn *t)
{
    return ties_any(t, TIE_NEAR, false) || ties_any(t, TIE_APART, false);
}

static int32_t score_of(const struct turn *t, uint32_t p)
{
    int64_t all = 0, held = 0;
    for (uint32_t i = 0; i < t->ties_len; i++) {
        const struct tie_state *ts = &t->ties[i];
        if (!wants(ts))
            continue;
        uint32_t d = tie_domain(ts, p);
        bool there = d != NONE && ts->count[d] > 0;
        all += ts->tie->weight;
        held += there == (ts->tie->kind == TIE_NEAR) ? ts->tie->weight : 0;
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
