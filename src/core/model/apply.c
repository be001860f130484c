/* apply.c - applies a plan to a cluster, as a commit of all its actions would. */
#include <assert.h>
#include <errno.h>

#include "core/model/cluster.h"
#include "core/plan/plan.h"

/* Checks the ids of new instances: above 0 and never used before. */
static int check_ids(const struct berth_cluster *c, const struct berth_plan *p, uint64_t first_id,
                     struct berth_err *err)
{
    uint64_t id = first_id;
    if (first_id == 0 || first_id > UINT64_MAX - p->c.acts.len)
        return err_set(err, EINVAL, "instance ids cannot start at %llu", (unsigned long long)first_id);
    for (size_t i = 0; i < p->c.acts.len; i++) {
        if (p->c.acts.at[i].op != BERTH_PLACE && p->c.acts.at[i].op != BERTH_RESERVE)
            continue;
        if (cluster_instance_find(c, id) != NONE)
            return err_set(err, EEXIST, "instance %llu already exists", (unsigned long long)id);
        id++;
    }
    return 0;
}

static void apply_place(struct berth_cluster *c, const struct berth_plan *p, const struct plan_act *a, uint64_t id)
{
    struct instance_change change = {
        .record = {.id = id,
                   .workload = {a->workload},
                   .ordinal = a->ordinal,
                   .node = {p->s->layout->slot[a->position]},
                   .node_id = p->s->layout->id[a->position],
                   .class = cluster_workload(c, a->workload)->class,
                   .state = a->op == BERTH_RESERVE ? BERTH_RESERVED : BERTH_ASSIGNED,
                   .since_ns = p->s->now_ns,
                   .gpus = a->gpus,
                   .replaces = a->replaces == NONE ? 0 : snapshot_instance(p->s, a->replaces)->id},
        .waits = a->op == BERTH_RESERVE ? p->c.waits.at + a->aux : NULL,
        .waits_len = a->op == BERTH_RESERVE ? a->aux_len : 0
    };
    (void)instance_add(c, &change);
}

static void apply_adjust(struct berth_cluster *c, const struct berth_plan *p, const struct plan_act *a)
{
    const struct instance *i = cluster_instance(c, a->instance);
    for (uint32_t at = i->usage; at != NONE; at = ((const struct usage *)pages_at(&c->usages, at))->more) {
        struct usage *u = pages_edit(&c->usages, at);
        if (u->resource != a->aux)
            continue;
        u->limit = a->limit;
        u->limit_since_ns = p->s->now_ns;
    }
}

/* Applies actions in the order of the plan, so that a removed workload still exists when its last instance stops. */
static void apply_one(struct berth_cluster *c, const struct berth_plan *p, const struct plan_act *a, uint64_t *id)
{
    switch ((enum berth_op)a->op) {
    case BERTH_PLACE:
    case BERTH_RESERVE: apply_place(c, p, a, (*id)++); break;
    case BERTH_PROMOTE: instance_set_state(c, a->instance, BERTH_ASSIGNED, p->s->now_ns); break;
    case BERTH_STOP:
        if (a->cause == BERTH_CAUSE_PREEMPTED && cluster_instance(c, a->instance)->state != BERTH_RESERVED)
            berth_budget_spend(c, intern_text(&c->names, cluster_workload(c, a->workload)->id));
        if (cluster_instance(c, a->instance)->state == BERTH_RESERVED)
            instance_drop(c, a->instance);
        else
            instance_set_state(c, a->instance, BERTH_STOPPING, p->s->now_ns);
        break;
    case BERTH_LOSE: instance_drop(c, a->instance); break;
    case BERTH_ADJUST: apply_adjust(c, p, a); break;
    }
}

int berth_apply(struct berth_cluster *c, const struct berth_plan *p, uint64_t first_id, struct berth_err *err)
{
    /* slots and classes match those of the snapshot only while the cluster is unchanged */
    if (c->revision != p->s->revision)
        return err_set(err, ESTALE,
                       "the cluster has changed since the snapshot of this plan; take a new snapshot "
                       "and plan again");
    int rc = check_ids(c, p, first_id, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < p->c.acts.len; i++)
        apply_one(c, p, &p->c.acts.at[i], &first_id);
    for (size_t i = 0; i < p->facts.len; i++) {
        rc = berth_fact_put(c, &p->facts.at[i], err);
        assert(rc == 0); /* the plan's own facts are valid */
    }
    c->revision++;
    return 0;
}
