/* network_zone.c - prefers the zone where the pod's data or its clients are. */
#include "core/score/scores.h"

static void fill(const struct cycle *c, const struct preferences *preferences, int32_t weight, int32_t *column)
{
    for (uint32_t p = 0; preferences->near_zone && p < c->len; p++)
        if (c->l->zone[p] == preferences->near_zone)
            column[p] += weight * SCORE_ONE;
}

const struct score score_network_zone = {
    .name = "network_zone",
    .text = "prefers the zone of the pod's data or clients",
    .when = SCORE_STATIC,
    .fill = fill,
};
