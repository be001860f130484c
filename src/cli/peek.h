/* peek.h - looks into a cluster where the public header only takes things in: how many nodes, which workloads, where a
 * pod runs now. For telling people; nothing here decides.
 */
#pragma once

#include "berth.h"

struct peek_workload {
    const char *id;
    uint32_t replicas;
    bool suspended;
};

struct peek_instance {
    uint64_t id;
    uint32_t ordinal;
    const char *node;
    enum berth_state state;
};

uint64_t peek_nodes(const struct berth_cluster *cluster);

/* The workload at place i; false past the end. Places of removed ones have the id "". */
bool peek_workload_at(const struct berth_cluster *cluster, size_t i, struct peek_workload *ret);
bool peek_workload_find(const struct berth_cluster *cluster, const char *id, struct peek_workload *ret);

/* Calls back for every instance of a workload, also of one that was removed. O(its instances). */
void peek_instances(const struct berth_cluster *cluster, const char *workload,
                    void (*tell)(void *ctx, const struct peek_instance *instance), void *ctx);
