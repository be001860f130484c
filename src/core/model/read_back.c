/* read_back.c - functions that return what was put into a cluster. */
#include <string.h>

#include "core/model/cluster.h"

size_t berth_nodes(const struct berth_cluster *cluster)
{
    return cluster->nodes_len;
}

bool berth_workload_at(const struct berth_cluster *cluster, size_t i, struct berth_workload_view *ret)
{
    if (i >= cluster->workloads.len)
        return false;
    const struct workload *w = cluster_workload(cluster, (uint32_t)i);
    bool there = w->live && !w->gone;
    *ret = (struct berth_workload_view){
        .id = there ? intern_text(&cluster->names, w->id) : "",
        .replicas = w->replicas,
        .suspended = w->suspended,
    };
    return true;
}

bool berth_workload_find(const struct berth_cluster *cluster, const char *id, struct berth_workload_view *ret)
{
    uint32_t slot = cluster_workload_find(cluster, id);

    return slot != NONE && berth_workload_at(cluster, slot, ret) && *ret->id;
}

void berth_instances(const struct berth_cluster *cluster, const char *workload,
                     void (*tell)(void *ctx, const struct berth_instance_view *instance), void *ctx)
{
    uint32_t slot = cluster_workload_find(cluster, workload);
    if (slot == NONE)
        return;
    for (uint32_t i = cluster_workload(cluster, slot)->first; i != NONE;) {
        const struct instance *instance = cluster_instance(cluster, i);
        struct berth_instance_view told = {
            .id = instance->id,
            .ordinal = instance->ordinal,
            .node = intern_text(&cluster->names, instance->node_id),
            .state = instance->state,
        };
        tell(ctx, &told);
        i = instance->next_of_workload;
    }
}

static void devices_use(const struct node *n, struct berth_node_use *ret)
{
    for (uint32_t d = 0; d < n->body->devices_len; d++) {
        ret->there += BERTH_GPU_MILLI;
        ret->held += n->devices[d].active;
    }
}

bool berth_node_use(const struct berth_cluster *cluster, const char *node, const char *resource,
                    struct berth_node_use *ret)
{
    uint32_t slot = cluster_node_find(cluster, node);
    if (slot == NONE)
        return false;
    const struct node *n = cluster_node(cluster, slot);
    *ret = (struct berth_node_use){0};
    if (strcmp(resource, "gpu") == 0) {
        devices_use(n, ret);
        return true;
    }
    for (uint32_t i = 0; i < n->body->capacities_len; i++) {
        uint32_t r = n->body->capacities[i].resource;
        if (strcmp(intern_text(&cluster->names, cluster_resource(cluster, r)->name), resource) != 0)
            continue;
        ret->there = n->body->capacities[i].allocatable;
        if (r < cluster->books.len && slot < cluster->books.at[r].len)
            ret->held = cluster->books.at[r].at[slot].active;
    }
    return true;
}
