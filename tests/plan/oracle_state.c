/* oracle_state.c - checks the invariants of the state that a plan leaves behind. */
#include <inttypes.h>

#include "oracle.h"
#include "rules.h"

/* ---- 1: capacity ------------------------------------------------------------------------------------------------ */

/* A node that was over its capacity before may stay so, but gets nothing more. */
static bool capacity_of(const struct world *before, const struct world *after, size_t node, const char *resource,
                        struct verdict *v)
{
    struct placement_query was = {.world = before}, is = {.world = after};
    int64_t capacity = rule_capacity(after, node, resource);
    int64_t active = rule_active(&is, node, resource), promised = rule_reserved(&is, node, resource);

    if (active > capacity && active > rule_active(&was, node, resource))
        return verdict_bad(v, "1 capacity: %s of %s: %" PRId64 " active, %" PRId64 " there", resource,
                           after->nodes[node].id, active, capacity);
    if (promised > capacity && promised > rule_reserved(&was, node, resource))
        return verdict_bad(v, "1 capacity: %s of %s: %" PRId64 " promised, %" PRId64 " there", resource,
                           after->nodes[node].id, promised, capacity);
    return true;
}

static bool capacity_check(const struct world *before, const struct world *after, struct verdict *v)
{
    for (size_t i = 0; i < after->instances_len; i++) {
        const struct inst *s = &after->instances[i];
        for (size_t k = 0; k < rule_requests_len(s->shape); k++)
            if (!capacity_of(before, after, s->node, rule_request(s->shape, k).resource, v))
                return false;
    }
    return true;
}

/* ---- 2: ports --------------------------------------------------------------------------------------------------- */

static bool ports_clash(const struct inst *a, const struct inst *b)
{
    for (size_t i = 0; i < a->shape->ports_len; i++)
        for (size_t k = 0; k < b->shape->ports_len; k++)
            if (rule_ports_overlap(&a->shape->ports[i], &b->shape->ports[k]))
                return true;
    return false;
}

static bool was_active(const struct world *before, uint64_t id)
{
    const struct inst *s = world_find_instance(before, id);
    return s && state_active(s->is.state);
}

static bool ports_check(const struct world *before, const struct world *after, struct verdict *v)
{
    for (size_t i = 0; i < after->instances_len; i++)
        for (size_t k = 0; k < i; k++) {
            const struct inst *a = &after->instances[i], *b = &after->instances[k];
            if (a->node != b->node || !state_active(a->is.state) || !state_active(b->is.state))
                continue;
            if (ports_clash(a, b) && !(was_active(before, a->is.id) && was_active(before, b->is.id)))
                return verdict_bad(v, "2 ports: %" PRIu64 " and %" PRIu64 " clash on %s", a->is.id, b->is.id,
                                   a->is.node);
        }
    return true;
}

/* ---- 3: GPUs ---------------------------------------------------------------------------------------------------- */

static int64_t device_milli(const struct world *world, size_t node, size_t device, bool promised)
{
    int64_t sum = 0;
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        bool counts =
            promised ? state_holds_place(s->is.state) && s->is.state != BERTH_STOPPING : state_active(s->is.state);
        if (s->node == node && counts && s->is.gpus >> device & 1)
            sum += rule_gpu_share(s->shape);
    }
    return sum;
}

static bool gpus_check(const struct world *before, const struct world *after, struct verdict *v)
{
    for (size_t n = 0; n < after->nodes_len; n++)
        for (size_t d = 0; d < after->nodes[n].gpus_len; d++)
            for (int promised = 0; promised < 2; promised++) {
                int64_t milli = device_milli(after, n, d, promised);
                if (milli > BERTH_GPU_MILLI && milli > device_milli(before, n, d, promised))
                    return verdict_bad(v, "3 GPUs: %" PRId64 " thousandths of device %zu of %s are %s", milli, d,
                                       after->nodes[n].id, promised ? "promised" : "active");
            }
    return true;
}

/* ---- 10: gangs -------------------------------------------------------------------------------------------------- */

/* Returns the number of pods with an instance in one of the states (one bit each). Tasks of a job beyond its replicas
 * do not count. */
static uint32_t tasks_in(const struct world *world, size_t workload, unsigned states, bool alarm)
{
    const struct berth_workload *w = &world->workloads[workload];
    uint32_t len = 0;

    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        bool counts = s->workload == workload && states >> s->is.state & 1 && !inst_given_up(world, s, alarm);
        len += counts && (w->kind != BERTH_JOB || s->is.ordinal < w->replicas);
    }
    return len;
}

/* Stopping pods are not placed. Ended tasks of a job are done, and count for the minimum only. */
static bool gang_check(const struct world *world, const char *gang, bool alarm, struct verdict *v)
{
    const unsigned placed_states =
        1u << BERTH_RESERVED | 1u << BERTH_ASSIGNED | 1u << BERTH_STARTING | 1u << BERTH_RUNNING;
    uint32_t placed = 0, short_of = 0;
    const char *which = "";

    for (size_t i = 0; i < world->workloads_len; i++) {
        const struct berth_workload *w = &world->workloads[i];
        if (!text_same(w->gang, gang) || w->suspended)
            continue;
        unsigned done_states = w->kind == BERTH_JOB ? 1u << BERTH_ENDED : 0;
        uint32_t least = w->gang_min ? w->gang_min : w->replicas;
        uint32_t there = tasks_in(world, i, placed_states | done_states, alarm);
        placed += tasks_in(world, i, placed_states, alarm);
        if (there < least) {
            short_of += least - there;
            which = w->id;
        }
    }
    if (placed && short_of)
        return verdict_bad(v, "10 gangs: %s has %u tasks placed, but %u too few (%s)", gang, placed, short_of, which);
    return true;
}

static bool gangs_check(const struct world *after, bool alarm, struct verdict *v)
{
    for (size_t i = 0; i < after->workloads_len; i++)
        if (after->workloads[i].gang && !gang_check(after, after->workloads[i].gang, alarm, v))
            return false;
    return true;
}

/* ---- minimum available ------------------------------------------------------------------------------------------ */

/* Returns the number of pods with a ready instance. */
static uint32_t ready_len(const struct world *world, size_t workload)
{
    uint32_t len = 0;
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        bool ready = s->workload == workload && s->is.state == BERTH_RUNNING && s->is.ready;
        for (size_t k = 0; ready && k < i; k++) { /* counted already */
            const struct inst *other = &world->instances[k];
            ready = !(other->workload == workload && other->is.ordinal == s->is.ordinal && other->is.ready &&
                      other->is.state == BERTH_RUNNING);
        }
        len += ready;
    }
    return len;
}

static uint32_t least_available(const struct berth_workload *w)
{
    if (w->min_available)
        return w->min_available;
    return w->replicas > 1 ? w->replicas - 1 : w->replicas;
}

/* A plan must not reduce the ready pods below the minimum available. Exempt are jobs, whose tasks are not alike; gangs,
 * which stop whole; workloads with instances on a lost node; and workloads that ask to be stopped by a drain
 * (BERTH_DRAIN_STOP). */
static bool available_check(const struct world *before, const struct world *after, struct verdict *v)
{
    for (size_t w = 0; w < after->workloads_len; w++) {
        const struct berth_workload *load = &after->workloads[w];
        if (load->kind == BERTH_JOB || load->suspended || load->gang || load->on_drain == BERTH_DRAIN_STOP)
            continue;
        uint32_t was = ready_len(before, w), is = ready_len(after, w);
        uint32_t least = least_available(load) < load->replicas ? least_available(load) : load->replicas;
        bool lost = false;
        for (size_t i = 0; i < before->instances_len; i++)
            lost |=
                before->instances[i].workload == w && before->nodes[before->instances[i].node].state == BERTH_NODE_LOST;
        if (!lost && is < was && is < least)
            return verdict_bad(v, "availability: %s has %u ready pods of %u before, at least %u are to stay", load->id,
                               is, was, least);
    }
    return true;
}

bool state_check(const struct world *before, const struct world *after, bool alarm, struct verdict *v)
{
    return capacity_check(before, after, v) && ports_check(before, after, v) && gpus_check(before, after, v) &&
           gangs_check(after, alarm, v) && available_check(before, after, v);
}
