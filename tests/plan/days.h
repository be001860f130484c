/* days.h - random days of batch work, planned from the first submission until everything is done.
 *
 * A day has a cluster of 8 to 64 nodes, groups and users with quotas, queues, a policy, and at least 200 jobs (single ones,
 * arrays, gangs, elastic ones, of several priorities) that together ask for 0.9 and more of what there is. Everything goes by
 * the public header: the day is told to a cluster, planned whenever something happens (on some days not more often than every
 * few minutes, so that much happens at once), and each plan is applied. Checked, with books of its own:
 *
 *   quota         nothing is held beyond a limit, nor will be once all stops are done
 *   gangs         none or at least the minimum of a gang is placed
 *   preemption    only of lower rank, after its minimum time, with the preemptor's place in the same plan; nobody is stopped who
 *                 could have stayed; nothing alternates
 *   fixpoint      a plan that was applied leaves nothing to do at the same moment
 *   starvation    everything ends; without preemption nothing waits for longer than the stated bound
 *
 * A failing seed is printed; after BERTH_FAILURES of them (5) it ends. BERTH_SEED=n runs that one alone and tells what happens.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bound.h"

struct days_sum {
    uint64_t days, jobs, plans, placed, preempted, expired, reserved;
    double load; /* sum over days */
};

/* Checks days first to first + len - 1, or what BERTH_SEED, or BERTH_FIRST and BERTH_DAYS, say; returns how many failed. */
size_t days_check(uint64_t first, size_t len, struct days_sum *sum);
/* The same for as many days as the bound lets run. */
size_t days_check_within(uint64_t first, struct bound bound, struct days_sum *sum);
