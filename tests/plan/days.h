/* days.h - random days of batch work, planned from the first submission until every job has ended.
 *
 * A day has a cluster of 8 to 64 nodes, groups and users with quotas, queues, a policy, and at least 200 jobs (single
 * jobs, arrays, gangs, elastic gangs, of several priorities) that together request 0.9 times the cluster's capacity or
 * more. The tests use the public header only: they tell the day to a cluster, plan after each event (on some days at
 * most once in a few minutes, so that many events meet in one plan), and apply each plan. With their own accounts they
 * check:
 *
 *   quota         usage never exceeds a limit, neither now nor after all stops are done
 *   gangs         of a gang either no pods or at least its minimum are placed
 *   preemption    victims have a lower rank and have run for their minimum time; the preemptor gets its place in the
 *                 same plan; no victim could have stayed; no two jobs preempt each other in turn
 *   fixpoint      the plan after an applied plan at the same moment is empty
 *   starvation    every job ends; without preemption no job waits for longer than a computed bound
 *
 * A failing seed is printed; the check ends after BERTH_FAILURES failures (5). BERTH_SEED=n runs that seed alone and
 * prints its events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bound.h"

struct days_sum {
    uint64_t days, jobs, plans, placed, preempted, expired, reserved;
    double load; /* the sum over all days */
};

/* Checks days first to first + len - 1, or the days that BERTH_SEED, or BERTH_FIRST and BERTH_DAYS, select. Returns the
 * number of failed days. */
size_t days_check(uint64_t first, size_t len, struct days_sum *sum);
/* Like days_check, for as many days as the bound allows. */
size_t days_check_within(uint64_t first, struct bound bound, struct days_sum *sum);
