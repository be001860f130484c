/* holders.h - the nodes on which a port or volume is held, by the snapshot's instances and by placements of this plan.
 */
#pragma once

#include "core/search/attempt.h"

struct resource_holder {
    uint32_t position;
    bool leaving; /* the instance that holds it is stopping */
};

struct holders_walk {
    const struct cycle *c;
    uint32_t old;
    const struct planned_hold *fresh;
    struct resource_holder now;
};

struct holders_walk holders_begin(const struct cycle *c, uint32_t port_or_volume);
bool holders_next(struct holders_walk *w);

#define HOLDS_EACH(h, t, port_or_volume)                                                                               \
    for (struct holders_walk walk_ = holders_begin((t)->c, (port_or_volume)); holders_next(&walk_);)                   \
        for (struct resource_holder h = walk_.now, *once_ = &walk_.now; once_; once_ = NULL)

/* Records that a pod placed here holds the class's ports and volumes; holds_undo undoes it, in the opposite order. */
void holds_take(struct cycle *c, const struct class *k, uint32_t position);
void holds_undo(struct cycle *c, const struct class *k, uint32_t position);

/* Gives back the volume attachments of an instance that the plan has marked as removed. */
void holds_release(struct cycle *c, const struct instance *i);
