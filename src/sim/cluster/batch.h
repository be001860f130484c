/* batch.h - random batch requests of simulated users: jobs of all kinds, queues, quotas, policies, windows. */
#pragma once

#include "sim/cluster/users.h"

/* Returns a random job document, as a new reference. */
json_t *batch_job(struct sim_world *w);
/* Returns a merge patch for a job. */
json_t *batch_patch(struct sim_world *w);
/* Does one random action of an administrator on queues, quotas and the order of jobs. */
void batch_act(struct sim_world *w);
/* Deletes everything that would keep jobs waiting for ever in the calm phase. Returns whether there was something to
 * delete. */
bool batch_calm(struct sim_world *w);
