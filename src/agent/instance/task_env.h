/* task_env.h - what a task of a job finds in its environment of the job around it: docs/jobs.md, "What a task is told". */
#pragma once

#include "agent/agent_parts.h"

typedef void env_adder(void *ctx, const char *name, const char *value);

/* Of a job: BERTH_JOB_ID, BERTH_TASK, and by the member "task" of its configuration RANK, WORLD_SIZE and their kin. Where its
 * own environment has SLURM_JOB_NAME, also what Slurm calls these. */
void task_env(const struct run *r, struct arena *arena, env_adder *add, void *ctx);

/* Writes the hostfile of a gang into the instance's folder, and says how to mount it. ret->target NULL: there is none. */
int task_hostfile(struct run *r, struct arena *arena, struct launch_mount *ret, struct berth_err *err);
