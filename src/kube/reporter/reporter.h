/* reporter.h - what GPUs a machine has, written on its node as labels: `berth-kube report-node`, one on every node.
 *
 * berth.dev/gpu.model, berth.dev/gpu.memory (MiB of one) and berth.dev/gpu.count; where there is none they are taken away. NVIDIA's GPUs are known from
 * nvidia-smi, else from the driver's files, which do not tell their memory; AMD's from the kernel's. Of GPUs that differ the memory is the least, and
 * no model is told: whoever asks for one may be given any.
 *
 * To know another maker: a function in reporter_probe.c.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* The GPUs of a machine, together. */
struct gpu_report {
    char model[64];     /* as a label's value; "": nobody says, or they differ */
    int64_t memory_mib; /* of the least; 0: nobody says */
    uint32_t count;
};

/* Looks below a root: "" for this machine. May take some seconds. */
struct gpu_report gpu_report_look(const char *root);
/* The labels as a patch of the node, a new reference. */
json_t *gpu_report_patch(const struct gpu_report *report);

/* The command; argv[0] is its name. Runs until a signal, or with --once until the node has its labels. The exit status. */
int kube_report_node(int argc, char *const *argv, FILE *out);
