/* plugin_load.h - API access of `kubectl berth`: single objects, and a one-time listing of everything that a plan
 * depends on.
 *
 * Blocks until answers arrive; writes nothing. Resources that the user may not read are reported by name.
 */
#pragma once

#include <jansson.h>

#include "kube/cache/cache.h"
#include "kube/client/api.h"
#include "kube/sched/profile.h"
#include "kube/tenant/tenant.h"

struct plugin_link {
    struct loop *loop;
    struct kube_config server;
    struct kube_api *api;
};
int plugin_link_open(const char *kubeconfig, const char *context, struct plugin_link *ret, struct berth_err *err);
void plugin_link_close(struct plugin_link *link); /* accepts a zeroed link */
static inline void plugin_link_cleanup(struct plugin_link *link)
{
    plugin_link_close(link);
}

/* Returns an object or list as JSON, a new reference. Codes and texts as in struct kube_answer. */
int plugin_get(struct plugin_link *link, const char *path, json_t **ret, struct berth_err *err);

struct plugin_loaded;
/* Lists everything that berth-kube watches. With `jobs`, also jobs without pods, whose pods are requested from the API
 * server as a dry run (nothing is stored); otherwise pods of jobs count as plain pods. -EACCES if the user may not list
 * some resources; the message says which permission to ask for. */
int plugin_load(struct plugin_link *link, const struct kube_profiles *profiles, bool jobs, struct plugin_loaded **ret,
                struct berth_err *err);
void plugin_loaded_free(struct plugin_loaded *l); /* free it before the link; accepts NULL */
struct cache *plugin_loaded_cache(struct plugin_loaded *l);
struct tenants *plugin_loaded_tenants(struct plugin_loaded *l);
/* Returns the number of jobs whose pods the API server rejects, from berth-kube or from this user; plans leave them
 * out. */
size_t plugin_loaded_refused(const struct plugin_loaded *l);
