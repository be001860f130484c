/* follow_job.h - stays with a job until it is over: a line with its state on a terminal, what it writes, its exit status.
 *
 * Ctrl-C cancels the job a moment later; a second one within that moment leaves it running instead. One after that leaves, too,
 * whatever is still waited for.
 */
#pragma once

#include "cli/show/object.h"

enum follow_what {
    FOLLOW_STATE = 0,
    FOLLOW_LOGS = 1,   /* print what its tasks write */
    FOLLOW_CANCEL = 2, /* Ctrl-C is about the job; else it ends only us */
};

/* `id` is the job's. Returns its exit status, or an enum exit_code, told. */
int job_follow(struct api *a, const json_t *id, unsigned what);
/* Until a task of it runs; *ret_instance is its number. EXIT_FAILED, told: it was over before. */
int job_await(struct api *a, const json_t *id, json_int_t *ret_instance);
