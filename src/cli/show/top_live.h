/* top_live.h - `berth top` without arguments: a live view of the cluster, the queue and the user's own jobs. */
#pragma once

#include "cli/lib/cli.h"

/* Runs on a terminal until 'q'; otherwise prints the view once. Returns an enum exit_code. */
int top_live(struct cli *cli);
