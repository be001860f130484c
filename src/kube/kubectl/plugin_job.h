/* plugin_job.h - `kubectl berth why` for a Job of berth.dev: its state, what it waits for, where its tasks run. */
#pragma once

#include "kube/kubectl/plugin_lookup.h"

/* Explains the job; `job` is the object of the API server. */
int plugin_job_why(struct plugin_query *a, const json_t *job, struct str *to, struct berth_err *err);

/* Explains the job from its object alone. */
void plugin_job_from_object(struct arena *arena, const json_t *job, int64_t now_ns, struct str *to);
