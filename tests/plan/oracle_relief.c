/* oracle_relief.c - checks evictions under pressure, moves from nodes over capacity, manual moves, and rebalancing. */
#include <inttypes.h>
#include <string.h>

#include "oracle.h"
#include "rules_relief.h"

#define UNDONE_NS (60 * MINUTE_NS)
#define STALE_NS (15 * MINUTE_NS)

struct relief_case {
    const struct world *before, *after;
    struct berth_plan *plan;
    struct verdict *v;
};

static uint32_t min_available_of(const struct berth_workload *w)
{
    if (w->min_available)
        return w->min_available;
    return w->replicas > 1 ? w->replicas - 1 : 1;
}

static bool inst_available(const struct world *world, const struct inst *s)
{
    return s->is.state == BERTH_RUNNING && s->is.ready && world->nodes[s->node].state != BERTH_NODE_LOST;
}

static uint32_t available_len(const struct world *world, size_t workload)
{
    uint32_t len = 0;
    for (size_t i = 0; i < world->instances_len; i++)
        len += world->instances[i].workload == workload && inst_available(world, &world->instances[i]);
    return len;
}

/* Returns true if the instance belongs to an active service outside of gangs and is neither reserved nor stopping. */
static bool is_movable(const struct world *world, const struct inst *s)
{
    const struct berth_workload *w = s->workload == NONE ? NULL : &world->workloads[s->workload];
    return w && w->kind == BERTH_SERVICE && !w->suspended && text_same(w->gang, "") &&
           (s->is.state == BERTH_ASSIGNED || s->is.state == BERTH_STARTING || s->is.state == BERTH_RUNNING);
}

/* ---- pressure --------------------------------------------------------------------------------------------------- */

static int64_t overuse(const struct inst *s)
{
    return inst_used(s, "memory") - amount_of(s->shape->requests, s->shape->requests_len, "memory");
}

static bool is_overcommitted(const struct world *world, size_t node)
{
    const struct berth_node *n = &world->nodes[node];
    return rule_capacity(world, node, "memory") > amount_of(n->allocatable, n->allocatable_len, "memory");
}

static bool is_evictable(const struct world *world, const struct inst *s)
{
    return is_movable(world, s) && inst_used(s, "memory") > 0 && (overuse(s) > 0 || is_overcommitted(world, s->node));
}

static bool evicts_before(const struct world *world, const struct inst *a, const struct inst *b)
{
    int32_t pa = world->workloads[a->workload].priority, pb = world->workloads[b->workload].priority;
    if (pa != pb)
        return pa < pb;
    return overuse(a) != overuse(b) ? overuse(a) > overuse(b) : a->is.id > b->is.id;
}

/* Returns true if the instance could have been stopped in addition to the rest of the plan. */
static bool is_still_spare(const struct relief_case *c, const struct inst *s)
{
    const struct inst *later = world_find_instance(c->after, s->is.id);
    if (!later || later->is.state == BERTH_STOPPING)
        return false;
    return !inst_available(c->before, s) ||
           available_len(c->after, s->workload) > min_available_of(&c->after->workloads[s->workload]);
}

static int64_t use_left(const struct world *world, size_t node, uint32_t *stopping)
{
    int64_t left = node_uses(world, node, "memory");
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        if (s->node != node || s->is.state != BERTH_STOPPING)
            continue;
        left -= inst_used(s, "memory") > 0 ? inst_used(s, "memory") : 0;
        *stopping += 1;
    }
    return left;
}

static bool eviction_is_due(const struct world *world, size_t node)
{
    const struct berth_fact *known = fact_find(world, BERTH_FACT_PRESSURE, 0, world->nodes[node].id);
    uint32_t unheard = 0;
    return node_pressed(world, node) && known && world->now_ns - known->at_ns >= world->policy.pressure.hold_ns &&
           uses_above(world, node, use_left(world, node, &unheard), world->policy.pressure.low_percent);
}

static bool eviction_check(const struct relief_case *c, const struct inst *s)
{
    if (!eviction_is_due(c->before, s->node))
        return verdict_bad(c->v, "pressure: %" PRIu64 " is stopped on %s, which is not due", s->is.id, s->is.node);
    if (!is_evictable(c->before, s))
        return verdict_bad(c->v, "pressure: %" PRIu64 " may not be stopped", s->is.id);
    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *other = &c->before->instances[i];
        if (other->node == s->node && other != s && is_evictable(c->before, other) &&
            evicts_before(c->before, other, s) && is_still_spare(c, other))
            return verdict_bad(c->v, "pressure: %" PRIu64 " is stopped before %" PRIu64, s->is.id, other->is.id);
    }
    return true;
}

/* Returns true if no instance of the workload is replacing another. */
static bool is_settled(const struct world *world, size_t workload)
{
    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].workload == workload && world->instances[i].is.replaces)
            return false;
    return true;
}

/* Returns true if the plan stops an instance on the node, for any cause. */
static bool anything_stops(const struct relief_case *c, size_t node)
{
    for (size_t i = 0; i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        const struct inst *s = a.instance ? world_find_instance(c->before, a.instance) : NULL;
        if (a.op == BERTH_STOP && s && s->node == node)
            return true;
    }
    return false;
}

/* Checks a node where an eviction was due but none was made: then no instance may have been evictable. */
static bool no_eviction_check(const struct relief_case *c, size_t node)
{
    if (anything_stops(c, node))
        return true;
    for (size_t i = 0; i < c->before->instances_len; i++)
        if (c->before->instances[i].node == node && c->before->instances[i].workload != NONE &&
            !is_settled(c->before, c->before->instances[i].workload))
            return true; /* the instance to evict may be the one that is being replaced */
    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *s = &c->before->instances[i];
        if (s->node == node && is_evictable(c->before, s) && is_still_spare(c, s))
            return verdict_bad(c->v, "pressure: %s is due, and %" PRIu64 " could go", s->is.node, s->is.id);
    }
    return true;
}

static bool pressure_fact_check(const struct relief_case *c, size_t node, bool dropped)
{
    const char *id = c->before->nodes[node].id;
    const struct berth_fact *was = fact_find(c->before, BERTH_FACT_PRESSURE, 0, id);
    const struct berth_fact *is = fact_find(c->after, BERTH_FACT_PRESSURE, 0, id);
    bool pressed = node_pressed(c->before, node);

    if (pressed != (is != NULL))
        return verdict_bad(c->v, "pressure: %s is%s under it, and that is%s remembered", id, pressed ? "" : " not",
                           is ? "" : " not");
    bool unmoved = pressed && was && is->at_ns == was->at_ns; /* also if the picked instance could not be stopped */
    bool now = pressed && is->at_ns == c->before->now_ns && (!was || eviction_is_due(c->before, node));
    if (pressed && !now && (!unmoved || dropped))
        return verdict_bad(c->v, "pressure: of %s the wrong moment is remembered", id);
    return true;
}

static bool pressure_check(const struct relief_case *c)
{
    uint32_t stopping = 0, drops = 0, picked = 0;
    bool before = false; /* an earlier plan picked instances at this moment: then this plan picks no more */
    bool *dropped = ARENA_ARRAY(&((struct world *)(uintptr_t)c->after)->arena, bool, c->before->nodes_len + 1);

    for (size_t n = 0; n < c->before->nodes_len; n++) {
        const struct berth_fact *known = fact_find(c->before, BERTH_FACT_PRESSURE, 0, c->before->nodes[n].id);
        if (!node_pressed(c->before, n))
            continue;
        (void)use_left(c->before, n, &stopping);
        before |= known && known->at_ns == c->before->now_ns;
        const struct berth_fact *is = fact_find(c->after, BERTH_FACT_PRESSURE, 0, c->before->nodes[n].id);
        /* Picked at this moment by an earlier plan; or by this plan, and the instance stops for another cause or not at
         * all. */
        picked += known && (known->at_ns == c->before->now_ns || (is && is->at_ns == c->before->now_ns));
    }
    for (size_t i = 0; i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        const struct inst *s = a.instance ? world_find_instance(c->before, a.instance) : NULL;
        if (a.op != BERTH_STOP || a.cause != BERTH_CAUSE_PRESSURE || !s)
            continue;
        /* The replacement of an evicted instance stops with it. */
        if (s->is.replaces && world_find_instance(c->before, s->is.replaces))
            continue;
        if (!eviction_check(c, s))
            return false;
        if (dropped[s->node])
            return verdict_bad(c->v, "pressure: two at once on %s", s->is.node);
        dropped[s->node] = true;
        drops++;
    }
    picked -= drops < picked ? drops : picked; /* the picked instances that this plan stops are counted in `drops` */
    if (drops && stopping + drops > c->before->policy.pressure.drops)
        return verdict_bad(c->v, "pressure: %u stop, and %u more are stopped", stopping, drops);
    for (size_t n = 0; n < c->before->nodes_len; n++) {
        bool due = !before && eviction_is_due(c->before, n) && !dropped[n] &&
                   stopping + picked + drops < c->before->policy.pressure.drops;
        if (!pressure_fact_check(c, n, dropped[n]) || (due && !no_eviction_check(c, n)))
            return false;
    }
    return fact_find(c->after, BERTH_FACT_PRESSURE, 0, "gone")
               ? verdict_bad(c->v, "pressure: a node that is gone is remembered")
               : true;
}

/* ---- nodes over capacity ---------------------------------------------------------------------------------------- */

/* Returns true if the instances that stay request more of the resource than the node has. */
static bool exceeds_capacity(const struct world *world, size_t node, const char *resource, const bool *leaves)
{
    int64_t held = 0, has = amount_of(world->nodes[node].overcommit, world->nodes[node].overcommit_len, resource);
    __int128 whole = amount_of(world->nodes[node].allocatable, world->nodes[node].allocatable_len, resource);
    bool listed = false;

    for (size_t i = 0; i < world->nodes[node].allocatable_len; i++)
        listed |= text_same(world->nodes[node].allocatable[i].resource, resource);
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        bool counts = s->node == node && state_active(s->is.state) && s->is.state != BERTH_STOPPING && !leaves[i];
        for (size_t k = 0; counts && k < rule_requests_len(s->shape); k++)
            if (text_same(rule_request(s->shape, k).resource, resource))
                held += rule_request(s->shape, k).amount;
    }
    if (!listed && text_same(resource, "pods"))
        return false;
    return held > (int64_t)(whole * (has ? has : BERTH_RATIO_ONE) / BERTH_RATIO_ONE);
}

static bool leaves_before(const struct world *world, const struct inst *a, const struct inst *b)
{
    int32_t pa = world->workloads[a->workload].priority, pb = world->workloads[b->workload].priority;
    return pa != pb ? pa < pb : a->is.id > b->is.id;
}

/* Marks the instances that are to leave the node, in order. */
static void shed_list(const struct world *world, size_t node, bool *leaves, bool *asked)
{
    for (;;) {
        size_t next = NONE;
        for (size_t i = 0; i < world->instances_len; i++) {
            const struct inst *s = &world->instances[i];
            bool may = s->node == node && !asked[i] && is_movable(world, s) &&
                       world->workloads[s->workload].on_drain != BERTH_DRAIN_WAIT;
            if (may && (next == NONE || leaves_before(world, s, &world->instances[next])))
                next = i;
        }
        if (next == NONE)
            return;
        const struct berth_shape *shape = world->instances[next].shape;
        bool helps = false;
        for (size_t k = 0; k < rule_requests_len(shape); k++)
            helps |= rule_request(shape, k).amount > 0 &&
                     exceeds_capacity(world, node, rule_request(shape, k).resource, leaves);
        asked[next] = true;
        leaves[next] = helps;
    }
}

static bool is_overcapacity_action(const struct relief_case *c, const struct berth_action *a, const bool *leaves)
{
    uint64_t of = a->op == BERTH_STOP ? a->instance : a->replaces;
    for (size_t i = 0; i < c->before->instances_len; i++) {
        const struct inst *s = &c->before->instances[i];
        const struct inst *old = s->is.replaces ? world_find_instance(c->before, s->is.replaces) : NULL;
        bool with_old =
            old && leaves[old - c->before->instances]; /* it stops with the instance that it was to replace */
        if (s->is.id == of && (leaves[i] || (a->op == BERTH_STOP && with_old)))
            return true;
    }
    /* A pod that was stopped is placed anew. */
    return a->op != BERTH_STOP && !a->replaces;
}

static bool overcapacity_check(const struct relief_case *c)
{
    struct arena *arena = &((struct world *)(uintptr_t)c->after)->arena;
    bool *leaves = ARENA_ARRAY(arena, bool, c->before->instances_len + 1);
    bool *asked = ARENA_ARRAY(arena, bool, c->before->instances_len + 1);

    for (size_t n = 0; c->before->policy.shed && n < c->before->nodes_len; n++)
        if (node_is_reachable(c->before, n))
            shed_list(c->before, n, leaves, asked);
    for (size_t i = 0; i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        if (a.cause == BERTH_CAUSE_OVER_CAPACITY && !is_overcapacity_action(c, &a, leaves))
            return verdict_bad(c->v, "over: %s %s/%u on %s: its node is not, or others go first", berth_op_name(a.op),
                               a.workload, a.ordinal, a.node);
    }
    return true;
}

/* ---- rebalancing ------------------------------------------------------------------------------------------------ */

static int64_t load_of(const struct world *world, size_t node, const char *resource)
{
    int64_t load = 0, used = node_uses(world, node, resource);
    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        if (s->node != node || !state_active(s->is.state))
            continue;
        int64_t asked = amount_of(s->shape->requests, s->shape->requests_len, resource);
        load += inst_used(s, resource) >= 0 ? inst_used(s, resource) : asked;
    }
    return load > used ? load : used;
}

/* Returns the higher utilisation of cpu and memory, in thousandths of what is allocatable. `sign` 1 adds the load of
 * `s` to the node's, -1 subtracts it. */
static int64_t utilisation_with(const struct world *world, size_t node, const struct inst *s, int sign)
{
    static const char *const resources[] = {"cpu", "memory"};
    int64_t most = 0;

    for (size_t k = 0; k < 2; k++) {
        const struct berth_node *n = &world->nodes[node];
        int64_t has = amount_of(n->allocatable, n->allocatable_len, resources[k]), own = 0;
        if (s)
            own = inst_used(s, resources[k]) >= 0 ? inst_used(s, resources[k])
                                                  : amount_of(s->shape->requests, s->shape->requests_len, resources[k]);
        int64_t load = load_of(world, node, resources[k]) + sign * own;
        int64_t share = load <= 0 ? 0 : has > 0 ? (int64_t)((__int128)load * 1000 / has) : INT32_MAX;
        share = share > INT32_MAX ? INT32_MAX : share;
        most = share > most ? share : most;
    }
    return most;
}

/* Returns true if a migration of the instance is remembered and still in force. */
static bool moves_already(const struct world *world, const struct inst *s)
{
    const struct berth_fact *f = fact_find(world, BERTH_FACT_MIGRATION, s->is.id, "");
    if (!f)
        return false;
    if (berth_migration_phase(f->value) == BERTH_MIGRATION_UNDONE)
        return world->now_ns - f->at_ns < UNDONE_NS;
    if (berth_migration_cause(f->value) == BERTH_CAUSE_MANUAL)
        return true;
    for (size_t i = 0; i < world->instances_len; i++)
        if (world->instances[i].is.replaces == s->is.id && world->instances[i].is.state != BERTH_STOPPING)
            return true;
    return false;
}

/* `then` is the world just before this move. */
static bool rebalance_check(const struct relief_case *c, const struct world *then, const struct berth_action *a)
{
    const struct berth_rebalance *policy = &c->before->policy.rebalance;
    const struct inst *s = world_find_instance(c->before, a->replaces);
    size_t to = world_find_node(c->before, a->node);
    int64_t from_share = utilisation_with(then, s->node, NULL, 0);
    int64_t left = utilisation_with(then, s->node, s, -1), came = utilisation_with(then, to, s, 1);
    const struct berth_workload *w = &c->before->workloads[s->workload];

    if (w->kind != BERTH_SERVICE || !text_same(w->gang, "") || !inst_available(c->before, s) ||
        c->before->nodes[s->node].state != BERTH_NODE_READY)
        return verdict_bad(c->v, "evening out: %" PRIu64 " may not be moved", s->is.id);
    if (c->before->now_ns - s->is.since_ns < policy->age_ns)
        return verdict_bad(c->v, "evening out: %" PRIu64 " is too young", s->is.id);
    if (moves_already(c->before, s))
        return verdict_bad(c->v, "evening out: %" PRIu64 " has another migration", s->is.id);
    if (from_share - (left > came ? left : came) <= (int64_t)policy->gain_percent * 10)
        return verdict_bad(c->v,
                           "evening out: %" PRIu64 " from %" PRId64 " to %" PRId64 " and %" PRId64 " gains little",
                           s->is.id, from_share, left, came);
    return true;
}

/* ---- all moves -------------------------------------------------------------------------------------------------- */

static bool manual_move_check(const struct relief_case *c, const struct berth_action *a)
{
    const struct berth_fact *f = fact_find(c->before, BERTH_FACT_MIGRATION, a->replaces, "");
    const struct inst *s = world_find_instance(c->before, a->replaces);
    if (!f || !s || berth_migration_cause(f->value) != BERTH_CAUSE_MANUAL ||
        berth_migration_phase(f->value) == BERTH_MIGRATION_UNDONE)
        return verdict_bad(c->v, "by hand: nobody asked for the move of %" PRIu64, a->replaces);
    if ((*f->key && !text_same(f->key, a->node)) || text_same(s->is.node, a->node))
        return verdict_bad(c->v, "by hand: %" PRIu64 " was not to move to %s", a->replaces, a->node);
    return true;
}

static bool undo_check(const struct relief_case *c, const struct berth_action *a)
{
    const struct inst *s = world_find_instance(c->before, a->instance);
    const struct berth_fact *f = fact_find(c->before, BERTH_FACT_MIGRATION, s->is.replaces, "");
    bool stale = f && berth_migration_phase(f->value) == BERTH_MIGRATION_STARTING &&
                 berth_migration_cause(f->value) == BERTH_CAUSE_MOVED && c->before->now_ns - f->at_ns >= STALE_NS;
    if (!f || (berth_migration_phase(f->value) != BERTH_MIGRATION_UNDONE && !stale))
        return verdict_bad(c->v, "undone: nobody took back the move to %" PRIu64, a->instance);
    return true;
}

/* No migration fact outlives its instance. The fact of an undone migration stays for UNDONE_NS after its new instance
 * was stopped. */
static bool facts_check(const struct relief_case *c)
{
    for (size_t i = 0; i < c->after->facts_len; i++) {
        const struct berth_fact *f = &c->after->facts[i];
        const struct inst *s = f->kind == BERTH_FACT_MIGRATION ? world_find_instance(c->after, f->subject) : NULL;
        if (f->kind != BERTH_FACT_MIGRATION)
            continue;
        if (!s || s->is.state == BERTH_ENDED)
            return verdict_bad(c->v, "migrations: %" PRIu64 " is gone, and yet remembered", f->subject);
        if (berth_migration_phase(f->value) != BERTH_MIGRATION_UNDONE)
            continue;
        if (c->after->now_ns - f->at_ns >= UNDONE_NS)
            return verdict_bad(c->v, "migrations: that of %" PRIu64 " was undone long ago", f->subject);
    }
    return true;
}

static bool moves_check(const struct relief_case *c)
{
    struct world then;
    uint32_t evened = 0, others = 0;
    bool good = true;

    world_copy(&then, c->before);
    for (size_t i = 0; good && i < berth_plan_actions(c->plan); i++) {
        struct berth_action a = berth_plan_action(c->plan, i);
        bool places = a.op == BERTH_PLACE || a.op == BERTH_RESERVE;
        if (a.op == BERTH_STOP && a.cause == BERTH_CAUSE_UNDONE)
            good = undo_check(c, &a);
        if (places && a.cause == BERTH_CAUSE_MANUAL)
            good = manual_move_check(c, &a);
        if (places && a.cause == BERTH_CAUSE_MOVED) {
            good = rebalance_check(c, &then, &a);
            evened++;
        } else {
            others += places && a.replaces;
        }
        action_apply(&then, &a);
    }
    world_done(&then);
    if (good && evened && (others || evened > c->before->policy.rebalance.moves))
        return verdict_bad(c->v, "evening out: %u moves at once, beside %u others", evened, others);
    return good;
}

bool relief_check(const struct world *before, const struct world *after, struct berth_plan *plan, struct verdict *v)
{
    struct relief_case c = {before, after, plan, v};
    return pressure_check(&c) && overcapacity_check(&c) && moves_check(&c) && facts_check(&c);
}
