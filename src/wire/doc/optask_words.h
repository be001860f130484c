/* optask_words.h - enums of OpTasks: languages, states, faults. Separate from the documents, because agents need only
 * these.
 */
#pragma once

#define OPTASK_UNDO_SELF "self" /* value of `undo`: the script itself, run with BERTH_UNDO=1 */

enum optask_language { OPTASK_SHELL, OPTASK_PYTHON };
const char *optask_language_name(enum optask_language language);

/* State of an OpTask on one node. */
enum opstep_state {
    OPSTEP_PENDING,
    OPSTEP_DRAINING, /* the node is being drained for it */
    OPSTEP_RUNNING,
    OPSTEP_UNDOING,
    OPSTEP_DONE,
    OPSTEP_FAILED,
    OPSTEP_UNDONE,
};

/* Reason of a failure. */
enum opstep_fault {
    OPFAULT_NONE,
    OPFAULT_TIMEOUT,
    OPFAULT_SCRIPT,  /* the script ended with an exit code that means failure */
    OPFAULT_LOST,    /* the machine or the agent was lost during the run */
    OPFAULT_REFUSED, /* by the agent: the script differs from the pinned hash, or the key was used for another script */
    OPFAULT_NO_SPACE,
    OPFAULT_NETWORK,
    OPFAULT_PACKAGE_MANAGER,
};

const char *opstep_state_name(enum opstep_state state);
const char *opstep_fault_name(enum opstep_fault fault); /* "" for OPFAULT_NONE */
