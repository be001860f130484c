/* processes.c - checks running processes: each once, in one place, only if listed, and nothing left behind (5, 6, 24,
 * P10).
 *
 * The checks see all machines at once, with running or dead agents, which is impossible in a real cluster.
 */
#include <inttypes.h>

#include "sim/cluster/agent.h"

#define SUPERSEDED_STOP_NS (20 * SECOND) /* longer than any killed instance needs to end */

/* ---- P10: only listed instances run ----------------------------------------------------------------------------- */

static const json_t *listed(const struct sim_agent *a, uint64_t id)
{
    const json_t *items = json_object_get(a->listed, "instances");
    for (size_t i = 0; i < json_array_size(items); i++)
        if ((uint64_t)json_integer_value(json_object_get(json_array_get(items, i), "id")) == id)
            return json_array_get(items, i);
    return NULL;
}

bool agent_lists(const struct sim_agent *a, uint64_t id)
{
    const char *state = json_string_value(json_object_get(listed(a, id), "state"));
    return state && strcmp(state, "run") == 0;
}

void instance_start_check(struct sim_agent *a, uint64_t id, const json_t *config)
{
    struct sim_world *w = a->w;
    const json_t *item = listed(a, id);
    world_count_check(w, RULE_LISTED);
    if (!agent_lists(a, id) || !json_equal(item, config))
        world_breach(w, RULE_LISTED, "%s starts %" PRIu64 ", which is not listed so", a->node, id);
    if (machine_find(&a->machine, id))
        world_breach(w, 6, "%s starts %" PRIu64 " again", a->node, id);
    if (a->was_superseded)
        world_breach(w, RULE_LISTED, "%s starts %" PRIu64 " although another one speaks for its node", a->node, id);
}

static bool is_unknown(const struct sim_agent *a, uint64_t id)
{
    for (size_t i = 0; i < a->unknown.len; i++)
        if (a->unknown.at[i] == id)
            return true;
    return false;
}

/* Checks that a listed instance keeps running until its fence, even without the daemon. */
void instance_stop_check(struct sim_agent *a, const struct sim_instance *t)
{
    int64_t silent_ns = machine_steady_ns(&a->machine) - a->machine.heard_ns;
    int64_t fence_ns = json_integer_value(json_object_get(listed(a, t->id), "fence_ns"));
    bool fenced = fence_ns && silent_ns >= fence_ns / 2;
    world_count_check(a->w, RULE_LISTED);
    if (!agent_lists(a, t->id) || is_unknown(a, t->id) || a->was_superseded || fenced)
        return;
    world_breach(a->w, RULE_LISTED, "%s stops %" PRIu64 " of %s, which is listed, after %" PRId64 " s of silence",
                 a->node, t->id, t->workload, silent_ns / SECOND);
}

/* ---- 5, 6: nothing runs twice ----------------------------------------------------------------------------------- */

static bool same_id(const void *ctx, uint32_t at, const void *id)
{
    return ((const struct sim_agents *)ctx)->ids.at[at] == *(const uint64_t *)id;
}

/* Returns whether one of the instances replaces the other, so that both run for a while. */
static bool takes_over(const struct mirror *m, uint64_t a, uint64_t b)
{
    const struct mirror_doc *x = mirror_instance(m, a), *y = mirror_instance(m, b);
    return (x && x->instance.instance.replaces) || (y && y->instance.instance.replaces);
}

/* Returns whether the workload prefers two copies over none, now or when the instance was placed. */
static bool may_have_two_copies(const struct mirror *m, const struct sim_instance *t)
{
    const struct mirror_doc *now = mirror_work(m, t->workload);
    return t->twice || (now && prefers_two_copies(now));
}

static void started_once_verify(struct sim_world *w, const struct sim_agent *a, const struct sim_instance *t)
{
    struct sim_agents *all = w->agents;
    world_count_check(w, 6);
    if (t->is_duplicated) /* the state of the other machine is unknown */
        return;
    if (map_find(&all->started, hash_u64(t->id), same_id, all, &t->id) != MAP_NONE) {
        world_breach(w, 6, "instance %" PRIu64 " of %s is started a second time, on %s", t->id, t->workload, a->node);
        return;
    }
    map_add(&all->started, hash_u64(t->id), (uint32_t)all->ids.len);
    vec_push(&all->ids, t->id);
}

static void no_duplicate_verify(struct sim_world *w, const struct sim_agent *a, const struct sim_instance *t)
{
    struct sim_agents *all = w->agents;
    world_count_check(w, 5);
    for (size_t i = 0; i < all->at.len; i++)
        for (size_t k = 0; k < all->at.at[i]->machine.sim_instances.len; k++) {
            const struct sim_instance *o = all->at.at[i]->machine.sim_instances.at[k];
            if (o->id == t->id || o->state != INSTANCE_ALIVE || o->is_duplicated || t->is_duplicated ||
                o->ordinal != t->ordinal || strcmp(o->workload, t->workload) != 0 ||
                takes_over(&w->mirror, o->id, t->id) || may_have_two_copies(&w->mirror, o))
                continue;
            world_breach(w, 5, "%s/%u is started as %" PRIu64 " on %s while it still runs as %" PRIu64 " on %s",
                         t->workload, t->ordinal, t->id, a->node, o->id, all->at.at[i]->node);
        }
}

void instance_began_check(struct sim_agent *a, struct sim_instance *t)
{
    struct sim_world *w = a->w;
    const struct mirror_doc *i = mirror_instance(&w->mirror, t->id),
                            *from = i ? mirror_placed_from(&w->mirror, i) : NULL;
    t->twice = from && preferred_two_copies(&w->mirror, t->workload, from);
    started_once_verify(w, a, t);
    no_duplicate_verify(w, a, t);
    if (t->is_duplicated)
        return;
    if (!i || !state_holds(i->instance.instance.state) || strcmp(i->instance.instance.node, a->node) != 0)
        world_breach(w, 5, "%" PRIu64 " of %s begins to run on %s, and the daemon has given it up", t->id, t->workload,
                     a->node);
}

/* Checks that a superseded agent stops its instances at once. */
void superseded_agents_check(struct sim_world *w)
{
    for (size_t i = 0; i < w->agents->at.len; i++) {
        const struct sim_agent *a = w->agents->at.at[i];
        if (!a->was_superseded || !a->logic || a->paused_ns > w->now_ns - SUPERSEDED_STOP_NS || a->removed ||
            w->now_ns - a->superseded_ns < SUPERSEDED_STOP_NS)
            continue;
        world_count_check(w, 5);
        for (size_t k = 0; k < a->machine.sim_instances.len; k++)
            if (a->machine.sim_instances.at[k]->state == INSTANCE_ALIVE)
                world_breach(w, 5, "%" PRIu64 " still runs on %s %" PRId64 " s after another one took its name",
                             a->machine.sim_instances.at[k]->id, a->node, (w->now_ns - a->superseded_ns) / SECOND);
    }
}

/* ---- instances that the daemon considers over ------------------------------------------------------------------- */

static void over_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *old)
{
    const struct berth_instance *i = &old->instance.instance;
    bool by_plan = strcmp(t->verb, "unit") == 0;
    world_count_check(w, 5);
    for (size_t k = 0; k < w->agents->at.len; k++) {
        const struct sim_agent *a = w->agents->at.at[k];
        const struct sim_instance *sim_instance = machine_find(&a->machine, i->id);
        if (sim_instance && sim_instance->state == INSTANCE_ALIVE && !sim_instance->is_duplicated && !a->removed &&
            mirror_find(&w->mirror, KIND_NODE, a->node) && (!by_plan || !may_have_two_copies(&w->mirror, sim_instance)))
            world_breach(w, 5, "%" PRIu64 " of %s counts as over by %s %s, and runs on %s", i->id, i->workload, t->who,
                         t->verb, a->node);
    }
}

void instances_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t k = 0; k < t->len; k++) {
        const struct mirror_doc *old = t->changes[k].old, *now = t->changes[k].now;
        if (t->changes[k].kind != KIND_INSTANCE)
            continue;
        if (old && state_holds(old->instance.instance.state) && (!now || now->instance.instance.state == BERTH_ENDED))
            over_verify(w, t, old);
        if (!old || !now || old->instance.instance.state != now->instance.instance.state)
            agents_config_changed(w, (old ? old : now)->instance.instance.node);
    }
}

/* ---- 24: nothing is left ---------------------------------------------------------------------------------------- */

void instance_forgotten_check(struct sim_agent *a, const struct sim_instance *t)
{
    world_count_check(a->w, 24);
    if (t->state != INSTANCE_OVER)
        world_breach(a->w, 24, "%" PRIu64 " of %s is forgotten by %s, and %s", t->id, t->workload, a->node,
                     t->state == INSTANCE_ALIVE ? "runs" : "is being started");
}

static void instance_settled(struct sim_world *w, const struct sim_agent *a, const struct sim_instance *t)
{
    const struct mirror_doc *s = mirror_instance(&w->mirror, t->id);
    bool here = s && strcmp(s->instance.instance.node, a->node) == 0 && state_holds(s->instance.instance.state);
    if (!here)
        str_addf(&w->unsettled, "%" PRIu64 " of %s is still %s on %s", t->id, t->workload,
                 t->state == INSTANCE_ALIVE ? "running" : "on disk", a->node);
    else if (t->state != INSTANCE_ALIVE)
        str_addf(&w->unsettled, "%" PRIu64 " of %s does not run on %s", t->id, t->workload, a->node);
}

void instances_settled(struct sim_world *w)
{
    world_count_check(w, 24);
    for (size_t i = 0; i < w->agents->at.len && !w->unsettled.len; i++) {
        const struct sim_agent *a = w->agents->at.at[i];
        for (size_t k = 0; k < a->machine.sim_instances.len && !w->unsettled.len && !a->removed; k++)
            instance_settled(w, a, a->machine.sim_instances.at[k]);
    }
}
