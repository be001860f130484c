/* usage.h - functions for past use that plans need in addition to those of berth.h. */
#pragma once

#include "berth.h"

/* Returns the half-life of past use. */
int64_t usage_half_life_ns(const struct berth_order *o);
/* Returns the charge for one unit and second of the resource, in thousandths; and the cost per second of an amount of
 * it. */
int64_t usage_charge(const struct berth_order *o, const char *resource);
int64_t usage_cost(int64_t amount, int64_t charge, const char *resource);
/* Returns the sum of two uses, limited so that further sums cannot overflow. */
int64_t usage_sum(int64_t a, int64_t b);
