/* cache_query.c - queries of the cache for explanations: a pod as it would be placed, the pods on a node, the nodes. */
#include "kube/cache/cache_internal.h"

/* ---- the demand of a pod ---------------------------------------------------------------------------------------- */

/* Removes the given requirements; returns whether the pod had any of them. */
static bool requirements_relax(struct cache *p, struct kube_pod *pod, enum cache_relaxation but)
{
    size_t near = 0, spread = 0;
    switch (but) {
    case CACHE_RELAX_NOTHING: return true;
    case CACHE_RELAX_NODE_LABELS: {
        bool any = pod->node_selector.len || pod->has_affinity;
        pod->node_selector.len = 0;
        pod->has_affinity = false;
        return any;
    }
    case CACHE_RELAX_TAINTS:
        kube_push(&p->arena, &pod->tolerations,
                  ((struct berth_toleration){.key = "", .value = "", .exists = true, .effect = BERTH_EFFECT_ANY}));
        return true;
    case CACHE_RELAX_POD_AFFINITY:
        for (size_t i = 0; i < pod->near.len; i++)
            if (pod->near.at[i].weight)
                pod->near.at[near++] = pod->near.at[i];
        near = pod->near.len - near;
        pod->near.len -= near;
        return near > 0;
    case CACHE_RELAX_SPREAD:
        for (size_t i = 0; i < pod->spread.len; i++)
            if (pod->spread.at[i].soft)
                pod->spread.at[spread++] = pod->spread.at[i];
        spread = pod->spread.len - spread;
        pod->spread.len -= spread;
        return spread > 0;
    case CACHE_RELAX_PORTS: {
        bool any = pod->ports.len > 0;
        pod->ports.len = 0;
        return any;
    }
    }
    return false;
}

bool cache_demand(struct cache *p, const char *workload, enum cache_relaxation but, struct cache_demand *ret)
{
    uint32_t pod = pod_find(p, workload);
    if (pod == NONE)
        return false;
    struct kube_pod from = pod_read(p, pod);
    bool differs = requirements_relax(p, &from, but);
    struct shaped_pod shaped = shape_pod(p, pod, &from, false);
    if (p->pods.at[pod].job)
        role_claim(p, pod, &shaped);
    *ret = (struct cache_demand){.workload = shaped.workload, .why = shaped.why, .differs = differs};
    return true;
}

/* ---- pods on nodes ---------------------------------------------------------------------------------------------- */

static bool holder_read(struct cache *p, uint32_t pod, struct cache_workload *ret)
{
    const struct pod_entry *e = &p->pods.at[pod];
    struct cache_demand demand;
    if (!e->id)
        return false;
    struct kube_pod from = pod_read(p, pod);
    *ret = (struct cache_workload){.workload = e->id,
                                   .namespace = pod_namespace(p, e),
                                   .name = e->name,
                                   .node = e->node == NONE ? "" : p->nodes.at[e->node].name,
                                   .instance = e->instance,
                                   .created_ns = e->created_ns,
                                   .priority = from.priority,
                                   .never_preempts = from.never_preempts,
                                   .ours = e->scheduler != NULL,
                                   .gated = e->gated,
                                   .stopping = e->stopping,
                                   .requests = from.requests.at,
                                   .requests_len = from.requests.len};
    if (e->job && cache_demand(p, e->id, CACHE_RELAX_NOTHING, &demand)) {
        ret->name = strchr(e->id, ':') + 1; /* "job:role" */
        ret->tasks = demand.workload.replicas;
        ret->priority = demand.workload.priority;
        ret->never_preempts = demand.workload.never_preempts;
        ret->created_ns = demand.workload.created_ns;
        ret->ours = true;
    }
    return true;
}

bool cache_workload(struct cache *p, const char *workload, struct cache_workload *ret)
{
    uint32_t pod = pod_find(p, workload);
    return pod != NONE && holder_read(p, pod, ret);
}

bool cache_workload_by_instance(struct cache *p, uint64_t instance, struct cache_workload *ret)
{
    uint32_t pod = pod_by_instance(p, instance);
    return pod != NONE && holder_read(p, pod, ret);
}

void cache_workloads_on_node(struct cache *p, const char *node,
                             void (*tell)(void *ctx, const struct cache_workload *holder), void *ctx)
{
    for (uint32_t i = 0; i < p->pods.len; i++) {
        const struct pod_entry *e = &p->pods.at[i];
        struct cache_workload holder;
        bool here = e->id && e->node != NONE && strcmp(p->nodes.at[e->node].name, node) == 0;
        if (here && holder_read(p, i, &holder))
            tell(ctx, &holder);
    }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

void cache_nodes(struct cache *p, void (*tell)(void *ctx, const struct cache_node_view *node), void *ctx)
{
    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct cache_node *e = &p->nodes.at[i];
        struct kube_node from;
        if (!e->name || !e->bytes || !kube_node_read(&p->arena, proto_reader(e->bytes, e->len), &from))
            continue;
        tell(ctx, &(struct cache_node_view){.name = e->name,
                                            .unschedulable = e->unschedulable,
                                            .pods = e->pods,
                                            .allocatable = from.allocatable.at,
                                            .allocatable_len = from.allocatable.len});
    }
}
