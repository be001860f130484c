/* optask.h - what the verbs of OpTasks share. */
#pragma once

#include "cli/lib/api.h"

/* Until it is over: tells on standard error how it stands on each node. EXIT_FAILED: on some it failed, and that is told.
 * `undo`: it is being taken back, so it has failed where that has. */
int optask_wait(struct api *a, const char *key, bool undo);
