/* forecast.h - when will it start, and what if? Plans run forward on a worker, for telling people; none of them is done.
 *
 * Such a plan is the scheduler's own with a thousand reservations: the first thousand that wait have a start and an end. The
 * present one (the outlook) is made when somebody asks and the last one is out of date; others are made of a draft or by
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
#include "control/call.h"

enum { FORECAST_CASES_MAX = 8, FORECAST_RESERVATIONS = 1000 };

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
    void *keep; /* what the cases are, or point to; given back to `drop` when the run is over. NULL: nothing */
    void (*drop)(void *keep);
};

struct forecast_plan {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan; /* NULL: not made; time was up, or rc says */
    struct map pending;      /* workload to its place among the plan's pendings */
    int rc;
    struct berth_err err;
};

struct forecast_run {
    struct forecast_plan plans[FORECAST_CASES_MAX];
    size_t plans_len;
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
