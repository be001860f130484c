/* gpu.h - the GPUs of a node: which devices fit a pod, and which ones it gets. */
#pragma once

#include "core/search/attempt.h"

/* Returns whether the pod may hold (a share of) this device now; `device` is an index into layout.devices. */
bool gpu_device_fits(const struct attempt *t, uint32_t device);
/* Returns how many thousandths of the device are free for the pod. */
int32_t gpu_milli_left(const struct attempt *t, uint32_t device);
/* Returns whether the class accepts the device by model, memory and health, whether free or not. */
bool gpu_device_suits(const struct layout *l, const struct gpu_need *need, uint32_t device);
/* Returns whether enough devices of the node fit. */
bool gpu_node_fits(const struct attempt *t, uint32_t position);
/* Picks the devices for the pod: for a share, the fullest device that fits, or the one chosen by GPU cost or by
 * fragmentation if the profile uses these; for whole GPUs, the first ones that fit. The node must fit. */
uint64_t gpu_pick(const struct attempt *t, uint32_t position);
