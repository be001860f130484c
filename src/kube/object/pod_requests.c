/* pod_requests.c - the total requests of a pod, added up as in kube-scheduler. */
#include "kube/object/pod.h"

static struct berth_amount *amount_of(struct arena *arena, struct kube_amounts *in, const char *resource)
{
    for (size_t i = 0; i < in->len; i++)
        if (strcmp(in->at[i].resource, resource) == 0)
            return &in->at[i];
    kube_push(arena, in, ((struct berth_amount){resource, 0}));
    return &in->at[in->len - 1];
}

static int64_t capped(int64_t amount)
{
    return amount < BERTH_AMOUNT_MAX ? amount : BERTH_AMOUNT_MAX;
}

static void add(struct arena *arena, struct kube_amounts *to, const struct kube_amounts *more)
{
    for (size_t i = 0; i < more->len; i++) {
        struct berth_amount *a = amount_of(arena, to, more->at[i].resource);
        a->amount = capped(a->amount + more->at[i].amount);
    }
}

static void at_least(struct arena *arena, struct kube_amounts *to, const struct kube_amounts *other)
{
    for (size_t i = 0; i < other->len; i++) {
        struct berth_amount *a = amount_of(arena, to, other->at[i].resource);
        a->amount = a->amount > other->at[i].amount ? a->amount : other->at[i].amount;
    }
}

/* During a resize a container counts with the largest of its requested, allocated and actual resources. */
static struct kube_amounts container_requests(struct arena *arena, const struct kube_pod *pod,
                                              const struct kube_container *c)
{
    for (size_t i = 0; i < pod->actuals.len; i++) {
        const struct kube_actual_resources *a = &pod->actuals.at[i];
        if (a->actuated.len == 0 || strcmp(a->name, c->name) != 0)
            continue;
        struct kube_amounts most = {0};
        at_least(arena, &most, &c->requests);
        at_least(arena, &most, &a->actuated);
        at_least(arena, &most, &a->allocated);
        return most;
    }
    return c->requests;
}

static bool at_pod_level(const char *resource)
{
    return strcmp(resource, "cpu") == 0 || strcmp(resource, "memory") == 0 || strncmp(resource, "hugepages-", 10) == 0;
}

struct kube_amounts kube_pod_requests(struct arena *arena, const struct kube_pod *pod)
{
    struct kube_amounts all = {0}, sidecars = {0}, most = {0};
    for (size_t i = 0; i < pod->containers.len; i++) {
        struct kube_amounts one = container_requests(arena, pod, &pod->containers.at[i]);
        add(arena, &all, &one);
    }
    /* Init containers run one after another, each beside the sidecars started before it. */
    for (size_t i = 0; i < pod->inits.len; i++) {
        const struct kube_container *c = &pod->inits.at[i];
        struct kube_amounts one = c->sidecar ? container_requests(arena, pod, c) : c->requests, now = {0};
        if (c->sidecar) {
            add(arena, &all, &one);
            add(arena, &sidecars, &one);
            at_least(arena, &most, &sidecars);
            continue;
        }
        add(arena, &now, &one);
        add(arena, &now, &sidecars);
        at_least(arena, &most, &now);
    }
    at_least(arena, &all, &most);
    for (size_t i = 0; i < pod->pod_level.len; i++)
        if (at_pod_level(pod->pod_level.at[i].resource))
            amount_of(arena, &all, pod->pod_level.at[i].resource)->amount = pod->pod_level.at[i].amount;
    add(arena, &all, &pod->overhead);
    return all;
}

bool kube_pod_resizing(struct arena *arena, const struct kube_pod *pod)
{
    struct kube_pod plain = *pod;
    plain.actuals.len = 0;
    struct kube_amounts asked = kube_pod_requests(arena, &plain);
    for (size_t i = 0; i < pod->requests.len; i++)
        if (pod->requests.at[i].amount != kube_amounts_find(&asked, pod->requests.at[i].resource))
            return true;
    return false;
}
