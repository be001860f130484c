/* sim_sides.h - shared by `berth sim run` and `berth sim replay`: runs several policies and prints their results side
 * by side.
 */
#pragma once

#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "sim/report/report.h"

enum sides_form { SIDES_TABLE, SIDES_JSON, SIDES_CSV, SIDES_JOBS, SIDES_HTML };
extern const char *const sides_forms[];

/* One progress bar for several policies. */
struct sides_progress {
    struct progress progress;
    size_t before, sides; /* finished policies; all policies */
};
/* Updates the bar. ctx is the struct sides_progress. */
void sides_progress_update(void *ctx, size_t done, size_t total);

/* Simulates the policies that have no results yet, with a progress bar. */
int sides_run(struct cli *cli, struct sim_side *sides, size_t len, struct sim_side_options *p, struct berth_err *err);
void sides_print(struct cli *cli, const struct sim_report *r, unsigned form);
