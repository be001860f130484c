/* status.h - the status of a workload, and the reasons for an unhealthy status, for users and programs.
 *
 * Computed on request from the instances and the last plan; nothing of it is stored.
 */
#pragma once

#include "control/explain/forecast.h"

/* Returns the `status` of an app, job or vm as docs/api.md defines it. A new reference. */
json_t *work_status(const struct request *c, const struct object *work);
/* Returns the state in one word: "held", "pending", "running", ... */
const char *work_state_word(const struct state *s, const struct object *work, int64_t now_ns);

/* Adds sentences that explain an unhealthy status, or say that the workload is healthy. `run` (NULL: none) may have
 * advice. */
void why_work(struct request *c, const struct object *work, const struct forecast_run *run, json_t *lines);

/* GET /v1/why/{kind}/{id} */
int why_run(struct request *c);
