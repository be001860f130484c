/* optask_parts.h - internals of optask.h; for optask.c, optask_report.c and optask_run.c. */
#pragma once

#include "agent/optask/optask.h"
#include "wire/doc/optask_words.h"

/* Exit codes with a meaning beyond failure; share/optasks/lib.sh defines them, too. */
enum { EXIT_AGAIN = 75, EXIT_NO_SPACE = 80, EXIT_NETWORK = 81, EXIT_PACKAGE_MANAGER = 82 };

/* An OpTask key known on this node. */
struct op {
    struct agent_optasks *all;
    char *key;
    /* Content of its file: content, attempt, phase, state, fault, error, exit, run, runs, boot, said, item; began: the
     * script of this attempt has started; tries: runs of this phase in this attempt; begun: all runs. */
    json_t *record;
    json_t *requested;             /* request received during a run; NULL: none */
    bool busy;                     /* a run is in progress or about to start */
    struct launch_result launched; /* pidfd -1: none */
    struct loop_source *source, *timer, *say_timer, *decline_timer;
    bool saying, declining, decline_heard;
    bool unsettled;             /* it has ended, but the outcome is not on disk yet */
    uint64_t changes, declines; /* versions of `record` and of `declined` */
    json_t *declined;           /* report of an attempt that was not started; NULL: none */
    /* Results of the worker thread. */
    int rc;
    struct berth_err err;
    int exit; /* -1: unknown */
    char text[LAUNCH_TEXT_MAX];
    enum opstep_fault fault;
    bool began; /* the script has started, or may have */
};

struct agent_optasks {
    struct agent *agent;
    struct state_dir *state_dir;
    struct worker *worker; /* NULL: not started yet */
    int keys;              /* descriptor of the directory of key files */
    uint64_t epoch, last_run;
    VEC(struct op *) at;
};

/* optask.c */

struct op *op_find(const struct agent_optasks *o, const char *key);
/* Tells whether the record says that a run is in progress. */
bool op_in_progress(const struct op *op);
/* Writes the record to disk. */
int op_save(struct op *op);

/* optask_report.c. Both repeat the report until the daemon has received it. */

/* Reports the state, unless it was reported already or is not on disk yet. */
void op_report(struct op *op);
/* Reports that a requested attempt failed before it started; the record is unchanged. */
void op_decline(struct op *op, const json_t *item, enum opstep_fault fault, const char *why);
/* Tells whether this attempt was declined for a reason other than its content. If so, repeats the report to the daemon,
 * because the attempt will not be started. */
bool op_declined(struct op *op, uint64_t attempt);

/* optask_run.c. optask_run_begin and optask_run_adopt end with a call of optask_run_ended, now or later. */

/* Runs the script of the recorded phase under the recorded run number. */
void optask_run_begin(struct op *op);
/* Finds a run that an earlier agent started. */
void optask_run_adopt(struct op *op);
/* Runs the same phase again under a new run number. (optask.c) */
void optask_run_again(struct op *op);
/* Called when all processes of a run have ended; the outcome is in op->exit, op->text and op->fault. (optask.c) */
void optask_run_ended(struct op *op);
/* Kills and removes cgroups of runs without a record. */
void optask_runs_sweep(struct agent_optasks *o);
/* Tells whether the script declared itself resumable after a crash of the machine or of its shim. */
bool optask_run_resumable(const struct op *op);
