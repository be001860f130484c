/* bound.h - how many seeds of a random check run.
 *
 * A random check runs seeds in a fixed order, so that two runs begin with the same ones: at least a minimum, then more until it has
 * used its time of a processor, at most all. With BERTH_BED=whole (`make beds`) all of them run, however long that takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bound {
    size_t least, most; /* seeds */
    int64_t seconds;    /* of a processor */
    int64_t end_ns;     /* of this process's processor time; bound_begin sets it */
};

/* Starts the time of a bound. */
void bound_begin(struct bound *bound);
/* Does another seed run after so many? */
bool bound_goes_on(const struct bound *bound, size_t done);
