/* instance_choice.h - picks the instance of a service for a client in proportion to the weights (docs/services.md). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the index for a random number from 0 to 2^64 - 1; the same number always gives the same index. If all weights
 * are 0, all count the same. len is at least 1. */
size_t choice_weighted(const uint32_t *weights, size_t len, uint64_t random);
