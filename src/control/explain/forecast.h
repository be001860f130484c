/* forecast.h - forecasts of starts, also for hypothetical changes: plans made on a worker for explanations, and never
 * carried out.
 *
 * A forecast has two parts. The first is a plan of the scheduler with a thousand reservations: it gives the order, the
 * reasons, and a start estimate for a thousand workloads. The second is a lookahead (core/backfill/lookahead.h): the
 * plans that will follow, made one after another on a copy of the cluster by the present policy, until all waiting
 * workloads have started or the time is used up. A start estimate comes from the lookahead if that has one, else from
 * the reservation.
 *
 * The forecast of the present state (the outlook) is made on request if the last outlook is out of date. Other
 * forecasts use drafts or another ranking, and belong to the request. One run is made at a time, beside the scheduler's
 * plan; nothing of it changes the state.
 *
 * A verb asks for a run and, if it has to wait, is run again when the run is ready:
 *
 *     const struct forecast_run *run;
 *     int rc = forecast_request(c, &(struct forecast_spec){0}, &run);
 *     if (rc < 0 || !run)
 *         return rc;
 */
#pragma once

#include "base/map.h"
#include "control/api/request.h"
#include "core/backfill/lookahead.h"

enum { FORECAST_CASES_MAX = 8, FORECAST_RESERVATIONS = 1000, FORECAST_ADVICE_MAX = 3 };

/* A hypothetical document of one case: a new object, or a replacement of the present one. */
struct forecast_draft {
    enum kind kind;
    const char *id, *owner, *group;
    const json_t *doc;
    bool gone; /* a node that the document drains */
};

/* One plan of a run. */
struct forecast_case {
    const struct forecast_draft *drafts;
    size_t drafts_len;
    /* for every queue; NULL: the present rankings. Must live until the plan is made */
    const struct berth_ranking *ranking;
};

/* A requested run: the cases to plan; without cases, the outlook. */
struct forecast_spec {
    const struct forecast_case *cases;
    size_t cases_len;
    const char *subject; /* the only workload whose start is needed; NULL: all waiting workloads */
    /* search for changes that let more pods of the subject start, by further plans of the first case */
    bool advise;
    bool plan_only; /* make no lookahead */
    void *keep;     /* memory of the cases, freed by `drop` after the run. NULL: none */
    void (*drop)(void *keep);
};

struct forecast_plan {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan; /* NULL: not made, because of `rc` or for lack of time */
    struct map pending;      /* workload to its index among the plan's pendings */
    struct lookahead ahead;  /* of the same state; empty: not made */
    int rc;
    struct berth_err err;
};

struct forecast_run {
    struct forecast_plan plans[FORECAST_CASES_MAX];
    size_t plans_len;
    struct berth_advice advice[FORECAST_ADVICE_MAX]; /* set if requested by `advise` */
    size_t advice_len;
    uint64_t revision; /* revision of the state */
    int64_t now_ns;    /* time of the state */
    void *keep;        /* `keep` of the forecast_spec */
};

struct forecast;
struct forecast *forecast_new(struct control *control);
void forecast_free(struct forecast *f);
/* Starts no more runs, and answers all waiting requests. */
void forecast_stop(struct forecast *f);
/* Called before the cluster is rebuilt: frees everything that refers to the old cluster. Returns false if a run is
 * using it. */
bool forecast_drop(struct forecast *f);

/* Returns 0 with a run that is valid until the verb returns, or 0 with NULL: the verb returns 0 and is run again later.
 * The plan of an outlook is always there; other cases have an rc each. -EDQUOT: too many requests wait. */
int forecast_request(struct request *c, const struct forecast_spec *wish, const struct forecast_run **ret);

/* Returns the index of a workload among the pendings of a plan; false: the workload does not wait. */
bool forecast_find(const struct forecast_plan *p, const char *workload, size_t *ret);
/* Tells whether the plan places all pods of the workload that are not placed yet. */
bool forecast_starts(const struct forecast_plan *p, const char *workload);
/* Returns the standing of pending i, with its start estimate from the lookahead if that has one. *ret_guess: the start
 * depends on a run time that no user has stated, or is beyond the lookahead. */
struct berth_queue_position forecast_queue_position(const struct forecast_plan *p, size_t i, bool *ret_guess);
/* Returns the first start of a workload with unplaced pods, waiting or about to start; 0: unknown. */
int64_t forecast_start_ns(const struct forecast_plan *p, const char *workload, int64_t now_ns, bool *ret_guess);
/* The same for case i, comparable with case k: from the lookaheads if both are complete, else from the reservations. */
int64_t forecast_start_beside(const struct forecast_run *run, size_t i, size_t k, const char *workload);

/* ---- parts, for forecast.c and checks (forecast_plan.c) --------------------------------------------------------- */

/* Changes the scheduler's policy into the policy of a forecast's plan. */
void forecast_policy(struct berth_policy *policy);
/* Makes the plan of p->snapshot. Runs on any thread. */
void forecast_plan_make(struct forecast_plan *p, const struct berth_policy *policy);
/* Makes the lookahead by the scheduler's policy, from a copy of the cluster at the time of the snapshot. Sets plans_max
 * and horizon_ns of the bounds by the size of the cluster. Changes the copy. Runs on any thread. */
void forecast_plan_lookahead(struct forecast_plan *p, struct berth_cluster *copy, const struct berth_policy *policy,
                             const struct lookahead_bounds *bounds);
void forecast_plan_done(struct forecast_plan *p);
