/* agent.h - the agent process: connects the node logic (src/node), this machine (src/machine) and the daemon on one
 * event loop.
 */
#pragma once

#include <stdio.h>

#include "agent/options.h"
#include "base/log.h"

/* Runs the instances that the daemon assigns to this node until the agent is told to exit; running instances survive
 * the agent. Writes 'ready NODE' to `ready` after the daemon has accepted the first report. Returns 0 after a clean
 * exit, -EALREADY if another agent has taken over this node (all instances here are stopped then), or another negative
 * errno if the agent could not start. */
int agent_run(const struct agent_options *options, FILE *ready, const struct log *log, struct berth_err *err);
