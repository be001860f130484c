/* profile.h - a policy's filters and weighted scores, resolved once per plan.
 *
 * Scores that split into a part of the node and a part of the shape (least and most allocated, spare GPUs) are summed
 * into one key per node, over which blocks keep exact maxima; see search.h. The other scores are evaluated block by
 * block.
 */
#pragma once

#include "core/score/score.h"

enum { PROFILE_RESOURCES_MAX = 6, PROFILE_WEIGHT_MAX = 500 };

/* "gpu" among a profile's resources: all GPUs of a node in thousandths. It has no column. */
#define RESOURCE_GPU (UINT32_MAX - 1)

struct profile {
    uint32_t filters; /* a bit per row of filter_rows[] */
    struct {
        const struct score *score;
        int32_t weight;
    } scores[32];
    uint32_t scores_len;
    uint32_t resources[PROFILE_RESOURCES_MAX]; /* used by allocation scores */
    uint32_t resources_len;
    int32_t linear[PROFILE_RESOURCES_MAX]; /* weight of a free share of each resource in the key */
    int32_t spare;                         /* weight in the key of a node without GPUs */
    uint32_t steps;                        /* scores are rounded down to this many steps; 0: not rounded */
    bool over;                             /* a node over its capacity gets no new pods */
    bool uniform;                          /* the resources are built in: equal within a hardware kind */
    bool needs_largest;                    /* some score compares with the largest node */
    bool fragmentation;                    /* GPUs of a node are also chosen by fragmentation */
    bool gpu_cost;                         /* ... or by GPU cost, which takes precedence */
};

/* Fails with -EINVAL for an unknown name or a weight out of range. */
int profile_resolve(const struct berth_profile *from, const struct berth_snapshot *s, struct profile *ret,
                    struct berth_err *err);
