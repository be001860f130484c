/* openb.h - pods arrive one by one on a cluster with GPUs, and never leave: how much of it can be filled?
 *
 * Each pod is a workload of its own, put into a cluster of the core, planned for and applied; one that finds no place is
 * dropped. There is no placement here: a policy is a profile of the core, by name. What is measured is that of "Beware of
 * Fragmentation" (ATC'23), by which the traces of openb were published. To add a policy: a profile of the core, and a row in
 * openb.c where it has another name here.
 */
#pragma once

#include "sim/trace/trace_openb.h"

enum { OPENB_LOADS = 131 }; /* 0 to 130 percent */

struct openb_options {
    const char *policy;
    uint64_t seed; /* of what is random */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *ctx;
};

/* By the load that has arrived, in percent of the cluster's GPUs: the means over the pods with which it was reached. What pods
 * ask for counts, whether they found a place or not. */
struct openb_result {
    struct {
        size_t pods;             /* 0: the rest is not known */
        double allocated;        /* GPUs in use, in percent */
        double fragmented;       /* idle GPUs that are useless to the pods that usually come, in percent of all */
        double fragmented_share; /* the same, in percent of the idle ones */
    } at[OPENB_LOADS];
    size_t placed, dropped;
    int64_t gpu_milli, used_milli; /* of the cluster; at the end */
};

/* Names of policies with a sentence each; NULL past the end. Profiles of the core are policies, too. */
const char *openb_policy_at(size_t i, const char **ret_sentence);

/* -EINVAL for a policy that does not exist, a trace without GPUs, or one that the cluster refuses. */
int openb_run(const struct openb_trace *t, const struct openb_options *o, struct openb_result *ret,
              struct berth_err *err);
