/* properties.h - properties of the planner that hold for every cluster, checked on random clusters.
 *
 *   order-free      the order in which a cluster is told its objects does not change the plan
 *   deterministic   planning the same snapshot twice gives the same plan
 *   fixpoint        after a plan is applied, the next plan at the same moment is empty
 *   maintained      a cluster that was changed step by step plans like a freshly loaded one; a snapshot never changes
 *   judged          the naive checker (oracle.h) and berth_audit find no violation
 *   resting         without further events, plans become empty and stay empty
 *
 * A failing seed is printed; the check ends after BERTH_FAILURES failures (5). BERTH_SEED=n runs that seed alone (with
 * BERTH_WORLDS=m: m seeds from n on) and prints the world and its plan; BERTH_SHRINK=1 also reduces the world to the
 * smallest one found that still fails.
 */
#pragma once

#include "bound.h"
#include "oracle.h"

/* Loads the world into a new cluster, plans it and checks the plan. */
bool world_check(const struct world *world, struct verdict *v);
/* Plans a world repeatedly with an advancing clock, until a plan is empty and no recheck is due. */
bool rest_check(const struct world *from, struct verdict *v);
/* Makes a world from the seed, then plans, checks and changes it a few times. */
bool seed_check(uint64_t seed, struct verdict *v);

/* Checks seeds first to first + len - 1, or the seeds that BERTH_SEED and BERTH_WORLDS select. Returns the number of
 * failed seeds. */
size_t seeds_check(uint64_t first, size_t len);
/* Like seeds_check, for as many seeds as the bound allows. */
size_t seeds_check_within(uint64_t first, struct bound bound);

/* Removes parts of the world as long as its check still fails in the same way. */
void world_shrink(struct world *world);
