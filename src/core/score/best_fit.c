/* best_fit.c - prefers the node that would have the least left.
 *
 * The score is one less the mean of (free - need) / largest, over the profile's resources, where `largest` is the
 * largest capacity of any node.
 */
#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    return t->c->profile.resources_len > 0;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    uint32_t n = t->c->profile.resources_len;
    double left = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct resource_amounts d = resource_amounts_at(t, i, p);
        if (d.largest > 0)
            left += 1.0 / n * (double)(d.free - d.need) / (double)d.largest;
    }
    return score_from(t, 1 - left);
}

SCORE_ADD(score_of)

const struct score score_best_fit = {
    .name = "best_fit",
    .text = "prefers the node with the least free resources after placement",
    .when = SCORE_BLOCK,
    .stepped = true,
    .applies = applies,
    .add = add,
};
