/* event.h - what a decision costs that has little to decide: of `berth bench queue`.
 *
 * A simulator decides once for each job that comes or ends; on a small cluster what is paid for every plan, whatever its size,
 * is all of that.
 */
#pragma once

#include <stdint.h>

#include "berth.h"

struct bench_event {
    double freeze, plan, apply, free, change; /* seconds, all events together */
    uint64_t events, started;
    uint64_t hash; /* of all plans */
};

/* One node, some hundred jobs of one pod that run and as many that wait, fifo, one reservation: each event ends the job whose
 * time is over first and brings a new one. */
int bench_event(uint64_t events, uint64_t seed, struct bench_event *ret, struct berth_err *err);
