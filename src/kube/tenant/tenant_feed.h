/* tenant_feed.h - watches the custom resources of tenants and writes the status of each.
 *
 * An API server without these resources is asked again from time to time: they may be installed later. The leader
 * writes status at most every two seconds, for a limited number of objects at a time, and only changes: the condition
 * Accepted, and for queues, groups and users the numbers of waiting and running tasks and their resources. Past usage
 * (`usage`) is written when work has ended, and each minute while work runs; a new leader continues from there.
 */
#pragma once

#include "kube/cache/cache.h"
#include "kube/client/api.h"
#include "kube/tenant/tenant.h"

struct tenant_feed;

struct tenant_feed_config {
    struct kube_api *api;
    struct loop *loop;
    struct tenants *tenants;
    struct cache *cache;
    bool (*leads)(void *ctx);
    void (*synced)(void *ctx); /* called once, when all objects are known */
    void (*trouble)(void *ctx, const char *text);
    void *ctx;
    int64_t write_ns; /* interval between two rounds of writing; 0: 2 s */
};
struct tenant_feed *tenant_feed_new(const struct tenant_feed_config *config);
void tenant_feed_free(struct tenant_feed *f); /* accepts NULL */
