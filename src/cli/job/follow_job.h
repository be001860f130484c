/* follow_job.h - follows a job until it ends: a status line on a terminal, the output of its tasks, its exit status.
 *
 * The first Ctrl-C cancels the job after a short delay. A second Ctrl-C within that delay leaves the job running and
 * exits. A Ctrl-C after the delay also exits, whatever is still awaited.
 */
#pragma once

#include "cli/show/object.h"

enum follow_mode {
    FOLLOW_STATE = 0,
    FOLLOW_LOGS = 1,   /* print the output of its tasks */
    FOLLOW_CANCEL = 2, /* Ctrl-C cancels the job; otherwise it only ends this program */
};

/* Follows the job `id`. Returns the job's exit status, or an enum exit_code after printing an error. */
int job_follow(struct api *a, const json_t *id, unsigned what);
/* Waits until a task of the job runs; *ret_instance is its instance number. Returns EXIT_FAILED, with a message, if the
 * job ended before. */
int job_wait_running(struct api *a, const json_t *id, json_int_t *ret_instance);
