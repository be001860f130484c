/* lanes.h - vectorised loops over 64 consecutive values of a column, compiled for several generations of CPU.
 *
 * The loops use only integers, so every version gives the same result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LANES = 64 };

/* Returns a bit mask: bit i is set if column[i] is at least `amount`. */
uint64_t lanes_at_least(const int64_t *column, int64_t amount);
/* Returns the maximum of 64 values. */
int64_t lanes_max64(const int64_t *column);
int32_t lanes_max32(const int32_t *column);
/* Returns the index of the first of 64 values that equals x. x must be present. */
uint32_t lanes_find32(const int32_t *column, int32_t x);
