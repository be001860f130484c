/* fragmentation.h - what a placement takes off F(node), the idle GPUs that are useless to the pods that usually come.
 *
 * F and the typical pods are typical_pods.h's. Where a share would go decides with the score: of the devices that could take it
 * the one with the highest score is picked, the first of equal ones.
 */
#pragma once

#include "core/gpu/typical_pods.h"
#include "core/search/attempt.h"

/* One pod of the turn on this node, which passes the filters. */
struct fragmentation {
    double gain;     /* what it takes off F(node), in milli-GPU */
    int32_t score;   /* the sigmoid of that in GPUs, cut to the profile's steps */
    uint32_t device; /* of a share, counted from the node's first */
};
struct fragmentation fragmentation_of(const struct turn *t, uint32_t position);
