/* preempt.h - room made for what comes first by stopping what comes later.
 *
 * Asked when a wish found no place. Victims are of a strictly lower tier, have run for their minimum, may be preempted, and
 * are on nodes that would then take the pods. Of all ways the one with the least harm is taken: the lowest tiers, then the
 * least work lost, then the fewest pods; gangs go whole, elastic ones lose spare pods first. Nobody is stopped who need
 * not be. The pods that made them go are reserved their places by the same plan.
 */
#pragma once

#include "core/plan/plan.h"

/* Places all that is needed of the group (or one wish alone: as many of its pods as can be) by stopping others; false: nothing
 * was done. A move, or a spare pod of a gang, stops nobody: not to be called for these. */
bool preempt(struct berth_plan *p, struct wish *w, uint32_t len);

/* Wishes for what was stopped and need not wait until it has: its pods may run twice, or others of its gang are enough. They are
 * added behind all others, and are of lower tiers than what they were stopped for. To be called once others were stopped. */
void preempt_wishes(struct berth_plan *p);
