/* seen.c - reading back what a cluster was told. */
#include "core/cluster.h"

size_t berth_nodes(const struct berth_cluster *cluster)
{
    return cluster->nodes_len;
}

bool berth_workload_at(const struct berth_cluster *cluster, size_t i, struct berth_workload_seen *ret)
{
    if (i >= cluster->workloads.len)
        return false;
    const struct workload *w = cluster_workload(cluster, (uint32_t)i);
    bool there = w->live && !w->gone;
    *ret = (struct berth_workload_seen){
        .id = there ? intern_text(&cluster->names, w->id) : "",
        .replicas = w->replicas,
        .suspended = w->suspended,
    };
    return true;
}

bool berth_workload_find(const struct berth_cluster *cluster, const char *id, struct berth_workload_seen *ret)
{
    uint32_t slot = cluster_workload_find(cluster, id);

    return slot != NONE && berth_workload_at(cluster, slot, ret) && *ret->id;
}

void berth_instances(const struct berth_cluster *cluster, const char *workload,
                     void (*tell)(void *ctx, const struct berth_instance_seen *instance), void *ctx)
{
    uint32_t slot = cluster_workload_find(cluster, workload);
    if (slot == NONE)
        return;
    for (uint32_t i = cluster_workload(cluster, slot)->first; i != NONE;) {
        const struct instance *instance = cluster_instance(cluster, i);
        struct berth_instance_seen told = {
            .id = instance->id,
            .ordinal = instance->ordinal,
            .node = intern_text(&cluster->names, instance->node_id),
            .state = instance->state,
        };
        tell(ctx, &told);
        i = instance->next_of_workload;
    }
}
