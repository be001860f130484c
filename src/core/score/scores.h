/* scores.h - what the scores of this folder share. */
#pragma once

#include "core/filter/filters.h"
#include "core/score.h"
#include "core/turn.h"

extern const struct score score_least_allocated;
extern const struct score score_most_allocated;
extern const struct score score_balanced;
extern const struct score score_best_fit;
extern const struct score score_dot_product;
extern const struct score score_gpu_packing;
extern const struct score score_gpu_clustering;
extern const struct score score_gpu_spare;
extern const struct score score_fragmentation;
extern const struct score score_spread;
extern const struct score score_affinity;
extern const struct score score_preferences;
extern const struct score score_image_locality;
extern const struct score score_network_zone;
extern const struct score score_random;

/* Defines `add` of a BLOCK score from a function of one node. */
#define SCORE_ADD(score_of)                                                                                            \
    static void add(const struct turn *t, uint32_t block, uint64_t bits, int32_t weight, int32_t out[BLOCK])           \
    {                                                                                                                  \
        BITS_EACH (i, bits)                                                                                            \
            out[i] += weight * score_of(t, block * BLOCK + (uint32_t)i);                                               \
    }

/* One resource of the profile on one node. */
struct dim {
    int64_t free, need, capacity;
    int64_t largest; /* capacity of any node */
};
struct dim dim_at(const struct turn *t, uint32_t i, uint32_t position);

/* A value from 0 to 1 as a score; what is outside is cut. */
int32_t score_from(double value);

/* Pods by node that ask for the same number and share of GPUs. */
struct gpu_cluster {
    uint32_t count, milli;
    uint16_t *pods; /* [position] */
    struct gpu_cluster *next;
};
const struct gpu_cluster *gpu_cluster_of(struct cycle *c, const struct gpu_need *need);
/* Keeps the counts that exist; called for each placement (sign 1) and each undone one (-1). */
void gpu_cluster_count(struct cycle *c, const struct gpu_need *need, uint32_t position, int sign);
