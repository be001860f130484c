#include "core/resource_names.h"

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

/* A quota also counts "gpu" and "jobs", which are no resources of nodes. */
static void share_take(struct berth_cluster *c, const char *name)
{
    if (strcmp(name, "gpu") != 0 && strcmp(name, "jobs") != 0)
        (void)cluster_resource_put(c, name);
}

void resource_names_of_quota(struct berth_cluster *c, const struct berth_quota *q)
{
    const struct {
        const struct berth_amount *at;
        size_t len;
    } lists[] = {
        {q->limits,     q->limits_len    },
        {q->guarantees, q->guarantees_len},
        {q->admitted,   q->admitted_len  },
    };
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; i < lists[l].len; i++)
            share_take(c, lists[l].at[i].resource);
    for (size_t i = 0; i < q->totals_len; i++)
        share_take(c, q->totals[i].resource);
}
