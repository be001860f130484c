/* days_oracle.c - checks every plan of a day with accounts of its own. */
#include <inttypes.h>
#include <string.h>

#include "days_world.h"

static bool is_held(enum day_state s)
{
    return s == DAY_RUNNING || s == DAY_STOPPING;
}

/* ---- preemption ------------------------------------------------------------------------------------------------- */

struct held {
    int64_t cpu;
    uint64_t taken; /* one bit per device */
};

/* Returns what is free on a node after all stops among the first `len` actions are done and all their placements
 * run. */
static struct held free_after(const struct day *d, const struct berth_plan *plan, size_t len, uint32_t node)
{
    struct held left = {d->nodes[node].cpu, 0};
    for (uint32_t i = 0; i < d->jobs_len; i++)
        for (uint32_t t = 0; d->jobs[i].there && t < d->jobs[i].tasks; t++) {
            const struct day_task *task = &d->jobs[i].task[t];
            if (task->node == node && (task->state == DAY_RUNNING || task->state == DAY_RESERVED)) {
                left.cpu -= d->jobs[i].cpu;
                left.taken |= task->gpus;
            }
        }
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        const struct day_job *j = day_job_find((struct day *)d, a.workload);
        if (strcmp(a.node, d->nodes[node].id) != 0)
            continue;
        int sign = a.op == BERTH_STOP ? 1 : a.op == BERTH_PLACE || a.op == BERTH_RESERVE ? -1 : 0;
        left.cpu += sign * j->cpu;
        left.taken = sign > 0 ? left.taken & ~a.gpus : sign < 0 ? left.taken | a.gpus : left.taken;
    }
    return left;
}

static bool is_stopped_for_another(const struct berth_action *a, const struct day_job *j)
{
    return a->op == BERTH_STOP && a->cause == BERTH_CAUSE_PREEMPTED && strcmp(a->workload, j->id) == 0;
}

/* Returns true if `a` stops a pod of the same victim group as `first`: of a gang, every preempted pod (an elastic gang
 * gives up its last ranks first, down to the pod in the way); else the same pod. */
static bool is_of_victim_group(const struct day_job *victim, const struct berth_action *first,
                               const struct berth_action *a)
{
    return is_stopped_for_another(a, victim) && (victim->gang || a->ordinal == first->ordinal);
}

static bool counts_in(const struct day *d, const struct day_job *j, int quota)
{
    const int of[] = {j->user, j->queue};
    for (size_t n = 0; n < 2; n++)
        for (int q = of[n]; q >= 0; q = d->quotas[q].parent)
            if (q == quota)
                return true;
    return false;
}

static int64_t pod_needs(const struct day_job *j, enum day_resource r)
{
    return r == DAY_CPU ? j->cpu : r == DAY_GPU ? (int64_t)j->gpus * 1000 : 0;
}

struct quota_use {
    int64_t later; /* after all stops are done and all placements run */
    int64_t most;  /* with everything that is still stopping */
    int64_t kept;  /* for pending jobs that have a reservation */
};

/* Returns the usage of the quota after the first `len` actions. */
static struct quota_use quota_after(const struct day *d, const struct berth_plan *plan, size_t len, int quota,
                                    enum day_resource r)
{
    struct quota_use sum = {0};
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        const struct day_job *j = &d->jobs[i];
        for (uint32_t t = 0; j->there && !j->over && t < j->tasks && counts_in(d, j, quota); t++) {
            sum.later += j->task[t].state == DAY_RUNNING || j->task[t].state == DAY_RESERVED ? pod_needs(j, r) : 0;
            sum.most += is_held(j->task[t].state) || j->task[t].state == DAY_RESERVED ? pod_needs(j, r) : 0;
        }
    }
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        const struct day_job *j = day_job_find((struct day *)d, a.workload);
        int sign = a.op == BERTH_STOP ? -1 : a.op == BERTH_PLACE || a.op == BERTH_RESERVE ? 1 : 0;
        if (!counts_in(d, j, quota) || j->over)
            continue;
        sum.later += sign * pod_needs(j, r);
        sum.most += sign > 0 ? pod_needs(j, r) : 0;
    }
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        const struct day_job *j = day_job_find((struct day *)d, berth_plan_pending_name(plan, i));
        bool kept = counts_in(d, j, quota) && berth_plan_queue_position((struct berth_plan *)plan, i).start_ns;
        sum.kept += kept ? (j->gang ? j->min : 1) * pod_needs(j, r) : 0;
    }
    return sum;
}

/* Returns true if keeping `pods` pods of the victim would exceed one of its quotas. Where a part of the quota is kept
 * for reservations, a placement that needs that part starts only after all stops are done. */
static bool quotas_exceeded(const struct day *d, const struct berth_plan *plan, size_t len,
                            const struct day_job *victim, uint32_t pods)
{
    const int of[] = {victim->user, victim->queue};
    for (size_t n = 0; n < 2; n++)
        for (int q = of[n]; q >= 0; q = d->quotas[q].parent)
            for (unsigned r = 0; r < DAY_JOBS; r++) {
                int64_t limit = d->quotas[q].limit[r];
                if (limit < 0)
                    continue;
                struct quota_use sum = quota_after(d, plan, len, q, r);
                if (sum.later + sum.kept + pods * pod_needs(victim, r) > limit)
                    return true;
                if (sum.kept && sum.most + sum.kept > limit)
                    return true;
            }
    return false;
}

/* Returns true if one of the first `len` actions reserves a place on the node. */
static bool has_reserved_place(const struct day *d, const struct berth_plan *plan, size_t len, uint32_t node)
{
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if (a.op == BERTH_RESERVE && strcmp(a.node, d->nodes[node].id) == 0)
            return true;
    }
    return false;
}

/* Returns true if a reservation of a pending job may be on the node. A reservation on several nodes names only the
 * first. */
static bool may_have_reservation(const struct day *d, const struct berth_plan *plan, uint32_t node)
{
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_queue_position s = berth_plan_queue_position((struct berth_plan *)plan, i);
        if (s.start_ns && (s.nodes > 1 || strcmp(s.node, d->nodes[node].id) == 0))
            return true;
    }
    return false;
}

/* Returns true if the victims of one group could have stayed with everything else as after the first `len` actions.
 * Returns false on a node with both a reserved place and a reservation of a pending job: there may be room, but not for
 * long enough. */
static bool could_stay(struct day *d, const struct berth_plan *plan, size_t stop, size_t len)
{
    struct berth_action first = berth_plan_action(plan, stop);
    const struct day_job *victim = day_job_find(d, first.workload);
    uint32_t pods[DAY_NODES_MAX] = {0}, all = 0;
    uint64_t gpus[DAY_NODES_MAX] = {0};
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if (!is_of_victim_group(victim, &first, &a))
            continue;
        uint32_t n = day_node_find(d, a.node);
        pods[n]++;
        all++;
        gpus[n] |= a.gpus;
    }
    for (uint32_t n = 0; n < d->nodes_len; n++) {
        if (pods[n] == 0)
            continue;
        struct held left = free_after(d, plan, len, n);
        if (left.cpu < pods[n] * victim->cpu || left.taken & gpus[n])
            return false;
    }
    if (quotas_exceeded(d, plan, len, victim, all))
        return false;
    for (uint32_t n = 0; n < d->nodes_len; n++)
        if (pods[n] && has_reserved_place(d, plan, len, n) && may_have_reservation(d, plan, n))
            return false;
    return true;
}

/* Checks that a stop was needed. The decision that includes the stop ends with the places of the first job that gets
 * any after it; the plan does not tell with which of them. So the stop was needed if the victim could not have stayed
 * after one of these placements. Stops of later decisions in the plan are ignored. */
static bool check_need(struct day *d, const struct berth_plan *plan, size_t stop)
{
    const char *by = NULL;
    for (size_t i = stop + 1; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if (a.op != BERTH_RESERVE && a.op != BERTH_PLACE)
            continue;
        if (by && strcmp(by, a.workload) != 0)
            break;
        by = a.workload;
        if (!could_stay(d, plan, stop, i + 1))
            return true;
    }
    return day_fail(d, "job %s is stopped for another and could have stayed", berth_plan_action(plan, stop).workload);
}

/* Returns true if the job's user quota or one of its parents is used beyond its guarantee. */
static bool is_borrowing(const struct day *d, const struct day_job *j)
{
    for (int q = j->user; q >= 0; q = d->quotas[q].parent)
        for (unsigned r = 0; r < DAY_JOBS; r++) {
            int64_t held = 0;
            for (uint32_t i = 0; i < d->jobs_len; i++)
                for (int x = d->jobs[i].user; x >= 0; x = d->quotas[x].parent)
                    for (uint32_t t = 0; x == q && d->jobs[i].there && !d->jobs[i].over && t < d->jobs[i].tasks; t++)
                        held += d->jobs[i].task[t].state == DAY_ENDED
                                    ? 0
                                    : (r == DAY_CPU ? d->jobs[i].cpu : (int64_t)d->jobs[i].gpus * 1000);
            if (d->quotas[q].guarantee[r] >= 0 && held > d->quotas[q].guarantee[r])
                return true; /* counts all requests, even of tasks that are not placed */
        }
    return false;
}

static bool is_lower(const struct day *d, const struct day_job *victim, const struct day_job *by)
{
    uint32_t placed = 0;
    for (uint32_t t = 0; t < victim->tasks; t++)
        placed += victim->task[t].state != DAY_NONE;
    return victim->priority < by->priority || (d->guarantees && is_borrowing(d, victim)) ||
           (victim->gang && victim->min < victim->tasks && placed > victim->min);
}

static bool check_victim(struct day *d, const struct berth_plan *plan, size_t at)
{
    struct berth_action stop = berth_plan_action(plan, at);
    const struct day_job *victim = day_job_find(d, stop.workload);
    const struct day_task *task = &victim->task[stop.ordinal];
    int64_t min_run =
        victim->min_run_ns > d->policy.preemption.min_run_ns ? victim->min_run_ns : d->policy.preemption.min_run_ns;
    bool lower = false, any = false;
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if (a.op != BERTH_RESERVE)
            continue;
        any = true;
        lower |= is_lower(d, victim, day_job_find(d, a.workload));
    }
    if (!any)
        return day_fail(d, "job %s is stopped for another, and nothing is reserved", victim->id);
    if (!lower)
        return day_fail(d, "job %s is stopped for one that is not above it", victim->id);
    if (victim->unpreemptible)
        return day_fail(d, "job %s is stopped and may not be", victim->id);
    if (task->state == DAY_RUNNING && d->now_ns - task->since_ns < min_run)
        return day_fail(d, "job %s is stopped before it has run for its minimum", victim->id);
    return check_need(d, plan, at);
}

bool day_check_plan(struct day *d, const struct berth_plan *plan)
{
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        const struct day_job *j = day_job_find(d, a.workload);
        if (a.op == BERTH_STOP && a.cause == BERTH_CAUSE_INFEASIBLE)
            return day_fail(d, "the place that was made for job %s is given up", a.workload);
        if (a.op == BERTH_STOP && a.cause == BERTH_CAUSE_PREEMPTED && j->task[a.ordinal].state == DAY_RUNNING &&
            !check_victim(d, plan, i))
            return false;
        if (a.op == BERTH_STOP && a.cause == BERTH_CAUSE_EXPIRED &&
            d->now_ns - j->task[a.ordinal].since_ns < j->limit_ns)
            return day_fail(d, "job %s is stopped before its time", j->id);
        if (j->preempted > 50 * j->tasks)
            return day_fail(d, "pods of job %s were stopped %u times for others", j->id, j->preempted);
    }
    return true;
}

/* ---- quotas and gangs ------------------------------------------------------------------------------------------- */

/* Usage of one quota, now and after all stops are done. */
struct quota_sums {
    int64_t now[DAY_RESOURCES], later[DAY_RESOURCES];
};

static void sums_add(const struct day *d, const struct day_job *j, struct quota_sums *all)
{
    const int of[] = {j->user, j->queue};
    struct quota_sums own = {0};
    for (uint32_t t = 0; t < j->tasks; t++) {
        enum day_state s = j->task[t].state;
        own.now[DAY_JOBS] |= is_held(s) || s == DAY_RESERVED;
        for (unsigned r = 0; r < DAY_JOBS; r++) {
            own.now[r] += is_held(s) ? pod_needs(j, r) : 0;
            own.later[r] += s == DAY_RUNNING || s == DAY_RESERVED ? pod_needs(j, r) : 0;
        }
    }
    for (size_t n = 0; n < 2; n++)
        for (int q = of[n]; q >= 0; q = d->quotas[q].parent)
            for (unsigned r = 0; r < DAY_RESOURCES; r++) {
                all[q].now[r] += own.now[r];
                all[q].later[r] += own.later[r];
            }
}

static bool check_quotas(struct day *d)
{
    struct quota_sums all[DAY_QUOTAS_MAX] = {0};
    for (uint32_t i = 0; i < d->jobs_len; i++)
        if (d->jobs[i].there && !d->jobs[i].over) /* a job that is over no longer counts, even while it stops */
            sums_add(d, &d->jobs[i], all);
    for (uint32_t q = 0; q < d->quotas_len; q++)
        for (unsigned r = 0; r < DAY_RESOURCES; r++) {
            int64_t limit = d->quotas[q].limit[r], now = all[q].now[r], later = all[q].later[r];
            if (limit >= 0 && (now > limit || later > limit))
                return day_fail(d, "quota %s: %" PRId64 " now, %" PRId64 " later of %" PRId64 " (resource %u)",
                                d->quotas[q].id, now, later, limit, r);
        }
    return true;
}

static bool check_gang(struct day *d, const struct day_job *j)
{
    uint32_t placed = 0, ended = 0, stopping = 0;
    for (uint32_t t = 0; t < j->tasks; t++) {
        placed += j->task[t].state == DAY_RUNNING || j->task[t].state == DAY_RESERVED;
        ended += j->task[t].state == DAY_ENDED;
        stopping += j->task[t].state == DAY_STOPPING;
    }
    if (placed == 0 || placed + ended >= j->min || j->over)
        return true;
    return day_fail(d, "gang %s has %u of %u pods (%u stopping)", j->id, placed, j->min, stopping);
}

bool day_check_state(struct day *d)
{
    if (!check_quotas(d))
        return false;
    for (uint32_t i = 0; i < d->jobs_len; i++)
        if (d->jobs[i].there && d->jobs[i].gang && !check_gang(d, &d->jobs[i]))
            return false;
    return berth_nodes_over_capacity(d->cluster) == 0 || day_fail(d, "a node holds more than it has");
}

/* ---- end of the day --------------------------------------------------------------------------------------------- */

/* Returns the longest time that a job may wait. After max_wait only jobs that are older or of a higher priority are
 * ahead of it. The bound lets all these run one after another for their whole run time, after the jobs that were
 * running then. */
static int64_t stated_bound(const struct day *d, const struct day_job *j)
{
    int64_t bound = d->policy.order.max_wait_ns, longest = 0;
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        const struct day_job *x = &d->jobs[i];
        longest = x->runs_ns > longest ? x->runs_ns : longest;
        if (x != j && (x->arrives_ns <= j->arrives_ns || x->priority > j->priority))
            bound += x->runs_ns * x->tasks;
    }
    return bound + 2 * longest + 3600 * DAY_SECOND_NS;
}

bool day_check_end(struct day *d)
{
    for (uint32_t i = 0; i < d->jobs_len; i++) {
        const struct day_job *j = &d->jobs[i];
        if (!j->over)
            return day_fail(d, "job %s never ends: nothing happens any more", j->id);
        if (j->refused || d->policy.preemption.on || d->guarantees || d->policy.order.max_wait_ns == 0 ||
            d->policy.backfill.reservations == 0)
            continue;
        if (j->started_ns - j->arrives_ns > stated_bound(d, j))
            return day_fail(d, "job %s waited for %.0f s, and %.0f s is the bound", j->id,
                            (double)(j->started_ns - j->arrives_ns) / 1e9, (double)stated_bound(d, j) / 1e9);
    }
    return true;
}
