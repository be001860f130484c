/* world_dump.c - prints a world and a plan, for the reader of a failing seed. */
#include <inttypes.h>

#include "world.h"

static const char *given(const char *s)
{
    return s && *s ? s : "-";
}

static void amounts_dump(const char *title, const struct berth_amount *list, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++)
        fprintf(to, "%s%s=%" PRId64, i ? " " : title, list[i].resource, list[i].amount);
}

static void strings_dump(const char *title, const char *const *list, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++)
        fprintf(to, "%s%s", i ? "," : title, given(list[i]));
}

static void labels_dump(const struct berth_label *list, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++)
        fprintf(to, "%s%s=%s", i ? "," : " labels:", list[i].key, given(list[i].value));
}

static void ports_dump(const struct berth_port *list, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++)
        fprintf(to, " port:%d/%u+%u@%s", (int)list[i].protocol, list[i].port, list[i].count, given(list[i].address));
}

static void term_dump(const char *title, const struct berth_term *term, FILE *to)
{
    static const char *const names[] = {"In", "NotIn", "Exists", "NotExists", "Gt", "Lt"};

    fprintf(to, " %s(%d:", title, term->weight);
    for (size_t i = 0; i < term->exprs_len; i++) {
        fprintf(to, " %s %s", term->exprs[i].key, names[term->exprs[i].match]);
        strings_dump(" ", term->exprs[i].values, term->exprs[i].values_len, to);
    }
    fprintf(to, ")");
}

static void node_dump(const struct berth_node *n, int64_t now_ns, FILE *to)
{
    fprintf(to, "node %s %s for %" PRId64 "s zone=%s rack=%s domain=%s arch=%s rank=%u pages=%" PRId64 "\n    ", n->id,
            berth_node_state_name(n->state), (now_ns - n->since_ns) / SECOND_NS, given(n->zone), given(n->rack),
            given(n->domain), given(n->arch), n->rank, n->page_size_bytes);
    amounts_dump("has: ", n->allocatable, n->allocatable_len, to);
    amounts_dump(" over: ", n->overcommit, n->overcommit_len, to);
    amounts_dump(" used: ", n->used, n->used_len, to);
    amounts_dump(" consumed: ", n->consumed, n->consumed_len, to);
    if (n->consumed_len)
        fprintf(to, " for %" PRId64 "s", (now_ns - n->consumed_ns) / SECOND_NS);
    labels_dump(n->labels, n->labels_len, to);
    for (size_t i = 0; i < n->taints_len; i++)
        fprintf(to, " taint:%s=%s/%d", n->taints[i].key, given(n->taints[i].value), (int)n->taints[i].effect);
    for (size_t i = 0; i < n->gpus_len; i++)
        fprintf(to, "%s%s%s", i ? "," : " gpus:", n->gpus[i].model, n->gpus[i].unhealthy ? "(unhealthy)" : "");
    strings_dump(" runtimes:", n->runtimes, n->runtimes_len, to);
    ports_dump(n->ports, n->ports_len, to);
    fprintf(to, "\n");
}

static void gpu_need_dump(const struct berth_gpu_need *gpu, FILE *to)
{
    if (!gpu->count)
        return;
    fprintf(to, " gpu:%u milli=%u mem=%" PRId64, gpu->count, gpu->milli, gpu->memory_bytes);
    strings_dump(" models:", gpu->models, gpu->models_len, to);
}

static void shape_dump(const struct berth_shape *s, FILE *to)
{
    fprintf(to, "    ");
    amounts_dump("wants: ", s->requests, s->requests_len, to);
    gpu_need_dump(&s->gpu, to);
    fprintf(to, " node=%s arch=%s runtime=%s", given(s->node), given(s->arch), given(s->runtime));
    strings_dump(" domains:", s->domains, s->domains_len, to);
    strings_dump(" volumes:", s->volumes, s->volumes_len, to);
    ports_dump(s->ports, s->ports_len, to);
    if (s->max_per_node)
        fprintf(to, " max_per_node=%u", s->max_per_node);
    for (size_t i = 0; i < s->require_len; i++)
        term_dump("require", &s->require[i], to);
    for (size_t i = 0; i < s->prefer_len; i++)
        term_dump("prefer", &s->prefer[i], to);
    for (size_t i = 0; i < s->tolerations_len; i++)
        fprintf(to, " tolerates:%s=%s/%d/%d", given(s->tolerations[i].key), given(s->tolerations[i].value),
                s->tolerations[i].exists, (int)s->tolerations[i].effect);
    for (size_t i = 0; i < s->spread_len; i++) {
        fprintf(to, " %s spread %s skew %u domains %u nodes %d", s->spread[i].soft ? "soft" : "hard",
                s->spread[i].topology, s->spread[i].max_skew, s->spread[i].min_domains, (int)s->spread[i].nodes);
        term_dump("of", &s->spread[i].select, to);
    }
    for (size_t i = 0; i < s->near_len; i++) {
        fprintf(to, " %s %s", s->near[i].apart ? "apart" : "near", s->near[i].topology);
        term_dump("of", &s->near[i].select, to);
    }
    for (size_t i = 0; i < s->limits_len; i++)
        fprintf(to, " limit %s/%d %" PRId64 "..%" PRId64, s->limits[i].resource, (int)s->limits[i].kind,
                s->limits[i].amount, s->limits[i].max);
    fprintf(to, "\n");
}

static void workload_dump(const struct berth_workload *w, int64_t now_ns, FILE *to)
{
    fprintf(
        to,
        "workload %s kind=%d x%u priority=%d age=%" PRId64 "s%s min_available=%u lost=%d drain=%d fence=%" PRId64 "s",
        w->id, (int)w->kind, w->replicas, w->priority, (now_ns - w->created_ns) / SECOND_NS,
        w->suspended ? " SUSPENDED" : "", w->min_available, (int)w->on_lost, (int)w->on_drain, w->fence_ns / SECOND_NS);
    if (w->gang)
        fprintf(to, " gang=%s min=%u", w->gang, w->gang_min);
    if (w->min_run_ns || w->unpreemptible || w->never_preempts)
        fprintf(to, " min_run=%" PRId64 "s%s%s", w->min_run_ns / SECOND_NS, w->unpreemptible ? " unpreemptible" : "",
                w->never_preempts ? " never_preempts" : "");
    labels_dump(w->labels, w->labels_len, to);
    fprintf(to, "\n");
    shape_dump(&w->shape, to);
}

static void inst_dump(const struct inst *s, int64_t now_ns, FILE *to)
{
    fprintf(to, "instance %" PRIu64 " %s/%u on %s %s%s for %" PRId64 "s gpus=%" PRIx64 " replaces=%" PRIu64, s->is.id,
            s->is.workload, s->is.ordinal, s->is.node, berth_state_name(s->is.state), s->is.ready ? " ready" : "",
            (now_ns - s->is.since_ns) / SECOND_NS, s->is.gpus, s->is.replaces);
    for (size_t i = 0; i < s->is.waits_len; i++)
        fprintf(to, " waits:%" PRIu64, s->is.waits[i]);
    for (size_t i = 0; i < s->is.usage_len; i++) {
        const struct berth_usage *u = &s->is.usage[i];
        fprintf(to, " uses:%s=%" PRId64 " for %" PRId64 "s limit=%" PRId64 " for %" PRId64 "s", u->resource, u->used,
                (now_ns - u->used_since_ns) / SECOND_NS, u->limit, (now_ns - u->limit_since_ns) / SECOND_NS);
    }
    fprintf(to, "\n");
    if (s->is.shape)
        shape_dump(s->is.shape, to);
}

void world_dump(const struct world *world, FILE *to)
{
    fprintf(to, "seed %" PRIu64 " now=%" PRId64 " next_id=%" PRIu64 "%s\n", world->seed, world->now_ns, world->next_id,
            world->broken ? " broken" : "");
    const struct berth_policy *p = &world->policy;
    fprintf(to, "policy pressure=%u..%u drops=%u shed=%d rebalance=%u by %u%% after %" PRId64 "s headroom below %d:",
            p->pressure.high_percent, p->pressure.low_percent, p->pressure.drops, p->shed, p->rebalance.moves,
            p->rebalance.gain_percent, p->rebalance.age_ns / SECOND_NS, p->headroom.priority);
    for (size_t i = 0; i < p->headroom.reserves_len; i++)
        fprintf(to, " %s=%" PRId64 "/%u", p->headroom.reserves[i].resource, p->headroom.reserves[i].amount,
                p->headroom.reserves[i].permille);
    fprintf(to, "\n    preemption on=%d services=%d after %" PRId64 "s most=%u clears=%d breaks=%d reservations=%u\n",
            p->preemption.on, p->preemption.services, p->preemption.min_run_ns / SECOND_NS, p->preemption.most,
            p->preemption.clears, p->preemption.break_budgets, p->backfill.reservations);
    for (size_t i = 0; i < world->budgets_len; i++) {
        fprintf(to, "budget %s allows %u", world->budgets[i].id, world->budgets[i].allowed);
        term_dump("of", &world->budgets[i].select, to);
        fprintf(to, "\n");
    }
    for (size_t i = 0; i < world->resources_len; i++)
        fprintf(to, "resource %s kind=%d period=%" PRId64 "s\n", world->resources[i].name,
                (int)world->resources[i].kind, world->resources[i].period_ns / SECOND_NS);
    for (size_t i = 0; i < world->nodes_len; i++)
        node_dump(&world->nodes[i], world->now_ns, to);
    for (size_t i = 0; i < world->volumes_len; i++) {
        const struct berth_volume *v = &world->volumes[i];
        fprintf(to, "volume %s zone=%s node=%s driver=%s shared=%d\n", v->id, given(v->zone), given(v->node),
                given(v->driver), v->shared);
    }
    for (size_t i = 0; i < world->workloads_len; i++)
        workload_dump(&world->workloads[i], world->now_ns, to);
    for (size_t i = 0; i < world->instances_len; i++)
        inst_dump(&world->instances[i], world->now_ns, to);
    for (size_t i = 0; i < world->facts_len; i++)
        fprintf(to, "fact %d of %" PRIu64 " %s = %" PRId64 " at %" PRId64 "\n", (int)world->facts[i].kind,
                world->facts[i].subject, given(world->facts[i].key), world->facts[i].value, world->facts[i].at_ns);
}

static void pending_dump(const struct berth_pending *p, FILE *to)
{
    fprintf(to, "pending %s/", p->workload);
    for (size_t i = 0; i < p->ordinals_len; i++)
        fprintf(to, "%s%u", i ? "," : "", p->ordinals[i]);
    for (size_t i = 0; i < p->reasons_len; i++)
        fprintf(to, "\n    %s %s: %" PRIu64 " nodes, %" PRIu64 " only: %s", p->reasons[i].reason,
                given(p->reasons[i].what), p->reasons[i].nodes, p->reasons[i].only, p->reasons[i].text);
    fputc('\n', to);
}

void plan_dump(struct berth_plan *plan, FILE *to)
{
    fprintf(to, "plan %016" PRIx64 "%s recheck=%" PRId64 "\n", berth_plan_hash(plan),
            berth_plan_alarm(plan) ? " ALARM" : "", berth_plan_recheck_ns(plan));
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        fprintf(to, "  %s %s %s/%u on %s instance=%" PRIu64 " replaces=%" PRIu64 " gpus=%" PRIx64, berth_op_name(a.op),
                berth_cause_name(a.cause), given(a.workload), a.ordinal, given(a.node), a.instance, a.replaces, a.gpus);
        for (size_t k = 0; k < a.waits_len; k++)
            fprintf(to, " waits:%" PRIu64, a.waits[k]);
        if (a.op == BERTH_ADJUST)
            fprintf(to, " %s=%" PRId64, given(a.resource), a.limit);
        fprintf(to, "\n");
    }
    for (size_t i = 0; i < berth_plan_facts(plan); i++) {
        struct berth_fact f = berth_plan_fact(plan, i);
        fprintf(to, "  fact %d of %" PRIu64 " %s = %" PRId64 " at %" PRId64 "%s\n", (int)f.kind, f.subject,
                given(f.key), f.value, f.at_ns, f.over ? " over" : "");
    }
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        pending_dump(&p, to);
    }
}
