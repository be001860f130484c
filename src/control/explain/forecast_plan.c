/* forecast_plan.c - one plan of a forecast with its lookahead, and the values that are read from both. */
#include <string.h>

#include "base/hash.h"
#include "control/explain/forecast.h"
#include "core/snapshot/snapshot.h"

enum { LOOK_SIZE = 2000000, LOOK_PLANS_LEAST = 16, LOOK_PLANS_MOST = 2000 };
#define SECOND_NS INT64_C(1000000000)
#define HORIZON_NS (90 * 86400 * SECOND_NS)

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

static bool same_pending(const void *ctx, uint32_t at, const void *workload)
{
    return strcmp(berth_plan_pending_name(ctx, at), workload) == 0;
}

bool forecast_find(const struct forecast_plan *p, const char *workload, size_t *ret)
{
    if (!p->plan)
        return false;
    uint32_t at = map_find(&p->pending, hash_bytes(workload, strlen(workload), 0), same_pending, p->plan, workload);
    *ret = at;
    return at != MAP_NONE;
}

bool forecast_starts(const struct forecast_plan *p, const char *workload)
{
    size_t at, len = p->plan ? berth_plan_actions(p->plan) : 0;
    if (forecast_find(p, workload, &at))
        return false;
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(p->plan, i);
        if ((a.op == BERTH_PLACE || a.op == BERTH_PROMOTE || a.op == BERTH_RESERVE) &&
            strcmp(a.workload, workload) == 0)
            return true;
    }
    return false;
}

struct berth_queue_position forecast_queue_position(const struct forecast_plan *p, size_t i, bool *ret_guess)
{
    struct berth_queue_position s = berth_plan_queue_position(p->plan, i);
    const struct start_estimate *e = lookahead_find(&p->ahead, berth_plan_pending_name(p->plan, i));
    *ret_guess = e ? e->guess : s.start_ns > 0;
    if (!e) {
        int64_t late_ns = p->ahead.until_ns - s.start_ns;
        if (s.start_ns > 0 && late_ns > 0) { /* the workload has not started at the end of the lookahead */
            s.start_ns += late_ns;
            s.end_ns += s.end_ns < BERTH_NEVER_NS - late_ns ? late_ns : 0;
        }
        return s;
    }
    s.start_ns = e->start_ns;
    s.end_ns = e->end_ns;
    s.node = e->node;
    s.nodes = e->nodes;
    return s;
}

int64_t forecast_start_ns(const struct forecast_plan *p, const char *workload, int64_t now_ns, bool *ret_guess)
{
    size_t at;
    *ret_guess = false;
    if (forecast_find(p, workload, &at))
        return forecast_queue_position(p, at, ret_guess).start_ns;
    const struct start_estimate *e = lookahead_find(&p->ahead, workload);
    if (e)
        *ret_guess = e->guess;
    return e ? e->start_ns : forecast_starts(p, workload) ? now_ns : 0;
}

int64_t forecast_start_beside(const struct forecast_run *run, size_t i, size_t k, const char *workload)
{
    const struct forecast_plan *p = &run->plans[i];
    bool guess;
    size_t at;
    if (p->ahead.complete && run->plans[k].ahead.complete)
        return forecast_start_ns(p, workload, run->now_ns, &guess);
    if (forecast_find(p, workload, &at))
        return berth_plan_queue_position(p->plan, at).start_ns;
    return forecast_starts(p, workload) ? run->now_ns : 0;
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

/* Indexes the pendings by workload. A workload may have two entries; the last one, with the unplaced pods, counts. */
static void index_pendings(struct forecast_plan *p)
{
    for (size_t i = 0; i < berth_plan_pendings(p->plan); i++) {
        const char *id = berth_plan_pending_name(p->plan, i);
        uint64_t hash = hash_bytes(id, strlen(id), 0);
        uint32_t other = map_find(&p->pending, hash, same_pending, p->plan, id);
        if (other != MAP_NONE)
            map_drop(&p->pending, hash, other);
        map_add(&p->pending, hash, (uint32_t)i);
    }
}

void forecast_policy(struct berth_policy *policy)
{
    policy->backfill.reservations = FORECAST_RESERVATIONS;
    policy->backfill.alike = 0;
    policy->backfill.until_limit = false; /* estimates show likely starts, not the latest ones */
    policy->starting = 0;                 /* no limit: it delays pods only for a short time */
}

void forecast_plan_make(struct forecast_plan *p, const struct berth_policy *policy)
{
    p->rc = berth_plan_make(p->snapshot, policy, &p->plan, &p->err);
    if (p->rc == 0)
        index_pendings(p);
}

void forecast_plan_lookahead(struct forecast_plan *p, struct berth_cluster *copy, const struct berth_policy *policy,
                             const struct lookahead_bounds *bounds)
{
    size_t size = copy->nodes.len + copy->instances.len + copy->workloads.len + 1, most = LOOK_SIZE / size;
    struct lookahead_bounds own = *bounds;
    own.plans_max = most < LOOK_PLANS_LEAST ? LOOK_PLANS_LEAST : most > LOOK_PLANS_MOST ? LOOK_PLANS_MOST : most;
    own.horizon_ns = HORIZON_NS;
    lookahead_run(copy, policy, p->snapshot->now_ns, p->snapshot->seed, &own, &p->ahead);
}

void forecast_plan_done(struct forecast_plan *p)
{
    berth_plan_free(p->plan);
    berth_snapshot_free(p->snapshot);
    map_done(&p->pending);
    lookahead_done(&p->ahead);
    p->plan = NULL;
    p->snapshot = NULL;
}
