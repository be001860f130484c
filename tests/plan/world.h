/* world.h - a cluster as plain arrays of descriptions, for tests that do not use the core's own types.
 *
 * A world is the tests' own model of a cluster; world_load tells it to a berth_cluster through the public header.
 * Everything that a description points to lives in the arena of the world for which it was made and never changes; to
 * change an object, change the copy in the array. A copied world shares these allocations with its original, so the
 * original must outlive it.
 *
 * world_random uses every feature of berth.h in some worlds. To add a feature: shape_random.c, node_random.c,
 * state_random.c, policy_random.c or preemption_random.c, and world_dump.c, so that a failing seed can be read.
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

/* An instance with its node, workload and shape looked up. */
struct inst {
    struct berth_instance is;
    size_t node;     /* index */
    size_t workload; /* index; NONE: the workload was removed */
    /* The shape with which it was placed, else the workload's present one, else an empty one. */
    const struct berth_shape *shape;
};

struct world {
    struct arena arena;
    uint64_t seed; /* made from this seed; also the seed of its snapshots */
    int64_t now_ns;
    uint64_t next_id;                    /* above every instance id */
    const struct berth_profile *profile; /* NULL: the default profile */
    struct berth_policy policy;          /* without its profile */

    struct berth_resource *resources;
    struct berth_node *nodes;
    struct berth_volume *volumes;
    struct berth_workload *workloads;
    struct inst *instances;
    struct berth_fact *facts;
    struct berth_budget *budgets;
    size_t resources_len, nodes_len, volumes_len, workloads_len, instances_len, facts_len, budgets_len;

    bool broken; /* a node over capacity or an incomplete gang: an audit before planning may fail */
};

void world_init(struct world *world);
void world_done(struct world *world);
void world_copy(struct world *to, const struct world *from);

/* Makes a random world and initialises ret_world. */
void world_random(struct world *ret_world, uint64_t seed);

size_t world_find_node(const struct world *world, const char *id);       /* NONE: not found */
size_t world_find_workload(const struct world *world, const char *id);   /* NONE: not found */
size_t world_find_resource(const struct world *world, const char *name); /* NONE: not defined */
const struct berth_volume *world_find_volume(const struct world *world, const char *id);
struct inst *world_find_instance(const struct world *world, uint64_t id); /* NULL: not found */

/* Append a copy of the description. The caller owns its strings and lists, which must live as long as the world. */
struct berth_node *world_add_node(struct world *world, struct berth_node node);
struct berth_workload *world_add_workload(struct world *world, struct berth_workload workload);
struct inst *world_add_instance(struct world *world, struct berth_instance instance);
void world_add_fact(struct world *world, struct berth_fact fact);
void world_add_budget(struct world *world, struct berth_budget budget);
/* Subtracts one preempted pod of the workload from the budgets that count it. */
void world_spend_budgets(struct world *world, size_t workload);
void world_remove_node(struct world *world, size_t i);
void world_remove_workload(struct world *world, size_t i);
void world_remove_instance(struct world *world, size_t i);
/* Looks up nodes, workloads and shapes of all instances again. To be called after nodes or workloads moved in their
 * arrays or changed shape. */
void world_link(struct world *world);

/* Returns a cluster with the same content. `shuffle` seeds the order in which the objects are told (0: the order of the
 * arrays). Returns NULL and prints the error if the cluster refuses an object. */
struct berth_cluster *world_load(const struct world *world, uint64_t shuffle);
struct berth_policy world_policy(const struct world *world);
/* Freezes the cluster at the world's time and seed and plans with its policy. Returns NULL on failure and prints the
 * error. The caller frees the plan and the snapshot. */
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
/* policy_random.c; has its own random generator. */
void policy_and_use_random(struct world *world);
void use_random(struct world *world, struct rng *r, struct inst *inst);
void node_use_random(struct world *world, struct rng *r, struct berth_node *node);
bool migration_request_random(struct world *world, struct rng *r,
                              struct berth_fact *ret); /* false: there is no instance to move */
/* preemption_random.c; has its own random generator, for seeds from PREEMPTION_SEEDS_FROM on. */
#define PREEMPTION_SEEDS_FROM UINT64_C(5000000)
bool world_has_preemption(const struct world *world);
void preemption_claims_random(struct world *world, struct rng *r, struct berth_workload *w);
void preemption_before_instances(struct world *world); /* nodes and workloads, before there are instances */
void preemption_after_instances(struct world *world);  /* the policy, and workloads that arrive last */
void budget_random(struct world *world, struct rng *r, size_t number, struct berth_budget *ret);
