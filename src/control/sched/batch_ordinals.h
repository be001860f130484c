/* batch_ordinals.h - which pods of a workload have an instance; looked up once for all tasks of an array that a batch
 * places.
 */
#pragma once

#include "control/state/state.h"

/* Initialised to zeroes. */
struct batch_used_ordinals {
    const struct object *work;
    uint64_t revision; /* state revision of the lookup */
    uint64_t len;
    uint64_t *bits; /* one bit per ordinal; in the arena */
};

/* Returns false if the pod has no instance, true if it has one or may have one. */
bool batch_ordinal_used(struct batch_used_ordinals *t, const struct state *s, const struct object *work,
                        uint32_t ordinal, struct arena *arena);
