/* task_env.h - environment variables that describe the job to its task: docs/jobs.md, "Environment of a task". */
#pragma once

#include "agent/agent_parts.h"

typedef void env_adder(void *ctx, const char *name, const char *value);

/* For a task of a job: adds BERTH_JOB_ID, BERTH_TASK and, from the member "task" of its configuration, RANK, WORLD_SIZE
 * and similar variables. If its own environment has SLURM_JOB_NAME, adds Slurm's names of these, too. */
void task_env(const struct agent_instance *r, struct arena *arena, env_adder *add, void *ctx);

/* Writes the hostfile of a gang into the instance directory and fills its mount. ret->target NULL: not a gang. */
int task_hostfile(struct agent_instance *r, struct arena *arena, struct launch_mount *ret, struct berth_err *err);
