/* progress.h - a bar on standard error for what takes longer than a moment.
 *
 * Nothing is drawn before a quarter of a second has passed, nor where standard error is no terminal. Has the shape of
 * the callbacks of berth_plan_make and cluster_file_read.
 */
#pragma once

#include "cli/lib/cli.h"

struct progress {
    const struct cli *cli;
    const char *what; /* "Planning" */
    int64_t start_ns, drawn_ns;
    bool drawn;
};

void progress_start(struct progress *p, const struct cli *cli, const char *what);
/* ctx is the struct progress. */
void progress_tell(void *ctx, size_t done, size_t total);
/* Removes the bar. */
void progress_end(struct progress *p);
