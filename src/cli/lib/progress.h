/* progress.h - a progress bar on standard error for operations that take longer than a moment.
 *
 * Nothing is drawn during the first quarter of a second, or if standard error is not a terminal. The functions match
 * the callbacks of berth_plan_make and cluster_file_read.
 */
#pragma once

#include "cli/lib/cli.h"

struct progress {
    const struct cli *cli;
    const char *what; /* the operation: "Planning" */
    int64_t start_ns, drawn_ns;
    bool drawn;
};

void progress_start(struct progress *p, const struct cli *cli, const char *what);
/* Draws the bar, at most once each 50 ms. ctx is the struct progress. */
void progress_update(void *ctx, size_t done, size_t total);
/* Removes the bar. */
void progress_end(struct progress *p);
