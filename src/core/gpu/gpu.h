/* gpu.h - the GPUs of one node, one by one: which of them would a pod hold? */
#pragma once

#include "core/search/attempt.h"

/* May the pod hold (a share of) this device, an index into layout.devices? */
bool gpu_device_fits(const struct turn *t, uint32_t device);
/* Thousandths of a device that the pod could be given. */
int32_t gpu_milli_left(const struct turn *t, uint32_t device);
/* Is the device of a model and size that the class accepts, whoever holds it? */
bool gpu_device_suits(const struct layout *l, const struct gpu_need *need, uint32_t device);
/* Are there enough devices that fit? */
bool gpu_node_fits(const struct turn *t, uint32_t position);
/* The devices to hold: the fullest that fits a share; whole ones from the first on; by worth or by fragmentation
 * where the profile says so. The node must fit. */
uint64_t gpu_pick(const struct turn *t, uint32_t position);
