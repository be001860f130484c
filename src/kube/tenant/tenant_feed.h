/* tenant_feed.h - the custom resources that tenants are made of, watched, and how each is doing, written to its status.
 *
 * An API server that does not have them is asked again now and then: they may be installed later. Status is written by whoever leads, at
 * most every two seconds, of some at a time, and only where it differs: the condition Accepted, and of queues, groups and users how many tasks wait and run and
 * what they hold. What they used (`usage`) is written when something has ended, and each minute while something runs; who begins to lead goes on
 * from there.
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
    struct project *project;
    bool (*leads)(void *ctx);
    void (*synced)(void *ctx); /* once: all that is there is known */
    void (*trouble)(void *ctx, const char *text);
    void *ctx;
    int64_t write_ns; /* between two looks at what is to be written; 0: 2 s */
};
struct tenant_feed *tenant_feed_new(const struct tenant_feed_config *config);
void tenant_feed_free(struct tenant_feed *f); /* NULL is fine */
