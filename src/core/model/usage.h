/* usage.h - past use, as berth.h has it: what a plan needs of it beside the public functions. */
#pragma once

#include "berth.h"

/* Half of past use is forgotten in this time. */
int64_t usage_half_life_ns(const struct berth_order *o);
/* Thousandths that a unit and second of the resource cost; and what an amount of it costs each second. */
int64_t usage_charge(const struct berth_order *o, const char *resource);
int64_t usage_cost(int64_t amount, int64_t charge, const char *resource);
/* Sums of use stay far from the end of the numbers. */
int64_t usage_sum(int64_t a, int64_t b);
