/* oracle_preempt.c - checks preemption: which pods may be victims, for which pods, how many, and whether that makes
 * room.
 */
#include <inttypes.h>

#include "oracle.h"
#include "rules.h"

struct preempt_case {
    const struct world *before, *after;
    struct berth_plan *plan;
    struct verdict *v;
};

enum { VICTIMS_MAX_DEFAULT = 200 };

/* Returns true if the plan preempts the instance. */
static bool is_victim(const struct preempt_case *c, uint64_t id)
{
    for (size_t i = 0; i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        if (a.op == BERTH_STOP && a.cause == BERTH_CAUSE_PREEMPTED && a.instance == id)
            return true;
    }
    return false;
}

static const struct berth_workload *owner(const struct world *world, const struct inst *s)
{
    return s->workload == NONE ? NULL : &world->workloads[s->workload];
}

static bool is_replacement(const struct world *world, const struct inst *s)
{
    return s->is.replaces && world_find_instance(world, s->is.replaces);
}

/* ---- allowed victims -------------------------------------------------------------------------------------------- */

static bool victim_check(const struct preempt_case *c, const struct inst *s)
{
    const struct berth_preemption *policy = &c->before->policy.preemption;
    const struct berth_workload *w = owner(c->before, s);

    if (!policy->on)
        return verdict_bad(c->v, "preempted: %" PRIu64 ", and the policy has no such thing", s->is.id);
    if (!w || w->suspended || w->unpreemptible || (w->kind != BERTH_JOB && !policy->services))
        return verdict_bad(c->v, "preempted: %" PRIu64 " of %s, which may not be", s->is.id, s->is.workload);
    int64_t least = w->min_run_ns > policy->min_run_ns ? w->min_run_ns : policy->min_run_ns;
    bool ripe = c->before->now_ns - s->is.since_ns >= (least ? least : 1);
    if (!ripe && s->is.state != BERTH_RESERVED && !is_replacement(c->before, s))
        return verdict_bad(c->v, "preempted: %" PRIu64 " of %s, which has not run for long enough", s->is.id,
                           s->is.workload);
    return true;
}

/* ---- preemptors ------------------------------------------------------------------------------------------------- */

/* A pod beyond the minimum of an elastic gang may be preempted for any other pod. */
static bool may_preempt(const struct berth_workload *asks, const struct berth_workload *goes)
{
    bool elastic = goes->gang && goes->gang_min && goes->gang_min < goes->replicas;
    return asks->priority > goes->priority || elastic;
}

/* Returns true if the workload, or another one of its gang, must never preempt. */
static bool never_preempts_by_gang(const struct world *world, const struct berth_workload *w)
{
    bool never = w->never_preempts;
    for (size_t i = 0; w->gang && i < world->workloads_len; i++)
        never |= text_same(world->workloads[i].gang, w->gang) && world->workloads[i].never_preempts;
    return never;
}

static bool waits_for(const struct berth_action *a, uint64_t id)
{
    for (size_t i = 0; a->op == BERTH_RESERVE && i < a->waits_len; i++)
        if (a->waits[i] == id)
            return true;
    return false;
}

/* Returns true if a pod that may preempt the instance has a reserved place that waits for it. */
static bool is_awaited_by_preemptor(const struct preempt_case *c, const struct inst *s)
{
    for (size_t i = 0; i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        if (!waits_for(&a, s->is.id))
            continue;
        const struct berth_workload *asks = &c->before->workloads[world_find_workload(c->before, a.workload)];
        if (may_preempt(asks, owner(c->before, s)) && !never_preempts_by_gang(c->before, asks))
            return true;
    }
    return false;
}

/* Returns true if both are in one victim group: a gang is preempted whole, and an instance together with its
 * replacement. */
static bool is_same_group(const struct world *world, const struct inst *a, const struct inst *b)
{
    const char *gang = owner(world, a)->gang;
    if (gang && *gang && b->workload != NONE && text_same(owner(world, b)->gang, gang))
        return true;
    return a == b || a->is.replaces == b->is.id || b->is.replaces == a->is.id;
}

static bool preemptor_check(const struct preempt_case *c, const struct inst *s)
{
    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *other = &c->before->instances[i];
        if (is_same_group(c->before, s, other) && is_victim(c, other->is.id) && is_awaited_by_preemptor(c, other))
            return true;
    }
    return verdict_bad(c->v, "preempted: %" PRIu64 " of %s, for nobody", s->is.id, s->is.workload);
}

/* ---- number of victims, budgets --------------------------------------------------------------------------------- */

/* Instances that an earlier plan stopped at the same moment count, too. */
static bool victim_count_check(const struct preempt_case *c)
{
    uint32_t most = c->before->policy.preemption.most, told = 0, earlier = 0;

    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *s = &c->before->instances[i];
        told += is_victim(c, s->is.id);
        earlier += s->is.state == BERTH_STOPPING && s->is.since_ns >= c->before->now_ns;
    }
    if (told && told + earlier > (most ? most : VICTIMS_MAX_DEFAULT))
        return verdict_bad(c->v, "preempted: %u and %u before, and %u may be", told, earlier, most);
    return true;
}

/* Returns the number of pods of the budget that the plan preempts. A reserved place is not yet a pod. */
static uint32_t budget_used(const struct preempt_case *c, size_t budget)
{
    uint32_t told = 0;

    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *s = &c->before->instances[i];
        told +=
            s->is.state != BERTH_RESERVED && budget_counts(c->before, budget, s->workload) && is_victim(c, s->is.id);
    }
    return told;
}

bool plan_breaks_budgets(const struct world *before, struct berth_plan *plan)
{
    struct preempt_case c = {.before = before, .plan = plan};
    bool broken = false;
    for (size_t i = 0; i < before->budgets_len; i++)
        broken |= budget_used(&c, i) > before->budgets[i].allowed;
    return broken;
}

static bool budget_check(const struct preempt_case *c, size_t budget)
{
    const struct berth_budget *b = &c->before->budgets[budget];
    uint32_t told = budget_used(c, budget);

    if (told > b->allowed && !c->before->policy.preemption.break_budgets)
        return verdict_bad(c->v, "budgets: %u of %s are stopped, %u may be", told, b->id, b->allowed);
    return true;
}

/* ---- room made -------------------------------------------------------------------------------------------------- */

/* Returns true if the pod could not have had this place with all victims still there. `as_if` is the world after the
 * plan with the victims not stopped. */
static bool victims_block(const struct preempt_case *c, const struct world *as_if, const struct berth_action *a)
{
    static const enum rule room[] = {RULE_OVER, RULE_RESOURCES, RULE_GPU, RULE_PORTS, RULE_APART, RULE_SPREAD};
    size_t len = c->before->policy.preemption.clears ? 6 : 4, gone_len = 0, node = world_find_node(as_if, a->node);
    uint64_t *gone = ARENA_ARRAY(&((struct world *)(uintptr_t)as_if)->arena, uint64_t, a->waits_len + 1);

    for (size_t i = 0; i < a->waits_len; i++)
        if (!is_victim(c, a->waits[i]))
            gone[gone_len++] = a->waits[i];
    for (size_t i = 0; i < as_if->instances_len; i++) { /* the new instance itself */
        const struct inst *s = &as_if->instances[i];
        if (s->is.id >= c->before->next_id && s->node == node && text_same(s->is.workload, a->workload) &&
            s->is.ordinal == a->ordinal)
            gone[gone_len++] = s->is.id;
    }
    struct placement_query placement_query = {
        .world = as_if, .workload = world_find_workload(as_if, a->workload), .gone = gone, .gone_len = gone_len};
    for (size_t i = 0; i < len; i++)
        if (rule_refuses(&placement_query, room[i], node))
            return true;
    return false;
}

/* No instance is preempted on a node where all reserved pods had room. Gangs are exempt: a gang may be preempted for
 * the room that another of its pods gives. */
static bool node_room_check(const struct preempt_case *c, const struct world *as_if, size_t node)
{
    const struct inst *which = NULL;
    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *s = &c->before->instances[i];
        if (s->node != node || !is_victim(c, s->is.id))
            continue;
        if (owner(c->before, s)->gang || s->is.state == BERTH_RESERVED || !is_awaited_by_preemptor(c, s))
            return true;
        which = s;
    }
    for (size_t i = 0; which && i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        if (a.op == BERTH_RESERVE && text_same(a.node, c->before->nodes[node].id) && victims_block(c, as_if, &a))
            return true;
    }
    return which ? verdict_bad(c->v, "preempted: %" PRIu64 " of %s, which was not in the way", which->is.id,
                               which->is.workload)
                 : true;
}

static bool room_check(const struct preempt_case *c)
{
    struct world as_if;
    bool good = true;

    world_copy(&as_if, c->after);
    for (size_t i = 0; i < as_if.instances_len; i++)
        if (is_victim(c, as_if.instances[i].is.id))
            as_if.instances[i].is.state = world_find_instance(c->before, as_if.instances[i].is.id)->is.state;
    for (size_t n = 0; good && n < c->before->nodes_len; n++)
        good = node_room_check(c, &as_if, n);
    world_done(&as_if);
    return good;
}

bool preempt_check(const struct world *before, const struct world *after, struct berth_plan *plan, struct verdict *v)
{
    struct preempt_case c = {before, after, plan, v};
    bool any = false, good = true;

    for (size_t i = 0; good && i < before->instances_len; i++) {
        const struct inst *s = &before->instances[i];
        if (!is_victim(&c, s->is.id))
            continue;
        any = true;
        good = victim_check(&c, s) && preemptor_check(&c, s);
    }
    for (size_t i = 0; any && good && i < before->budgets_len; i++)
        good = budget_check(&c, i);
    return good && (!any || (victim_count_check(&c) && room_check(&c)));
}
