#include "kube/kubectl/plugin_view.h"

#include <string.h>

#include "kube/object/selector.h"

int plugin_view_init(struct plugin_view *v, struct cache *cache, struct tenants *tenants,
                     const struct kube_profiles *profiles, int64_t now_ns, struct berth_err *err)
{
    *v = (struct plugin_view){.cache = cache, .tenants = tenants, .now_ns = now_ns};
    kube_policy_init(&v->policy, profiles->own, profiles->profiles, profiles->len);
    v->cluster = cache_cluster(cache);
    kube_policy_read(&v->policy, tenants, &v->planned);
    int rc = kube_choose(v->cluster, now_ns, &v->planned.policy, &v->choice, err);
    if (rc < 0) {
        plan_policy_done(&v->planned);
        return rc;
    }
    arena_init(&v->arena);
    return 0;
}

void plugin_view_done(struct plugin_view *v)
{
    kube_choice_done(&v->choice);
    plan_policy_done(&v->planned);
    arena_done(&v->arena);
}

size_t plugin_pending(const struct plugin_view *v, const char *workload)
{
    for (size_t i = 0; i < berth_plan_pendings(v->choice.plan); i++)
        if (strcmp(berth_plan_pending_name(v->choice.plan, i), workload) == 0)
            return i;
    return SIZE_MAX;
}

static bool action_find(const struct berth_plan *plan, const char *workload, struct berth_action *ret)
{
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if ((a.op != BERTH_PLACE && a.op != BERTH_RESERVE) || strcmp(a.workload, workload) != 0)
            continue;
        *ret = a;
        return true;
    }
    return false;
}

bool plugin_action(const struct plugin_view *v, const char *workload, struct berth_action *ret)
{
    return action_find(v->choice.plan, workload, ret);
}

/* ---- trials ----------------------------------------------------------------------------------------------------- */

struct plugin_trial plugin_run_trial(struct plugin_view *v, const struct berth_workload *w,
                                     const struct berth_profile *profile)
{
    struct plugin_trial ret = {.node = ""};
    struct berth_policy policy = v->planned.policy;
    struct berth_plan *plan;
    struct berth_action a;
    if (berth_workload_put(v->cluster, w, NULL) < 0)
        return ret;
    if (profile) {
        policy.profile = profile;
        policy.others_len = 0;
    }
    struct berth_snapshot *snapshot = berth_freeze(v->cluster, v->now_ns, 0);
    if (berth_plan_make(snapshot, &policy, &plan, NULL) < 0) {
        berth_snapshot_free(snapshot);
        return ret;
    }
    if (action_find(plan, w->id, &a)) {
        ret.end = a.op == BERTH_PLACE ? PLUGIN_PLACED : PLUGIN_PREEMPTS;
        ret.node = arena_strdup(&v->arena, a.node);
        ret.score = a.score;
        ret.stops_len = a.waits_len;
        ret.stops = a.waits_len ? arena_dup(&v->arena, a.waits, a.waits_len * sizeof *a.waits) : NULL;
    }
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    return ret;
}

void plugin_isolate(struct plugin_view *v, uint64_t instance)
{
    const struct berth_plan *plan = v->choice.plan;
    (void)berth_instance_remove(v->cluster, instance, NULL);
    for (size_t i = 0; i < berth_plan_pendings(plan); i++)
        (void)berth_workload_remove(v->cluster, berth_plan_pending_name(plan, i), NULL);
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if (a.op == BERTH_PLACE || a.op == BERTH_RESERVE)
            (void)berth_workload_remove(v->cluster, a.workload, NULL);
    }
}

struct berth_workload plugin_exclude_nodes(struct plugin_view *v, const struct berth_workload *w,
                                           const char *const *nodes, size_t nodes_len)
{
    struct berth_workload other = *w;
    size_t len = w->shape.require_len ? w->shape.require_len : 1;
    struct berth_term *terms = ARENA_ARRAY(&v->arena, struct berth_term, len);
    for (size_t i = 0; i < len; i++) {
        const struct berth_term from = w->shape.require_len ? w->shape.require[i] : (struct berth_term){0};
        struct berth_expr *exprs = ARENA_ARRAY(&v->arena, struct berth_expr, from.exprs_len + 1);
        if (from.exprs_len)
            memcpy(exprs, from.exprs, from.exprs_len * sizeof *exprs);
        exprs[from.exprs_len] = (struct berth_expr){KUBE_NAME_LABEL, BERTH_NOT_IN, nodes, nodes_len};
        terms[i] = (struct berth_term){exprs, from.exprs_len + 1, from.weight};
    }
    other.shape.require = terms;
    other.shape.require_len = len;
    return other;
}
