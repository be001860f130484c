/* table.c - all scores; a new score is one row here. */
#include "core/score/scores.h"

const struct score *const score_rows[] = {
    &score_least_allocated, &score_most_allocated, &score_balanced,       &score_best_fit,    &score_dot_product,
    &score_gpu_packing,     &score_gpu_filling,    &score_gpu_clustering, &score_gpu_spare,   &score_fragmentation,
    &score_gpu_worth,       &score_spread,         &score_affinity,       &score_preferences, &score_image_locality,
    &score_network_zone,    &score_random,
};
const size_t scores_len = sizeof score_rows / sizeof *score_rows;

const char *berth_score_at(size_t i, const char **ret_sentence)
{
    if (i >= scores_len)
        return NULL;
    if (ret_sentence)
        *ret_sentence = score_rows[i]->text;
    return score_rows[i]->name;
}
