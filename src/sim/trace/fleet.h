/* fleet.h - the nodes that a trace is played on, as people write them.
 *
 * "4xgpu8,10xcpu64" is four nodes with 8 GPUs each and ten with 64 cores each. What a node has is written with plus signs:
 * "2xgpu8+cpu96+mem768Gi". Where nothing is said a GPU comes with 16 cores and 64 GiB of memory, a core without GPUs with 4 GiB.
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
    struct cluster_nodes file; /* where it comes from one */
};

void sim_fleet_init(struct sim_fleet *f);
void sim_fleet_done(struct sim_fleet *f);
static inline void sim_fleet_cleanup(struct sim_fleet *f)
{
    sim_fleet_done(f);
}

/* One node with so many processors and nothing else. */
void sim_fleet_machine(struct sim_fleet *f, int64_t procs);
/* Adds nodes; those that are there already stay. -EINVAL: what is wrong with the text. */
int sim_fleet_add(struct sim_fleet *f, const char *text, struct berth_err *err);
/* Adds the nodes of a cluster file, as `berth plan` reads it. */
int sim_fleet_file(struct sim_fleet *f, const char *path, struct berth_err *err);

/* Of all nodes: what there is. */
struct sim_fleet_total {
    int64_t cpu_milli, memory_bytes, gpus;
};
struct sim_fleet_total sim_fleet_total(const struct sim_fleet *f);
/* "14 nodes: 32 GPUs, 1152 cores, 4.5 TiB of memory" */
void sim_fleet_describe(const struct sim_fleet *f, struct str *s);
/* The file's own first, then those built in; NULL: none. */
const struct berth_profile *sim_fleet_profile(const struct sim_fleet *f, const char *name);
