/* reporter.h - writes the GPUs of a machine to its node as labels: `berth-kube report-node`, one process per node.
 *
 * The labels are berth.dev/gpu.model, berth.dev/gpu.memory (MiB per GPU) and berth.dev/gpu.count; without GPUs they are
 * removed. NVIDIA GPUs are found by nvidia-smi, else by the driver's files, which do not show the memory; AMD GPUs by
 * the kernel's files. If the GPUs differ, the memory is the smallest and there is no model, because a pod may get any
 * of them.
 *
 * To support another vendor: a function in reporter_probe.c.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* All GPUs of a machine. */
struct gpu_report {
    char model[64];     /* valid as a label value; "": unknown, or they differ */
    int64_t memory_mib; /* of the smallest GPU; 0: unknown */
    uint32_t count;
};

/* Probes the GPUs below a root folder: "" for this machine. May take some seconds. */
struct gpu_report gpu_report_probe(const char *root);
/* Returns the labels as a patch of the node, a new reference. */
json_t *gpu_report_patch(const struct gpu_report *report);

/* Runs the command; argv[0] is its name. Runs until a signal, or with --once until the labels are written. Returns the
 * exit status. */
int kube_report_node(int argc, char *const *argv, FILE *out);
