/* status.h - how a workload is doing, and why it is not as wished, in a form for people and programs.
 *
 * Made when asked for, from the instances and the last plan; nothing of it is stored.
 */
#pragma once

#include "control/explain/forecast.h"

/* The `status` of an app, job or vm as docs/api.md has it. A new reference. */
json_t *work_status(const struct call *c, const struct object *work);
/* One word of it: "held", "pending", "running", ... */
const char *work_state_word(const struct state *s, const struct object *work, int64_t now_ns);

/* Adds sentences: why it is not as wished, or that it is. `run` (NULL: none) may have advice for it. */
void why_work(struct call *c, const struct object *work, const struct forecast_run *run, json_t *lines);

/* GET /v1/why/{kind}/{id} */
int why_run(struct call *c);
