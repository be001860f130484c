/* trace_openb.h - reads the files of the openb cluster: GPU nodes, pods, and the order in which pods arrive.
 *
 * Nodes and pods are CSV files published by Alibaba (cluster-trace-gpu-v2023), sorted by name here. The file of
 * arrivals has a line "# pods N", then N indices of sorted pods, counted from 0, then "# nodes M" and the rank of each
 * of the M sorted nodes: among equally good nodes the lowest rank is chosen. All files may be compressed. openb.h
 * simulates these traces.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct openb_node {
    const char *name, *model;
    int64_t cpu_milli, memory_mib, gpus;
    uint32_t rank;
};

struct openb_pod {
    const char *name, *spec; /* spec: models, separated by |; "": any */
    const char *const *models;
    size_t models_len;
    int64_t cpu_milli, memory_mib, gpus;
    int64_t gpu_milli; /* per GPU; 0 without GPUs */
};

struct openb_trace {
    struct openb_node *nodes; /* ordered by name */
    size_t nodes_len;
    struct openb_pod *pods; /* ordered by name */
    size_t pods_len;
    uint32_t *arrivals; /* indices of pods, in order */
    size_t arrivals_len;
    struct arena arena;
};

/* Returns -EINVAL with file and line, or -errno if a file cannot be read. The caller calls openb_trace_done, also after
 * a failure. */
int openb_trace_read(struct openb_trace *t, const char *nodes, const char *pods, const char *arrivals,
                     struct berth_err *err);
void openb_trace_done(struct openb_trace *t);
static inline void openb_trace_cleanup(struct openb_trace *t)
{
    openb_trace_done(t);
}
