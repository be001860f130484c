/* batch_quota.c - checks at commit time that a batch exceeds no quota of the committed state.
 *
 * A plan counts on assumed changes of its own and of other plans. Some of them may fail or come later: an instance to
 * be replaced is gone, a stop is in conflict. So each step is tried on the ledger of committed instances, steps that
 * free resources first, and the ledger is restored afterwards. The commit is guarded by LEDGER_QUOTAS, which is written
 * whenever committed instances start to count for another quota (commit_quota.c), so the check still holds when the
 * store writes.
 */
#include "control/sched/batch_parts.h"
#include "core/queue/quota_ledger.h"

bool batch_step_places(const struct batch_step *s)
{
    return !s->fact && (s->op == BERTH_PLACE || s->op == BERTH_RESERVE || s->op == BERTH_PROMOTE);
}

static void row_try(struct batch_quota_trial *t, struct state *s, uint64_t id, const struct quota_row *now)
{
    struct batch_quota_undo tried = {id, quota_ledger_put(state_ledger(s), state_cluster(s), id, now)};
    vec_push(&t->tried, tried);
}

static void row_undo(struct batch_quota_trial *t, struct state *s)
{
    struct batch_quota_undo tried = t->tried.at[--t->tried.len];
    (void)quota_ledger_put(state_ledger(s), state_cluster(s), tried.id, tried.was.id ? &tried.was : NULL);
}

static bool new_instance_try(struct batch_quota_trial *t, struct state *s, const struct batch_step *step)
{
    const struct berth_cluster *c = state_cluster(s);
    uint32_t slot = cluster_instance_find(c, step->instance);
    if (slot == NONE)
        return false; /* its node is gone */
    const struct instance *i = cluster_instance(c, slot);
    struct quota_row now = {.id = step->instance,
                            .replaces = i->replaces,
                            .workload = cluster_workload(c, i->workload.v)->id,
                            .class = i->class.v,
                            .state = step->op == BERTH_RESERVE ? BERTH_RESERVED : BERTH_ASSIGNED,
                            .fresh = true};
    row_try(t, s, step->instance, &now);
    return true;
}

/* Tries a change of an existing instance; an instance that is not in the ledger needs no check. */
static void known_instance_try(struct batch_quota_trial *t, struct state *s, const struct batch_step *step)
{
    struct quota_row now = quota_ledger_row(state_ledger(s), step->instance);
    bool gone = step->op == BERTH_LOSE || (step->op == BERTH_STOP && now.state == BERTH_RESERVED);
    if (now.id == 0 || step->op == BERTH_ADJUST)
        return;
    now.state = step->op == BERTH_STOP ? BERTH_STOPPING : BERTH_ASSIGNED;
    row_try(t, s, step->instance, gone ? NULL : &now);
}

bool batch_quota_try(struct batch *u, struct batch_quota_trial *t, const struct batch_step *step)
{
    struct control *control = u->batches->control;
    struct state *s = control->state;
    struct quota_excess over;
    if (step->fact || state_cluster(s)->limited == 0)
        return true;
    bool fresh = step->op == BERTH_PLACE || step->op == BERTH_RESERVE;
    if (fresh && !new_instance_try(t, s, step))
        return false;
    if (!fresh)
        known_instance_try(t, s, step);
    t->takes = t->takes || batch_step_places(step);
    if (!batch_step_places(step) || !quota_ledger_exceeds(state_ledger(s), state_cluster(s), step->instance, &over))
        return true;
    log_write(control->env.log, control->now_ns, LEVEL_INFO, "unit.quota", LOG_TEXT("workload", step->workload),
              LOG_TEXT("quota", over.quota), LOG_TEXT("resource", over.resource), LOG_NUMBER("held", over.held),
              LOG_NUMBER("limit", over.limit));
    return false;
}

void batch_quota_undo(struct batch *u, struct batch_quota_trial *t, size_t len)
{
    while (t->tried.len > len)
        row_undo(t, u->batches->control->state);
}
