/* gpu.h - which GPUs a node has, by its labels, and which a pod wants, by its annotations.
 *
 * How many there are is the device plugin's to say (nvidia.com/gpu and its kin, resources like any other). What they are stands in labels of the
 * node: our own (kube/reporter/reporter.h), else those of NVIDIA's feature discovery. GPUs of a node are taken to be alike, as the plugin hands out any of
 * them. A pod says `berth.dev/gpu-models: "A100,H100"` (any of these) and `berth.dev/gpu-memory: 40Gi` (each at least).
 */
#pragma once

#include "kube/object/selector.h"

#define KUBE_GPU_MODEL_LABEL "berth.dev/gpu.model"
#define KUBE_GPU_MEMORY_LABEL "berth.dev/gpu.memory" /* MiB, as the driver counts it */
#define KUBE_GPU_COUNT_LABEL "berth.dev/gpu.count"
#define KUBE_GPU_MODELS_NOTE "berth.dev/gpu-models"
#define KUBE_GPU_MEMORY_NOTE "berth.dev/gpu-memory"

/* Adds to the labels of a node what the conditions below are about. */
void kube_gpu_labels_add(struct arena *arena, struct kube_labels *labels);
/* The conditions on nodes that a pod's annotations make; none if they say nothing. Returns what is wrong with them, or NULL. */
const char *kube_gpu_terms(struct arena *arena, const struct kube_labels *notes, struct kube_terms *ret);
