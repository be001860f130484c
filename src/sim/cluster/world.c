/* world.c - time, events and breaches: functions that all parts of a simulation use. */
#include "sim/cluster/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void world_schedule(struct sim_world *w, int64_t delay_ns, void (*run)(struct sim_world *w, void *arg), void *arg,
                    void (*drop)(void *arg))
{
    struct sim_event due = {.at_ns = w->now_ns + delay_ns, .run = run, .arg = arg, .drop = drop};
    event_queue_add(&w->queue, due);
}

static void add_text(struct str *to, const char *fmt, va_list ap)
{
    char text[1024];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    str_add(to, text);
}

void world_trace(struct sim_world *w, const char *fmt, ...)
{
    va_list ap;
    str_clear(&w->doing);
    va_start(ap, fmt);
    add_text(&w->doing, fmt, ap);
    va_end(ap);
    world_mix(w, hash_bytes(w->doing.at, w->doing.len, 0));
    if (!w->options->trace)
        return;
    CLEANUP(str) struct str line = {0};
    str_addf(&line, "%12.6f %8" PRIu64 " %s", (double)w->now_ns / (double)SECOND, w->event, str_text(&w->doing));
    w->options->trace(w->options->ctx, line.at);
}

void world_breach(struct sim_world *w, int invariant, const char *fmt, ...)
{
    va_list ap;
    if (w->invariant)
        return;
    w->invariant = invariant;
    w->breach_event = w->event;
    w->breach_ns = w->now_ns;
    va_start(ap, fmt);
    add_text(&w->breach, fmt, ap);
    va_end(ap);
}

void world_mix(struct sim_world *w, uint64_t x)
{
    w->hash = hash_pair(hash_pair(w->hash, x), (uint64_t)w->now_ns);
}

int64_t world_wall_ns(const struct sim_world *w)
{
    return INT64_C(1800000000) * SECOND + w->now_ns + w->wall_ns;
}
