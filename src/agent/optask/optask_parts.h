/* optask_parts.h - the inside of optask.h; for optask.c, optask_report.c and optask_run.c. */
#pragma once

#include "agent/optask/optask.h"
#include "wire/doc/optask_words.h"

/* Codes by which a script says more than that it failed; share/optasks/lib.sh knows them, too. */
enum { EXIT_AGAIN = 75, EXIT_NO_SPACE = 80, EXIT_NETWORK = 81, EXIT_PACKAGE_MANAGER = 82 };

/* An OpTask that this machine knows of. */
struct op {
    struct optasks *all;
    char *key;
    /* As in its file: content, attempt, phase, state, fault, error, exit, run, runs, boot, said, item; began: the script
     * of this attempt has; tries: runs of this phase in this attempt; begun: all runs. */
    json_t *record;
    json_t *wish;             /* what was wanted while a run was under way; NULL: nothing */
    bool busy;                /* a run of it is under way, or about to be */
    struct launched launched; /* pidfd -1: none */
    struct loop_source *source, *timer, *say_timer, *decline_timer;
    bool saying, declining, decline_heard;
    bool unsettled;             /* it is over, and that is not on disk yet */
    uint64_t changes, declines; /* of the record; of what is declined */
    json_t *declined;           /* what the daemon hears of an attempt that is not made; NULL: there is none */
    /* What the thread brought back. */
    int rc;
    struct berth_err err;
    int exit; /* -1: nobody knows */
    char text[LAUNCH_TEXT_MAX];
    enum opstep_fault fault;
    bool began; /* the script has, or may have */
};

struct optasks {
    struct agent *agent;
    struct place *place;
    struct worker *worker; /* NULL: not needed yet */
    int keys;              /* the folder of their files */
    uint64_t epoch, last_run;
    VEC(struct op *) at;
};

/* optask.c */

struct op *op_find(const struct optasks *o, const char *key);
/* Is a run of it, by its record? */
bool op_under_way(const struct op *op);
/* Writes the record to disk. */
int op_save(struct op *op);

/* optask_report.c. Both go on until the daemon has heard it. */

/* Tells how it stands, unless that has been said or is not on disk. */
void op_say(struct op *op);
/* Tells that what is asked for fails before it begins; the record does not know of it. */
void op_decline(struct op *op, const json_t *item, enum opstep_fault fault, const char *why);
/* Has this attempt been declined, for another reason than its content? The daemon, which may have counted it as failed, is
 * told once more: it is not made after all. */
bool op_declined(struct op *op, uint64_t attempt);

/* optask_run.c. Each of the first two ends by run_over, now or later. */

/* Runs the script of the phase that the record says, as the run that it says. */
void run_begin(struct op *op);
/* Of one that an earlier agent began. */
void run_find_again(struct op *op);
/* The same phase once more, under another number. (optask.c) */
void run_again(struct op *op);
/* How it ended is in op->exit, op->text and op->fault; nothing of it runs any more. (optask.c) */
void run_over(struct op *op);
/* Ends groups of runs that no record speaks for. */
void runs_sweep(struct optasks *o);
/* May it go on after the machine or its shim went down? */
bool run_resumable(const struct op *op);
