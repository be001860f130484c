/* top_live.h - `berth top` without more: the cluster, the queue and one's own jobs, live. */
#pragma once

#include "cli/lib/cli.h"

/* On a terminal until 'q'; elsewhere one picture. Returns an enum exit_code. */
int top_live(struct cli *cli);
