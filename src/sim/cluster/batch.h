/* batch.h - the batch side of people's lives: jobs of every sort, queues, quotas, policies, windows. */
#pragma once

#include "sim/cluster/people.h"

/* A job as people submit it. A new reference. */
json_t *batch_job(struct world *w);
/* A merge patch of one. */
json_t *batch_patch(struct world *w);
/* One thing that an administrator does about queues, quotas and the order of jobs. */
void batch_act(struct world *w);
/* When all is calm, nothing may be left that keeps jobs waiting for ever; true: something was, and is asked to go. */
bool batch_calm(struct world *w);
