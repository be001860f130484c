/* work_outcome.h - how a workload or an instance ended. Separate from the documents, because the daemon's state needs
 * only this.
 */
#pragma once

enum work_outcome {
    OUTCOME_NONE, /* not ended, or unknown: older documents have no outcome */
    OUTCOME_SUCCEEDED,
    OUTCOME_FAILED,
    OUTCOME_CANCELLED,
    OUTCOME_TIMED_OUT,     /* reached its time limit */
    OUTCOME_OUT_OF_MEMORY, /* a process was killed for exceeding the memory limit */
    OUTCOME_NODE_LOST,     /* its node was lost, and the restart policy forbids another run */
    OUTCOME_PREEMPTED,     /* preempted, and the policy forbids another run */
};

/* Returns "timed-out" and so on; "" for OUTCOME_NONE. (work_doc.c) */
const char *work_outcome_name(enum work_outcome outcome);
