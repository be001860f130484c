#include "cli/peek.h"

#include "core/cluster.h"

uint64_t peek_nodes(const struct berth_cluster *cluster)
{
    return cluster->nodes_len;
}

bool peek_workload_at(const struct berth_cluster *cluster, size_t i, struct peek_workload *ret)
{
    if (i >= cluster->workloads.len)
        return false;
    const struct workload *w = cluster_workload(cluster, (uint32_t)i);
    bool there = w->live && !w->gone;
    *ret = (struct peek_workload){
        .id = there ? intern_text(&cluster->names, w->id) : "",
        .replicas = w->replicas,
        .suspended = w->suspended,
    };
    return true;
}

bool peek_workload_find(const struct berth_cluster *cluster, const char *id, struct peek_workload *ret)
{
    uint32_t slot = cluster_workload_find(cluster, id);

    return slot != NONE && peek_workload_at(cluster, slot, ret) && *ret->id;
}

void peek_instances(const struct berth_cluster *cluster, const char *workload,
                    void (*tell)(void *ctx, const struct peek_instance *instance), void *ctx)
{
    uint32_t slot = cluster_workload_find(cluster, workload);
    if (slot == NONE)
        return;
    for (uint32_t i = cluster_workload(cluster, slot)->first; i != NONE;) {
        const struct instance *instance = cluster_instance(cluster, i);
        struct peek_instance told = {
            .id = instance->id,
            .ordinal = instance->ordinal,
            .node = intern_text(&cluster->names, cluster_node(cluster, instance->node.v)->body->id),
            .state = instance->state,
        };
        tell(ctx, &told);
        i = instance->next_of_workload;
    }
}
