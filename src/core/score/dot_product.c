/* dot_product.c - prefers the node whose free resources are least aligned with the request.
 *
 * The score is one less the mean of (free / largest) * (need / largest), over the profile's resources.
 */
#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    return t->c->profile.resources_len > 0;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    uint32_t n = t->c->profile.resources_len;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct resource_amounts d = resource_amounts_at(t, i, p);
        if (d.largest > 0)
            sum += (double)d.free / (double)d.largest * ((double)d.need / (double)d.largest);
    }
    return score_from(t, 1 - 1.0 / n * sum);
}

SCORE_ADD(score_of)

const struct score score_dot_product = {
    .name = "dot_product",
    .text = "prefers the node whose free resources are least aligned with the request",
    .when = SCORE_BLOCK,
    .stepped = true,
    .applies = applies,
    .add = add,
};
