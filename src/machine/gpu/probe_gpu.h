/* probe_gpu.h - GPU data (nvml.h) in the formats of a node's document and its reports. */
#pragma once

#include <jansson.h>

#include "machine/gpu/nvml.h"

/* Returns {"gpus": [{"uuid", "model", "memory", "minor", "bus", "nvlinks", "links": {uuid: connection}, "parent",
 * "unhealthy"}], "gpu_driver"}, to be merged into the result of probe_machine; {} on a machine without the library. For
 * a GPU in MIG mode its MIG devices are listed instead. `unhealthy` is the problem. A new reference; equal GPUs give
 * equal bytes. */
json_t *probe_gpus(const struct nvml_snapshot *look);
/* Adds the totals `gpu-memory` (bytes) and `gpu-milli` (busy thousandths of a GPU) to the "usage", and a condition
 * `GpuFailed` for each problem to the "conditions", of the result of probe_use_poll. */
void probe_gpus_use(const struct nvml_snapshot *look, json_t *self);
