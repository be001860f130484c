/* rlscheduler.h - simulates traces by the protocol of "RLScheduler" (Zhang et al., SC 2020).
 *
 * Differences to trace_run.h: a selected job stays selected until it starts, even if other jobs arrive. Events are
 * processed one at a time, submissions before ends. A backfilled job must end before the selected job can start, a time
 * that is computed once, at its selection; processors that the selected job leaves unused are not backfilled.
 * Candidates for backfilling are tried in the order of the backfill's ranking, or first come, first served.
 *
 * The planner decides order, reservation and placement: the selected job has a higher priority, and its start time is a
 * window that no other job may run into.
 */
#pragma once

#include "sim/trace/trace_run.h"

/* Like sim_trace_run; the machine is one node. Predictions are not corrected; no points are recorded. */
int sim_rlscheduler_run(const struct sim_setup *s, struct sim_outcomes *ret, struct berth_err *err);
