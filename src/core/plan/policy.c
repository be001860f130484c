/* policy.c - the usual policy, and validation of everything in a policy except its profile. */
#include "core/plan/policy.h"

#include <errno.h>
#include <string.h>

#include "core/queue/rank.h"

#define SECOND_NS ((int64_t)1000000000)

enum { PERCENT_MAX = 1000, MOVES_MAX = 1024, PERMILLE_MAX = 1000, RESERVATIONS_MAX = 100000 };

struct berth_policy berth_policy_usual(void)
{
    return (struct berth_policy){
        .pressure = {.high_percent = 95,  .low_percent = 85,                .hold_ns = 10 * SECOND_NS, .drops = 10},
        .shed = true,
        .rebalance = {.moves = 2,        .gain_percent = 15,                                        .age_ns = 600 * SECOND_NS},
        .backfill = {.reservations = 100},
        .preemption = {.on = true, .min_run_ns = 60 * SECOND_NS},
    };
}

static int check_reserves(const struct berth_headroom *h, struct berth_err *err)
{
    if (h->reserves_len > BERTH_LIST_MAX)
        return err_set(err, EINVAL, "policy: headroom of more than %d resources", BERTH_LIST_MAX);
    for (size_t i = 0; i < h->reserves_len; i++) {
        const struct berth_headroom_amount *r = &h->reserves[i];
        if (!r->resource || !*r->resource)
            return err_set(err, EINVAL, "policy: headroom of a resource without a name");
        if (r->amount < 0 || r->amount > BERTH_AMOUNT_MAX || r->permille > PERMILLE_MAX)
            return err_set(err, EINVAL, "policy: headroom of %s is out of range", r->resource);
    }
    return 0;
}

static int check_window(const struct berth_window *w, struct berth_err *err)
{
    if (!w->id || !*w->id)
        return err_set(err, EINVAL, "policy: a window without a name");
    if (w->end_ns <= w->start_ns)
        return err_set(err, EINVAL, "policy: window %s ends before it begins", w->id);
    if (w->nodes_len > BERTH_LIST_MAX || w->require_len > BERTH_LIST_MAX || w->quotas_len > BERTH_LIST_MAX)
        return err_set(err, EINVAL, "policy: window %s has a list of more than %d entries", w->id, BERTH_LIST_MAX);
    for (size_t i = 0; i < w->nodes_len; i++)
        if (!w->nodes[i] || !*w->nodes[i])
            return err_set(err, EINVAL, "policy: window %s lists a node without a name", w->id);
    for (size_t i = 0; i < w->quotas_len; i++)
        if (!w->quotas[i] || !*w->quotas[i])
            return err_set(err, EINVAL, "policy: window %s lists a quota without a name", w->id);
    for (size_t i = 0; i < w->require_len; i++)
        for (size_t e = 0; e < w->require[i].exprs_len; e++)
            if (!w->require[i].exprs[e].key || !*w->require[i].exprs[e].key)
                return err_set(err, EINVAL, "policy: window %s requires a label without a name", w->id);
    return 0;
}

static int check_windows(const struct berth_policy *p, struct berth_err *err)
{
    if (p->windows_len > WINDOWS_MAX)
        return err_set(err, EINVAL, "policy: more than %d windows", WINDOWS_MAX);
    for (size_t i = 0; i < p->windows_len; i++) {
        int rc = check_window(&p->windows[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_typical_pods(const struct berth_policy *p, struct berth_err *err)
{
    if (p->demand_len > BERTH_TYPICAL_PODS_MAX)
        return err_set(err, EINVAL, "policy: more than %d typical pods", BERTH_TYPICAL_PODS_MAX);
    for (size_t i = 0; i < p->demand_len; i++) {
        const struct berth_typical_pod *d = &p->demand[i];
        const struct berth_gpu_need *gpu = &d->shape.gpu;
        if (d->pods < 1 || d->pods > BERTH_REPLICAS_MAX)
            return err_set(err, EINVAL, "policy: typical pods: %u pods: expected 1 to %d", d->pods, BERTH_REPLICAS_MAX);
        bool share = gpu->milli && gpu->milli != BERTH_GPU_MILLI;
        if (gpu->count > BERTH_NODE_GPUS_MAX || gpu->milli > BERTH_GPU_MILLI || (share && gpu->count != 1))
            return err_set(err, EINVAL, "policy: typical pods: a pod cannot have %u GPUs of %u thousandths", gpu->count,
                           gpu->milli);
        if (gpu->models_len > BERTH_LIST_MAX || d->shape.requests_len > BERTH_LIST_MAX)
            return err_set(err, EINVAL, "policy: typical pods: a list of more than %d entries", BERTH_LIST_MAX);
        for (size_t m = 0; m < gpu->models_len; m++)
            if (!gpu->models[m] || !*gpu->models[m])
                return err_set(err, EINVAL, "policy: typical pods: a GPU model without a name");
        for (size_t r = 0; r < d->shape.requests_len; r++) {
            const struct berth_amount *a = &d->shape.requests[r];
            if (!a->resource || !*a->resource || a->amount < 0 || a->amount > BERTH_AMOUNT_MAX)
                return err_set(err, EINVAL, "policy: typical pods: the request of %s is out of range",
                               a->resource && *a->resource ? a->resource : "a resource without a name");
        }
    }
    return 0;
}

static int check_waiting(const struct berth_policy *p, struct berth_err *err)
{
    if (p->backfill.reservations > RESERVATIONS_MAX)
        return err_set(err, EINVAL, "policy: %u reservations: expected at most %d", p->backfill.reservations,
                       RESERVATIONS_MAX);
    if (p->backfill.estimate_ns < 0)
        return err_set(err, EINVAL, "policy: the default estimate of jobs is negative");
    if (p->preemption.min_run_ns < 0)
        return err_set(err, EINVAL, "policy: the minimum run time before a preemption is negative");
    int rc = rank_check_backfill(&p->backfill, err);
    return rc ? rc : check_windows(p, err);
}

static int check_others(const struct berth_policy *p, struct berth_err *err)
{
    if (p->others_len > BERTH_OTHERS_MAX)
        return err_set(err, EINVAL, "policy: more than %d additional profiles", BERTH_OTHERS_MAX);
    for (size_t i = 0; i < p->others_len; i++) {
        if (!p->others[i].name || !*p->others[i].name)
            return err_set(err, EINVAL, "policy: an additional profile has no name");
        for (size_t k = 0; k < i; k++)
            if (strcmp(p->others[k].name, p->others[i].name) == 0)
                return err_set(err, EINVAL, "policy: profile \"%s\" is listed twice", p->others[i].name);
    }
    return 0;
}

int policy_check(const struct berth_policy *p, struct berth_err *err)
{
    if (p->pressure.high_percent > PERCENT_MAX || p->pressure.low_percent > p->pressure.high_percent)
        return err_set(err, EINVAL,
                       "policy: pressure from %u %% down to %u %%: expected at most %d %%, and the "
                       "second value below the first",
                       p->pressure.high_percent, p->pressure.low_percent, PERCENT_MAX);
    if (p->pressure.high_percent && p->pressure.hold_ns < 1)
        return err_set(err, EINVAL, "policy: the time of pressure before an eviction must be above 0");
    if (p->rebalance.age_ns < 0)
        return err_set(err, EINVAL, "policy: an age is negative");
    if (p->pressure.drops > MOVES_MAX || p->rebalance.moves > MOVES_MAX)
        return err_set(err, EINVAL, "policy: more than %d migrations at a time", MOVES_MAX);
    if (p->rebalance.moves && (p->rebalance.gain_percent < 1 || p->rebalance.gain_percent > PERCENT_MAX))
        return err_set(err, EINVAL, "policy: rebalancing: a minimum gain of %u %%: expected 1 to %d",
                       p->rebalance.gain_percent, PERCENT_MAX);
    int rc = check_reserves(&p->headroom, err);
    if (rc == 0)
        rc = check_others(p, err);
    if (rc == 0)
        rc = check_typical_pods(p, err);
    if (rc == 0)
        rc = rank_check(&p->order, err);
    return rc ? rc : check_waiting(p, err);
}
