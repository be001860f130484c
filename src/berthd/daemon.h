/* daemon.h - the daemon as a whole: store, control, server and clock, wired to one loop.
 *
 * Everything that decides is in control/, everything that moves bytes in net/ and store/; here they meet.
 */
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "berthd/options.h"

/* Serves until it is told to stop. Writes 'ready URL' to `ready` when it does. 0: stopped in good order; negative errno:
 * it could not start or go on, or a second signal did not let it end in good order. */
int daemon_run(const struct daemon_options *options, FILE *ready, const struct log *log, struct berth_err *err);
