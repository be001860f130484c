/* fragmentation.h - how much of a node's idle GPUs is useless to the pods that usually come.
 *
 * F(node) is the expectation, over typical pods, of the idle milli-GPU on the node that such a pod cannot use: all of it
 * when the pod wants no GPU or another model or the node lacks the cpu, else what lies on devices too full for it.
 * Typical pods are those of the snapshot's own workloads, counted by (cpu, share, number, models), the most frequent
 * first until 95 % are covered. After "Beware of Fragmentation" (ATC'23).
 */
#pragma once

#include "core/turn.h"

/* What placing the turn's pod takes off F(node), in milli-GPU; for a share, on the best device. */
double fragmentation_gain(const struct turn *t, uint32_t position);
/* That device, counted from the node's first. */
uint32_t fragmentation_pick(const struct turn *t, uint32_t position);
