/* balanced.c - prefers nodes whose resources would be used evenly.
 *
 * The score is one less the mean deviation of the free share of each resource from the mean share. Bound: the trivial
 * one.
 */
#include <assert.h>

#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    return t->c->profile.resources_len > 1;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    const struct profile *f = &t->c->profile;
    int64_t left[PROFILE_RESOURCES_MAX], sum = 0, off = 0;

    assert(f->resources_len > 0);
    for (uint32_t i = 0; i < f->resources_len; i++) {
        const struct resource_amounts d = resource_amounts_at(t, i, p);
        left[i] = d.capacity > 0 ? (int64_t)((__int128)(d.free - d.need) * SCORE_ONE / d.capacity) : 0;
        sum += left[i];
    }
    for (uint32_t i = 0; i < f->resources_len; i++) {
        int64_t from_mean = left[i] - sum / f->resources_len;
        off += from_mean < 0 ? -from_mean : from_mean;
    }
    off /= f->resources_len;
    return off < SCORE_ONE ? (int32_t)(SCORE_ONE - off) : 0;
}

SCORE_ADD(score_of)

const struct score score_balanced = {
    .name = "balanced",
    .text = "prefers nodes whose resources are used evenly",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
};
