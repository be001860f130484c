/* fragmentation.h - by how much a placement reduces F(node), the idle GPUs that are useless to typical pods.
 *
 * F and the typical pods are defined in typical_pods.h. For a share, the device is part of the result: of the devices
 * that could hold it, the one with the highest score is picked, the first of equal ones.
 */
#pragma once

#include "core/gpu/typical_pods.h"
#include "core/search/attempt.h"

/* The effect of one pod of the placement attempt on this node, which passes the filters. */
struct fragmentation {
    double gain;     /* reduction of F(node), in milli-GPU */
    int32_t score;   /* the sigmoid of the gain in GPUs, cut to the profile's steps */
    uint32_t device; /* for a share: index of the device on the node */
};
struct fragmentation fragmentation_of(const struct attempt *t, uint32_t position);
