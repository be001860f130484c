/* factor.h - what rankings look at: the rows of what waits, their factors, and what all rows share.
 *
 * A factor is a number from 0 to a million with a name and a sentence; rankings weigh factors or read rows as they are.
 * Nothing here may depend on what is placed or stopped by a plan, see rank.h; and time moves in steps of RANK_STEP_NS, so that
 * between two steps nothing changes.
 *
 * To add a factor: a function and a row in the table of factor.c, and a line in docs/policies.md.
 */
#pragma once

#include "core/plan/plan.h"
#include "core/queue/rank.h"

#define RANK_STEP_NS ((int64_t)10 * 1000000000)
enum { ROW_BLOCK = 64 }; /* rows that all factors look at before the next are touched: they are scattered in memory */
enum { MILLION = 1000000, FACTORS_MAX = 32, LOGS = 1024, QUEUES_KNOWN = 64 };

/* What must be placed at once, of a class or a gang: pods, processors (or GPUs), and the dominant share of the cluster. */
struct extent {
    double pods, size, share;
    bool known;
};

struct ranks {
    struct berth_plan *p;
    const struct berth_snapshot *s;
    int64_t now_ns;           /* of the plan, at the last step */
    struct berth_order order; /* a copy that lives as long as the plan */
    int64_t estimate_ns;      /* of work that does not say */
    int32_t queue_low, queue_high;
    int64_t *totals;           /* [resource, QUOTA_GPU]: what all nodes have; -1: not counted yet */
    struct extent *classes;    /* [class]: of one pod */
    struct extent *gangs;      /* [gang] */
    int32_t *fair;             /* [quota]: of fair.c; NULL: not asked for yet */
    double *filled;            /* [workload]: of drf.c; NULL: not asked for yet */
    int32_t load;              /* -1: not asked for yet */
    int32_t *dominant;         /* [quota]: one more than the factor; 0 or NULL: not asked for yet */
    struct admitted *admitted; /* of fair.c; likewise */
    struct rank_log {          /* logarithms that were needed before */
        double x, log2;
    } logs[LOGS];
    struct rank_known { /* queues by name that were looked up before */
        sym queue;      /* 0: none */
        uint32_t at;
    } known[QUEUES_KNOWN];
};

/* One workload that waits. */
struct row {
    uint32_t workload, queue;
    const struct workload *w;
    const struct claim *t; /* never NULL: one that says nothing */
};

struct factor {
    const char *name, *sentence;
    bool timed; /* time alone changes it */
    int32_t (*of)(struct ranks *r, const struct row *row);
};

extern const struct factor factors[];
extern const uint32_t factors_len;
/* The index of a name, or NONE. */
uint32_t factor_find(const char *name);

struct row row_of(struct ranks *r, uint32_t workload);
struct extent row_extent(struct ranks *r, const struct row *row);
/* Expected run time; whole seconds that it has waited. */
int64_t row_estimate_ns(const struct ranks *r, const struct row *row);
int64_t row_waited_s(const struct ranks *r, const struct row *row);
/* What all nodes have of a resource, or of QUOTA_GPU. */
int64_t ranks_total(struct ranks *r, uint32_t resource);
/* The share of what there is, of the resource of which it is the greatest. */
double ranks_share(struct ranks *r, uint32_t resource, int64_t amount);

/* What load is measured by. */
enum { LOADS = 3 };
extern const uint32_t loads[LOADS];

/* fair.c: all work that counts against quotas, whether it waits or runs. */
struct admitted {
    int64_t asked[LOADS]; /* by all its pods that have not ended */
    uint8_t *account;     /* [quota]: is it the account of any? */
    int64_t *used;        /* [quota]: past use of these, decayed until now, and what runs */
};
void admitted_make(struct ranks *r);
/* Places of accounts in the fair tree, as factors. */
void fair_make(struct ranks *r);
/* These, and what they follow from. */
void fair_tell(struct ranks *r, void (*tell)(void *ctx, const struct berth_share *share), void *ctx);
/* drf.c: what the account of each workload was given before it, had everything been given out fairly. */
void drf_make(struct ranks *r);
