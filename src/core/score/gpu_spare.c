/* gpu_spare.c - keeps nodes with GPUs for the pods that want them.
 *
 * A constant of the node. Pods with GPUs only ever go to nodes that have them, so it may be in the key of all.
 */
#include "core/score/scores.h"

const struct score score_gpu_spare = {
    .name = "gpu_spare",
    .text = "keeps nodes with GPUs for pods that want them",
    .when = SCORE_NODE,
};
