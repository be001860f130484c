/* properties.h - what holds for every cluster, checked on random ones.
 *
 *   order-free      told in any order: the same plan
 *   deterministic   planned twice: the same plan
 *   fixpoint        applied at the same moment: nothing left to do
 *   maintained      a cluster that was changed bit by bit plans like one loaded afresh, and a snapshot never changes
 *   judged          the naive judge finds nothing (judge.h), and berth_audit neither
 *   resting         where nothing else happens, plans become empty and stay so
 *
 * A failing seed is printed; after BERTH_FAILURES of them (5) it ends. BERTH_SEED=n runs that one alone (or, with
 * BERTH_WORLDS=m, so many from there) and prints the world and its plan; with BERTH_SHRINK=1 as well, the smallest world
 * found that still fails.
 */
#pragma once

#include "bound.h"
#include "judge.h"

/* A world told to a new cluster, planned and judged. */
bool world_check(const struct world *world, struct verdict *v);
/* Plans a world again and again, as time goes by, until nothing is left to do. */
bool rest_check(const struct world *from, struct verdict *v);
/* A world made from a seed, planned, changed and planned again a few times. */
bool seed_check(uint64_t seed, struct verdict *v);

/* Checks seeds first to first + len - 1, or what BERTH_SEED and BERTH_WORLDS say; returns how many failed. */
size_t seeds_check(uint64_t first, size_t len);
/* The same for as many seeds as the bound lets run. */
size_t seeds_check_within(uint64_t first, struct bound bound);

/* Takes parts away for as long as the check still fails in the same way. */
void world_shrink(struct world *world);
