/* rlscheduler.h - traces played as in "RLScheduler" (Zhang et al., SC 2020).
 *
 * What differs from trace_run.h: the job that is chosen stays the chosen one until it starts, whoever comes meanwhile; one
 * submission or one end at a time, submissions first; and who goes before the chosen one must end before the moment at which
 * that can start, found once when it was chosen (no use of processors that it leaves). Who that may be is tried in the order of
 * the backfill's ranking, or first come, first served.
 *
 * Order, reservation and placement are the planner's: the chosen one has a higher priority, and the moment is a window that
 * nothing else may run into.
 */
#pragma once

#include "sim/trace/trace_run.h"

/* As sim_trace_run; the machine is one node. Predictions are not corrected; nothing is told of points. */
int sim_rlscheduler_run(const struct sim_setup *s, struct sim_outcomes *ret, struct berth_err *err);
