/* cluster.h - synthetic clusters for benchmarks, fully determined by the arguments and the seed.
 *
 * Nodes: a dozen kinds of hardware in equal parts (16 to 128 cores, 4 or 8 GiB per core; every third kind has 4 or 8
 * GPUs), 8 zones, racks of about 40, a few labels. Workloads: the pods are distributed evenly; each workload has one of
 * `shapes` pairs of cpu and memory between a quarter and four times the median size, scaled so that the total demand is
 * 70 % of the cluster; five priorities, creation times spread over a day. docs/bench.md says more.
 */
#pragma once

#include "berth.h"

struct bench_size {
    uint64_t nodes, pods, workloads, shapes;
    bool gpu;         /* a tenth of the workloads requests GPUs */
    bool constraints; /* a tenth has spread or anti-affinity; with gpu both share that tenth */
    uint64_t seed;
};

#define BENCH_NOW_NS ((int64_t)1767225600 * 1000000000) /* 2026-01-01 */

/* Returns -EINVAL for an impossible size (no nodes, more workloads than pods, ...). */
int bench_size_check(const struct bench_size *size, struct berth_err *err);
/* Returns -EINVAL likewise. On success the caller owns *ret. */
int bench_cluster_make(const struct bench_size *size, struct berth_cluster **ret, struct berth_err *err);

/* Add and remove `len` workloads of one small pod each. */
int bench_more_put(struct berth_cluster *cluster, uint64_t len, struct berth_err *err);
int bench_more_remove(struct berth_cluster *cluster, uint64_t len, struct berth_err *err);
