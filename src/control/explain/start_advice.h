/* start_advice.h - advice for an earlier start of a job: a few variations of the job, each verified by a plan.
 *
 * The variations are half the GPUs, pods or cores, a shorter time, another queue, any domain, and the changes that the
 * reasons of the job's plan suggest (berth_plan_advise). At most FORECAST_CASES_MAX - 1 variations are tried; those
 * that were planned in time are reported.
 */
#pragma once

#include "control/explain/forecast.h"

/* Plans the unchanged job (case 0) and its variations. Returns as forecast_request. `of`: the documents of a new job,
 * or of several new jobs, which have no variations; empty: `job` is an existing job. */
int start_advice_plan(struct request *c, const struct forecast_draft *of, size_t of_len, const struct object *job,
                      bool vary, const struct forecast_run **ret);

/* Returns the start in case i, comparable with case 0: at once, later, or 0 if unknown. */
int64_t start_advice_start_ns(const struct forecast_run *run, size_t i, const char *workload);

/* Returns [{"change", "start", "sooner_s"}] of the variations that start earlier, the earliest first. A new
 * reference. */
json_t *start_advice_json(const struct forecast_run *run, const char *workload);

/* POST /v1/jobs?dry_run&forecast: adds the forecast of the submitted jobs to the answer. Returns 0 also if the answer
 * is deferred. */
int start_advice_draft(struct request *c);
