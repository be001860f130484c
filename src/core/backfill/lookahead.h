/* lookahead.h - when waiting workloads start, by making the plans that will be made.
 *
 * A copy of the cluster is planned by the policy in force, the plan is applied, and time goes on to the next moment at
 * which something is expected: a pod ends, a stop is done, a window opens, or the plan asks to be made again. So a
 * start estimate rests on the rules of the scheduler itself: quotas, headroom, preemption, gangs, ports, spread. It
 * assumes that nothing else is submitted and that pods run for as long as expected (expected_end in reservation.h).
 *
 * An estimate is a guess if a run time that nobody has stated decides it: a prediction, the default of the policy, or
 * an estimate that has been outrun. Runs on any thread; the copy belongs to the caller (cluster_copy).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "berth.h"

struct start_estimate {
    const char *workload; /* texts of the cluster */
    const char *node;     /* the first one */
    uint32_t nodes;       /* on which it starts */
    int64_t start_ns;     /* of the first pod that has no place yet; the moment of the lookahead: at once */
    int64_t end_ns;       /* when that pod is expected to end; BERTH_NEVER_NS: never */
    bool guess;
};

struct lookahead {
    VEC(struct start_estimate) at;
    struct map by_workload; /* ids, to places in `at` */
    size_t plans;           /* that were made */
    int64_t until_ns;       /* the last moment that was looked at: what has no start begins later, or never */
    bool complete; /* it went on until everything (or the subject) had started, or nothing more was to happen */
};

/* A workload that is suspended until another one has ended (or has started), and all else it waits for has come about. */
struct lookahead_wait {
    const char *workload, *other;
    bool started;
};

struct lookahead_bounds {
    size_t plans_max;
    int64_t horizon_ns;  /* from the moment of the lookahead */
    int64_t stop_ns;     /* that a pod is expected to take to stop */
    const char *subject; /* the only workload whose start is wanted; NULL: all that wait */
    const struct lookahead_wait *waits;
    size_t waits_len;
    /* Asked before each plan: is there time for another? NULL: always. */
    bool (*goes_on)(void *ctx);
    void *ctx;
};

/* Runs the copy ahead from now_ns on. The policy's reservations and rankings are used as they are; rebalancing and
 * memory pressure, which follow real use, are left out. An error of a plan ends it; what was found by then stays. */
void lookahead_run(struct berth_cluster *copy, const struct berth_policy *policy, int64_t now_ns, uint64_t seed,
                   const struct lookahead_bounds *bounds, struct lookahead *ret);
void lookahead_done(struct lookahead *l);

/* NULL: it does not wait, or no start was found. */
const struct start_estimate *lookahead_find(const struct lookahead *l, const char *workload);
