/* oracle.c - checks and applies the actions of a plan one by one. */
#include "oracle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "rules.h"

bool verdict_bad(struct verdict *v, const char *fmt, ...)
{
    if (v->bad)
        return false;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(v->text, sizeof v->text, fmt, ap);
    va_end(ap);
    v->bad = true;
    return false;
}

/* ---- applying an action ----------------------------------------------------------------------------------------- */

static void inst_add(struct world *world, const struct berth_action *a)
{
    size_t w = world_find_workload(world, a->workload);
    struct berth_instance instance = {
        .id = world->next_id,
        .workload = world->workloads[w].id,
        .ordinal = a->ordinal,
        .node = world->nodes[world_find_node(world, a->node)].id,
        .state = a->op == BERTH_RESERVE ? BERTH_RESERVED : BERTH_ASSIGNED,
        .since_ns = world->now_ns,
        .gpus = a->gpus,
        .replaces = a->replaces,
        .waits = arena_dup(&world->arena, a->waits, a->waits_len * sizeof *a->waits),
        .waits_len = a->waits_len,
        .shape = arena_dup(&world->arena, &world->workloads[w].shape, sizeof world->workloads[w].shape),
    };
    world_add_instance(world, instance);
}

/* Sets one limit of an instance and adds an entry if the instance has not reported that resource. */
static void inst_adjust(struct world *world, struct inst *inst, const struct berth_action *a)
{
    size_t len = inst->is.usage_len, at = 0;
    struct berth_usage *usage = ARENA_ARRAY(&world->arena, struct berth_usage, len + 1);

    if (len)
        memcpy(usage, inst->is.usage, len * sizeof *usage);
    while (at < len && !text_same(usage[at].resource, a->resource))
        at++;
    if (at == len)
        usage[len++] = (struct berth_usage){.resource = arena_strdup(&world->arena, a->resource)};
    usage[at].limit = a->limit;
    usage[at].limit_since_ns = world->now_ns;
    inst->is.usage = usage;
    inst->is.usage_len = len;
}

static void inst_remove(struct world *world, const struct inst *inst)
{
    world_remove_instance(world, (size_t)(inst - world->instances));
}

void action_apply(struct world *world, const struct berth_action *a)
{
    struct inst *inst = world_find_instance(world, a->instance);

    switch (a->op) {
    case BERTH_PLACE:
    case BERTH_RESERVE: inst_add(world, a); break;
    case BERTH_PROMOTE:
        inst->is.state = BERTH_ASSIGNED;
        inst->is.since_ns = world->now_ns;
        inst->is.waits = NULL;
        inst->is.waits_len = 0;
        break;
    case BERTH_STOP:
        if (inst->is.state == BERTH_RESERVED) {
            inst_remove(world, inst);
            break;
        }
        if (a->cause == BERTH_CAUSE_PREEMPTED)
            world_spend_budgets(world, inst->workload);
        inst->is.state = BERTH_STOPPING;
        inst->is.ready = false;
        inst->is.since_ns = world->now_ns;
        break;
    case BERTH_LOSE: /* same result as a confirmed stop */ inst_remove(world, inst); break;
    case BERTH_ADJUST: inst_adjust(world, inst, a); break;
    }
}

/* ---- checking an action ----------------------------------------------------------------------------------------- */

static const char *action_text(const struct berth_action *a, char *text, size_t size)
{
    (void)snprintf(text, size, "%s (%s) %s/%u on %s, instance %" PRIu64, berth_op_name(a->op),
                   berth_cause_name(a->cause), a->workload ? a->workload : "-", a->ordinal, a->node ? a->node : "-",
                   a->instance);
    return text;
}

static bool inst_on_lost_node(const struct world *world, const struct inst *inst)
{
    return world->nodes[inst->node].state == BERTH_NODE_LOST;
}

/* Another instance of the same pod may exist only if the new one replaces it or waits for its stop. A lost or stopping
 * instance is no obstacle if the new one replaces a third instance, or if the workload has BERTH_LOST_REPLACE. */
static bool pod_has_no_rival(const struct world *world, const struct berth_action *a, size_t w, const char *what,
                             struct verdict *v)
{
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        if (s->workload != w || s->is.ordinal != a->ordinal || s->is.id == a->instance || s->is.id == a->replaces)
            continue;
        bool awaited =
            /* it is reserved to replace this one */
            s->is.state == BERTH_RESERVED && a->instance && s->is.replaces == a->instance;
        for (size_t k = 0; k < a->waits_len; k++)
            awaited |= a->waits[k] == s->is.id;
        bool twice = lost_policy(&world->workloads[w]) == BERTH_LOST_REPLACE;
        bool given_up = (s->is.state == BERTH_STOPPING || inst_on_lost_node(world, s)) && (twice || a->replaces);
        if (!awaited && !given_up)
            return verdict_bad(v, "5 single place: %s, but instance %" PRIu64 " is %s", what, s->is.id,
                               berth_state_name(s->is.state));
    }
    return true;
}

static bool gpus_check(const struct placement_query *placement_query, size_t node, const struct berth_action *a,
                       const char *what, struct verdict *v)
{
    const struct berth_shape *shape = placement_query->shape
                                          ? placement_query->shape
                                          : &placement_query->world->workloads[placement_query->workload].shape;
    const struct berth_node *n = &placement_query->world->nodes[node];

    if ((uint32_t)__builtin_popcountll(a->gpus) != shape->gpu.count)
        return verdict_bad(v, "3 GPUs: %s holds %" PRIx64 " but needs %u", what, a->gpus, shape->gpu.count);
    for (size_t d = 0; d < 64; d++) {
        if (!(a->gpus >> d & 1))
            continue;
        if (d >= n->gpus_len)
            return verdict_bad(v, "3 GPUs: %s holds device %zu of %zu", what, d, n->gpus_len);
        if (!rule_gpu_free(placement_query, node, d, shape))
            return verdict_bad(v, "3 GPUs: %s holds device %zu, which will not do", what, d);
    }
    return true;
}

/* Returns the first rule that refuses the placement. Until they have stopped, pods count for spread, affinity,
 * anti-affinity and pods per node, even if the new pod waits for their stop. A promoted pod was counted by these rules
 * when it was reserved. */
static enum rule rule_refusing(const struct placement_query *on, enum berth_op op, size_t node)
{
    struct placement_query now = {.world = on->world, .workload = on->workload, .shape = on->shape, .moves = on->moves};

    for (int rule = 0; rule < RULES_LEN; rule++) {
        /* anti-affinity ignores the pods for which it waits */
        bool counts_pods = rule >= RULE_MAX_PER_NODE && rule != RULE_APART;
        if ((rule >= RULE_MAX_PER_NODE || rule == RULE_PRESSURE) && op == BERTH_PROMOTE)
            continue;
        if (rule_refuses(counts_pods ? &now : on, (enum rule)rule, node))
            return (enum rule)rule;
    }
    return RULES_LEN;
}

/* Invariant 12 (feasible) for one new instance. */
static bool feasible_check(const struct placement_query *placement_query, const struct berth_action *a,
                           const char *what, struct verdict *v)
{
    size_t node = world_find_node(placement_query->world, a->node);

    if (node == NONE)
        return verdict_bad(v, "12 feasible: %s: no such node", what);
    enum rule rule = rule_refusing(placement_query, a->op, node);
    if (rule != RULES_LEN)
        return verdict_bad(v, "12 feasible: %s is against the rule of %s", what, rule_name(rule));
    return gpus_check(placement_query, node, a, what, v);
}

static bool new_check(const struct world *world, const struct berth_action *a, const char *what, struct verdict *v)
{
    size_t w = world_find_workload(world, a->workload);

    if (w == NONE)
        return verdict_bad(v, "%s: no such workload", what);
    /* Pods of a service are alike: a pod beyond the replicas may stand for one of them, and be moved. */
    bool wanted = a->ordinal < world->workloads[w].replicas || (a->replaces && world->workloads[w].kind != BERTH_JOB);
    if (world->workloads[w].suspended || !wanted)
        return verdict_bad(v, "%s: nobody asked for it", what);
    if (a->op == BERTH_RESERVE && !a->waits_len)
        return verdict_bad(v, "%s waits for nothing", what);
    if (a->op == BERTH_PLACE && a->waits_len)
        return verdict_bad(v, "%s waits", what);
    for (size_t i = 0; i < a->waits_len; i++) {
        const struct inst *s = world_find_instance(world, a->waits[i]);
        if (!s || s->is.state != BERTH_STOPPING)
            return verdict_bad(v, "%s waits for %" PRIu64 ", which is not stopping", what, a->waits[i]);
    }
    if (a->replaces && !world_find_instance(world, a->replaces))
        return verdict_bad(v, "%s replaces %" PRIu64 ", which is not there", what, a->replaces);
    struct placement_query placement_query = {
        .world = world, .workload = w, .gone = a->waits, .gone_len = a->waits_len, .moves = a->replaces != 0};
    return pod_has_no_rival(world, a, w, what, v) && feasible_check(&placement_query, a, what, v);
}

static bool promote_check(const struct world *world, const struct berth_action *a, const struct inst *inst,
                          const char *what, struct verdict *v)
{
    struct berth_action as_new = *a;

    if (inst->is.state != BERTH_RESERVED || inst->workload == NONE)
        return verdict_bad(v, "%s: not reserved", what);
    for (size_t i = 0; i < inst->is.waits_len; i++) {
        const struct inst *other = world_find_instance(world, inst->is.waits[i]);
        if (other && state_active(other->is.state))
            return verdict_bad(v, "%s: %" PRIu64 ", which it waits for, is still there", what, other->is.id);
    }
    as_new.node = inst->is.node;
    as_new.gpus = inst->is.gpus;
    as_new.replaces = inst->is.replaces;
    struct placement_query placement_query = {
        .world = world, .workload = inst->workload, .shape = inst->shape, .gone = &inst->is.id, .gone_len = 1};
    return pod_has_no_rival(world, &as_new, inst->workload, what, v) &&
           feasible_check(&placement_query, &as_new, what, v);
}

static bool stop_check(const struct world *world, const struct berth_action *a, const struct inst *inst,
                       const char *what, struct verdict *v)
{
    const struct berth_workload *w = inst->workload == NONE ? NULL : &world->workloads[inst->workload];
    enum berth_node_state at = world->nodes[inst->node].state;
    bool right = true;

    if (inst->is.state == BERTH_STOPPING || inst->is.state == BERTH_ENDED)
        return verdict_bad(v, "%s: it is %s", what, berth_state_name(inst->is.state));
    if (a->cause == BERTH_CAUSE_REMOVED)
        right = !w;
    else if (a->cause == BERTH_CAUSE_SUSPENDED)
        right = w && w->suspended;
    else if (a->cause == BERTH_CAUSE_DRAINED)
        right = w && at == BERTH_NODE_DRAINING;
    else if (a->cause == BERTH_CAUSE_LOST)
        right = w && at == BERTH_NODE_LOST;
    else if (a->cause == BERTH_CAUSE_INFEASIBLE)
        right = inst->is.state == BERTH_RESERVED;
    else if (a->cause == BERTH_CAUSE_BROKEN)
        right = w && w->gang;
    return right ? true : verdict_bad(v, "%s: not so", what);
}

static bool lose_check(const struct world *world, const struct inst *inst, const char *what, struct verdict *v)
{
    const struct berth_workload *w = inst->workload == NONE ? NULL : &world->workloads[inst->workload];
    int64_t fence_ns = w && w->fence_ns ? w->fence_ns : 10 * MINUTE_NS;

    if (!inst_on_lost_node(world, inst))
        return verdict_bad(v, "%s: its node is not lost", what);
    if (w && lost_policy(w) == BERTH_LOST_FENCE && world->now_ns - world->nodes[inst->node].since_ns < fence_ns)
        return verdict_bad(v, "%s: before its fence", what);
    if (w && lost_policy(w) == BERTH_LOST_WAIT && inst->is.state != BERTH_STOPPING)
        return verdict_bad(v, "%s: it waits for its node", what);
    return true;
}

static bool adjust_check(const struct berth_action *a, const struct inst *inst, const char *what, struct verdict *v)
{
    for (size_t i = 0; i < inst->shape->limits_len; i++) {
        const struct berth_limit *l = &inst->shape->limits[i];
        if (!text_same(l->resource, a->resource))
            continue;
        int64_t max = l->max > l->amount ? l->max : l->amount;
        if (l->kind == BERTH_ABSOLUTE && a->limit >= l->amount && a->limit <= max)
            return true;
    }
    return verdict_bad(v, "%s: a limit of %" PRId64 " for %s is not its own", what, a->limit,
                       a->resource ? a->resource : "-");
}

bool action_check(const struct world *world, const struct berth_action *a, struct verdict *v)
{
    char text[300];
    const char *what = action_text(a, text, sizeof text);

    if (a->op == BERTH_PLACE || a->op == BERTH_RESERVE)
        return new_check(world, a, what, v);

    const struct inst *inst = world_find_instance(world, a->instance);
    if (!inst)
        return verdict_bad(v, "%s: no such instance", what);
    if (!text_same(inst->is.workload, a->workload) || inst->is.ordinal != a->ordinal)
        return verdict_bad(v, "%s: it belongs to %s/%u", what, inst->is.workload, inst->is.ordinal);
    switch (a->op) {
    case BERTH_PROMOTE: return promote_check(world, a, inst, what, v);
    case BERTH_STOP: return stop_check(world, a, inst, what, v);
    case BERTH_LOSE: return lose_check(world, inst, what, v);
    case BERTH_ADJUST: return adjust_check(a, inst, what, v);
    default: return verdict_bad(v, "%s: unknown operation", what);
    }
}

bool plan_check(const struct world *before, struct berth_plan *plan, struct world *ret_after, struct verdict *v)
{
    bool good = true;

    world_copy(ret_after, before);
    for (size_t i = 0; good && i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        good = action_check(ret_after, &a, v);
        if (good)
            action_apply(ret_after, &a);
    }
    for (size_t i = 0; good && i < berth_plan_facts(plan); i++)
        world_add_fact(ret_after, berth_plan_fact(plan, i));
    return good && state_check(before, ret_after, berth_plan_alarm(plan), v) &&
           preempt_check(before, ret_after, plan, v) && relief_check(before, ret_after, plan, v) &&
           pendings_check(ret_after, plan, v);
}
