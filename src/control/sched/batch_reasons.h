/* batch_reasons.h - why pods of a plan wait, as the journal stores it with the plan's first batch.
 *
 * The text is only written here; 'berth why' asks a new plan.
 */
#pragma once

#include "base/str.h"
#include "berth.h"

/* Appends [[workload, pods, [[reason, what, nodes], ...]], ...] for at most 100 workloads. */
void batch_reasons_write(struct berth_plan *plan, struct str *to);
