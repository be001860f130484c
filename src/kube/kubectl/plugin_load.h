/* plugin_load.h - `kubectl berth` at the API server: single objects, and once all that a plan depends on.
 *
 * Waits for answers; nothing is changed there. What the user may not read is told by name.
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
void plugin_link_close(struct plugin_link *link); /* one of zeroes is left alone */
static inline void plugin_link_cleanup(struct plugin_link *link)
{
    plugin_link_close(link);
}

/* One object or list as JSON. Codes and texts as in struct kube_answer; a new reference. */
int plugin_get(struct plugin_link *link, const char *path, json_t **ret, struct berth_err *err);

struct plugin_loaded;
/* Lists all that berth-kube watches. With jobs: those that have no pods yet, too, of which the API server is asked what their pods would be (nothing is
 * stored); without, pods of theirs count as pods. -EACCES where the user may not list some of it, and the text says what to ask for. */
int plugin_load(struct plugin_link *link, const struct kube_profiles *profiles, bool jobs, struct plugin_loaded **ret,
                struct berth_err *err);
void plugin_loaded_free(struct plugin_loaded *l); /* before the link; NULL is fine */
struct project *plugin_loaded_project(struct plugin_loaded *l);
struct tenants *plugin_loaded_tenants(struct plugin_loaded *l);
/* Jobs whose pods the API server does not accept, from berth-kube or from this user: they are left out of plans. */
size_t plugin_loaded_refused(const struct plugin_loaded *l);
