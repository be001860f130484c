/* event_queue.h - the event queue of the simulation: a heap ordered by virtual time, then by order of insertion.
 *
 * An event is a function with an argument. Events cannot be cancelled: an obsolete event checks that itself when it
 * runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct sim_world;

struct sim_event {
    int64_t at_ns;
    uint64_t order;
    void (*run)(struct sim_world *w, void *arg);
    void *arg;
    void (*drop)(void *arg); /* called after `run`, or if the event never runs; NULL: nothing to free */
};

struct event_queue {
    VEC(struct sim_event) heap;
    uint64_t order;
};

/* Adds an event. The queue sets `order`. */
void event_queue_add(struct event_queue *q, struct sim_event due);
/* Removes the next event. Returns false if the queue is empty. */
bool event_queue_pop(struct event_queue *q, struct sim_event *ret);
void event_queue_done(struct event_queue *q);
