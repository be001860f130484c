/* plugin_view.h - the cluster as `kubectl berth` sees it: the cache of everything listed, the plan that berth-kube
 * would make now, and trial plans for changes to a pod.
 *
 * The schedule is a function of the cluster, so any user who may read the same objects computes the same plan. Nothing
 * is written to the API server. Trials change the view's own cluster; the first plan stays as it is.
 */
#pragma once

#include "base/arena.h"
#include "kube/cache/cache.h"
#include "kube/sched/plan_choice.h"
#include "kube/sched/policy.h"
#include "kube/sched/profile.h"

struct plugin_view {
    struct cache *cache;     /* owned by the caller, must outlive the view */
    struct tenants *tenants; /* NULL: none */
    struct kube_policy policy;
    int64_t now_ns;
    struct berth_cluster *cluster;
    struct plan_policy planned; /* policy of the plan */
    struct kube_choice choice;
    struct arena arena; /* owns the returned texts */
};

/* Makes the plan. Fails as berth_plan_make does; then nothing needs to be freed. */
int plugin_view_init(struct plugin_view *v, struct cache *cache, struct tenants *tenants,
                     const struct kube_profiles *profiles, int64_t now_ns, struct berth_err *err);
void plugin_view_done(struct plugin_view *v);

/* Returns the position of a workload among the pending ones; SIZE_MAX: it is not pending. */
size_t plugin_pending(const struct plugin_view *v, const char *workload);
/* Returns the plan's placement or reservation of the workload. */
bool plugin_action(const struct plugin_view *v, const char *workload, struct berth_action *ret);

enum plugin_end {
    PLUGIN_PENDING,
    PLUGIN_PLACED,   /* at once */
    PLUGIN_PREEMPTS, /* after preemption of others */
};
struct plugin_trial {
    enum plugin_end end;
    const char *node; /* "": none */
    int32_t score;
    const uint64_t *stops; /* instances to be preempted */
    size_t stops_len;
};
/* Puts the workload into the view's cluster, where it stays, and plans. With a profile, all pods are planned by it. */
struct plugin_trial plugin_run_trial(struct plugin_view *v, const struct berth_workload *w,
                                     const struct berth_profile *profile);
/* Removes the instance, and all workloads that the plan left pending or gave a node, from the view's cluster. */
void plugin_isolate(struct plugin_view *v, uint64_t instance);

/* Returns the workload with these nodes excluded. In the arena. */
struct berth_workload plugin_exclude_nodes(struct plugin_view *v, const struct berth_workload *w,
                                           const char *const *nodes, size_t nodes_len);
