/* why.h - prints the plan's actions for one pod or workload, with the reasons. */
#pragma once

#include "cli/sim/plan_view.h"

/* `name` is WORKLOAD or WORKLOAD/ORDINAL; `profile` is the profile of the plan. The cluster is unchanged since
 * planning. Returns an enum exit_code; for an unknown name EXIT_FAILED, with near matches on standard error. */
int why_print(const struct plan_view *view, const struct berth_cluster *cluster, const struct berth_profile *profile,
              const char *name);
