/* batch_ordinals.h - which pods of a workload have an instance, looked up once for the many tasks of an array that a unit
 * places. */
#pragma once

#include "control/state/state.h"

/* All zero: nothing was looked up yet. */
struct unit_taken {
    const struct object *work;
    uint64_t revision; /* of the state that was looked at */
    uint64_t len;
    uint64_t *bits; /* by ordinal; in the arena */
};

/* False: the pod has no instance. True: it has one, or may. */
bool unit_taken(struct unit_taken *t, const struct state *s, const struct object *work, uint32_t ordinal,
                struct arena *arena);
