/* series.h - the cluster over time: what there is, what is held, how many wait and for how long.
 *
 * Two rings in memory, so that a page has its plots at once: a point every ten seconds for an hour, and the mean of each five
 * minutes for a week. It begins when the daemon does; for more there is /metrics. A point costs O(nodes + what waits, up to
 * SERIES_LOOKED_AT).
 *
 * To add a line: a column here, where it is taken and where it is shown in series.c, and a word in docs/api.md.
 */
#pragma once

#include "control/api/request.h"

enum {
    SERIES_FINE_S = 10,
    SERIES_FINE_LEN = 360,
    SERIES_COARSE_S = 300,
    SERIES_COARSE_LEN = 2016,
    SERIES_LOOKED_AT = 20000, /* of what waits; of more, of every n-th */
};

struct series;
struct series *series_new(struct control *control);
void series_free(struct series *s);
/* Takes a point if it is time. */
void series_step(struct series *s, int64_t steady_ns);

/* GET /v1/series?span=hour|week */
int series_run(struct call *c);
