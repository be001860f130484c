/* series.h - time series of the cluster: capacity, allocation, number of waiting workloads and their waits.
 *
 * Two ring buffers in memory serve the plots of the dashboard: one point every ten seconds for an hour, and the mean of
 * each five minutes for a week. They are empty when the daemon starts; /metrics serves longer histories. A point costs
 * O(nodes + waiting workloads, up to SERIES_LOOKED_AT).
 *
 * To add a series: a column here, its sampling and its output in series.c, and a word in docs/api.md.
 */
#pragma once

#include "control/api/request.h"

enum {
    SERIES_FINE_S = 10,
    SERIES_FINE_LEN = 360,
    SERIES_COARSE_S = 300,
    SERIES_COARSE_LEN = 2016,
    SERIES_LOOKED_AT = 20000, /* waiting workloads that are examined; of more, every n-th one */
};

struct series;
struct series *series_new(struct control *control);
void series_free(struct series *s);
/* Adds a point if it is due. */
void series_step(struct series *s, int64_t steady_ns);

/* GET /v1/series?span=hour|week */
int series_run(struct request *c);
