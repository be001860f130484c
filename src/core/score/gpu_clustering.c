/* gpu_clustering.c - prefers nodes that hold pods with the same GPU request. */
#include "core/score/scores.h"

static bool applies(const struct turn *t)
{
    return t->k->gpu.count > 0;
}

static int32_t score_of(const struct turn *t, uint32_t p)
{
    const struct gpu_cluster *g = gpu_cluster_of(t->c, &t->k->gpu);
    return g->pods[p] ? SCORE_ONE : 0;
}

SCORE_ADD(score_of)

const struct score score_gpu_clustering = {
    .name = "gpu_clustering",
    .text = "prefers nodes that hold pods with the same GPU request",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
};
