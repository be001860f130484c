/* daemon.h - the daemon as a whole: store, control, server and clock, connected to one event loop.
 *
 * All decisions are in control/, all input and output in net/ and store/; this module connects them.
 */
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "berthd/options.h"

/* Serves until it is told to stop. Writes 'ready URL' to `ready` when it serves. Returns 0 after an orderly stop;
 * negative errno: it could not start or go on, or a second signal cut the stop short. */
int daemon_run(const struct daemon_options *options, FILE *ready, const struct log *log, struct berth_err *err);
