/* event.h - the fixed cost of one planning cycle, for `berth bench queue`.
 *
 * A simulator plans once for each job that arrives or ends; on a small cluster the fixed cost of a plan dominates.
 */
#pragma once

#include <stdint.h>

#include "berth.h"

struct bench_event {
    double freeze, plan, apply, free, change; /* seconds, total of all events */
    uint64_t events, started;
    uint64_t hash; /* of all plans */
};

/* One node, some hundred running jobs of one pod and as many pending ones, policy fifo, one reservation: each event
 * ends the job with the earliest end and adds a new one. */
int bench_event(uint64_t events, uint64_t seed, struct bench_event *ret, struct berth_err *err);
