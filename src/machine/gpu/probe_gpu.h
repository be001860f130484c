/* probe_gpu.h - GPUs (nvml.h) in the forms that a node's document and its reports have. */
#pragma once

#include <jansson.h>

#include "machine/gpu/nvml.h"

/* {"gpus": [{"uuid", "model", "memory", "minor", "bus", "nvlinks", "links": {uuid: how near}, "parent", "unhealthy"}],
 * "gpu_driver"}, to be added to what probe_machine gave; {} on a machine without the library. Of a GPU that is split its
 * parts are listed, not itself. `unhealthy` says what is wrong. A new reference; the same GPUs give the same bytes. */
json_t *probe_gpus(const struct nvml_look *look);
/* Adds `gpu-memory` (bytes) and `gpu-milli` (thousandths of a GPU that are busy) of all of them to the "usage" and a
 * condition `GpuFailed` for each trouble to the "conditions" of what probe_use_look gave. */
void probe_gpus_use(const struct nvml_look *look, json_t *self);
