/* berth_policy.h - the policy of a plan: scores of nodes, order of workloads, resources kept free. Part of berth.h. */
#pragma once

#include "base/err.h"
#include "berth_model.h"

struct berth_weight {
    const char *score;
    int32_t weight; /* 1 to BERTH_WEIGHT_MAX */
};

/* A set of filters and weighted scores. */
struct berth_profile {
    const char *name;
    const char *const *filters; /* empty: all */
    size_t filters_len;
    const struct berth_weight *scores;
    size_t scores_len;
    const char *const *resources; /* used by allocation scores; empty: cpu and memory */
    size_t resources_len;
    /* scores are rounded down to this many steps, so that nearly equal nodes are equal and the lowest rank decides;
     * at most BERTH_STEPS_MAX; 0: not rounded. Not all scores support it */
    uint32_t steps;
    bool allow_over; /* a node over capacity in one resource still gets pods that do not request that resource */
};

/* A kind of typical pod, with its frequency `pods`. Only cpu and GPUs count. */
struct berth_typical_pod {
    struct berth_shape shape;
    uint32_t pods; /* 1 to BERTH_REPLICAS_MAX */
};

/* A node is under memory pressure once its real use exceeds `high_percent` of its allocatable memory, until the use
 * falls to `low_percent`. It gets nothing new. One at a time, instances above min_available that use more than they
 * requested (or any instance, on a node with over-committed memory) are stopped there: lowest priority first, then the
 * largest overuse, then the youngest. */
struct berth_pressure {
    uint32_t high_percent; /* 0: pressure is not handled */
    uint32_t low_percent;
    int64_t hold_ns; /* from the start of the pressure to the first stop, and between two stops on one node */
    uint32_t drops;  /* limit on concurrent stops over all nodes under pressure */
};

/* Moves services from the node with the highest share of real use to one with a low share, if the larger of the two
 * shares falls by more than `gain_percent`. The new instance is ready before the old one stops. No move begins while a
 * migration is in progress, nor with a profile that packs. */
struct berth_rebalance {
    uint32_t moves; /* moves at a time; 0: none */
    uint32_t gain_percent;
    int64_t age_ns; /* least run time of moved instances, and of all instances on the target node */
};

/* An amount kept free in every zone, or in one domain. */
struct berth_headroom_amount {
    const char *resource;
    int64_t amount;     /* or */
    uint32_t permille;  /* of the capacity of the zone's ready nodes; the larger one of both counts */
    const char *domain; /* "": in every zone */
};

struct berth_headroom {
    const struct berth_headroom_amount *reserves;
    size_t reserves_len;
    int32_t priority; /* pods of this priority and above may use it, and replacements of other instances */
    uint32_t tasks;   /* gangs of at least this many pods may use it; 0: none for their size */
};

/* ---- order of demands ----
 *
 * Demands are placed in one order: tier, queue, key, creation time, id. The tier is first the entitlement of a pod:
 * guaranteed (within every guarantee of its quotas), borrowed, or spare (beyond the minimum of an elastic gang); then
 * the workload's priority. Which pods are guaranteed depends on requests and quotas, not on what is placed: within a
 * quota by priority, creation time, id, and within a workload by ordinal. A pod is only ever preempted for pods of a
 * strictly higher tier, so preemption cannot loop.
 */

/* Inputs of a ranking: one row per waiting workload, in columns. */
struct berth_factors {
    size_t len;
    const char *const *names; /* names of the columns: berth_factor_at, in that order */
    size_t names_len;
    const int32_t *const *columns; /* [name][row]: millionths, 0 to 1000000 */
    const char *const *word_names; /* "type", "class", ...: attributes that any row has */
    size_t word_names_len;
    const char *const *const *words; /* [word name][row]: "" for none */
    /* Raw values: seconds since creation, estimated seconds, pods, processors (or GPUs if it requests any), creation
     * time in seconds. */
    const double *waited, *runtime, *pods, *size, *created;
};

/* Computes the keys of the rows, higher first, in thousandths of the formula's result. -EINVAL with the reason makes
 * the plan fail. Must be a function of the factors alone. */
typedef int berth_formula(void *ctx, const struct berth_factors *in, int64_t *keys, struct berth_err *err);

struct berth_ranking {
    const char *name; /* one of berth_ranking_at, or "formula"; "": "fifo" */
    /* for "multifactor": weights of factors by name, -100 to 100; none: the usual ones */
    const struct berth_weight *weights;
    size_t weights_len;
    berth_formula *formula;
    void *ctx;
};

struct berth_queue {
    const char *id;
    int32_t priority; /* among queues, within a tier: higher first */
    struct berth_ranking ranking;
};

struct berth_order {
    const struct berth_queue *queues; /* workloads in no listed queue have priority 0 and `ranking` */
    size_t queues_len;
    struct berth_ranking ranking;
    int64_t half_life_ns; /* of past use, for fair shares; 0: a week */
    int64_t age_ns;       /* age at which the factor `age` is 1; 0: a week */
    int64_t max_wait_ns;  /* workloads that wait longer go first in their tier, the oldest first; 0: never */
    /* Charges in thousandths per unit and second of use; empty: a core 1, a GPU 10, a GiB of memory 0.25. The unit
     * of "memory" is a GiB, of "cpu" a core. */
    const struct berth_amount *charges;
    size_t charges_len;
};

/* Work that finds no place gets a reservation at its estimated earliest start. Work after it in the order is placed
 * only where it delays no reservation. */
struct berth_backfill {
    uint32_t reservations; /* maximum; 0: none, and whatever fits is placed */
    /* Limit on reservations of workloads that may use the same nodes, judged by their constraints: architecture,
     * labels, GPUs, domains, and so on; 0: no limit. With 1 each part of a cluster has one reservation, for the first
     * workload in the queue. */
    uint32_t alike;
    bool queued; /* only workloads in one of the order's queues get reservations */
    bool strict; /* nothing that comes after a job without a place is placed */
    /* Once all reservations are made, the remaining workloads are tried in this order, within their tier and queue; no
     * name: in the normal order. "sjf" with one reservation: shortest job backfilled first. */
    struct berth_ranking ranking;
    /* Running work is expected to end at its limit, if it has one, not at its estimate, so reservations that wait for
     * it are not postponed again and again. Backfill still goes by estimates: a backfilled job with an estimate below
     * its limit postpones reservations, as the next plan sees them. */
    bool until_limit;
    /* estimate for jobs without one; 0: an hour. A job that exceeds its estimate is expected to need twice as long,
     * and so on, at most its limit */
    int64_t estimate_ns;
};

struct berth_preemption {
    bool on;
    bool services;      /* pods of services and VMs may be preempted, too; false: only jobs */
    int64_t min_run_ns; /* least run time before a pod is preempted */
    uint32_t most;      /* limit on pods told to stop at one moment; 0: 200 */
    bool clears;        /* also preempts pods that block others by anti-affinity or spread */
    bool break_budgets; /* where nothing else makes room, breaks as few disruption budgets as possible; false: never */
};

/* Nodes reserved for some quotas, or for maintenance, for a period. Pods of others are not placed there if
 * they might still run when the window begins; running ones are not stopped. */
struct berth_window {
    const char *id;
    int64_t start_ns, end_ns;
    const char *const *nodes; /* ids; or `require` */
    size_t nodes_len;
    const struct berth_term *require; /* on node labels; one matching term is enough */
    size_t require_len;
    const char *const *quotas; /* pods that count against one of these may use the nodes */
    size_t quotas_len;
};

/* A zeroed policy is the default profile and nothing else. */
struct berth_policy {
    const struct berth_profile *profile; /* NULL: "default" */
    /* Profiles that workloads may name (berth_shape.profile). For such a workload the scores, resources and steps of
     * that profile replace those of `profile`. Filters and allow_over are always those of `profile`. */
    const struct berth_profile *others; /* names are unique */
    size_t others_len;                  /* at most BERTH_OTHERS_MAX */
    struct berth_pressure pressure;
    bool shed; /* services leave a node over capacity: lowest priority first, then the youngest */
    struct berth_headroom headroom;
    struct berth_rebalance rebalance;
    struct berth_order order;
    struct berth_backfill backfill;
    struct berth_preemption preemption;
    const struct berth_window *windows;
    size_t windows_len;
    /* Limit on the assigned pods of one account (the first of a workload's quotas): pods that are placed but not yet
     * reported as starting. Pods beyond it wait for a later plan. 0: no limit. */
    uint32_t starting;
    /* Typical pods, for the score `fragmentation`: the most frequent first (equal ones in the order of the list), until
     * 95 % are covered. None: taken from the snapshot's workloads. */
    const struct berth_typical_pod *demand;
    size_t demand_len; /* at most BERTH_TYPICAL_PODS_MAX */
    /* Called now and then during planning; has no effect on the plan. */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
};
