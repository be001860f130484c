/* sync_resources.c - leaves out resource names beyond the limit of the cluster.
 *
 * Requests with too many names are rejected. Earlier versions accepted some, and then failed to start: such a resource
 * in their stores is ignored, and a workload that names one is not placed.
 */
#include <string.h>

#include "control/state/sync.h"
#include "core/model/cluster.h"

struct resource_name_check {
    const struct berth_cluster *cluster;
    const char *fresh[BERTH_RESOURCES_MAX]; /* new names of the description */
    size_t fresh_len;
    bool beyond; /* a name exceeded the limit */
};

/* A quota also counts these; they are not resources of nodes. */
static bool is_counted(const char *name)
{
    return strcmp(name, "gpu") == 0 || strcmp(name, "jobs") == 0;
}

static bool fits(struct resource_name_check *r, const char *name)
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

/* A quick check that lets most clusters skip the search. */
static bool is_near_full(const struct berth_cluster *cluster, size_t names)
{
    return cluster->resources.len + names > BERTH_RESOURCES_MAX;
}

/* Keeps the items that fit: the same list, or a shorter one in the arena. */
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

void sync_cut_node(const struct berth_cluster *cluster, struct berth_node *n, struct arena *arena)
{
    struct resource_name_check r = {.cluster = cluster};
    if (is_near_full(cluster, n->allocatable_len))
        CUT(&r, arena, struct berth_amount, n->allocatable, n->allocatable_len);
}

bool sync_cut_shape(const struct berth_cluster *cluster, struct berth_shape *shape, struct arena *arena)
{
    struct resource_name_check r = {.cluster = cluster};
    if (is_near_full(cluster, shape->requests_len + shape->limits_len)) {
        CUT(&r, arena, struct berth_amount, shape->requests, shape->requests_len);
        CUT(&r, arena, struct berth_limit, shape->limits, shape->limits_len);
    }
    return r.beyond;
}

void sync_cut_usage(const struct berth_cluster *cluster, struct berth_instance *i, struct arena *arena)
{
    struct resource_name_check r = {.cluster = cluster};
    if (is_near_full(cluster, i->usage_len))
        CUT(&r, arena, struct berth_usage, i->usage, i->usage_len);
}

void sync_cut_quota(const struct berth_cluster *cluster, struct berth_quota *q, struct arena *arena)
{
    struct resource_name_check r = {.cluster = cluster};
    if (is_near_full(cluster, q->limits_len + q->guarantees_len + q->admitted_len + q->totals_len)) {
        CUT(&r, arena, struct berth_amount, q->limits, q->limits_len);
        CUT(&r, arena, struct berth_amount, q->guarantees, q->guarantees_len);
        CUT(&r, arena, struct berth_amount, q->admitted, q->admitted_len);
        CUT(&r, arena, struct berth_total, q->totals, q->totals_len);
    }
}
