/* bound.h - how many seeds a random check runs.
 *
 * A random check runs seeds in a fixed order, so that two runs begin with the same seeds. It runs at least `least`
 * seeds, then more until it has used its CPU time, and at most `most` seeds. With BERTH_BED=whole (`make beds`) all
 * `most` seeds run, without a time limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bound {
    size_t least, most; /* seeds */
    int64_t seconds;    /* CPU time */
    int64_t end_ns;     /* in CPU time of this process; bound_begin sets it */
};

/* Starts the CPU time of the bound. */
void bound_begin(struct bound *bound);
/* Returns true if another seed shall run after `done` seeds. */
bool bound_goes_on(const struct bound *bound, size_t done);
