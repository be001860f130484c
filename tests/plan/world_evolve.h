/* world_evolve.h - the random events between two plans: reports of agents, confirmed stops, failures, changed nodes and
 * workloads.
 *
 * Each event changes the world and is also told to a live cluster, so that a cluster that was changed step by step can
 * be compared with a freshly loaded one.
 */
#pragma once

#include "oracle.h"
#include "world.h"

/* Applies some random events, then advances the clock. Returns false if the cluster refuses a legal event. */
bool world_evolve(struct world *world, struct berth_cluster *cluster, struct rng *r, struct verdict *v);
