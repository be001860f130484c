/* openb.h - fills a GPU cluster with arriving pods that never end, and measures how full the cluster gets.
 *
 * Each pod is a workload, which is put into a cluster of the core, planned and applied; a pod without a place is
 * dropped. Placement is done only by the core: a policy is a profile of the core. The measurements are those of "Beware
 * of Fragmentation" (ATC'23), which published the openb traces. To add a policy: a profile of the core, and a row in
 * openb.c if its name differs here.
 */
#pragma once

#include "sim/trace/trace_openb.h"

enum { OPENB_LOADS = 131 }; /* 0 to 130 percent */

struct openb_options {
    const char *policy;
    uint64_t seed; /* of random decisions */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *ctx;
};

/* Results by arrived load, in percent of the cluster's GPUs: means over the pods with which a load was reached. The
 * load counts the requests of all pods, placed or not. */
struct openb_result {
    struct {
        size_t pods;             /* 0: no data */
        double allocated;        /* GPUs in use, in percent */
        double fragmented;       /* idle GPUs that typical pods cannot use, in percent of all */
        double fragmented_share; /* the same, in percent of the idle ones */
    } at[OPENB_LOADS];
    size_t placed, dropped;
    int64_t gpu_milli, used_milli; /* of the cluster; in use at the end */
};

/* Returns the name of a policy, with a description; NULL past the end. Profiles of the core are policies, too. */
const char *openb_policy_at(size_t i, const char **ret_sentence);

/* Returns -EINVAL for an unknown policy, a trace without GPUs, or a trace that the cluster rejects. */
int openb_run(const struct openb_trace *t, const struct openb_options *o, struct openb_result *ret,
              struct berth_err *err);
