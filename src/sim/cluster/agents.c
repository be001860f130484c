/* agents.c - simulated agents, one per node, with the real logic (src/node): start and end of their processes.
 *
 * An agent is killed and restarted with the next epoch, is paused and continues with old timers, or is superseded by
 * another agent of its name. Its machine is rebooted or removed. The instances on the machine do not end with the
 * agent.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sim/cluster/agent.h"

#define MEASURE_NS_MIN (25 * SECOND)
#define MEASURE_NS_MAX (100 * SECOND)

struct sim_agents *agents_new(struct sim_world *w)
{
    (void)w;
    return mem_zalloc(sizeof(struct sim_agents));
}

static void agent_free(struct sim_agent *a)
{
    node_free(a->logic);
    machine_done(&a->machine);
    json_decref(a->listed);
    vec_done(&a->unknown);
    mem_free(a);
}

void agents_free(struct sim_agents *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->at.len; i++)
        agent_free(all->at.at[i]);
    vec_done(&all->at);
    vec_done(&all->ids);
    map_done(&all->started);
    mem_free(all);
}

static struct sim_agent *find(const struct sim_world *w, const char *node)
{
    for (size_t i = 0; i < w->agents->at.len; i++) {
        struct sim_agent *a = w->agents->at.at[i];
        if (!a->removed && !a->of && strcmp(a->node, node) == 0)
            return a;
    }
    return NULL;
}

bool agents_has(const struct sim_world *w, const char *node)
{
    return find(w, node) != NULL;
}

size_t agents_len(const struct sim_world *w)
{
    return w->agents->at.len;
}

bool agents_has_machine(const struct sim_world *w, size_t which)
{
    return !w->agents->at.at[which]->removed;
}

/* ---- process ---------------------------------------------------------------------------------------------------- */

struct agent_post {
    struct sim_agent *a;
    uint64_t life;
    void (*run)(struct sim_agent *a, void *arg);
    void *arg;
    void (*drop)(void *arg);
};

static void posted_drop(void *arg)
{
    struct agent_post *p = arg;
    if (p->drop)
        p->drop(p->arg);
    mem_free(p);
}

static void posted_due(struct sim_world *w, void *arg)
{
    struct agent_post *p = arg;
    struct sim_agent *a = p->a;
    if (!a->logic || a->life != p->life)
        return;
    if (a->paused_ns > w->now_ns) { /* delivered when the process continues */
        struct agent_post *later = mem_zalloc(sizeof *later);
        *later = *p;
        p->drop = NULL;
        world_schedule(w, a->paused_ns - w->now_ns, posted_due, later, posted_drop);
        return;
    }
    p->run(a, p->arg);
}

void agent_post(struct sim_agent *a, int64_t delay_ns, void (*run)(struct sim_agent *a, void *arg), void *arg,
                void (*drop)(void *arg))
{
    struct agent_post *p = mem_zalloc(sizeof *p);
    *p = (struct agent_post){a, a->life, run, arg, drop};
    world_schedule(a->w, delay_ns, posted_due, p, posted_drop);
}

static int64_t env_steady_ns(void *ctx)
{
    return machine_steady_ns(&((struct sim_agent *)ctx)->machine);
}

static int64_t env_clock_ns(void *ctx)
{
    return world_wall_ns(((struct sim_agent *)ctx)->w);
}

static void env_report(void *ctx, uint64_t seq, char *text)
{
    network_report(ctx, seq, text);
}

static void env_reread(void *ctx)
{
    network_reread(ctx);
}

static void env_heard(void *ctx, int64_t sent_ns)
{
    ((struct sim_agent *)ctx)->machine.heard_ns = sent_ns;
}

static void tick(struct sim_agent *a, void *arg)
{
    (void)arg;
    if (a->wake_ns > a->w->now_ns)
        return;
    a->wake_ns = INT64_MAX;
    node_tick(a->logic);
}

static void env_wake_at(void *ctx, int64_t steady_ns)
{
    struct sim_agent *a = ctx;
    int64_t at_ns = a->machine.booted_ns + steady_ns;
    if (at_ns <= a->w->now_ns)
        at_ns = a->w->now_ns + MILLISECOND;
    if (at_ns >= a->wake_ns)
        return;
    a->wake_ns = at_ns;
    agent_post(a, at_ns - a->w->now_ns, tick, NULL, NULL);
}

static void measure(struct sim_agent *a, void *arg)
{
    (void)arg;
    machine_measure(&a->machine, a->logic);
    agent_post(a, random_range(&a->w->agents_rng, MEASURE_NS_MIN, MEASURE_NS_MAX), measure, NULL, NULL);
}

static void start_due(struct sim_world *w, void *arg)
{
    (void)w;
    agent_start(arg);
}

/* Ends a superseded process after all its instances have stopped. A supervisor restarts the process. */
static void exit_when_stopped(struct sim_agent *a, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < a->machine.sim_instances.len; i++)
        if (a->machine.sim_instances.at[i]->state == INSTANCE_ALIVE) { /* wait until all instances are over */
            agent_post(a, SECOND, exit_when_stopped, NULL, NULL);
            return;
        }
    agent_kill(a);
    if (!a->of)
        world_schedule(a->w, random_range(&a->w->agents_rng, 5 * SECOND, 2 * MINUTE), start_due, a, NULL);
}

static void env_superseded(void *ctx, const char *text)
{
    struct sim_agent *a = ctx;
    (void)text;
    world_trace(a->w, "%s gives way to another one of its name", a->node);
    agent_post(a, 0, exit_when_stopped, NULL, NULL);
}

void agent_start(struct sim_agent *a)
{
    struct sim_world *w = a->w;
    struct berth_err err;
    if (a->logic || a->machine.off || a->removed)
        return;
    const struct node_env env = {
        .ctx = a,
        .steady_ns = env_steady_ns,
        .report = env_report,
        .heard = env_heard,
        .reread = env_reread,
        .superseded = env_superseded,
        .wake_at = env_wake_at,
        .log = &w->quiet,
        .clock_ns = env_clock_ns,
    };
    /* Machines with copies of the same disk never use the same epoch. */
    a->machine.epoch += a->of ? 16 : 1 + random_below(&w->agents_rng, 3);
    if (!a->of && a->machine.epoch % 16 == 0)
        a->machine.epoch++;
    const struct node_options options = {.id = a->node, .epoch = a->machine.epoch, .heard_ns = a->machine.heard_ns};
    world_trace(w, "the agent of %s starts, epoch %" PRIu64, a->node, a->machine.epoch);
    a->life++;
    a->paused_ns = 0;
    a->wake_ns = INT64_MAX;
    a->awaiting = a->reading = 0;
    a->was_superseded = a->was_duplicated = false;
    a->was_duplicated = agent_is_duplicated(a);
    json_decref(a->listed);
    a->listed = NULL;
    a->listed_revision = 0;
    a->unknown.len = 0;
    if (node_new(&env, &sim_machine, &a->machine, &options, &a->logic, &err) < 0) {
        world_breach(w, 18, "the agent of %s does not start: %s", a->node, err.text);
        return;
    }
    machine_find_all(&a->machine, a->logic);
    node_begin(a->logic);
    network_reread(a);
    agent_post(a, random_range(&w->agents_rng, SECOND, MEASURE_NS_MAX), measure, NULL, NULL);
}

void agent_kill(struct sim_agent *a)
{
    if (!a->logic)
        return;
    node_free(take_ptr(&a->logic));
    a->life++;
    machine_agent_died(&a->machine);
}

static void crash_due(struct sim_agent *a, void *arg)
{
    (void)arg;
    world_trace(a->w, "the agent of %s dies in the middle of it", a->node);
    agent_kill(a);
    world_schedule(a->w, random_range(&a->w->agents_rng, 10 * MILLISECOND, 20 * SECOND), start_due, a, NULL);
}

void agent_crash_soon(struct sim_agent *a)
{
    agent_post(a, 0, crash_due, NULL, NULL);
}

/* ---- machines --------------------------------------------------------------------------------------------------- */

struct sim_agent *agent_new(struct sim_world *w, const char *node, const char *token)
{
    struct sim_agent *a = mem_zalloc(sizeof *a);
    a->w = w;
    (void)snprintf(a->node, sizeof a->node, "%s", node);
    (void)snprintf(a->token, sizeof a->token, "%s", token);
    machine_init(&a->machine, a, w->now_ns - random_range(&w->agents_rng, SECOND, HOUR));
    a->heard.ns = w->now_ns;
    vec_push(&w->agents->at, a);
    return a;
}

void agents_add(struct sim_world *w, const char *node, const char *token)
{
    struct sim_agent *a = agent_new(w, node, token);
    world_schedule(w, random_range(&w->agents_rng, 0, 5 * SECOND), start_due, a, NULL);
}

void agent_remove(struct sim_agent *a)
{
    agent_kill(a);
    machine_cut_power(&a->machine);
    a->machine.off = a->removed = true;
}

void agents_remove(struct sim_world *w, const char *node)
{
    for (size_t i = 0; i < w->agents->at.len; i++)
        if (!w->agents->at.at[i]->removed && strcmp(w->agents->at.at[i]->node, node) == 0)
            agent_remove(w->agents->at.at[i]);
}

bool agent_is_duplicated(const struct sim_agent *a)
{
    if (a->was_duplicated)
        return true;
    for (size_t i = 0; i < a->w->agents->at.len && !a->of; i++)
        if (a->w->agents->at.at[i]->of == a && !a->w->agents->at.at[i]->removed)
            return true;
    return a->of != NULL;
}

/* ---- faults ----------------------------------------------------------------------------------------------------- */

void agents_cut(struct sim_world *w, size_t which, int64_t for_ns, enum cut cut)
{
    struct sim_agent *a = w->agents->at.at[which];
    static const char *const words[] = {
        [CUT_BOTH] = "is cut off", [CUT_TO_DAEMON] = "is not heard", [CUT_FROM_DAEMON] = "hears nothing"};
    world_trace(w, "%s %s for %" PRId64 " s", a->node, words[cut], for_ns / SECOND);
    if (cut != CUT_FROM_DAEMON)
        a->mute_ns = w->now_ns + for_ns;
    if (cut != CUT_TO_DAEMON)
        a->deaf_ns = w->now_ns + for_ns;
}

void agents_flap(struct sim_world *w, size_t which, int64_t for_ns)
{
    struct sim_agent *a = w->agents->at.at[which];
    world_trace(w, "the link of %s comes and goes for %" PRId64 " s", a->node, for_ns / SECOND);
    a->flap_ns = w->now_ns + for_ns;
}

void agents_kill(struct sim_world *w, size_t which)
{
    struct sim_agent *a = w->agents->at.at[which];
    struct random_stream *rng = &w->agents_rng;
    if (!a->logic)
        return;
    world_trace(w, "the agent of %s is killed", a->node);
    agent_kill(a);
    world_schedule(
        w, random_per_mille(rng, 800) ? random_range(rng, MILLISECOND, 20 * SECOND) : random_range(rng, 0, 15 * MINUTE),
        start_due, a, NULL);
}

void agents_pause(struct sim_world *w, size_t which, int64_t for_ns)
{
    struct sim_agent *a = w->agents->at.at[which];
    world_trace(w, "the agent of %s is paused for %" PRId64 " s", a->node, for_ns / SECOND);
    if (a->logic)
        a->paused_ns = w->now_ns + for_ns;
}

void agents_reboot(struct sim_world *w, size_t which)
{
    struct sim_agent *a = w->agents->at.at[which];
    struct random_stream *rng = &w->agents_rng;
    if (a->machine.off)
        return;
    int64_t down_ns =
        random_per_mille(rng, 700) ? random_range(rng, 5 * SECOND, MINUTE) : random_range(rng, 0, 10 * MINUTE);
    world_trace(w, "the machine of %s starts anew within %" PRId64 " s", a->node, down_ns / SECOND);
    agent_kill(a);
    machine_cut_power(&a->machine);
    a->machine.booted_ns = w->now_ns + down_ns - random_range(rng, 0, down_ns < SECOND ? down_ns : SECOND);
    world_schedule(w, down_ns, start_due, a, NULL);
}

static void twin_ends(struct sim_world *w, void *arg)
{
    struct sim_agent *a = arg;
    world_trace(w, "the second machine of %s is switched off", a->node);
    if (!a->removed)
        agent_remove(a);
}

/* Adds a second machine with a copy of the current disk: instance directories without processes. */
void agents_duplicate(struct sim_world *w, size_t which)
{
    struct sim_agent *a = w->agents->at.at[which];
    struct random_stream *rng = &w->agents_rng;
    if (a->of || a->removed || w->calm)
        return;
    world_trace(w, "a second machine is %s", a->node);
    struct sim_agent *twin = agent_new(w, a->node, a->token);
    twin->of = a;
    a->was_duplicated = true;
    twin->machine.epoch = a->machine.epoch / 16 * 16;
    machine_copy_disk(&twin->machine, &a->machine);
    world_schedule(w, random_range(rng, 0, SECOND), start_due, twin, NULL);
    world_schedule(w, random_range(rng, 20 * SECOND, 10 * MINUTE), twin_ends, twin, NULL);
}

void agents_calm(struct sim_world *w)
{
    for (size_t i = 0; i < w->agents->at.len; i++) {
        struct sim_agent *a = w->agents->at.at[i];
        a->mute_ns = a->deaf_ns = a->flap_ns = 0;
        if (a->of && !a->removed)
            agent_remove(a);
        if (a->paused_ns > w->now_ns + MINUTE)
            a->paused_ns = w->now_ns + MINUTE;
        machine_calm(&a->machine);
        if (!a->logic && !a->removed)
            world_schedule(w, SECOND, start_due, a, NULL);
    }
}

/* ---- invariant checks ------------------------------------------------------------------------------------------- */

void agents_lost_check(struct sim_world *w, const char *node)
{
    const struct sim_agent *a = find(w, node);
    int64_t since_ns = a && a->heard.ns > w->daemon.started_ns ? a->heard.ns : w->daemon.started_ns;
    world_count_check(w, 5);
    if (w->now_ns - since_ns < LEASE_S * SECOND)
        world_breach(w, 5, "node %s counts as lost after %" PRId64 " s, its lease is %d", node,
                     (w->now_ns - since_ns) / SECOND, LEASE_S);
}

void agents_check(struct sim_world *w)
{
    /* The machine of a deleted node is removed. */
    for (size_t i = 0; i < w->agents->at.len; i++) {
        struct sim_agent *a = w->agents->at.at[i];
        if (!a->removed && w->daemon.control && !mirror_find(&w->mirror, KIND_NODE, a->node))
            agent_remove(a);
    }
}
