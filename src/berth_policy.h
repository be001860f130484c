/* berth_policy.h - what a plan is made by: which nodes are better, who comes first, what is kept free. Part of berth.h. */
#pragma once

#include "base/err.h"
#include "berth_model.h"

struct berth_weight {
    const char *score;
    int32_t weight; /* 1 to BERTH_WEIGHT_MAX */
};

/* Which filters and which scores. */
struct berth_profile {
    const char *name;
    const char *const *filters; /* empty: all */
    size_t filters_len;
    const struct berth_weight *scores;
    size_t scores_len;
    const char *const *resources; /* that allocation scores look at; empty: cpu and memory */
    size_t resources_len;
    uint32_t
        steps; /* each score is cut down to whole steps of so many, so that nodes which hardly differ are equal and the
                     * lowest rank decides; at most BERTH_STEPS_MAX; 0: as fine as it is. Not all scores can be cut */
    bool allow_over; /* a node that holds more of one thing than it has still gets what asks for none of it */
};

/* Of so many pods that usually come, `pods` are like this. Only cpu and GPUs are looked at. */
struct berth_demand {
    struct berth_shape shape;
    uint32_t pods; /* 1 to BERTH_REPLICAS_MAX */
};

/* A node of whose memory more is really in use than `high_percent` of its allocatable is under pressure until the use is
 * down at `low_percent`. It gets nothing new; and replicas above min_available that use more than they asked for (or any,
 * on a node that promises more memory than it has) are stopped there, one at a time: lowest priority first, then the
 * largest overuse, then the youngest. */
struct berth_pressure {
    uint32_t high_percent; /* 0: no such thing */
    uint32_t low_percent;
    int64_t hold_ns; /* from the beginning to the first stop, and between two on one node */
    uint32_t drops;  /* most instances that stop at a time on all nodes under pressure */
};

/* Services move from the node whose real use is the greatest share of what it has to where it is small, when the greater
 * of the two shares falls by more than `gain_percent`; the new one is ready before the old one stops. None begins while a migration is under
 * way, nor by a profile that packs. */
struct berth_rebalance {
    uint32_t moves; /* at a time; 0: none */
    uint32_t gain_percent;
    int64_t age_ns; /* only of instances that have been running for so long, and to nodes where all have */
};

/* Kept free in every zone, or in one domain. */
struct berth_reserve {
    const char *resource;
    int64_t amount;     /* or */
    uint32_t permille;  /* of what the ready nodes of the zone have: the larger counts */
    const char *domain; /* "": in every zone */
};

struct berth_headroom {
    const struct berth_reserve *reserves;
    size_t reserves_len;
    int32_t priority; /* pods of this priority and above may use it, and those that take over from another */
    uint32_t tasks;   /* and gangs of at least so many pods; 0: none for their size */
};

/* ---- who comes first ----
 *
 * Wishes are granted in one order: tier, queue, key, creation, id. The tier is first whether a pod is held by right
 * (within every guarantee of its quotas), borrowed, or spare (beyond the minimum of an elastic gang), then the workload's
 * priority. Who is by right follows from what is asked for and the quotas, whatever is placed: of one quota by priority,
 * creation, id, and of one workload by ordinal. Only pods of a strictly lower tier are ever stopped
 * for another, so nothing loops. */

/* One row per workload that waits; the columns are what a ranking is computed from. */
struct berth_factors {
    size_t len;
    const char *const *names; /* of the columns: berth_factor_at, in that order */
    size_t names_len;
    const int32_t *const *columns; /* [name][row]: millionths, 0 to 1000000 */
    const char *const *word_names; /* "type", "class", ...: what any row has */
    size_t word_names_len;
    const char *const *const *words; /* [word name][row]: "" where it has none */
    /* As they are: seconds since creation, estimated seconds, pods, processors (or GPUs where it asks for some), the
     * moment of creation in seconds. */
    const double *waited, *runtime, *pods, *size, *created;
};

/* Keys of the rows, higher first, in thousandths of whatever a formula gives. -EINVAL with the reason: then the plan
 * fails, and says so. Must be a function of the factors alone. */
typedef int berth_formula(void *ctx, const struct berth_factors *in, int64_t *keys, struct berth_err *err);

struct berth_ranking {
    const char *name;                   /* one of berth_ranking_at, or "formula"; "": "fifo" */
    const struct berth_weight *weights; /* of "multifactor": of factors by name, -100 to 100; none: the usual ones */
    size_t weights_len;
    berth_formula *formula;
    void *ctx;
};

struct berth_queue {
    const char *id;
    int32_t priority; /* of queues, within a tier: higher first */
    struct berth_ranking ranking;
};

struct berth_order {
    const struct berth_queue *queues; /* work of no queue, or one not listed: priority 0 and `ranking` */
    size_t queues_len;
    struct berth_ranking ranking;
    int64_t half_life_ns; /* of past use, for fair shares; 0: a week */
    int64_t age_ns;       /* at which the factor `age` is 1; 0: a week */
    int64_t max_wait_ns; /* what has waited for longer goes before all others of its tier, the oldest first; 0: never */
    const struct berth_amount
        *charges; /* what a unit and second of use costs, in thousandths; empty: a core 1, a GPU 10,
                                           a GiB of memory 0.25. Of "memory" a unit is a GiB, of "cpu" a core */
    size_t charges_len;
};

/* Work that finds no place gets a reservation at the earliest time at which it will, as far as can be foreseen; what comes
 * after it in the order is placed only where it delays none. */
struct berth_backfill {
    uint32_t reservations; /* at most; 0: none, whatever fits is placed */
    /* At most so many of work that may stand on the same nodes, by what it requires of them: architecture, labels, GPUs, domains,
     * and so on; 0: any number. With 1 each part of a cluster has its own first in the queue. */
    uint32_t alike;
    bool queued; /* for work in one of the order's queues alone; what is in none waits without one */
    bool strict; /* nothing at all is placed that comes after a job which found no place */
    /* Once all reservations are made, who is left is tried in this order, within its tier and queue; no name: in the order
     * there is. With "sjf" and one reservation: shortest job backfilled first. */
    struct berth_ranking ranking;
    /* What runs is expected to run until its limit, if it has one, and not for its estimate: so what waits for it is not put
     * off again and again, while who may go before goes by its estimate. Who went before by an estimate that is short of its
     * limit puts off what is reserved, as far as the next plan can tell. */
    bool until_limit;
    int64_t
        estimate_ns; /* of jobs that do not say how long they run; 0: an hour. Who runs for longer is expected to need
                              twice as long, and again, at most its limit */
};

struct berth_preemption {
    bool on;
    bool services;      /* pods of services and VMs are stopped for others, too; else of jobs alone */
    int64_t min_run_ns; /* that every pod may run before */
    uint32_t most;      /* pods that are told to stop at one moment; 0: 200 */
    bool clears; /* also those are stopped that keep others away, by what pods must stay apart from or be spread over */
    bool break_budgets; /* where nothing else makes room, as few as can be; else no more is stopped than they allow */
};

/* Nodes that are kept for somebody, or for nobody (maintenance), for a while. Pods of others are not placed there if they
 * might still run when it begins; those that do run are not stopped. */
struct berth_window {
    const char *id;
    int64_t start_ns, end_ns;
    const char *const *nodes; /* ids; or */
    size_t nodes_len;
    const struct berth_term *require; /* on node labels; any one suffices */
    size_t require_len;
    const char *const *quotas; /* what counts against one of these may use them */
    size_t quotas_len;
};

/* A zeroed policy is the default profile and nothing else. */
struct berth_policy {
    const struct berth_profile *profile; /* NULL: "default" */
    /* Of workloads that name one of these (berth_shape.profile) it says which nodes are better, in place of `profile`: its
     * scores, resources and steps. What nodes may be taken at all is up to `profile` for everybody: filters, allow_over. */
    const struct berth_profile *others; /* no two of one name */
    size_t others_len;                  /* at most BERTH_OTHERS_MAX */
    struct berth_pressure pressure;
    bool shed; /* services leave a node that holds more than it has: lowest priority first, then the youngest */
    struct berth_headroom headroom;
    struct berth_rebalance rebalance;
    struct berth_order order;
    struct berth_backfill backfill;
    struct berth_preemption preemption;
    const struct berth_window *windows;
    size_t windows_len;
    /* Pods of one account (the first of a workload's quotas) that are assigned, that is, placed but not reported as starting,
     * at most; what is beyond waits for a later plan. 0: any number. */
    uint32_t starting;
    /* The pods that usually come, for the score `fragmentation`: the most frequent first (of equal ones the first of the
     * list), until 95 % are covered. None: those of the snapshot's own workloads. */
    const struct berth_demand *demand;
    size_t demand_len; /* at most BERTH_DEMAND_MAX */
    /* Told now and then; has no influence. */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
};
