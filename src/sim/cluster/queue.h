/* queue.h - what is to happen and when, in virtual time: a heap by time, then by order of asking.
 *
 * An event is a function with an argument. Not for cancelling: what is no longer wanted finds that out when it runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct world;

struct due {
    int64_t at_ns;
    uint64_t order;
    void (*run)(struct world *w, void *arg);
    void *arg;
    void (*drop)(void *arg); /* after `run`, or when it never comes to that; NULL: nothing to free */
};

struct due_queue {
    VEC(struct due) heap;
    uint64_t order;
};

/* `order` is the queue's to fill in. */
void due_queue_add(struct due_queue *q, struct due due);
/* False: nothing is left. */
bool due_queue_take(struct due_queue *q, struct due *ret);
void due_queue_done(struct due_queue *q);
