/* work_outcome.h - how a workload or an instance ended. Apart from the documents: the state of the daemon needs no
 * more. */
#pragma once

enum work_outcome {
    OUTCOME_NONE, /* has not ended, or is not known: documents of earlier versions do not say it */
    OUTCOME_SUCCEEDED,
    OUTCOME_FAILED,
    OUTCOME_CANCELLED,
    OUTCOME_TIMED_OUT,     /* reached its time limit */
    OUTCOME_OUT_OF_MEMORY, /* a process was killed for using more memory than the limit */
    OUTCOME_NODE_LOST,     /* its node was lost, and it is not to run again */
    OUTCOME_PREEMPTED,     /* stopped for others, and it is not to run again */
};

/* "timed-out"; "" of OUTCOME_NONE. (work_doc.c) */
const char *work_outcome_name(enum work_outcome outcome);
