#include "core/model/resource_names.h"

#include <string.h>

static void amounts_take(struct berth_cluster *c, const struct berth_amount *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        (void)cluster_resource_put(c, at[i].resource);
}

void resource_names_of_node(struct berth_cluster *c, const struct berth_node *n)
{
    amounts_take(c, n->allocatable, n->allocatable_len);
}

void resource_names_of_workload(struct berth_cluster *c, const struct berth_workload *w)
{
    amounts_take(c, w->shape.requests, w->shape.requests_len);
    for (size_t i = 0; i < w->shape.limits_len; i++)
        (void)cluster_resource_put(c, w->shape.limits[i].resource);
}

void resource_names_of_volume(struct berth_cluster *c, const struct berth_volume *v)
{
    char attach[BERTH_NAME_MAX + 1] = "attach-";
    if (!v->driver || !*v->driver)
        return;
    memcpy(attach + strlen(attach), v->driver, strlen(v->driver) + 1); /* describe_volume checked the length */
    (void)cluster_resource_put(c, attach);
}

/* A quota also limits "gpu" and "jobs", which are no resources of nodes. */
static bool is_resource(const char *name)
{
    return strcmp(name, "gpu") != 0 && strcmp(name, "jobs") != 0;
}

/* Returns the n-th resource name of a quota; NULL after the last. */
static const char *quota_name(const struct berth_quota *q, size_t n)
{
    const struct {
        const struct berth_amount *at;
        size_t len;
    } lists[] = {
        {q->limits,     q->limits_len    },
        {q->guarantees, q->guarantees_len},
        {q->admitted,   q->admitted_len  },
    };
    for (size_t l = 0; l < sizeof lists / sizeof *lists; n -= lists[l++].len)
        if (n < lists[l].len)
            return lists[l].at[n].resource;
    return n < q->totals_len ? q->totals[n].resource : NULL;
}

void resource_names_of_quota(struct berth_cluster *c, const struct berth_quota *q)
{
    const char *name;
    for (size_t n = 0; (name = quota_name(q, n)); n++)
        if (is_resource(name))
            (void)cluster_resource_put(c, name);
}

size_t resource_names_new_of_quota(const struct berth_cluster *c, const struct berth_quota *q)
{
    const char *name;
    size_t fresh = 0;
    for (size_t n = 0; (name = quota_name(q, n)); n++)
        fresh += is_resource(name) && !cluster_resource_known(c, name);
    return fresh;
}

size_t resource_names_new_of_workload(const struct berth_cluster *c, const struct berth_workload *w)
{
    size_t fresh = 0;
    for (size_t i = 0; i < w->shape.requests_len; i++)
        fresh += !cluster_resource_known(c, w->shape.requests[i].resource);
    for (size_t i = 0; i < w->shape.limits_len; i++)
        fresh += !cluster_resource_known(c, w->shape.limits[i].resource);
    return fresh;
}
