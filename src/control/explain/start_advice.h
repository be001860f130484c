/* start_advice.h - what to change so that a job starts sooner: a few variations of it, each proved by a plan.
 *
 * Half the GPUs, pods or cores, a shorter time, another queue, any domain; and what the reasons of its plan suggest
 * (berth_plan_advise). No more than FORECAST_CASES_MAX - 1 variations are tried, and those for which time was left
 * are told.
 */
#pragma once

#include "control/explain/forecast.h"

/* Plans the job as it is (case 0) and its variations. As forecast_ask. `of` are the documents as they are: one job, or of
 * several together, of which no variations are tried; none: the job is there already, and `job` says which. */
int sooner_ask(struct call *c, const struct forecast_draft *of, size_t of_len, const struct object *job, bool vary,
               const struct forecast_run **ret);

/* When case i lets it start, to be held beside case 0: at once, later, or 0 if that cannot be foreseen. */
int64_t sooner_start_ns(const struct forecast_run *run, size_t i, const char *workload);

/* [{"change", "start", "sooner_s"}]: those that start sooner, the soonest first. A new reference. */
json_t *sooner_json(const struct forecast_run *run, const char *workload);

/* POST /v1/jobs?dry_run&forecast: adds to the answer where what the change would submit would stand. 0 also when the answer
 * comes later. */
int sooner_draft(struct call *c);
