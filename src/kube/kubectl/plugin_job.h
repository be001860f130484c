/* plugin_job.h - `kubectl berth why` of a Job of berth.dev: how it stands, what it waits for, where its tasks are. */
#pragma once

#include "kube/kubectl/plugin_lookup.h"

/* The object as the API server has it. */
int plugin_job_why(struct plugin_ask *a, const json_t *job, struct str *to, struct berth_err *err);

/* What the object alone says. */
void plugin_job_told(struct arena *arena, const json_t *job, int64_t now_ns, struct str *to);
