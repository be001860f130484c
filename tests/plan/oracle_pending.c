/* oracle_pending.c - checks what a plan says about the pods that it did not place. */
#include <inttypes.h>
#include <string.h>

#include "oracle.h"
#include "rules_relief.h"

static bool pod_is(const struct inst *s, size_t workload, uint32_t ordinal)
{
    return s->workload == workload && s->is.ordinal == ordinal;
}

/* Returns true if the pod has an instance that stays. */
static bool pod_placed(const struct world *world, size_t workload, uint32_t ordinal)
{
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        if (pod_is(s, workload, ordinal) && state_holds_place(s->is.state) && s->is.state != BERTH_STOPPING)
            return true;
    }
    return false;
}

static bool pod_in_state(const struct world *world, size_t workload, uint32_t ordinal, enum berth_state state)
{
    for (size_t i = 0; i < world->instances_len; i++)
        if (pod_is(&world->instances[i], workload, ordinal) && world->instances[i].is.state == state)
            return true;
    return false;
}

static uint32_t pendings_of(struct berth_plan *plan, const char *workload, uint32_t ordinal)
{
    uint32_t len = 0;
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        for (size_t k = 0; k < p.ordinals_len; k++)
            len += text_same(p.workload, workload) && p.ordinals[k] == ordinal;
    }
    return len;
}

static bool inst_has_manual_move(const struct world *world, const struct inst *s)
{
    const struct berth_fact *f = fact_find(world, BERTH_FACT_MIGRATION, s->is.id, "");
    return f && berth_migration_cause(f->value) == BERTH_CAUSE_MANUAL;
}

/* Returns true if an instance of the pod is to leave its node: the node is draining, lost or over its capacity, or a
 * manual migration is requested. Such a pod may be placed and pending at once. */
static bool pod_is_leaving(const struct world *world, size_t workload, uint32_t ordinal)
{
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        enum berth_node_state at = world->nodes[s->node].state;
        bool over = world->policy.shed && rule_refuses(&(struct placement_query){.world = world}, RULE_OVER, s->node);
        if (pod_is(s, workload, ordinal) &&
            (at == BERTH_NODE_DRAINING || at == BERTH_NODE_LOST || over || inst_has_manual_move(world, s)))
            return true;
    }
    return false;
}

/* Returns true if a manual migration of the pod is requested. It may name one node; then no other node is a place for
 * the pod. */
static bool pod_has_manual_move(const struct world *world, size_t workload, uint32_t ordinal)
{
    for (size_t i = 0; i < world->instances_len; i++)
        if (pod_is(&world->instances[i], workload, ordinal) && inst_has_manual_move(world, &world->instances[i]))
            return true;
    return false;
}

/* Invariant 17 (no limbo) for jobs, whose tasks differ: each task is exactly one of placed, pending and ended. A task
 * whose instance stops may be pending, too. */
static bool task_check(const struct world *after, struct berth_plan *plan, size_t w, uint32_t ordinal,
                       struct verdict *v)
{
    const struct berth_workload *load = &after->workloads[w];
    bool placed = pod_placed(after, w, ordinal);
    bool ended = !placed && pod_in_state(after, w, ordinal, BERTH_ENDED);
    bool stopping = !placed && !ended && pod_in_state(after, w, ordinal, BERTH_STOPPING);
    uint32_t pending = pendings_of(plan, load->id, ordinal);

    if (pending > 1 || (pending && (placed || ended) && !pod_is_leaving(after, w, ordinal)))
        return verdict_bad(v, "17 no limbo: %s/%u is pending %u times and%s%s", load->id, ordinal, pending,
                           placed ? " placed" : "", ended ? " ended" : "");
    if (!pending && !placed && !ended && !stopping)
        return verdict_bad(v, "17 no limbo: %s/%u is nowhere", load->id, ordinal);
    return true;
}

/* Returns true if the instance counts as one of the workload's replicas: it stays, does not replace an instance that
 * stays, and is not given up as lost. */
static bool inst_counts_as_replica(const struct world *world, const struct inst *s, bool alarm)
{
    const struct inst *old = s->is.replaces ? world_find_instance(world, s->is.replaces) : NULL;
    bool lost = world->nodes[s->node].state == BERTH_NODE_LOST && s->is.state != BERTH_RESERVED;

    if (!state_holds_place(s->is.state) || s->is.state == BERTH_STOPPING || inst_given_up(world, s, alarm))
        return false;
    return lost || !(old && old != s && old->workload == s->workload && inst_counts_as_replica(world, old, alarm) &&
                     world->nodes[old->node].state != BERTH_NODE_LOST);
}

/* Returns the number of pods that are to leave their nodes and have no new place yet. */
static uint32_t leaving_count(const struct world *world, size_t workload)
{
    uint32_t len = 0;
    for (uint32_t ordinal = 0; ordinal < world->workloads[workload].replicas; ordinal++)
        len += pod_is_leaving(world, workload, ordinal);
    return len;
}

/* Invariant 17 for services and VMs, whose pods are alike: instances that stay and pending pods are together at most
 * the replicas, and with stopping and leaving pods at least the replicas. */
static bool pods_check(const struct world *after, struct berth_plan *plan, size_t w, struct verdict *v)
{
    const struct berth_workload *load = &after->workloads[w];
    uint32_t stand = 0, stopping = 0, pending = 0;

    for (size_t i = 0; i < after->instances_len; i++) {
        const struct inst *s = &after->instances[i];
        if (s->workload != w)
            continue;
        stand += inst_counts_as_replica(after, s, berth_plan_alarm(plan));
        stopping += s->is.state == BERTH_STOPPING;
    }
    for (uint32_t ordinal = 0; ordinal < load->replicas; ordinal++)
        pending += pendings_of(plan, load->id, ordinal) && !pod_is_leaving(after, w, ordinal);
    if (stand + pending > load->replicas || stand + pending + stopping + leaving_count(after, w) < load->replicas)
        return verdict_bad(v, "17 no limbo: of %u pods of %s %u stand, %u wait, %u stop", load->replicas, load->id,
                           stand, pending, stopping);
    return true;
}

static bool limbo_check(const struct world *after, struct berth_plan *plan, struct verdict *v)
{
    for (size_t w = 0; w < after->workloads_len; w++) {
        const struct berth_workload *load = &after->workloads[w];
        if (load->suspended)
            continue;
        for (uint32_t ordinal = 0; load->kind == BERTH_JOB && ordinal < load->replicas; ordinal++)
            if (!task_check(after, plan, w, ordinal, v))
                return false;
        if (load->kind != BERTH_JOB && !pods_check(after, plan, w, v))
            return false;
    }
    return true;
}

/* ---- work conservation ------------------------------------------------------------------------------------------ */

static bool pod_waits_for_end(const struct world *after, size_t w, uint32_t ordinal)
{
    return pod_in_state(after, w, ordinal, BERTH_STOPPING);
}

/* Returns true if the pod has the reason `reserved` and a pending pod before it has a reservation. */
static bool pod_is_blocked_by_reservation(struct berth_plan *plan, size_t i, const struct berth_pending *p)
{
    bool said = false;
    for (size_t k = 0; k < p->reasons_len; k++)
        said |= text_same(p->reasons[k].reason, "reserved");
    for (size_t before = 0; said && before < i; before++)
        if (berth_plan_queue_position(plan, before).start_ns)
            return true;
    return false;
}

/* A pending pod that some node would take is a violation. Exempt are gangs, pods that another pod's reservation blocks,
 * pods with a stopping instance, and pods with a manual migration. */
static bool conservation_check(const struct world *after, struct berth_plan *plan, size_t i,
                               const struct berth_pending *p, struct verdict *v)
{
    size_t w = world_find_workload(after, p->workload);
    struct placement_query placement_query = {.world = after, .workload = w};

    if (w == NONE || after->workloads[w].gang || pod_is_blocked_by_reservation(plan, i, p))
        return true;
    for (size_t k = 0; k < p->ordinals_len; k++) {
        if (p->ordinals[k] >= after->workloads[w].replicas && !pod_is_leaving(after, w, p->ordinals[k]))
            return verdict_bad(v, "pending: %s/%u was not asked for", p->workload, p->ordinals[k]);
        if (pod_waits_for_end(after, w, p->ordinals[k]) || pod_has_manual_move(after, w, p->ordinals[k]))
            continue;
        for (size_t n = 0; n < after->nodes_len; n++)
            if (rules_first(&placement_query, n) == RULES_LEN)
                return verdict_bad(v, "work conservation: %s/%u is pending, but %s would take it", p->workload,
                                   p->ordinals[k], after->nodes[n].id);
        break; /* all pods of a workload have the same answer */
    }
    return true;
}

/* ---- reasons ---------------------------------------------------------------------------------------------------- */

/* Reasons that mean exactly one rule. A reason that is given for several objects (two taints, two topologies) counts
 * nodes for each of them, so only bounds can be checked. */
static const struct {
    const char *word;
    enum rule rule;
} words[] = {
    {"state",         RULE_STATE       },
    {"name",          RULE_NAME        },
    {"labels",        RULE_LABELS      },
    {"taint",         RULE_TAINTS      },
    {"domain",        RULE_DOMAIN      },
    {"runtime",       RULE_RUNTIME     },
    {"arch",          RULE_ARCH        },
    {"page-size",     RULE_PAGES       },
    {"port",          RULE_PORTS       },
    {"attach",        RULE_ATTACH      },
    {"spread",        RULE_SPREAD      },
    {"affinity",      RULE_NEAR        },
    {"over",          RULE_OVER        },
    {"pressure",      RULE_PRESSURE    },
    {"headroom",      RULE_HEADROOM    },
    {"short",         RULE_RESOURCES   },
    {"anti-affinity", RULE_APART       },
    {"per-node",      RULE_MAX_PER_NODE},
};

static uint64_t refusals(const struct placement_query *placement_query, enum rule rule)
{
    uint64_t len = 0;
    for (size_t n = 0; n < placement_query->world->nodes_len; n++)
        len += rule_refuses(placement_query, rule, n);
    return len;
}

/* Returns true if the pod already has an instance that stays. A moved pod must satisfy the spread also after the old
 * instance is gone, so more nodes may refuse it than would refuse a new pod. */
static bool pod_is_moved(const struct placement_query *placement_query, const struct berth_pending *p)
{
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (s->workload == placement_query->workload && s->is.ordinal == p->ordinals[0] &&
            state_holds_place(s->is.state) && s->is.state != BERTH_STOPPING)
            return true;
    }
    return false;
}

static bool word_check(const struct placement_query *placement_query, const struct berth_pending *p, const char *word,
                       enum rule rule, struct verdict *v)
{
    uint64_t sum = 0, most = 0, is = refusals(placement_query, rule);

    for (size_t i = 0; i < p->reasons_len; i++) {
        if (!text_same(p->reasons[i].reason, word))
            continue;
        sum += p->reasons[i].nodes;
        most = p->reasons[i].nodes > most ? p->reasons[i].nodes : most;
    }
    if ((is >= most || (rule == RULE_SPREAD && pod_is_moved(placement_query, p))) && is <= sum)
        return true;
    /* a moved pod adds no demand, unless its old instance is given up */
    if (rule == RULE_HEADROOM && pod_is_moved(placement_query, p))
        return true;
    return verdict_bad(v, "reasons: %s of %s: %" PRIu64 " nodes said, %" PRIu64 " counted", word, p->workload, sum, is);
}

/* For each single resource the count must be exact. */
static bool short_check(const struct placement_query *placement_query, const struct berth_pending *p, struct verdict *v)
{
    const struct berth_shape *shape = &placement_query->world->workloads[placement_query->workload].shape;

    for (size_t i = 0; i < rule_requests_len(shape); i++) {
        struct berth_amount request = rule_request(shape, i);
        uint64_t is = 0, said = 0;
        for (size_t n = 0; n < placement_query->world->nodes_len; n++)
            is += request_refused(placement_query, n, request);
        for (size_t k = 0; k < p->reasons_len; k++)
            if (text_same(p->reasons[k].reason, "short") && text_same(p->reasons[k].what, request.resource))
                said += p->reasons[k].nodes;
        if (is != said)
            return verdict_bad(v, "reasons: %s of %s: %" PRIu64 " nodes said to be short, %" PRIu64 " counted",
                               request.resource, p->workload, said, is);
    }
    return true;
}

static bool reasons_check(const struct world *after, const struct berth_pending *p, struct verdict *v)
{
    size_t w = world_find_workload(after, p->workload);
    struct placement_query placement_query = {.world = after, .workload = w};

    if (w == NONE)
        return verdict_bad(v, "pending: no workload %s", p->workload);
    if (!p->reasons_len)
        return verdict_bad(v, "reasons: none for %s", p->workload);
    for (size_t i = 0; i < p->reasons_len; i++) {
        const struct berth_reason *r = &p->reasons[i];
        if (!r->reason || !*r->reason || !r->text || !*r->text || !r->what)
            return verdict_bad(v, "reasons: an empty one for %s", p->workload);
        if (r->only > r->nodes || r->nodes > after->nodes_len)
            return verdict_bad(v, "reasons: %s of %s: %" PRIu64 " nodes, %" PRIu64 " only", r->reason, p->workload,
                               r->nodes, r->only);
        if (i && r->nodes > r[-1].nodes && r[-1].nodes) /* reasons without nodes come first */
            return verdict_bad(v, "reasons: those of %s are not ordered", p->workload);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!word_check(&placement_query, p, words[i].word, words[i].rule, v))
            return false;
    return short_check(&placement_query, p, v);
}

bool pendings_check(const struct world *after, struct berth_plan *plan, struct verdict *v)
{
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        if (!conservation_check(after, plan, i, &p, v) || !reasons_check(after, &p, v))
            return false;
    }
    return limbo_check(after, plan, v);
}
