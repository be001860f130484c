/* sim_sides.h - what `berth sim run` and `berth sim replay` share: sides held beside each other, in the form asked for. */
#pragma once

#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "sim/report/report.h"

enum sides_form { SIDES_TABLE, SIDES_JSON, SIDES_CSV, SIDES_JOBS, SIDES_HTML };
extern const char *const sides_forms[];

/* Several policies are one piece of work. */
struct sides_progress {
    struct progress progress;
    size_t before, sides; /* sides that are done; in all */
};
/* ctx is the struct sides_progress. */
void sides_tell(void *ctx, size_t done, size_t total);

/* Plays what is not done yet, with a bar. */
int sides_run(struct cli *cli, struct sim_side *sides, size_t len, struct sim_playing *p, struct berth_err *err);
void sides_print(struct cli *cli, const struct sim_report *r, unsigned form);
