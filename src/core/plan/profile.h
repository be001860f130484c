/* profile.h - a policy's filters and weighted scores, resolved once per plan.
 *
 * Scores that split into a part of the node and a part of the shape (least and most allocated, spare GPUs) are summed
 * into one key per node, over which blocks keep exact maxima; see search.h. The rest is evaluated block by block.
 */
#pragma once

#include "core/score/score.h"

enum { PROFILE_RESOURCES_MAX = 6, PROFILE_WEIGHT_MAX = 500 };

/* "gpu" among a profile's resources: all the GPUs of a node in thousandths. No column. */
#define RESOURCE_GPU (UINT32_MAX - 1)

struct profile {
    uint32_t filters; /* a bit per row of filter_rows[] */
    struct {
        const struct score *score;
        int32_t weight;
    } scores[32];
    uint32_t scores_len;
    uint32_t resources[PROFILE_RESOURCES_MAX]; /* that allocation scores look at */
    uint32_t resources_len;
    int32_t linear[PROFILE_RESOURCES_MAX]; /* what a share of each is worth in the key */
    int32_t spare;                         /* what having no GPU is worth in the key */
    uint32_t steps;                        /* scores are cut down to; 0: as fine as they are */
    bool over;                             /* what holds more than it has gets nothing new */
    bool uniform;                          /* the resources are built-in: equal within a hardware kind */
    bool needs_largest;                    /* some score compares with the largest node */
    bool fragmentation;                    /* GPUs are picked by it, too */
    bool worth;                            /* ... or by this, before it */
};

/* Fails with -EINVAL for a name that does not exist or weights that are out of range. */
int profile_resolve(const struct berth_profile *from, const struct berth_snapshot *s, struct profile *ret,
                    struct berth_err *err);
