/* task_config.h - the part of a job's task in its job, as its node is told: rank, size, who else there is.
 *
 * What belongs together is one gang: a job with `gang`, or the roles of a set, which are jobs with ids in a row and the same
 * gang. Ranks go by job, then by ordinal. Who is where is told until the task runs: its environment is made then, and later
 * comings and goings among its mates are not its business.
 */
#pragma once

#include "control/state/state.h"
#include "control/watch/derived_out.h"
#include "wire/doc/api.h"

/* Rank 0 of a gang may listen here: above the ports of apps (PORT_BASE to PORT_END) and of outgoing connections (to 60999 by
 * default), so that only another gang's is in the way, one whose number differs by a multiple of TASK_PORTS. */
enum { TASK_PORT_BASE = 61000, TASK_PORTS = 4000 };

/* Writes the member "task"; nothing for what is no job, or one of a single task. `work` is what it was placed from. */
void task_write(struct out *o, const struct state *s, const struct object *instance, const struct work_doc *work);
/* As long as this is the same, and the instance and its job, so is what is written. */
uint64_t task_mark(const struct state *s, const struct object *instance);
