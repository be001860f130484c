/* lookahead.h - start estimates of waiting workloads, computed by simulating the next plans.
 *
 * A copy of the cluster is planned by the current policy, the plan is applied, and time advances to the next expected
 * event: a pod ends, a stop is done, a window opens, or the plan's recheck time comes. So a start estimate follows the
 * rules of the scheduler itself: quotas, headroom, preemption, gangs, ports, spread. It assumes that nothing else is
 * submitted and that pods run for as long as expected (expected_end in reservation.h).
 *
 * An estimate is a guess if it depends on a run time that no user has stated: a prediction, the default of the policy,
 * or an estimate that the pod has outrun. Runs on any thread; the copy belongs to the caller (cluster_copy).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "berth.h"

struct start_estimate {
    const char *workload; /* texts of the cluster */
    const char *node;     /* the first one */
    uint32_t nodes;       /* number of nodes on which it starts */
    int64_t start_ns;     /* of the first pod without a place; equal to the moment of the lookahead: at once */
    int64_t end_ns;       /* expected end of that pod; BERTH_NEVER_NS: never */
    bool guess;
};

struct lookahead {
    VEC(struct start_estimate) at;
    struct map by_workload; /* workload ids to indices into `at` */
    size_t plans;           /* number of plans made */
    int64_t until_ns;       /* the last simulated moment: workloads without an estimate start later, or never */
    bool complete;          /* every workload (or the subject) has started, or no further event is expected */
};

/* A workload that is suspended only until another workload has ended (or started). */
struct lookahead_wait {
    const char *workload, *other;
    bool started;
};

struct lookahead_bounds {
    size_t plans_max;
    int64_t horizon_ns;  /* from the moment of the lookahead; 0: no limit */
    int64_t stop_ns;     /* expected time that a pod takes to stop */
    const char *subject; /* the only workload whose start is wanted; NULL: all waiting workloads */
    const struct lookahead_wait *waits;
    size_t waits_len;
    /* Called before each plan: returns whether there is time for another one. NULL: no limit. */
    bool (*goes_on)(void *ctx);
    void *ctx;
};

/* Simulates the copy from now_ns on. Uses the policy's reservations and rankings unchanged. Leaves out rebalancing and
 * memory pressure, which follow real usage. Ends when a plan fails; the estimates found until then are kept. */
void lookahead_run(struct berth_cluster *copy, const struct berth_policy *policy, int64_t now_ns, uint64_t seed,
                   const struct lookahead_bounds *bounds, struct lookahead *ret);
void lookahead_done(struct lookahead *l);

/* Returns the estimate of a workload; NULL if the workload does not wait or no start was found. */
const struct start_estimate *lookahead_find(const struct lookahead *l, const char *workload);
