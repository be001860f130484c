/* lanes.h - short loops over 64 neighbours of a column, compiled for several generations of CPU.
 *
 * Integers only: every version gives the same result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LANES = 64 };

/* A bit for each of 64 values that is at least `amount`. */
uint64_t lanes_at_least(const int64_t *column, int64_t amount);
/* The greatest of 64 values. */
int64_t lanes_max64(const int64_t *column);
int32_t lanes_max32(const int32_t *column);
/* The first of 64 values that equals x, which is there. */
uint32_t lanes_find32(const int32_t *column, int32_t x);
