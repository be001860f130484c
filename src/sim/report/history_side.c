/* history_side.c - a side made of the recorded past: waiting times, use, and idle resources. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/trace/history.h"

enum what { TASK_ENDS, ENDS, COMES, BEGINS, TASK_BEGINS }; /* the order at one moment */

struct side_event {
    int64_t at_ns;
    uint32_t job;
    enum what what;
    size_t place; /* index of a task's place */
};

static int by_time(const void *a, const void *b)
{
    const struct side_event *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

struct history_sweep {
    const struct sim_history *h;
    struct sim_outcomes *out;
    struct idle_sampler idle;
    bool by_gpus;
    int64_t *there, *held; /* by node */
    struct sim_queue_point now;
};

/* Returns whether the job is elastic: its tasks start and end separately. */
static bool is_elastic(const struct sim_job *j)
{
    return sim_job_min_tasks(j) < j->tasks;
}

static void hold_place(struct history_sweep *s, size_t place, int64_t amount)
{
    if (s->h->places.at[place].node != UINT32_MAX)
        s->held[s->h->places.at[place].node] += amount;
}

static void hold(struct history_sweep *s, uint32_t job, int sign)
{
    const struct sim_job *j = &s->h->trace.jobs[job];
    const struct sim_history_run *run = &s->h->runs[job];
    s->now.running = sign > 0 ? s->now.running + 1 : s->now.running - 1;
    if (is_elastic(j))
        return;
    s->now.held += sign * sim_job_held(j, s->by_gpus);
    for (size_t i = run->places; i < run->places + run->places_len; i++)
        hold_place(s, i, sign * sim_task_held(j, s->by_gpus));
}

static void happen(struct history_sweep *s, const struct side_event *e)
{
    int64_t task = sim_task_held(&s->h->trace.jobs[e->job], s->by_gpus);
    switch (e->what) {
    case COMES: s->now.waiting++; break;
    case BEGINS:
        s->now.waiting--;
        hold(s, e->job, 1);
        break;
    case ENDS: hold(s, e->job, -1); break;
    case TASK_BEGINS:
    case TASK_ENDS:
        task = e->what == TASK_BEGINS ? task : -task;
        s->now.held += task;
        hold_place(s, e->place, task);
        break;
    }
}

static void moment_close(struct history_sweep *s, int64_t at_ns)
{
    size_t len = s->now.waiting < s->out->queue_lengths_len ? s->now.waiting : s->out->queue_lengths_len - 1;
    s->now.at_ns = at_ns;
    s->out->points[s->out->points_len++] = s->now;
    s->out->queue_lengths[len]++;
    if (!idle_sampler_due(&s->idle, at_ns))
        return;
    for (size_t i = 0; i < s->h->fleet.nodes.len; i++)
        idle_sampler_node(&s->idle, s->there[i], s->held[i]);
    idle_sampler_close(&s->idle, at_ns);
}

static struct side_event *events_of(const struct sim_history *h, size_t *ret_len)
{
    struct side_event *events = mem_zarray(3 * h->trace.len + 2 * h->places.len + 1, sizeof *events);
    size_t len = 0;
    for (uint32_t i = 0; i < h->trace.len; i++) {
        const struct sim_history_run *run = &h->runs[i];
        events[len++] = (struct side_event){h->trace.jobs[i].submit_ns, i, COMES, 0};
        events[len++] = (struct side_event){run->start_ns, i, BEGINS, 0};
        events[len++] = (struct side_event){run->end_ns, i, ENDS, 0};
        for (size_t n = run->places; n < run->places + run->places_len && is_elastic(&h->trace.jobs[i]); n++) {
            events[len++] = (struct side_event){h->places.at[n].start_ns, i, TASK_BEGINS, n};
            events[len++] = (struct side_event){h->places.at[n].end_ns, i, TASK_ENDS, n};
        }
    }
    qsort(events, len, sizeof *events, by_time);
    *ret_len = len;
    return events;
}

/* Returns the seconds that an elastic job ran without its tasks: the maximum task time minus the actual one. */
static double missing_of(const struct sim_history *h, size_t job)
{
    const struct sim_history_run *run = &h->runs[job];
    double missing = h->trace.jobs[job].tasks * ((double)(run->end_ns - run->start_ns) / 1e9);
    for (size_t i = run->places; i < run->places + run->places_len; i++)
        missing -= (double)(h->places.at[i].end_ns - h->places.at[i].start_ns) / 1e9;
    return is_elastic(&h->trace.jobs[job]) ? missing : 0;
}

static int64_t node_has(const struct berth_node *node, bool by_gpus)
{
    for (size_t i = 0; i < node->allocatable_len && !by_gpus; i++)
        if (strcmp(node->allocatable[i].resource, "cpu") == 0)
            return node->allocatable[i].amount;
    return by_gpus ? (int64_t)node->gpus_len * BERTH_GPU_MILLI : 0;
}

static void outcomes_begin(const struct sim_history *h, bool by_gpus, struct sim_outcomes *out)
{
    enum { LENGTHS = 4096 };
    size_t len = h->trace.len, points = 3 * len + 2 * h->places.len + 1;
    *out = (struct sim_outcomes){
        .at = mem_zarray(len + 1, sizeof *out->at),
        .len = len,
        .points = mem_zarray(points, sizeof *out->points),
        .points_cap = points,
        .queue_lengths = mem_zarray(LENGTHS, sizeof *out->queue_lengths),
        .queue_lengths_len = LENGTHS,
    };
    for (size_t i = 0; i < len; i++)
        out->at[i] = (struct sim_outcome){
            .start_ns = h->runs[i].start_ns, .end_ns = h->runs[i].end_ns, .missing_s = missing_of(h, i)};
    for (size_t i = 0; i < h->fleet.nodes.len; i++)
        out->capacity += node_has(&h->fleet.nodes.at[i], by_gpus);
}

void sim_history_side(const struct sim_history *h, struct sim_side *side)
{
    *side = (struct sim_side){.label = mem_strdup("recorded")};
    struct history_sweep s = {.h = h, .out = &side->out, .by_gpus = sim_fleet_total(&h->fleet).gpus > 0};
    size_t nodes = h->fleet.nodes.len;
    outcomes_begin(h, s.by_gpus, &side->out);
    idle_sampler_init(&s.idle, &h->trace, s.by_gpus, &side->samples);
    s.there = mem_zarray(nodes + 1, sizeof *s.there);
    s.held = mem_zarray(nodes + 1, sizeof *s.held);
    for (size_t i = 0; i < nodes; i++)
        s.there[i] = node_has(&h->fleet.nodes.at[i], s.by_gpus);
    size_t len;
    struct side_event *events = events_of(h, &len);
    for (size_t i = 0; i < len; i++) {
        happen(&s, &events[i]);
        if (i + 1 == len || events[i + 1].at_ns != events[i].at_ns)
            moment_close(&s, events[i].at_ns);
    }
    sim_side_compute_numbers(side, &(struct sim_side_options){.trace = &h->trace, .fleet = &h->fleet});
    idle_sampler_done(&s.idle);
    mem_free(events);
    mem_free(s.there);
    mem_free(s.held);
}
