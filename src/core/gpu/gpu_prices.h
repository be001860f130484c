/* gpu_prices.h - prices learned from the GPU requests of workloads: how much of a GPU such requests could still use.
 *
 * The unit of value is one GPU. A request earns its size, priced as a cutting stock (cutting_stock.h); requests of
 * several GPUs earn 1 for each. A partly free GPU earns the best filling by requests that may use it. The other
 * resources of pods (cpu, memory: the profile's resources) have a price per step. A filling earns the rest after these
 * prices, as the mean over the pods of a size and not as their maximum, because the scheduler cannot choose which pods
 * are submitted. Low prices fit a node with much cpu, high prices one with little; gpu_cost.h uses the step that bounds
 * a node best.
 *
 * The prices follow from the workloads of the snapshot alone, and not from the order in which they were added. Made
 * once per plan: O(workloads + devices + kinds * steps * sizes).
 */
#pragma once

#include "core/gpu/cutting_stock.h"
#include "core/plan/cycle.h"

/* Number of prices of each resource; each price is one step. */
enum { GPU_PRICES_PER_RESOURCE = 20, GPU_PRICE_STEPS_MAX = GPU_PRICES_PER_RESOURCE * PROFILE_RESOURCES_MAX };

/* GPUs that the same requests may use. */
struct gpu_kind_prices {
    double *part;  /* [hundredths free][price step]: expected revenue of a GPU */
    double *block; /* [wholly free GPUs of a node][price step]: expected revenue */
    /* The part of these GPUs that requests which cannot use every kind would use, if all GPUs were requested. */
    double scarcity;
    uint32_t device; /* one of these GPUs */
};

struct gpu_prices {
    uint32_t steps;                         /* a multiple of 4 */
    double price[GPU_PRICE_STEPS_MAX];      /* [step]: GPUs for one unit of the resource */
    uint32_t resource[GPU_PRICE_STEPS_MAX]; /* [step] */
    const struct gpu_kind_prices *kinds;
    uint32_t kinds_len;
    const uint32_t *kind; /* [device] */
    uint32_t gpus_max;    /* maximum number of GPUs of a node */
    bool mixed;           /* some node has several kinds of GPUs */
    uint64_t *asked;      /* bit set of classes that were counted */
};

/* Returns the prices, in the plan's arena; NULL if no workload requests GPUs. */
const struct gpu_prices *gpu_prices_new(struct cycle *c);
