/* evolve.h - what happens between two plans: reports arrive, stops are confirmed, people change their minds.
 *
 * Every event changes the world and tells the same to a live cluster, so that a maintained cluster can be compared with
 * one that is loaded afresh.
 */
#pragma once

#include "judge.h"
#include "world.h"

/* A handful of random events, then some time passes. False if the cluster refused a legal one. */
bool world_evolve(struct world *world, struct berth_cluster *cluster, struct rng *r, struct verdict *v);
