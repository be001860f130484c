/* preferences.c - the part of the preferred terms that a node satisfies, by weight; a soft taint that is not tolerated
 * gives the lowest score.
 */
#include "core/score/scores.h"

static void fill(const struct cycle *c, const struct preferences *preferences, int32_t weight, int32_t *column)
{
    int64_t all = 0;
    for (uint32_t i = 0; i < preferences->prefer.len; i++)
        all +=
            preferences->prefer.at[i].weight > 0 ? preferences->prefer.at[i].weight : -preferences->prefer.at[i].weight;

    for (uint32_t p = 0; p < c->len; p++) {
        const struct node_body *body = c->l->body[p];
        int64_t held = 0;
        for (uint32_t i = 0; i < preferences->prefer.len; i++)
            if (term_holds(&c->s->names, &preferences->prefer.at[i], body->labels))
                held += preferences->prefer.at[i].weight;
        int64_t score = all ? held * SCORE_ONE / all : 0;
        for (uint32_t i = 0; i < body->taints_len; i++)
            if (body->taints[i].effect == BERTH_PREFER_NO_SCHEDULE &&
                !taint_tolerated(&body->taints[i], &preferences->tolerations))
                score = -SCORE_ONE;
        column[p] += weight * (int32_t)score;
    }
}

const struct score score_preferences = {
    .name = "preferences",
    .text = "follows preferred labels and avoids soft taints (PreferNoSchedule)",
    .when = SCORE_STATIC,
    .fill = fill,
};
