/* sync_resources.c - names of resources that the cluster has no room for.
 *
 * Requests with too many of them are refused. Earlier versions accepted some, and then did not start any more: what their
 * stores say of such a resource is left out, and a workload that names one is not placed.
 */
#include <string.h>

#include "control/state/sync.h"
#include "core/model/cluster.h"

struct room {
    const struct berth_cluster *cluster;
    const char *fresh[BERTH_RESOURCES_MAX]; /* names that the description adds */
    size_t fresh_len;
    bool beyond; /* one had no room */
};

/* A quota also counts these, which are no resources of nodes. */
static bool is_counted(const char *name)
{
    return strcmp(name, "gpu") == 0 || strcmp(name, "jobs") == 0;
}

static bool fits(struct room *r, const char *name)
{
    if (is_counted(name) || cluster_resource_known(r->cluster, name))
        return true;
    for (size_t i = 0; i < r->fresh_len; i++)
        if (strcmp(r->fresh[i], name) == 0)
            return true;
    if (r->cluster->resources.len + r->fresh_len >= BERTH_RESOURCES_MAX) {
        r->beyond = true;
        return false;
    }
    r->fresh[r->fresh_len++] = name;
    return true;
}

/* Most clusters have room for as many names as any description has. */
static bool is_near_full(const struct berth_cluster *cluster, size_t names)
{
    return cluster->resources.len + names > BERTH_RESOURCES_MAX;
}

/* Those of a list that fit: the same list, or a shorter one in the arena. */
#define CUT(r, arena, type, list, len)                                                                                 \
    do {                                                                                                               \
        type *kept_ = ARENA_ARRAY(arena, type, (len) + 1);                                                             \
        size_t n_ = 0;                                                                                                 \
        for (size_t i_ = 0; i_ < (len); i_++)                                                                          \
            if (fits(r, (list)[i_].resource))                                                                          \
                kept_[n_++] = (list)[i_];                                                                              \
        (list) = kept_;                                                                                                \
        (len) = n_;                                                                                                    \
    } while (0)

void project_names_of_node(const struct berth_cluster *cluster, struct berth_node *n, struct arena *arena)
{
    struct room r = {.cluster = cluster};
    if (is_near_full(cluster, n->allocatable_len))
        CUT(&r, arena, struct berth_amount, n->allocatable, n->allocatable_len);
}

bool project_names_of_shape(const struct berth_cluster *cluster, struct berth_shape *shape, struct arena *arena)
{
    struct room r = {.cluster = cluster};
    if (is_near_full(cluster, shape->requests_len + shape->limits_len)) {
        CUT(&r, arena, struct berth_amount, shape->requests, shape->requests_len);
        CUT(&r, arena, struct berth_limit, shape->limits, shape->limits_len);
    }
    return r.beyond;
}

void project_names_of_usage(const struct berth_cluster *cluster, struct berth_instance *i, struct arena *arena)
{
    struct room r = {.cluster = cluster};
    if (is_near_full(cluster, i->usage_len))
        CUT(&r, arena, struct berth_usage, i->usage, i->usage_len);
}

void project_names_of_quota(const struct berth_cluster *cluster, struct berth_quota *q, struct arena *arena)
{
    struct room r = {.cluster = cluster};
    if (is_near_full(cluster, q->limits_len + q->guarantees_len + q->admitted_len + q->totals_len)) {
        CUT(&r, arena, struct berth_amount, q->limits, q->limits_len);
        CUT(&r, arena, struct berth_amount, q->guarantees, q->guarantees_len);
        CUT(&r, arena, struct berth_amount, q->admitted, q->admitted_len);
        CUT(&r, arena, struct berth_total, q->totals, q->totals_len);
    }
}
