/* properties_settle.c - checks that a cluster comes to rest if only its plans change it and every start succeeds.
 *
 * The clock advances by itself, from one recheck to the next. A replacement reports the same usage as the instance that
 * it replaces. Pressure is switched off: an instance that is evicted for its real usage may overload the next node,
 * too.
 */
#include <stdlib.h>

#include "properties.h"
#include "rules.h"

/* Most rounds are rechecks: a job that exceeds its expected run time is then expected to need twice as long, again and
 * again until the end of time. */
enum { ROUNDS_MAX = 2000, NODES_MAX = 12 };

static bool node_is_reachable(const struct world *world, const struct inst *s)
{
    return world->nodes[s->node].state != BERTH_NODE_LOST;
}

static void copy_usage_of_replaced(const struct world *world, struct inst *s)
{
    const struct inst *old = s->is.replaces ? world_find_instance(world, s->is.replaces) : NULL;
    if (!old || s->is.usage_len)
        return;
    s->is.usage = old->is.usage;
    s->is.usage_len = old->is.usage_len;
}

/* Completes all starts and stops on nodes that are not lost. Returns true if anything changed. */
static bool complete_starts_and_stops(struct world *world)
{
    bool changed = false;
    for (size_t i = world->instances_len; i-- > 0;) {
        struct inst *s = &world->instances[i];
        bool moves = s->is.state == BERTH_ASSIGNED || s->is.state == BERTH_STARTING || s->is.state == BERTH_STOPPING;
        if (!moves || !node_is_reachable(world, s))
            continue;
        changed = true;
        if (s->is.state == BERTH_STOPPING) {
            world_remove_instance(world, i);
            continue;
        }
        copy_usage_of_replaced(world, s);
        s->is.state = BERTH_RUNNING;
        s->is.ready = true;
        s->is.since_ns = world->now_ns;
    }
    return changed;
}

/* Makes and applies one plan. *ret_recheck is the time of the next one. Returns true if the plan was not empty. */
static bool plan_and_apply(struct world *world, int64_t *ret_recheck, struct verdict *v)
{
    struct berth_snapshot *snapshot = NULL;
    struct berth_cluster *cluster = world_load(world, 0);
    struct berth_plan *plan = cluster ? world_plan(world, cluster, &snapshot) : NULL;
    bool any = false;

    if (!plan) {
        verdict_bad(v, "rest: no plan");
    } else {
        any = berth_plan_actions(plan) || berth_plan_facts(plan);
        *ret_recheck = berth_plan_recheck_ns(plan);
        for (size_t i = 0; i < berth_plan_actions(plan); i++) {
            struct berth_action a = berth_plan_action(plan, i);
            action_apply(world, &a);
        }
        for (size_t i = 0; i < berth_plan_facts(plan); i++)
            world_add_fact(world, berth_plan_fact(plan, i));
        berth_plan_free(plan);
        berth_snapshot_free(snapshot);
    }
    if (cluster)
        berth_cluster_free(cluster);
    return any;
}

bool rest_check(const struct world *from, struct verdict *v)
{
    struct world world;
    bool rests = from->nodes_len > NODES_MAX;

    world_copy(&world, from);
    world.policy.pressure = (struct berth_pressure){0};
    for (size_t round = 0; !rests && !v->bad && round < ROUNDS_MAX; round++) {
        int64_t recheck = BERTH_NEVER_NS;
        bool decided = plan_and_apply(&world, &recheck, v), obeyed = complete_starts_and_stops(&world);
        if (decided || obeyed)
            world.now_ns += SECOND_NS;
        else if (recheck == BERTH_NEVER_NS)
            rests = true;
        else
            world.now_ns = recheck;
    }
    if (!rests && !v->bad)
        verdict_bad(v, "rest: something goes on and on");
    if (!rests && getenv("BERTH_SEED"))
        world_dump(&world, stderr);
    world_done(&world);
    return rests;
}
