/* occupancy.h - capacity and allocation of the cluster, in totals by domain: cores, bytes, GPUs. O(nodes). */
#pragma once

#include "control/api/request.h"

enum { USE_CPU, USE_MEMORY, USE_GPU, USES };

/* Totals of nodes. A node that accepts no work adds no capacity, but adds its allocation. */
struct occupancy_sum {
    size_t nodes, ready;
    struct berth_node_use use[USES];
};
/* Sums up all nodes. */
void occupancy_total(struct state *s, struct occupancy_sum *ret);
/* Converts an amount to cores, bytes or GPUs. */
double occupancy_units(size_t of, int64_t amount);

/* GET /v1/use */
int occupancy_run(struct request *c);
