/* factor.h - factors, and the rows of waiting workloads that rankings are computed from.
 *
 * A factor is a number from 0 to a million with a name and a sentence. A ranking either weighs factors or reads rows
 * directly. Nothing here may depend on what a plan places or stops, see rank.h. Time advances in steps of RANK_STEP_NS,
 * so that keys do not change between two steps.
 *
 * To add a factor: a function and a row in the table of factor.c, and a line in docs/policies.md.
 */
#pragma once

#include "core/plan/plan.h"
#include "core/queue/rank.h"

#define RANK_STEP_NS ((int64_t)10 * 1000000000)
/* rows for which all factors are computed before the next rows are read: rows are scattered in memory */
enum { ROW_BLOCK = 64 };
enum { MILLION = 1000000, FACTORS_MAX = 32, LOGS = 1024, QUEUES_KNOWN = 64 };

/* What a pod of a class, or the minimum of a gang, needs at once: number of pods, processors (or GPUs), and the
 * dominant share of the cluster. */
struct demand_size {
    double pods, size, share;
    bool known;
};

struct ranks {
    struct berth_plan *p;
    const struct berth_snapshot *s;
    int64_t now_ns;           /* the time of the plan, rounded down to a step */
    struct berth_order order; /* a copy that lives as long as the plan */
    int64_t estimate_ns;      /* for work without an estimate */
    int32_t queue_low, queue_high;
    int64_t *totals;                /* [resource, QUOTA_GPU]: capacity of all nodes; -1: not computed yet */
    struct demand_size *classes;    /* [class]: of one pod */
    struct demand_size *gangs;      /* [gang] */
    int32_t *fair;                  /* [quota]: made by fair.c; NULL: not computed yet */
    double *filled;                 /* [workload]: made by drf.c; NULL: not computed yet */
    int32_t load;                   /* -1: not computed yet */
    int32_t *dominant;              /* [quota]: the factor plus 1; 0 or NULL: not computed yet */
    struct account_usage *admitted; /* made by fair.c; NULL: not computed yet */
    struct rank_log_cache {         /* cache of logarithms */
        double x, log2;
    } logs[LOGS];
    struct rank_queue_cache { /* cache of queues found by name */
        sym queue;            /* 0: none */
        uint32_t at;
    } known[QUEUES_KNOWN];
};

/* One waiting workload. */
struct rank_row {
    uint32_t workload, queue;
    const struct workload *w;
    const struct claim *t; /* never NULL: an empty claim if the workload has none */
};

struct factor {
    const char *name, *sentence;
    bool timed; /* the passage of time alone changes the value */
    int32_t (*of)(struct ranks *r, const struct rank_row *row);
};

extern const struct factor factors[];
extern const uint32_t factors_len;
/* Returns the index of the factor, or NONE. */
uint32_t factor_find(const char *name);

struct rank_row row_of(struct ranks *r, uint32_t workload);
struct demand_size row_extent(struct ranks *r, const struct rank_row *row);
/* Return the expected run time, and the whole seconds that the workload has waited. */
int64_t row_estimate_ns(const struct ranks *r, const struct rank_row *row);
int64_t row_waited_s(const struct ranks *r, const struct rank_row *row);
/* Returns the capacity of all nodes of a resource, or of QUOTA_GPU. */
int64_t ranks_total(struct ranks *r, uint32_t resource);
/* Returns the amount as a share of the cluster's capacity of the resource; 0 if the cluster has none. */
double ranks_share(struct ranks *r, uint32_t resource, int64_t amount);

/* The resources that the cluster's load is computed from. */
enum { LOADS = 3 };
extern const uint32_t loads[LOADS];

/* fair.c: all workloads that count against quotas, waiting or running. */
struct account_usage {
    int64_t asked[LOADS]; /* by all their pods that have not ended */
    uint8_t *account;     /* [quota]: it is the account of some workload */
    int64_t *used;        /* [quota]: usage of accounts, decayed until now, running pods included */
};
void account_usage_make(struct ranks *r);
/* Fills r->fair: the position of each account in the fair tree, as a factor. */
void fair_make(struct ranks *r);
/* Calls `tell` for each account with its weight, its usage and its factor. */
void fair_report(struct ranks *r, void (*tell)(void *ctx, const struct berth_share *share), void *ctx);
/* drf.c: fills r->filled: for each workload, the weighted dominant share that its account received before it in
 * progressive filling. */
void drf_make(struct ranks *r);
