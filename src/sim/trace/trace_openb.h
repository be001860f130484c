/* trace_openb.h - the files of the openb cluster: nodes with GPUs, pods, and the order in which pods arrive.
 *
 * Nodes and pods are comma-separated values as Alibaba published them (cluster-trace-gpu-v2023), sorted by name here. The file
 * of arrivals has a line "# pods N", then N rows of the sorted pods, counted from 0, then "# nodes M" and the rank of each of
 * the M sorted nodes: of nodes that are equally good the lowest rank is taken. All may be compressed. Reading only; openb.h
 * plays them.
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
    const char *name, *spec; /* models with | between them; "": any */
    const char *const *models;
    size_t models_len;
    int64_t cpu_milli, memory_mib, gpus;
    int64_t gpu_milli; /* of each; 0 without GPUs */
};

struct openb_trace {
    struct openb_node *nodes; /* by name */
    size_t nodes_len;
    struct openb_pod *pods; /* by name */
    size_t pods_len;
    uint32_t *arrivals; /* of pods, in order */
    size_t arrivals_len;
    struct arena arena;
};

/* -EINVAL with the file and the line; -errno where a file cannot be read. The trace is to be ended, also then. */
int openb_trace_read(struct openb_trace *t, const char *nodes, const char *pods, const char *arrivals,
                     struct berth_err *err);
void openb_trace_done(struct openb_trace *t);
static inline void openb_trace_cleanup(struct openb_trace *t)
{
    openb_trace_done(t);
}
