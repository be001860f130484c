/* gpu.h - the GPU properties of a node, from its labels, and the GPUs a pod wants, from its annotations.
 *
 * The number of GPUs is a resource reported by the device plugin (nvidia.com/gpu and similar). Their model and memory
 * are labels of the node: Berth's own (kube/reporter/reporter.h), else those of NVIDIA's GPU feature discovery. All
 * GPUs of a node are taken to be alike, because the plugin hands out any of them. A pod says `berth.dev/gpu-models:
 * "A100,H100"` (any of these) and `berth.dev/gpu-memory: 40Gi` (at least, per GPU).
 */
#pragma once

#include "kube/object/selector.h"

#define KUBE_GPU_MODEL_LABEL "berth.dev/gpu.model"
#define KUBE_GPU_MEMORY_LABEL "berth.dev/gpu.memory" /* MiB, as the driver reports it */
#define KUBE_GPU_COUNT_LABEL "berth.dev/gpu.count"
#define KUBE_GPU_MODELS_NOTE "berth.dev/gpu-models"
#define KUBE_GPU_MEMORY_NOTE "berth.dev/gpu-memory"

/* Adds the labels that kube_gpu_terms refers to. */
void kube_gpu_labels_add(struct arena *arena, struct kube_labels *labels);
/* Returns in *ret the node terms of a pod's annotations, none without them. Returns what is wrong with them, or
 * NULL. */
const char *kube_gpu_terms(struct arena *arena, const struct kube_labels *notes, struct kube_terms *ret);
