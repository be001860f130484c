/* why.h - what becomes of one pod or one workload, and why. */
#pragma once

#include "cli/sim/plan_view.h"

/* `name` is WORKLOAD or WORKLOAD/ORDINAL; `profile` is the one planned with. The cluster is as it was planned. Returns
 * an enum exit_code; a name that is not there is EXIT_FAILED, with near matches on standard error. */
int why_print(const struct plan_view *view, const struct berth_cluster *cluster, const struct berth_profile *profile,
              const char *name);
