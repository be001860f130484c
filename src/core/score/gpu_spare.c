/* gpu_spare.c - keeps nodes with GPUs for the pods that request GPUs.
 *
 * The score is a constant of the node. Pods with GPUs only ever use nodes with GPUs, so the score may be in the key of
 * all nodes.
 */
#include "core/score/scores.h"

const struct score score_gpu_spare = {
    .name = "gpu_spare",
    .text = "keeps nodes with GPUs free for pods that request GPUs",
    .when = SCORE_NODE,
};
