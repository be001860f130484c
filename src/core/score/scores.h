/* scores.h - declarations of all scores, and functions that they share. */
#pragma once

#include "core/filter/filters.h"
#include "core/score/score.h"
#include "core/search/attempt.h"

extern const struct score score_least_allocated;
extern const struct score score_most_allocated;
extern const struct score score_balanced;
extern const struct score score_best_fit;
extern const struct score score_dot_product;
extern const struct score score_gpu_packing;
extern const struct score score_gpu_filling;
extern const struct score score_gpu_clustering;
extern const struct score score_gpu_spare;
extern const struct score score_fragmentation;
extern const struct score score_gpu_worth;
extern const struct score score_spread;
extern const struct score score_affinity;
extern const struct score score_preferences;
extern const struct score score_image_locality;
extern const struct score score_network_zone;
extern const struct score score_random;

/* Defines `add` of a BLOCK score from a function of one node. */
#define SCORE_ADD(score_of)                                                                                            \
    static void add(const struct attempt *t, uint32_t block, uint64_t bits, int32_t weight, int32_t out[BLOCK])        \
    {                                                                                                                  \
        BITS_EACH (i, bits)                                                                                            \
            out[i] += weight * score_of(t, block * BLOCK + (uint32_t)i);                                               \
    }

/* One resource of the profile on one node. */
struct resource_amounts {
    int64_t free, need, capacity;
    int64_t largest; /* capacity: maximum over all nodes */
};
struct resource_amounts resource_amounts_at(const struct attempt *t, uint32_t i, uint32_t position);
/* All GPUs of a node, in thousandths; `largest` is set only with profile.needs_largest. */
struct resource_amounts gpu_amounts_at(const struct attempt *t, uint32_t position);

/* Returns a value from 0 to 1 as a score, rounded down to the profile's steps; values outside are clamped. */
int32_t score_from(const struct attempt *t, double value);
/* As score_from, for a quotient, without rounding errors; both numbers are below 2^31. */
int32_t score_ratio(const struct attempt *t, int64_t part, int64_t whole);

/* The kinds of GPU requests that gpu_clustering distinguishes: 0 a share, else the number of GPUs. */
enum { GPU_REQUESTS = BERTH_NODE_GPUS_MAX + 1 };
uint32_t gpu_request_kind(const struct gpu_need *need);
/* Updates the counts of gpu_clustering, if they exist; called for each placement (sign 1) and each undone one (-1). */
void gpu_request_counts_update(struct cycle *c, const struct gpu_need *need, uint32_t position, int sign);
