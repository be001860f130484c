#include "kube/job/job_claim.h"

static const char *some(const char *text)
{
    return text && *text ? text : NULL;
}

const char *job_claim_apply(const struct job_claim *c, struct tenants *tenants, struct arena *arena,
                            struct berth_workload *w)
{
    int64_t priority = (int64_t)w->priority + c->priority;
    w->replicas = c->tasks;
    w->priority = priority > INT32_MAX ? INT32_MAX : priority < INT32_MIN ? INT32_MIN : (int32_t)priority;
    w->created_ns = c->created_ns;
    w->suspended = c->suspended;
    w->begin_ns = c->begin_ns;
    w->gang = c->gang ? arena_fmt(arena, "%s:%s", c->namespace, c->name) : NULL;
    w->gang_min = c->gang ? c->min : 0;
    w->never_preempts |= c->never_preempts;
    w->unpreemptible = c->unpreemptible;
    w->estimate_ns = c->estimate_ns;
    w->limit_ns = c->limit_ns;
    w->deadline_ns = c->deadline_ns;
    w->min_run_ns = c->min_run_ns;
    if (!tenants)
        return NULL;
    return tenants_claim(tenants,
                         &(struct tenant_claim){.namespace = c->namespace,
                                                .user = some(c->user),
                                                .queue = some(c->queue),
                                                .name = c->name,
                                                .type = c->type,
                                                .class_name = c->class_name,
                                                .network = c->network,
                                                .attributes = c->attributes,
                                                .attributes_len = c->attributes_len,
                                                .parameters = c->parameters,
                                                .estimate_ns = c->estimate_ns,
                                                .limit_ns = c->limit_ns,
                                                .deadline_ns = c->deadline_ns,
                                                .min_run_ns = c->min_run_ns,
                                                .unpreemptible = w->unpreemptible,
                                                .never_preempts = w->never_preempts},
                         arena, w);
}
