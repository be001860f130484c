/* optask.h - OpTasks on this node: administrators' scripts, each executed once per key, and undone if they fail.
 *
 * The state of a key is one small file, STATE/optasks/keys/KEY.json. It is written to disk before the action that it
 * describes, and kept: a key that is done stays done, even if it is requested again. A script runs as root under its
 * own shim, like an instance, so it outlives the agent and is found again; the shim ends it at its timeout.
 * STATE/optasks is laid out like the agent's own state directory (machine/launch/instance_dir.h), with a directory and
 * a log for each run.
 *
 * optask.c: requested and recorded state; optask_report.c: reports to the daemon; optask_run.c: one run of a script.
 */
#pragma once

#include "agent/agent_parts.h"

struct agent_optasks;
/* Reads the recorded state, finds running scripts again and continues unfinished work. Needs the agent's link. */
int optasks_new(struct agent *a, uint64_t epoch, struct agent_optasks **ret, struct berth_err *err);
void optasks_free(struct agent_optasks *o); /* running scripts continue; NULL is fine */
/* Handles a new node configuration. */
void optasks_configure(struct agent_optasks *o, const json_t *config);

/* Finds the log of the last run of a script, or of its undo script. -ENOENT: it has not run on this node. */
int optask_log(const struct agent_optasks *o, const char *key, bool undo, const struct state_dir **ret_place,
               uint64_t *ret_run, struct berth_err *err);
/* Tells whether this run is in progress. */
bool is_optask_alive(const struct agent_optasks *o, const char *key, uint64_t run);
