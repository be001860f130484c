/* machine.c - a simulated machine: instances, their processes and their disk. */
#include "sim/cluster/machine.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/cluster/agent.h"

#define GRACE_NS_DEFAULT (10 * SECOND)

static struct sim_world *world_of(const struct sim_node_machine *m)
{
    return m->agent->w;
}

static struct random_stream *rng_of(const struct sim_node_machine *m)
{
    return &m->agent->w->agents_rng;
}

int64_t machine_steady_ns(const struct sim_node_machine *m)
{
    return world_of(m)->now_ns - m->booted_ns;
}

void machine_init(struct sim_node_machine *m, struct sim_agent *agent, int64_t booted_ns)
{
    *m = (struct sim_node_machine){.agent = agent, .booted_ns = booted_ns};
}

static void sim_instance_free(struct sim_instance *t)
{
    json_decref(t->config);
    mem_free(t);
}

void machine_done(struct sim_node_machine *m)
{
    for (size_t i = 0; i < m->sim_instances.len; i++)
        sim_instance_free(m->sim_instances.at[i]);
    vec_done(&m->sim_instances);
}

struct sim_instance *machine_find(const struct sim_node_machine *m, uint64_t id)
{
    for (size_t i = 0; i < m->sim_instances.len; i++)
        if (m->sim_instances.at[i]->id == id)
            return m->sim_instances.at[i];
    return NULL;
}

/* ---- end of an instance ----------------------------------------------------------------------------------------- */

struct instance_event {
    uint64_t id;
};

static void *instance_event_new(uint64_t id)
{
    struct instance_event *e = mem_zalloc(sizeof *e);
    e->id = id;
    return e;
}

/* The agent notices that the shim has ended, and reads the outcome. */
static void agent_sees_end(struct sim_agent *a, void *arg)
{
    struct sim_instance *t = machine_find(&a->machine, ((struct instance_event *)arg)->id);
    if (!t || t->state != INSTANCE_OVER || t->told)
        return;
    t->told = true;
    world_trace(a->w, "%s sees that %" PRIu64 " is over", a->node, t->id);
    node_instance_ended(a->logic, t->id, &t->end);
}

static void sim_instance_end(struct sim_node_machine *m, struct sim_instance *t, enum node_end end, int code,
                             const char *text)
{
    t->state = INSTANCE_OVER;
    t->kept = true;
    t->end = (struct node_outcome){.end = end, .exit = code, .text = text};
    t->next_ns = t->stop_ns = t->kill_ns = INT64_MAX;
    agent_post(m->agent, 0, agent_sees_end, instance_event_new(t->id), mem_free);
}

/* ---- progress of an instance ------------------------------------------------------------------------------------ */

static int64_t soon(const struct sim_node_machine *m, int64_t low_ns, int64_t high_ns)
{
    return world_of(m)->now_ns + random_range(rng_of(m), low_ns, high_ns);
}

/* Returns when the shim fences the instance, in simulation time. The shim reads when the daemon last answered the
 * node. */
static int64_t shim_due_ns(const struct sim_node_machine *m, const struct sim_instance *t)
{
    int64_t heard_ns = m->booted_ns + m->heard_ns;
    return t->fence_ns && t->state != INSTANCE_OVER ? heard_ns + t->fence_ns : INT64_MAX;
}

static int64_t sim_instance_next_ns(const struct sim_node_machine *m, const struct sim_instance *t)
{
    int64_t due_ns = t->state == INSTANCE_ALIVE ? shim_due_ns(m, t) : INT64_MAX;
    due_ns = t->next_ns < due_ns ? t->next_ns : due_ns;
    due_ns = t->stop_ns < due_ns ? t->stop_ns : due_ns;
    return t->kill_ns < due_ns ? t->kill_ns : due_ns;
}

static void agent_sees_health(struct sim_agent *a, void *arg)
{
    const struct sim_instance *t = machine_find(&a->machine, ((struct instance_event *)arg)->id);
    if (t && t->state == INSTANCE_ALIVE)
        node_health(a->logic, t->id, t->ready, t->ready ? NULL : "connection refused");
}

/* Does the next random change: a task ends, a service fails, health changes. */
static void sim_instance_progress(struct sim_node_machine *m, struct sim_instance *t)
{
    struct random_stream *rng = rng_of(m);
    bool calm = world_of(m)->calm;
    t->next_ns = INT64_MAX;
    if (t->job) {
        bool well = calm || random_per_mille(rng, 850);
        sim_instance_end(m, t, well ? NODE_ENDED : NODE_FAILED, well ? 0 : 3, well ? NULL : "it fell over\n\x01");
        return;
    }
    if (!calm && random_per_mille(rng, 60)) {
        sim_instance_end(m, t, NODE_FAILED, random_per_mille(rng, 500) ? 1 : 139, NULL);
        return;
    }
    t->ready = calm || !t->ready || random_per_mille(rng, 500);
    if (json_object_get(t->config, "health"))
        agent_post(m->agent, 0, agent_sees_health, instance_event_new(t->id), mem_free);
    if (!calm)
        t->next_ns = soon(m, 20 * SECOND, 25 * MINUTE);
}

struct tree_event {
    struct sim_node_machine *m;
    uint64_t id;
};

static void sim_instance_set_timer(struct sim_node_machine *m, struct sim_instance *t);

static void sim_instance_timer(struct sim_world *w, void *arg)
{
    struct tree_event *e = arg;
    struct sim_node_machine *m = e->m;
    struct sim_instance *t = machine_find(m, e->id);
    if (!t || t->armed_ns > w->now_ns)
        return;
    t->armed_ns = INT64_MAX;
    if (t->state == INSTANCE_ALIVE && t->kill_ns <= w->now_ns) {
        world_trace(w, "%" PRIu64 " on %s is killed", t->id, m->agent->node);
        sim_instance_end(m, t, NODE_STOPPED, 137, NULL);
    } else if (t->state == INSTANCE_ALIVE && t->stop_ns <= w->now_ns) {
        world_trace(w, "%" PRIu64 " on %s stops", t->id, m->agent->node);
        sim_instance_end(m, t, t->job && random_per_mille(rng_of(m), 100) ? NODE_ENDED : NODE_STOPPED, 143, NULL);
    } else if (t->state == INSTANCE_ALIVE && shim_due_ns(m, t) <= w->now_ns) {
        world_trace(w, "the shim of %" PRIu64 " on %s fences it", t->id, m->agent->node);
        sim_instance_end(m, t, NODE_FAILED, 137, "fenced: no contact with berthd");
    } else if (t->state == INSTANCE_ALIVE && t->next_ns <= w->now_ns) {
        world_trace(w, "time passes for %" PRIu64 " on %s", t->id, m->agent->node);
        sim_instance_progress(m, t);
    }
    sim_instance_set_timer(m, t);
}

static void sim_instance_set_timer(struct sim_node_machine *m, struct sim_instance *t)
{
    struct sim_world *w = world_of(m);
    int64_t due_ns = sim_instance_next_ns(m, t);
    if (due_ns == INT64_MAX || due_ns >= t->armed_ns)
        return;
    struct tree_event *e = mem_zalloc(sizeof *e);
    *e = (struct tree_event){m, t->id};
    t->armed_ns = due_ns;
    world_schedule(w, due_ns > w->now_ns ? due_ns - w->now_ns : 0, sim_instance_timer, e, mem_free);
}

void machine_calm(struct sim_node_machine *m)
{
    for (size_t i = 0; i < m->sim_instances.len; i++) {
        struct sim_instance *t = m->sim_instances.at[i];
        if (t->state == INSTANCE_ALIVE && t->next_ns != INT64_MAX)
            t->next_ns = soon(m, 0, MINUTE);
        sim_instance_set_timer(m, t);
    }
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

static bool port_taken(const struct sim_node_machine *m, uint16_t port)
{
    for (size_t i = 0; i < m->sim_instances.len; i++)
        for (size_t k = 0; k < m->sim_instances.at[i]->ports_len && m->sim_instances.at[i]->state == INSTANCE_ALIVE;
             k++)
            if (m->sim_instances.at[i]->ports[k].port == port)
                return true;
    return false;
}

/* Binds the first free port of each endpoint's block; other programs hold some ports. */
static bool ports_bind(struct sim_node_machine *m, struct sim_instance *t)
{
    size_t i;
    json_t *want;
    json_array_foreach(json_object_get(t->config, "ports"), i, want)
    {
        json_int_t start = json_integer_value(json_object_get(want, "start"));
        json_int_t count = json_integer_value(json_object_get(want, "count")), at = 0;
        while (at < count && (port_taken(m, (uint16_t)(start + at)) || random_per_mille(rng_of(m), 30)))
            at++;
        if (at == count)
            return false;
        if (t->ports_len == INSTANCE_PORTS_MAX)
            continue;
        char *name = t->names[t->ports_len];
        (void)snprintf(name, sizeof t->names[0], "%s", json_string_value(json_object_get(want, "endpoint")));
        t->ports[t->ports_len++] = (struct node_port){.endpoint = name, .port = (uint16_t)(start + at)};
    }
    return true;
}

/* An awaited port accepts connections one second after the start. Only that decides readiness. */
static void agent_sees_ports(struct sim_agent *a, void *arg)
{
    const struct sim_instance *t = machine_find(&a->machine, ((struct instance_event *)arg)->id);
    if (t && t->state == INSTANCE_ALIVE && !json_object_get(t->config, "health"))
        node_health(a->logic, t->id, true, NULL);
}

static void launch(struct sim_agent *a, void *arg)
{
    struct sim_node_machine *m = &a->machine;
    struct sim_instance *t = machine_find(m, ((struct instance_event *)arg)->id);
    struct random_stream *rng = rng_of(m);
    if (!t || t->state != INSTANCE_RECORDED || t->life != a->life)
        return;
    if (shim_due_ns(m, t) <= a->w->now_ns) { /* the shim checks the fence before it executes anything */
        sim_instance_end(m, t, NODE_FAILED, -1, "fenced: no contact with berthd");
        return;
    }
    if (t->fails || !ports_bind(m, t)) {
        world_trace(a->w, "%s cannot start %" PRIu64, a->node, t->id);
        t->state = INSTANCE_OVER;
        t->kept = t->told = true;
        t->end = (struct node_outcome){NODE_FAILED, -1, t->fails ? "/bin/sleep: no such file" : "no port is free"};
        node_instance_ended(a->logic, t->id, &t->end);
        return;
    }
    world_trace(a->w, "%s launches %" PRIu64 " of %s", a->node, t->id, t->workload);
    t->state = INSTANCE_ALIVE;
    t->next_ns = t->job ? soon(m, 2 * SECOND, random_per_mille(rng, 800) ? MINUTE : 20 * MINUTE)
                        : soon(m, 10 * SECOND, 25 * MINUTE);
    if (a->w->calm)
        t->next_ns = t->job ? soon(m, SECOND, 20 * SECOND) : soon(m, 0, 5 * SECOND);
    instance_began_check(a, t);
    sim_instance_set_timer(m, t);
    node_started(a->logic, t->id, &(struct node_start){t->ports, t->ports_len});
    if (t->ports_len)
        agent_post(a, SECOND, agent_sees_ports, instance_event_new(t->id), mem_free);
}

static void start(void *ctx, uint64_t id, const json_t *config)
{
    struct sim_node_machine *m = ctx;
    struct sim_agent *a = m->agent;
    struct random_stream *rng = rng_of(m);
    bool calm = a->w->calm;
    const char *workload = json_string_value(json_object_get(config, "workload"));
    const char *kind = json_string_value(json_object_get(config, "kind"));
    instance_start_check(a, id, config);
    struct sim_instance *t = mem_zalloc(sizeof *t);
    *t = (struct sim_instance){.id = id,
                               .config = json_deep_copy(config),
                               .ordinal = (uint32_t)json_integer_value(json_object_get(config, "ordinal")),
                               .job = kind && strcmp(kind, "job") == 0,
                               .fails = !calm && random_per_mille(rng, 40),
                               .stubborn = random_per_mille(rng, 150),
                               .is_duplicated = agent_is_duplicated(a),
                               .life = a->life,
                               .fence_ns = json_integer_value(json_object_get(config, "fence_ns")),
                               .next_ns = INT64_MAX,
                               .stop_ns = INT64_MAX,
                               .kill_ns = INT64_MAX,
                               .armed_ns = INT64_MAX,
                               .progress = -1};
    (void)snprintf(t->workload, sizeof t->workload, "%s", workload ? workload : "");
    vec_push(&m->sim_instances, t);
    struct instance_event now = {id};
    if (random_per_mille(rng, 100)) {
        launch(a, &now);
        return;
    }
    int64_t delay_ns = calm || random_per_mille(rng, 850)
                           ? random_range(rng, 2 * MILLISECOND, 3 * SECOND)
                           : random_range(rng, 3 * SECOND, 2 * MINUTE); /* an image is pulled */
    agent_post(a, delay_ns, launch, instance_event_new(id), mem_free);
    if (faults_allow(a->w, FAULT_AGENT_KILL) && random_per_mille(rng, 4)) /* between the mark and the start */
        agent_crash_soon(a);
}

/* ---- other operations of the agent ------------------------------------------------------------------------------ */

static void change(void *ctx, uint64_t id, const json_t *config)
{
    struct sim_instance *t = machine_find(ctx, id);
    if (!t) {
        world_breach(world_of(ctx), 24, "%" PRIu64 " is changed, but does not exist", id);
        return;
    }
    json_decref(t->config);
    t->config = json_deep_copy(config);
}

static int64_t grace_ns(const struct sim_instance *t)
{
    const json_t *grace = json_object_get(json_object_get(t->config, "stop"), "grace_ns");
    return grace ? json_integer_value(grace) : GRACE_NS_DEFAULT;
}

static void stop(void *ctx, uint64_t id, bool now)
{
    struct sim_node_machine *m = ctx;
    struct sim_instance *t = machine_find(m, id);
    struct random_stream *rng = rng_of(m);
    int64_t now_ns = world_of(m)->now_ns;
    if (!t) {
        world_breach(world_of(m), 24, "%" PRIu64 " is told to stop on %s, but does not exist", id, m->agent->node);
        return;
    }
    instance_stop_check(m->agent, t);
    if (t->state == INSTANCE_RECORDED) { /* nothing runs, and nothing will be launched */
        sim_instance_end(m, t, NODE_STOPPED, -1, NULL);
        return;
    }
    if (t->state == INSTANCE_OVER)
        return;
    if (now && t->kill_ns == INT64_MAX)
        t->kill_ns = soon(m, MILLISECOND, random_per_mille(rng, 950) ? SECOND : 8 * SECOND);
    else if (!now && t->stop_ns == INT64_MAX) {
        int64_t grace = grace_ns(t), by_itself_ns = random_range(rng, 0, 8 * SECOND);
        t->stop_ns =
            now_ns + (t->stubborn || by_itself_ns > grace ? grace + random_range(rng, 0, SECOND) : by_itself_ns);
    }
    sim_instance_set_timer(m, t);
}

static void forget(void *ctx, uint64_t id)
{
    struct sim_node_machine *m = ctx;
    for (size_t i = 0; i < m->sim_instances.len; i++)
        if (m->sim_instances.at[i]->id == id) {
            instance_forgotten_check(m->agent, m->sim_instances.at[i]);
            sim_instance_free(m->sim_instances.at[i]);
            m->sim_instances.at[i] = m->sim_instances.at[--m->sim_instances.len];
            return;
        }
}

const struct node_machine sim_machine = {start, change, stop, forget};

/* ---- start and end of agents ------------------------------------------------------------------------------------ */

void machine_find_all(struct sim_node_machine *m, struct node_agent *logic)
{
    for (size_t i = 0; i < m->sim_instances.len; i++) {
        struct sim_instance *t = m->sim_instances.at[i];
        if (t->state == INSTANCE_ALIVE) {
            node_adopt(logic, t->id, t->config, &(struct node_start){t->ports, t->ports_len});
            continue;
        }
        if (!t->kept)
            t->end = (struct node_outcome){NODE_FAILED, -1, "unknown exit status"};
        t->state = INSTANCE_OVER;
        t->told = true;
        node_adopt_ended(logic, t->id, &t->end);
    }
}

void machine_agent_died(struct sim_node_machine *m)
{
    for (size_t i = 0; i < m->sim_instances.len; i++)
        if (m->sim_instances.at[i]->state == INSTANCE_RECORDED)
            m->sim_instances.at[i]->state = INSTANCE_OVER; /* without an outcome on disk */
}

void machine_cut_power(struct sim_node_machine *m)
{
    for (size_t i = 0; i < m->sim_instances.len; i++) {
        struct sim_instance *t = m->sim_instances.at[i];
        t->state = INSTANCE_OVER;
        t->next_ns = t->stop_ns = t->kill_ns = INT64_MAX;
    }
    m->heard_ns = 0;
}

void machine_copy_disk(struct sim_node_machine *to, const struct sim_node_machine *from)
{
    for (size_t i = 0; i < from->sim_instances.len; i++) {
        from->sim_instances.at[i]->is_duplicated = true;
        struct sim_instance *t = mem_zalloc(sizeof *t);
        *t = *from->sim_instances.at[i];
        t->config = json_deep_copy(t->config);
        for (size_t k = 0; k < t->ports_len; k++)
            t->ports[k].endpoint = t->names[k];
        t->state = INSTANCE_OVER;
        t->next_ns = t->stop_ns = t->kill_ns = t->armed_ns = INT64_MAX;
        vec_push(&to->sim_instances, t);
    }
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

/* Reports usage that rises and falls. */
static void measure(struct sim_node_machine *m, struct node_agent *logic, struct sim_instance *t)
{
    struct random_stream *rng = rng_of(m);
    if (world_of(m)->calm) { /* in the calm phase no node stays under pressure */
        t->cpu = 10;
        t->memory = INT64_C(16) << 20;
    } else if (t->cpu == 0 || random_per_mille(rng, 150)) {
        t->cpu = random_range(rng, 1, 1800);
        t->memory = random_range(rng, 1, 4096) << 20;
    } else if (random_per_mille(rng, 500)) {
        t->cpu = t->cpu * random_range(rng, 80, 125) / 100 + 1;
        t->memory = t->memory / 100 * random_range(rng, 90, 115) + 1;
    }
    const struct berth_amount use[] = {
        {.resource = "cpu",    .amount = t->cpu   },
        {.resource = "memory", .amount = t->memory}
    };
    node_usage(logic, t->id, use, sizeof use / sizeof *use);
    if (t->job && random_per_mille(rng, 300)) {
        t->progress = (int)random_range(rng, t->progress < 0 ? 0 : t->progress, 1000);
        node_progress(logic, t->id, t->progress, "at it");
    }
    if (random_per_mille(rng, 10))
        node_limit_state(logic, t->id, "io", random_per_mille(rng, 500) ? "memory" : "");
}

void machine_measure(struct sim_node_machine *m, struct node_agent *logic)
{
    for (size_t i = 0; i < m->sim_instances.len; i++)
        if (m->sim_instances.at[i]->state == INSTANCE_ALIVE)
            measure(m, logic, m->sim_instances.at[i]);
    if (random_per_mille(rng_of(m), 300))
        node_machine_state(logic,
                           json_pack("{s:{s:s}}", "usage", "cpu", random_per_mille(rng_of(m), 500) ? "1" : "3500m"));
}
