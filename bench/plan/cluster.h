/* cluster.h - a cluster made up for benchmarks; it depends on its arguments and the seed, on nothing else.
 *
 * Nodes: a dozen kinds of hardware in equal parts (16 to 128 cores, 4 or 8 GiB each core; every third kind has 4 or 8
 * GPUs), 8 zones, racks of about 40, a few labels. Workloads: the pods shared out evenly, each with one of `shapes`
 * pairs of cpu and memory between a quarter and four times the middle size, scaled so that all of them ask for 70 % of
 * the cluster; five priorities, creation times mixed over a day. docs/bench.md says more.
 */
#pragma once

#include "berth.h"

struct bench_size {
    uint64_t nodes, pods, workloads, shapes;
    bool gpu;         /* a tenth of the workloads asks for GPUs */
    bool constraints; /* a tenth has spread or anti-affinity; with gpu the two share the tenth */
    uint64_t seed;
};

#define BENCH_NOW_NS ((int64_t)1767225600 * 1000000000) /* 2026-01-01 */

/* -EINVAL if a size makes no sense (no nodes, more workloads than pods, ...). */
int bench_size_check(const struct bench_size *size, struct berth_err *err);
/* Likewise. On success *ret is the caller's. */
int bench_cluster_make(const struct bench_size *size, struct berth_cluster **ret, struct berth_err *err);

/* So many workloads of one small pod, and away with them. */
int bench_more_put(struct berth_cluster *cluster, uint64_t len, struct berth_err *err);
int bench_more_remove(struct berth_cluster *cluster, uint64_t len, struct berth_err *err);
