/* optask.h - functions that the optask verbs share. */
#pragma once

#include "cli/lib/api.h"

/* Waits until the OpTask ends and prints state changes of each node on standard error. Returns EXIT_FAILED, with a
 * message, if it failed on some node. `undo`: the OpTask is being undone; then only a failed undo counts. */
int optask_wait(struct api *a, const char *key, bool undo);
