/* holders.h - who holds a port or a volume, where: in the snapshot and in what the plan has placed so far. */
#pragma once

#include "core/search/attempt.h"

struct held {
    uint32_t position;
    bool leaving; /* its holder is stopping */
};

struct holds_walk {
    const struct cycle *c;
    uint32_t old;
    const struct fresh_hold *fresh;
    struct held now;
};

struct holds_walk holds_begin(const struct cycle *c, uint32_t thing);
bool holds_next(struct holds_walk *w);

#define HOLDS_EACH(h, t, thing)                                                                                        \
    for (struct holds_walk walk_ = holds_begin((t)->c, (thing)); holds_next(&walk_);)                                  \
        for (struct held h = walk_.now, *once_ = &walk_.now; once_; once_ = NULL)

/* Notes that what the plan places here holds the class's ports and volumes; undone in the opposite order. */
void holds_take(struct cycle *c, const struct class *k, uint32_t position);
void holds_give(struct cycle *c, const struct class *k, uint32_t position);

/* An instance that the plan has marked as removed gives back what it had attached. */
void holds_release(struct cycle *c, const struct instance *i);
