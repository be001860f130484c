/* fleet.h - the nodes of a simulated cluster, parsed from a short description or from a cluster file.
 *
 * "4xgpu8,10xcpu64" is four nodes with 8 GPUs each and ten with 64 cores each. Resources of a node are joined by plus
 * signs: "2xgpu8+cpu96+mem768Gi". Defaults: 16 cores and 64 GiB of memory per GPU; 4 GiB per core on nodes without
 * GPUs.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "berth.h"
#include "wire/cluster/cluster_nodes.h"

enum { SIM_FLEET_NODES_MAX = 1000000 };

struct sim_fleet {
    struct arena arena;
    VEC(struct berth_node) nodes;
    struct cluster_nodes file; /* the cluster file, if there is one */
};

void sim_fleet_init(struct sim_fleet *f);
void sim_fleet_done(struct sim_fleet *f);
static inline void sim_fleet_cleanup(struct sim_fleet *f)
{
    sim_fleet_done(f);
}

/* Adds one node with this many processors and nothing else. */
void sim_fleet_machine(struct sim_fleet *f, int64_t procs);
/* Adds nodes from a description; existing nodes stay. Returns -EINVAL with the error in the text. */
int sim_fleet_add(struct sim_fleet *f, const char *text, struct berth_err *err);
/* Adds the nodes of a cluster file in the format of `berth plan`. */
int sim_fleet_file(struct sim_fleet *f, const char *path, struct berth_err *err);

/* The capacity of all nodes. */
struct sim_fleet_total {
    int64_t cpu_milli, memory_bytes, gpus;
};
struct sim_fleet_total sim_fleet_total(const struct sim_fleet *f);
/* Appends a description: "14 nodes: 32 GPUs, 1152 cores, 4.5 TiB of memory". */
void sim_fleet_describe(const struct sim_fleet *f, struct str *s);
/* Finds a profile of the cluster file, then a built-in one; NULL: none. */
const struct berth_profile *sim_fleet_profile(const struct sim_fleet *f, const char *name);
