/* properties_rest.c - where nothing happens but what plans say, and all that starts comes up: it comes to rest.
 *
 * Time goes on by itself, from one recheck to the next. Whoever takes over from another uses as much as that one did.
 * Without pressure: a replica that is stopped on one node for what it really uses may be too much for the next, too.
 */
#include <stdlib.h>

#include "properties.h"
#include "rules.h"

/* Most rounds are rechecks: each job that runs for longer than was expected is expected to need twice as long, until the end of
 * time. */
enum { ROUNDS_MAX = 2000, NODES_MAX = 12 };

static bool listens(const struct world *world, const struct seat *s)
{
    return world->nodes[s->node].state != BERTH_NODE_LOST;
}

static void inherit(const struct world *world, struct seat *s)
{
    const struct seat *old = s->is.replaces ? world_find_seat(world, s->is.replaces) : NULL;
    if (!old || s->is.usage_len)
        return;
    s->is.usage = old->is.usage;
    s->is.usage_len = old->is.usage_len;
}

/* Everybody does as told; returns whether anything changed. */
static bool obey(struct world *world)
{
    bool changed = false;
    for (size_t i = world->seats_len; i-- > 0;) {
        struct seat *s = &world->seats[i];
        bool moves = s->is.state == BERTH_ASSIGNED || s->is.state == BERTH_STARTING || s->is.state == BERTH_STOPPING;
        if (!moves || !listens(world, s))
            continue;
        changed = true;
        if (s->is.state == BERTH_STOPPING) {
            world_remove_seat(world, i);
            continue;
        }
        inherit(world, s);
        s->is.state = BERTH_RUNNING;
        s->is.ready = true;
        s->is.since_ns = world->now_ns;
    }
    return changed;
}

/* Plans once; *ret_recheck is when to look again. Returns whether something was decided. */
static bool decide(struct world *world, int64_t *ret_recheck, struct verdict *v)
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
        bool decided = decide(&world, &recheck, v), obeyed = obey(&world);
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
