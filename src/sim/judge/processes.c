/* processes.c - checks running processes: each once, in one place, only if listed, and nothing left behind (5, 6, 24,
 * P10).
 *
 * The checks see all machines at once, with running or dead agents, which is impossible in a real cluster.
 */
#include <inttypes.h>

#include "sim/cluster/agent.h"

#define GIVE_WAY_NS (20 * SECOND) /* longer than any killed instance needs to end */

/* ---- P10: only listed instances run ----------------------------------------------------------------------------- */

static const json_t *listed(const struct agent *a, uint64_t id)
{
    const json_t *items = json_object_get(a->listed, "instances");
    for (size_t i = 0; i < json_array_size(items); i++)
        if ((uint64_t)json_integer_value(json_object_get(json_array_get(items, i), "id")) == id)
            return json_array_get(items, i);
    return NULL;
}

bool agent_lists(const struct agent *a, uint64_t id)
{
    const char *state = json_string_value(json_object_get(listed(a, id), "state"));
    return state && strcmp(state, "run") == 0;
}

void trees_asked_to_start(struct agent *a, uint64_t id, const json_t *config)
{
    struct world *w = a->w;
    const json_t *item = listed(a, id);
    world_checked(w, RULE_LISTED);
    if (!agent_lists(a, id) || !json_equal(item, config))
        world_breach(w, RULE_LISTED, "%s starts %" PRIu64 ", which is not listed so", a->node, id);
    if (machine_find(&a->machine, id))
        world_breach(w, 6, "%s starts %" PRIu64 " again", a->node, id);
    if (a->gave_way)
        world_breach(w, RULE_LISTED, "%s starts %" PRIu64 " although another one speaks for its node", a->node, id);
}

static bool is_unknown(const struct agent *a, uint64_t id)
{
    for (size_t i = 0; i < a->unknown.len; i++)
        if (a->unknown.at[i] == id)
            return true;
    return false;
}

/* Checks that a listed instance keeps running until its fence, even without the daemon. */
void trees_asked_to_stop(struct agent *a, const struct tree *t)
{
    int64_t silent_ns = machine_steady_ns(&a->machine) - a->machine.heard_ns;
    int64_t fence_ns = json_integer_value(json_object_get(listed(a, t->id), "fence_ns"));
    bool fenced = fence_ns && silent_ns >= fence_ns / 2;
    world_checked(a->w, RULE_LISTED);
    if (!agent_lists(a, t->id) || is_unknown(a, t->id) || a->gave_way || fenced)
        return;
    world_breach(a->w, RULE_LISTED, "%s stops %" PRIu64 " of %s, which is listed, after %" PRId64 " s of silence",
                 a->node, t->id, t->workload, silent_ns / SECOND);
}

/* ---- 5, 6: nothing runs twice ----------------------------------------------------------------------------------- */

static bool same_id(const void *ctx, uint32_t at, const void *id)
{
    return ((const struct agents *)ctx)->ids.at[at] == *(const uint64_t *)id;
}

/* Returns whether one of the instances replaces the other, so that both run for a while. */
static bool takes_over(const struct mirror *m, uint64_t a, uint64_t b)
{
    const struct seen *x = mirror_instance(m, a), *y = mirror_instance(m, b);
    return (x && x->instance.instance.replaces) || (y && y->instance.instance.replaces);
}

/* Returns whether the workload prefers two copies over none, now or when the instance was placed. */
static bool may_be_twice(const struct mirror *m, const struct tree *t)
{
    const struct seen *now = mirror_work(m, t->workload);
    return t->twice || (now && placement_twice(now));
}

static void once_judge(struct world *w, const struct agent *a, const struct tree *t)
{
    struct agents *all = w->agents;
    world_checked(w, 6);
    if (t->disputed) /* the state of the other machine is unknown */
        return;
    if (map_find(&all->started, hash_u64(t->id), same_id, all, &t->id) != MAP_NONE) {
        world_breach(w, 6, "instance %" PRIu64 " of %s is started a second time, on %s", t->id, t->workload, a->node);
        return;
    }
    map_add(&all->started, hash_u64(t->id), (uint32_t)all->ids.len);
    vec_push(&all->ids, t->id);
}

static void single_judge(struct world *w, const struct agent *a, const struct tree *t)
{
    struct agents *all = w->agents;
    world_checked(w, 5);
    for (size_t i = 0; i < all->at.len; i++)
        for (size_t k = 0; k < all->at.at[i]->machine.trees.len; k++) {
            const struct tree *o = all->at.at[i]->machine.trees.at[k];
            if (o->id == t->id || o->state != TREE_LIVES || o->disputed || t->disputed || o->ordinal != t->ordinal ||
                strcmp(o->workload, t->workload) != 0 || takes_over(&w->mirror, o->id, t->id) ||
                may_be_twice(&w->mirror, o))
                continue;
            world_breach(w, 5, "%s/%u is started as %" PRIu64 " on %s while it still runs as %" PRIu64 " on %s",
                         t->workload, t->ordinal, t->id, a->node, o->id, all->at.at[i]->node);
        }
}

void trees_began(struct agent *a, struct tree *t)
{
    struct world *w = a->w;
    const struct seen *i = mirror_instance(&w->mirror, t->id), *from = i ? mirror_placed_from(&w->mirror, i) : NULL;
    t->twice = from && placement_was_twice(&w->mirror, t->workload, from);
    once_judge(w, a, t);
    single_judge(w, a, t);
    if (t->disputed)
        return;
    if (!i || !state_holds(i->instance.instance.state) || strcmp(i->instance.instance.node, a->node) != 0)
        world_breach(w, 5, "%" PRIu64 " of %s begins to run on %s, and the daemon has given it up", t->id, t->workload,
                     a->node);
}

/* Checks that a superseded agent stops its instances at once. */
void trees_check(struct world *w)
{
    for (size_t i = 0; i < w->agents->at.len; i++) {
        const struct agent *a = w->agents->at.at[i];
        if (!a->gave_way || !a->logic || a->paused_ns > w->now_ns - GIVE_WAY_NS || a->removed ||
            w->now_ns - a->gave_way_ns < GIVE_WAY_NS)
            continue;
        world_checked(w, 5);
        for (size_t k = 0; k < a->machine.trees.len; k++)
            if (a->machine.trees.at[k]->state == TREE_LIVES)
                world_breach(w, 5, "%" PRIu64 " still runs on %s %" PRId64 " s after another one took its name",
                             a->machine.trees.at[k]->id, a->node, (w->now_ns - a->gave_way_ns) / SECOND);
    }
}

/* ---- instances that the daemon considers over ------------------------------------------------------------------- */

static void over_judge(struct world *w, const struct transaction *t, const struct seen *old)
{
    const struct berth_instance *i = &old->instance.instance;
    bool by_plan = strcmp(t->verb, "unit") == 0;
    world_checked(w, 5);
    for (size_t k = 0; k < w->agents->at.len; k++) {
        const struct agent *a = w->agents->at.at[k];
        const struct tree *tree = machine_find(&a->machine, i->id);
        if (tree && tree->state == TREE_LIVES && !tree->disputed && !a->removed &&
            mirror_find(&w->mirror, KIND_NODE, a->node) && (!by_plan || !may_be_twice(&w->mirror, tree)))
            world_breach(w, 5, "%" PRIu64 " of %s counts as over by %s %s, and runs on %s", i->id, i->workload, t->who,
                         t->verb, a->node);
    }
}

void trees_judge(struct world *w, const struct transaction *t)
{
    for (size_t k = 0; k < t->len; k++) {
        const struct seen *old = t->changes[k].old, *now = t->changes[k].now;
        if (t->changes[k].kind != KIND_INSTANCE)
            continue;
        if (old && state_holds(old->instance.instance.state) && (!now || now->instance.instance.state == BERTH_ENDED))
            over_judge(w, t, old);
        if (!old || !now || old->instance.instance.state != now->instance.instance.state)
            agents_told(w, (old ? old : now)->instance.instance.node);
    }
}

/* ---- 24: nothing is left ---------------------------------------------------------------------------------------- */

void trees_forgotten(struct agent *a, const struct tree *t)
{
    world_checked(a->w, 24);
    if (t->state != TREE_OVER)
        world_breach(a->w, 24, "%" PRIu64 " of %s is forgotten by %s, and %s", t->id, t->workload, a->node,
                     t->state == TREE_LIVES ? "runs" : "is being started");
}

static void tree_rests(struct world *w, const struct agent *a, const struct tree *t)
{
    const struct seen *s = mirror_instance(&w->mirror, t->id);
    bool here = s && strcmp(s->instance.instance.node, a->node) == 0 && state_holds(s->instance.instance.state);
    if (!here)
        str_addf(&w->unrest, "%" PRIu64 " of %s is still %s on %s", t->id, t->workload,
                 t->state == TREE_LIVES ? "running" : "on disk", a->node);
    else if (t->state != TREE_LIVES)
        str_addf(&w->unrest, "%" PRIu64 " of %s does not run on %s", t->id, t->workload, a->node);
}

void trees_rest(struct world *w)
{
    world_checked(w, 24);
    for (size_t i = 0; i < w->agents->at.len && !w->unrest.len; i++) {
        const struct agent *a = w->agents->at.at[i];
        for (size_t k = 0; k < a->machine.trees.len && !w->unrest.len && !a->removed; k++)
            tree_rests(w, a, a->machine.trees.at[k]);
    }
}
