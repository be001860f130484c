/* optask_words.h - the words of OpTasks: languages, states, faults. Apart from their documents: agents need no more. */
#pragma once

#define OPTASK_UNDO_SELF "self" /* as `undo`: the script itself, which sees BERTH_UNDO=1 */

enum optask_language { OPTASK_SHELL, OPTASK_PYTHON };
const char *optask_language_name(enum optask_language language);

/* How an OpTask stands on one node. */
enum opstep_state {
    OPSTEP_PENDING,
    OPSTEP_DRAINING, /* the node is being emptied for it */
    OPSTEP_RUNNING,
    OPSTEP_UNDOING,
    OPSTEP_DONE,
    OPSTEP_FAILED,
    OPSTEP_UNDONE,
};

/* Why one failed. */
enum opstep_fault {
    OPFAULT_NONE,
    OPFAULT_TIMEOUT,
    OPFAULT_SCRIPT,  /* it ended with a code that says so */
    OPFAULT_LOST,    /* the machine or the agent went away meanwhile */
    OPFAULT_REFUSED, /* by the agent: what came is not what was pinned, or its key was used for something else */
    OPFAULT_NO_SPACE,
    OPFAULT_NETWORK,
    OPFAULT_PACKAGE_MANAGER,
};

const char *opstep_state_name(enum opstep_state state);
const char *opstep_fault_name(enum opstep_fault fault); /* "" of none */
