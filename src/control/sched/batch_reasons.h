/* batch_reasons.h - why pods of a plan wait, as the journal keeps it with the plan's first unit.
 *
 * Only what is written: 'berth why' asks a plan anew.
 */
#pragma once

#include "base/str.h"
#include "berth.h"

/* Adds [[workload, pods, [[reason, what, nodes], ...]], ...], of no more than a hundred workloads. */
void unit_reasons_write(struct berth_plan *plan, struct str *to);
