#include "sim/programs.h"

#include <stdio.h>
#include <string.h>

#define FENCE_MARGIN_NS (12 * SECOND) /* more than the time between two looks */

struct program *programs_find(struct programs *p, uint64_t id)
{
    for (size_t i = 0; i < p->at.len; i++)
        if (p->at.at[i].id == id)
            return &p->at.at[i];
    return NULL;
}

static int64_t soon(struct world *w, int64_t low_ns, int64_t high_ns)
{
    return w->now_ns + chance_range(&w->agents_luck, low_ns, high_ns);
}

static void end(struct program *p, const char *how)
{
    p->state = PROGRAM_OVER;
    p->end = how;
    p->ready = false;
}

static const char *member_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void start(struct world *w, struct programs *all, const json_t *instance, uint64_t id)
{
    struct program p = {.id = id,
                        .ordinal = (uint32_t)json_integer_value(json_object_get(instance, "ordinal")),
                        .generation = (uint64_t)json_integer_value(json_object_get(instance, "generation")),
                        .fence_ns = json_integer_value(json_object_get(instance, "fence_ns")),
                        .job = strcmp(member_text(instance, "kind"), "job") == 0,
                        .wanted = true};
    const json_t *port = json_array_get(json_object_get(instance, "ports"), 0);
    (void)snprintf(p.workload, sizeof p.workload, "%s", member_text(instance, "workload"));
    p.twice = p.fence_ns == 0;
    p.listens = port != NULL;
    p.port = (uint32_t)json_integer_value(json_object_get(port, "start"));
    p.next_ns = soon(w, 100 * MILLISECOND, 15 * SECOND);
    if (strcmp(member_text(instance, "state"), "run") != 0)
        end(&p, "stopped"); /* told to stop before it was ever told to start */
    else
        agents_started(w, &p);
    vec_push(&all->at, p);
}

void programs_want(struct world *w, struct programs *all, const json_t *instance)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(instance, "id"));
    struct program *p = programs_find(all, id);
    if (!p) {
        start(w, all, instance, id);
        return;
    }
    p->wanted = true;
    if (strcmp(member_text(instance, "state"), "stop") != 0 || p->state == PROGRAM_STOPPING || p->state == PROGRAM_OVER)
        return;
    p->state = PROGRAM_STOPPING;
    p->ready = false;
    p->next_ns = soon(w, 0, 8 * SECOND);
}

/* A task ends, a service falls over or is restarted in its place, readiness comes and goes. */
static void running_passes(struct world *w, struct program *p)
{
    struct chance *luck = &w->agents_luck;
    if (p->job) {
        end(p, w->calm || chance_in(luck, 850) ? "ended" : "failed");
    } else if (w->calm) {
        p->ready = true;
        p->next_ns = INT64_MAX;
    } else if (chance_in(luck, 100)) {
        end(p, "failed");
    } else if (chance_in(luck, 200)) {
        p->state = PROGRAM_STARTING;
        p->ready = false;
        p->next_ns = soon(w, SECOND, 10 * SECOND);
    } else {
        p->ready = !p->ready || chance_in(luck, 500);
        p->next_ns = soon(w, 20 * SECOND, 15 * MINUTE);
    }
}

static void program_passes(struct world *w, struct program *p)
{
    struct chance *luck = &w->agents_luck;
    switch (p->state) {
    case PROGRAM_STARTING:
        if (!w->calm && chance_in(luck, 60)) {
            end(p, "failed");
            break;
        }
        p->state = PROGRAM_RUNNING;
        p->ready = p->job || chance_in(luck, 900);
        p->next_ns = p->job ? soon(w, 2 * SECOND, chance_in(luck, 800) ? MINUTE : 8 * MINUTE)
                            : soon(w, 10 * SECOND, 10 * MINUTE);
        break;
    case PROGRAM_RUNNING: running_passes(w, p); break;
    case PROGRAM_STOPPING: end(p, p->job && chance_in(luck, 100) ? "ended" : "stopped"); break;
    case PROGRAM_OVER: break;
    }
}

void programs_pass(struct world *w, struct programs *all, int64_t silent_ns)
{
    for (size_t i = 0; i < all->at.len; i++) {
        struct program *p = &all->at.at[i];
        if (w->calm && p->next_ns > w->now_ns + MINUTE && p->state != PROGRAM_OVER)
            p->next_ns = w->now_ns + MINUTE; /* all comes to rest */
        if (program_lives(p) && p->fence_ns && silent_ns + FENCE_MARGIN_NS > p->fence_ns)
            end(p, "failed");
        if (program_lives(p) && p->next_ns <= w->now_ns)
            program_passes(w, p);
    }
}

void programs_sweep(struct programs *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->at.len; i++)
        if (all->at.at[i].wanted)
            all->at.at[kept++] = all->at.at[i];
    all->at.len = kept;
}

static json_t *program_report(struct world *w, const struct program *p)
{
    static const char *const words[] = {
        [PROGRAM_STARTING] = "starting", [PROGRAM_RUNNING] = "running", [PROGRAM_STOPPING] = "stopping"};
    struct chance *luck = &w->agents_luck;
    json_t *item =
        json_pack("{s:I, s:s}", "id", (json_int_t)p->id, "state", p->state == PROGRAM_OVER ? p->end : words[p->state]);
    if (p->state == PROGRAM_OVER && strcmp(p->end, "failed") == 0)
        (void)json_object_set_new(item, "error", json_string("it fell over\n\x01"));
    if (p->state != PROGRAM_RUNNING)
        return item;
    (void)json_object_set_new(item, "ready", json_boolean(p->ready));
    if (p->listens)
        (void)json_object_set_new(item, "ports", json_pack("[{s:s, s:i}]", "endpoint", "http", "port", (int)p->port));
    if (!w->calm && chance_in(luck, 200)) {
        char cpu[24];
        (void)snprintf(cpu, sizeof cpu, "%dm", (int)chance_range(luck, 1, 900));
        (void)json_object_set_new(item, "usage", json_pack("{s:s}", "cpu", cpu));
    }
    return item;
}

json_t *programs_report(struct world *w, const struct programs *all)
{
    json_t *items = json_array();
    for (size_t i = 0; i < all->at.len; i++)
        (void)json_array_append_new(items, program_report(w, &all->at.at[i]));
    return items;
}
