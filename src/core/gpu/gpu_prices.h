/* gpu_prices.h - what pods that have come until now ask for, and what a GPU could still earn by such pods.
 *
 * The currency is one GPU. What a request earns is its size, priced as a cutting stock (cutting_stock.h), several GPUs at 1 each. A GPU
 * of which so much is free earns the best filling by requests that may use it. What pods ask for besides (cpu, memory: the
 * profile's resources) has a price per step; a filling earns what is left after that, as the mean over the pods of a size,
 * not the best of them: one cannot choose who comes. Low prices suit a node with much cpu, high ones a node with little; see
 * gpu_cost.h, which takes the step that bounds a node best.
 *
 * Learned from the workloads of the snapshot alone, in an order that does not depend on how they came. Made once for a plan:
 * O(workloads + devices + kinds * steps * sizes).
 */
#pragma once

#include "core/gpu/cutting_stock.h"
#include "core/plan/cycle.h"

/* Prices of each resource; steps are as many as this for each one. */
enum { MARKET_PRICES = 20, MARKET_STEPS_MAX = MARKET_PRICES * PROFILE_RESOURCES_MAX };

/* GPUs that may be used by the same requests. */
struct market_kind {
    double *part;  /* [hundredths free][step] */
    double *block; /* [GPUs of a node that are wholly free][step] */
    double
        scarcity; /* the part of them that is asked for by those who may not use every kind, if all GPUs were asked for */
    uint32_t device; /* one of them */
};

struct market {
    uint32_t steps;                      /* a multiple of 4 */
    double price[MARKET_STEPS_MAX];      /* [step]: GPUs for one of the resource */
    uint32_t resource[MARKET_STEPS_MAX]; /* [step] */
    const struct market_kind *kinds;
    uint32_t kinds_len;
    const uint32_t *kind; /* [device] */
    uint32_t gpus_max;    /* of any node */
    bool mixed;           /* some node has several kinds */
    uint64_t *asked;      /* classes that were counted, a bit each */
};

/* In the plan's arena; NULL: nobody asks for GPUs. */
const struct market *market_new(struct cycle *c);
