/* world.h - a cluster as plain arrays of descriptions, for tests that know nothing of the core.
 *
 * A world is what the tests believe; world_load tells it to a berth_cluster through the public header. Everything a
 * description points at lives in the arena of the world it was made for and never changes; to change an object, change
 * the copy in the array. A copied world shares what its original points at, so the original must outlive it.
 *
 * world_random makes every feature of berth.h appear now and then. To add one: shape_random.c, node_random.c or
 * state_random.c, policy_random.c or claims_random.c, and world_dump.c, so that a failing seed can be read.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "berth.h"
#include "rng.h"

#define NONE SIZE_MAX
#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

/* An instance with what its names mean. */
struct seat {
    struct berth_instance is;
    size_t node;     /* index */
    size_t workload; /* index; NONE: gone */
    /* As placed, or the workload's present one; an empty one where neither is known. */
    const struct berth_shape *shape;
};

struct world {
    struct arena arena;
    uint64_t seed; /* it was made from, and of its snapshots */
    int64_t now_ns;
    uint64_t next_id;                    /* above every instance's */
    const struct berth_profile *profile; /* NULL: default */
    struct berth_policy policy;          /* all but the profile */

    struct berth_resource *resources;
    struct berth_node *nodes;
    struct berth_volume *volumes;
    struct berth_workload *workloads;
    struct seat *seats;
    struct berth_fact *facts;
    struct berth_budget *budgets;
    size_t resources_len, nodes_len, volumes_len, workloads_len, seats_len, facts_len, budgets_len;

    bool broken; /* made with a node over capacity or an incomplete gang: an audit may complain beforehand */
};

void world_init(struct world *world);
void world_done(struct world *world);
void world_copy(struct world *to, const struct world *from);

/* ret_world is initialised by this. */
void world_random(struct world *ret_world, uint64_t seed);

size_t world_find_node(const struct world *world, const char *id);       /* NONE: no such */
size_t world_find_workload(const struct world *world, const char *id);   /* NONE: no such */
size_t world_find_resource(const struct world *world, const char *name); /* NONE: not defined */
const struct berth_volume *world_find_volume(const struct world *world, const char *id);
struct seat *world_find_seat(const struct world *world, uint64_t id); /* NULL: no such */

/* Append a copy of the description; its strings and lists are the caller's, to live as long as the world. */
struct berth_node *world_add_node(struct world *world, struct berth_node node);
struct berth_workload *world_add_workload(struct world *world, struct berth_workload workload);
struct seat *world_add_instance(struct world *world, struct berth_instance instance);
void world_add_fact(struct world *world, struct berth_fact fact);
void world_add_budget(struct world *world, struct berth_budget budget);
/* A pod of the workload is stopped for another. */
void world_spend_budgets(struct world *world, size_t workload);
void world_remove_node(struct world *world, size_t i);
void world_remove_workload(struct world *world, size_t i);
void world_remove_seat(struct world *world, size_t i);
/* After workloads or nodes changed places or shapes. */
void world_link(struct world *world);

/* A cluster with the same content, told in an order that depends on `shuffle` (0: as it stands). Prints the error and
 * returns NULL if something is refused. */
struct berth_cluster *world_load(const struct world *world, uint64_t shuffle);
struct berth_policy world_policy(const struct world *world);
/* Freezes at the world's now and seed and plans with its policy. NULL on failure, which is printed. The snapshot is the
 * caller's as well. */
struct berth_plan *world_plan(const struct world *world, struct berth_cluster *cluster,
                              struct berth_snapshot **ret_snapshot);

void world_dump(const struct world *world, FILE *to);
void plan_dump(struct berth_plan *plan, FILE *to);

/* The parts of world_random. */
void resources_random(struct world *world, struct rng *r);
void nodes_random(struct world *world, struct rng *r, size_t len);
struct berth_node node_random(struct world *world, struct rng *r, size_t number);
void volumes_random(struct world *world, struct rng *r);
void workloads_random(struct world *world, struct rng *r, size_t len);
struct berth_workload workload_random(struct world *world, struct rng *r, size_t number);
struct berth_shape shape_random(struct world *world, struct rng *r);
void instances_random(struct world *world, struct rng *r);
/* policy_random.c; with dice of its own. */
void relief_random(struct world *world);
void use_random(struct world *world, struct rng *r, struct seat *seat);
void node_use_random(struct world *world, struct rng *r, struct berth_node *node);
bool wish_random(struct world *world, struct rng *r, struct berth_fact *ret); /* false: nobody to wish for */
/* claims_random.c; with dice of its own, for seeds from this on. */
#define CLAIMS_FROM UINT64_C(5000000)
bool world_claims(const struct world *world);
void claim_random(struct world *world, struct rng *r, struct berth_workload *w);
void claims_before(struct world *world); /* of nodes and workloads, before there are instances */
void claims_after(struct world *world);  /* of the policy; with work that comes last */
void budget_random(struct world *world, struct rng *r, size_t number, struct berth_budget *ret);
