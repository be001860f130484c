/* preempt.h - preemption: makes room for a demand by stopping instances of a lower tier.
 *
 * Called when a demand found no place. Victims are of a strictly lower tier, have run for their minimum run time, may
 * be preempted, and are on nodes that would then accept the pods. The cheapest way is chosen: the lowest tiers, then
 * the least work lost, then the fewest pods. Gangs are stopped as a whole; elastic gangs lose spare pods first. No
 * instance is stopped needlessly. The same plan reserves places for the pods that the victims were stopped for.
 */
#pragma once

#include "core/plan/plan.h"

/* Places all that the group needs (or of a single demand as many pods as possible) by stopping victims; returns false
 * if nothing was done. Not to be called for a move or for the spare pods of a gang, which preempt nothing. */
bool preempt(struct berth_plan *p, struct demand *w, uint32_t len);

/* Adds demands for victims that need not wait until they have stopped: their pods may run twice, or other pods of the
 * gang are enough. The demands are added behind all others and are of lower tiers than the demands that the victims
 * were stopped for. Call after victims were stopped. */
void preempt_requeue_victims(struct berth_plan *p);
