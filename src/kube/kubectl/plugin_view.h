/* plugin_view.h - what `kubectl berth` knows of a cluster: the projection of all that was listed, the plan that berth-kube would make of it now, and
 * what would come of changes to a pod, tried by plans.
 *
 * The scheduler is a function of the cluster, so nobody has to be asked: whoever may read the same objects computes the same plan. Nothing is
 * written to the API server. Trials change the view's own cluster; the plan that was made first stays as it is.
 */
#pragma once

#include "base/arena.h"
#include "kube/cache/cache.h"
#include "kube/sched/plan_choice.h"
#include "kube/sched/policy.h"
#include "kube/sched/profile.h"

struct plugin_view {
    struct project *project; /* the caller's, outlive it */
    struct tenants *tenants; /* NULL: none */
    struct kube_policy policy;
    int64_t now_ns;
    struct berth_cluster *cluster;
    struct plan_policy planned; /* what the plan was made by */
    struct kube_choice choice;
    struct arena arena; /* what is told points here */
};

/* Plans. Fails as berth_plan_make does; nothing is to be given back then. */
int plugin_view_init(struct plugin_view *v, struct project *project, struct tenants *tenants,
                     const struct kube_profiles *profiles, int64_t now_ns, struct berth_err *err);
void plugin_view_done(struct plugin_view *v);

/* The place of a workload among those that wait; SIZE_MAX: it is none of them. */
size_t plugin_pending(const struct plugin_view *v, const char *workload);
/* What the plan does with it: its placement or reservation. */
bool plugin_action(const struct plugin_view *v, const char *workload, struct berth_action *ret);

enum plugin_end {
    PLUGIN_WAITS,
    PLUGIN_PLACED,  /* at once */
    PLUGIN_CLEARED, /* others are stopped for it */
};
struct plugin_trial {
    enum plugin_end end;
    const char *node; /* "" */
    int32_t score;
    const uint64_t *stops; /* instances */
    size_t stops_len;
};
/* What would come of the workload if it were this one, which it is from now on. With a profile: all is planned by that. */
struct plugin_trial plugin_try(struct plugin_view *v, const struct berth_workload *w,
                               const struct berth_profile *profile);
/* From now on it has no place, and nobody else waits for one. */
void plugin_alone(struct plugin_view *v, uint64_t instance);

/* The same workload not on these nodes. In the arena. */
struct berth_workload plugin_without(struct plugin_view *v, const struct berth_workload *w, const char *const *nodes,
                                     size_t nodes_len);
