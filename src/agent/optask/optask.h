/* optask.h - OpTasks on this machine: scripts of administrators, each done once under its key, and undone where it fails.
 *
 * What is known of a key is one small file, STATE/optasks/keys/KEY.json, written to disk before anything that it speaks of
 * happens, and kept: a key that is done here is done, whoever asks again. A script runs as root under a shim of its own, as
 * instances do, so it outlives the agent and is found again; the shim ends it when its time is over. STATE/optasks is a
 * folder like the agent's own (machine/launch/instance_dir.h), with a folder and a log for each run.
 *
 * optask.c: what is wanted and what is known; optask_report.c: what the daemon hears of it; optask_run.c: one run of a script.
 */
#pragma once

#include "agent/agent_parts.h"

struct optasks;
/* Reads what is known, finds again what runs, and goes on with what was begun. The link is there. */
int optasks_new(struct agent *a, uint64_t epoch, struct optasks **ret, struct berth_err *err);
void optasks_free(struct optasks *o); /* leaves what runs; NULL is fine */
/* A node_config has come. */
void optasks_configure(struct optasks *o, const json_t *config);

/* Where the log of the last run of a script, or of its undo, is. -ENOENT: it has not run here. */
int optask_log(const struct optasks *o, const char *key, bool undo, const struct place **ret_place, uint64_t *ret_run,
               struct berth_err *err);
/* Is this run under way? */
bool optask_lives(const struct optasks *o, const char *key, uint64_t run);
