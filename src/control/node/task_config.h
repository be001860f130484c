/* task_config.h - the "task" member of a node's configuration: a task's rank, size and peers in its job.
 *
 * Tasks that belong together are one gang: a job with `gang`, or the roles of a set, which are jobs with consecutive
 * IDs and the same gang. Ranks are ordered by job, then by ordinal. The locations of peers are written until the task
 * runs: its environment is made then, and later changes of its peers do not affect it.
 */
#pragma once

#include "control/state/state.h"
#include "control/watch/derived_out.h"
#include "wire/doc/api.h"

/* Ports on which rank 0 of a gang may listen: above the ports of apps (PORT_BASE to PORT_END) and of outgoing
 * connections (up to 60999 by default). Only gangs whose numbers differ by a multiple of TASK_PORTS conflict. */
enum { TASK_PORT_BASE = 61000, TASK_PORTS = 4000 };

/* Writes the member "task"; writes nothing for a workload that is not a job, or a job with one task. `work` is the
 * document that the instance was placed from. */
void task_config_write(struct json_out *o, const struct state *s, const struct object *instance,
                       const struct work_doc *work);
/* Returns a hash; as long as it, the instance and its job are unchanged, task_config_write writes the same. */
uint64_t task_config_mark(const struct state *s, const struct object *instance);
