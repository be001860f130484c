/* occupancy.h - what the cluster has and what is held of it, in sums by domain: cores, bytes, GPUs. O(nodes). */
#pragma once

#include "control/api/request.h"

enum { USE_CPU, USE_MEMORY, USE_GPU, USES };

/* Of nodes: of one that takes no work nothing is there, but what it still holds is. */
struct use_sum {
    size_t nodes, ready;
    struct berth_node_use use[USES];
};
/* Of all. */
void use_total(struct state *s, struct use_sum *ret);
/* As people count it: cores, bytes, GPUs. */
double use_amount(size_t of, int64_t amount);

/* GET /v1/use */
int use_run(struct call *c);
