/* instance_choice.h - which instance of a service a client goes to: as often as its weight says. docs/services.md has the rule.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The place that a random number from 0 to 2^64 - 1 means: the same number, the same place. Where all weights are 0 each
 * counts the same. len is at least 1. */
size_t choice_weighted(const uint32_t *weights, size_t len, uint64_t random);
