/* agent.h - the agent as a whole: the node's logic, this machine and the daemon, wired to one loop. */
#pragma once

#include <stdio.h>

#include "agent/options.h"
#include "base/log.h"

/* Runs what the daemon wants here until it is told to end; what runs then goes on. Writes 'ready NODE' to `ready` when the
 * daemon has heard of it. 0: ended in good order; -EALREADY: another agent speaks for this node, and nothing runs here any
 * more; another negative errno: it could not start. */
int agent_run(const struct agent_options *options, FILE *ready, const struct log *log, struct berth_err *err);
