/* forecast.h - when will it start, and what if? Plans run forward on a worker, for telling people; none of them is done.
 *
 * A forecast has two parts. The first is a plan of the scheduler with a thousand reservations: it gives the order, the reasons, and
 * a first start for a thousand workloads. The second is a lookahead (core/backfill/lookahead.h): the plans that will follow, made one after
 * another on a copy of the cluster by the policy in force, until everything that waits has started or its time is used up. A start
 * comes from the lookahead where that found one, else from the reservation.
 *
 * The present forecast (the outlook) is made when somebody asks and the last one is out of date; others are made of a draft or by
 * another ranking, and belong to who asked. One run is being made at a time, beside the scheduler's plan; nothing of it
 * reaches the state.
 *
 * A verb asks for a run and, if it has to wait, is run again when that is there:
 *
 *     const struct forecast_run *run;
 *     int rc = forecast_ask(c, &(struct forecast_wish){0}, &run);
 *     if (rc < 0 || !run)
 *         return rc;
 */
#pragma once

#include "base/map.h"
#include "control/api/request.h"
#include "core/backfill/lookahead.h"

enum { FORECAST_CASES_MAX = 8, FORECAST_RESERVATIONS = 1000, FORECAST_ADVICE_MAX = 3 };

/* A document that one case takes to be there, or to be instead of the present one. */
struct forecast_draft {
    enum kind kind;
    const char *id, *owner, *group;
    const json_t *doc;
    bool gone; /* of a node: the document drains it */
};

/* One plan of a run. */
struct forecast_case {
    const struct forecast_draft *drafts;
    size_t drafts_len;
    const struct berth_ranking *ranking; /* of every queue; NULL: as they are. Lives until the case is made */
};

/* What is to be planned: without cases the outlook. */
struct forecast_wish {
    const struct forecast_case *cases;
    size_t cases_len;
    const char *subject; /* the only workload whose start is wanted; NULL: of all that wait */
    bool advise;         /* seek changes that would let more of the subject start, by further plans of the first case */
    bool plan_only;      /* make no lookahead */
    void *keep;          /* what the cases are, or point to; given back to `drop` when the run is over. NULL: nothing */
    void (*drop)(void *keep);
};

struct forecast_plan {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan; /* NULL: not made; time was up, or rc says */
    struct map pending;      /* workload to its place among the plan's pendings */
    struct lookahead ahead;  /* of the same state; empty: none was made */
    int rc;
    struct berth_err err;
};

struct forecast_run {
    struct forecast_plan plans[FORECAST_CASES_MAX];
    size_t plans_len;
    struct berth_advice advice[FORECAST_ADVICE_MAX]; /* what was found, where the wish says `advise` */
    size_t advice_len;
    uint64_t revision; /* of the state it was made from */
    int64_t now_ns;    /* and when */
    void *keep;        /* of the wish it was made for */
};

struct forecast;
struct forecast *forecast_new(struct control *control);
void forecast_free(struct forecast *f);
/* No more of them; who waits is told. */
void forecast_stop(struct forecast *f);
/* The cluster is about to be made anew: what was made of the old one goes. False: something is being made of it. */
bool forecast_drop(struct forecast *f);

/* 0 and the run, valid until the verb returns; or 0 and NULL: the verb returns 0 now and is run again. Of the outlook the
 * plan is there; of others each case says. -EDQUOT: too many wait already. */
int forecast_ask(struct call *c, const struct forecast_wish *wish, const struct forecast_run **ret);

/* The place of a workload among the pendings of a plan; false: it does not wait there. */
bool forecast_find(const struct forecast_plan *p, const char *workload, size_t *ret);
/* Does the plan start all pods of it that have no place yet? */
bool forecast_starts(const struct forecast_plan *p, const char *workload);
/* Where pending i of the plan stands, with its start by the lookahead where that has one. *ret_guess: the start rests
 * on a run time that nobody has stated, or nobody looked so far ahead. */
struct berth_standing forecast_standing(const struct forecast_plan *p, size_t i, bool *ret_guess);
/* The first start of a workload that has pods without a place, waiting or about to start; 0: none is known. */
int64_t forecast_start_ns(const struct forecast_plan *p, const char *workload, int64_t now_ns, bool *ret_guess);
/* The same of case i, to be held beside that of case k: from the lookaheads if both are complete, else from the
 * reservations. */
int64_t forecast_start_beside(const struct forecast_run *run, size_t i, size_t k, const char *workload);

/* ---- parts, for forecast.c and checks (forecast_plan.c) ---- */

/* Changes the scheduler's policy into the one that the plan of a forecast is made by. */
void forecast_policy(struct berth_policy *policy);
/* Makes the plan of p->snapshot. On any thread. */
void forecast_plan_make(struct forecast_plan *p, const struct berth_policy *policy);
/* Makes the lookahead of an equal of the cluster that the snapshot was taken of, by the scheduler's policy; sets
 * plans_max and horizon_ns of the bounds by the size of the cluster. Changes the copy. On any thread. */
void forecast_plan_look(struct forecast_plan *p, struct berth_cluster *copy, const struct berth_policy *policy,
                        const struct lookahead_bounds *bounds);
void forecast_plan_done(struct forecast_plan *p);
