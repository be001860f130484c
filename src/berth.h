/* berth.h - plan a whole cluster in one call.
 *
 * The public face of libberth. A cluster holds nodes, workloads and instances; a snapshot freezes it at one moment;
 * berth_plan_make is a pure function of the snapshot and a policy:
 *
 *     cluster --berth_freeze--> snapshot --berth_plan_make--> plan {actions, facts, recheck}
 *
 * The same snapshot and policy give the same plan on every machine, whatever the order in which the cluster was told
 * its parts; a plan that has been applied leaves nothing to do. The library opens no file, reads no clock and starts no
 * thread. It is not a daemon: recording, running and reporting are the caller's.
 *
 * Conventions. Descriptions (struct berth_node, ...) are plain data, read during the call and copied. A zeroed field
 * means "not asked for". Strings are UTF-8; NULL and "" are the same. Times are nanoseconds on the caller's clock.
 * Amounts are integers: `cpu` in thousandths of a core, `memory` and all other sizes in bytes, everything else in
 * units. Functions that can fail return 0 or a negative errno, say why in *err (which may be NULL) and change nothing.
 * One cluster belongs to one thread at a time, and so does one plan; a snapshot may be read on any. Memory that cannot be had ends
 * the process (status 71).
 *
 * To add a field to a description: here, in core/describe.c (its rules), src/wire/ (its spelling), and where it is used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define BERTH_API __attribute__((visibility("default")))

/* Limits of the model; what exceeds them is refused by name. */
enum {
    BERTH_NAME_MAX = 253,      /* bytes of an id, label key or value, resource name */
    BERTH_LIST_MAX = 1024,     /* entries of any one list in a description */
    BERTH_RESOURCES_MAX = 256, /* distinct resource names in a cluster */
    BERTH_NODE_GPUS_MAX = 64,  /* GPUs of one node */
    BERTH_REPLICAS_MAX = 10000000,
    BERTH_GPU_MILLI = 1000, /* one whole GPU */
    BERTH_RATIO_ONE = 1000, /* over-commit of exactly what is there */
    BERTH_WEIGHT_MAX = 100,
};
#define BERTH_AMOUNT_MAX ((int64_t)1 << 53) /* 8 PiB; the largest amount of anything on one node or in one request */
#define BERTH_NEVER_NS INT64_MAX

/* ---- what a cluster is made of --------------------------------------------------------------------------------- */

struct berth_label {
    const char *key, *value;
};

struct berth_amount {
    const char *resource;
    int64_t amount;
};

enum berth_match { BERTH_IN, BERTH_NOT_IN, BERTH_EXISTS, BERTH_NOT_EXISTS, BERTH_GT, BERTH_LT };

/* One condition on a label. GT and LT compare integers: one value, and the label must be an integer too. NOT_IN and
 * NOT_EXISTS also hold where the label is missing. */
struct berth_expr {
    const char *key;
    enum berth_match match;
    const char *const *values;
    size_t values_len;
};

/* Holds when every expression holds. An empty term holds nowhere. */
struct berth_term {
    const struct berth_expr *exprs;
    size_t exprs_len;
    int32_t weight; /* of a preference: 1 to BERTH_WEIGHT_MAX, or of nodes negative to avoid; 0 for a requirement */
};

enum berth_effect { BERTH_EFFECT_ANY, BERTH_NO_SCHEDULE, BERTH_PREFER_NO_SCHEDULE, BERTH_NO_EXECUTE };

struct berth_taint {
    const char *key, *value;
    enum berth_effect effect; /* not ANY */
};

/* No key and `exists`: tolerates everything. */
struct berth_toleration {
    const char *key, *value;
    bool exists; /* whatever the value */
    enum berth_effect effect;
};

struct berth_gpu {
    const char *model;
    int64_t memory_bytes;
};

enum berth_protocol { BERTH_TCP, BERTH_UDP, BERTH_SCTP };

/* A block of `count` ports (0 counts as 1) from `port` upwards. */
struct berth_port {
    enum berth_protocol protocol;
    uint16_t port, count;
};

struct berth_image {
    const char *name;
    int64_t size_bytes;
};

enum berth_node_state {
    BERTH_NODE_READY,
    BERTH_NODE_JOINING,  /* not yet */
    BERTH_NODE_CORDONED, /* keeps what it has, gets nothing new */
    BERTH_NODE_DRAINING, /* what it has moves away */
    BERTH_NODE_LOST,     /* stopped reporting at since_ns */
};

struct berth_node {
    const char *id;
    enum berth_node_state state;
    int64_t since_ns; /* of the state */
    const char *zone, *rack, *domain, *arch;
    uint32_t rank; /* of nodes with equal scores the lowest rank is taken, then one order that ends in the id */
    int64_t page_size_bytes; /* the one huge-page size this node is held to; 0: any */

    const struct berth_amount *allocatable; /* the total less the system's reserve, never "what is left" */
    size_t allocatable_len;
    const struct berth_amount *overcommit; /* thousandths of allocatable that may be promised; 1000 where absent */
    size_t overcommit_len;
    const struct berth_amount *consumed; /* of cumulative resources, since consumed_ns */
    size_t consumed_len;
    int64_t consumed_ns;
    const struct berth_amount
        *used; /* really in use on the whole machine, as reported; of `cpu` and `memory` it counts */
    size_t used_len;
    const struct berth_label *labels;
    size_t labels_len;
    const struct berth_taint *taints;
    size_t taints_len;
    const struct berth_gpu *gpus; /* a device is named by its place in this list */
    size_t gpus_len;
    const char *const *runtimes; /* "process", "oci", "vm", ...; empty: any */
    size_t runtimes_len;
    const struct berth_image *images;
    size_t images_len;
    const struct berth_port *ports; /* taken by the system itself */
    size_t ports_len;
};

enum berth_resource_kind {
    BERTH_INSTANT,    /* CPU, memory, bandwidth: free again at the end */
    BERTH_CUMULATIVE, /* storage, traffic: also what was consumed counts, until the period ends */
};

/* A resource needs a definition only when it is cumulative. */
struct berth_resource {
    const char *name;
    enum berth_resource_kind kind;
    int64_t period_ns; /* consumption counts from zero again this long after consumed_ns; 0: never */
};

/* Of `count` GPUs each is held wholly, or, with count 1, `milli` thousandths of one are. */
struct berth_gpu_need {
    uint32_t count;
    uint32_t milli;            /* 0 or 1000: whole */
    int64_t memory_bytes;      /* of each device: its size, or of a share: what is still free */
    const char *const *models; /* any of these; empty: any */
    size_t models_len;
};

/* Counting within domains: nodes that share the value of the label `topology` ("node", "zone" and "rack" are built in).
 * `select` picks by the labels of workloads whose pods count. */
struct berth_spread {
    const char *topology;
    struct berth_term select;
    uint32_t max_skew; /* above the emptiest domain that could take the pod; at least 1 */
    bool soft;         /* a preference, not a requirement */
};

struct berth_near {
    const char *topology;
    struct berth_term select; /* its weight: 0 a requirement, else a preference */
    bool apart;               /* anti-affinity; a required one binds both sides */
};

enum berth_limit_kind { BERTH_ABSOLUTE, BERTH_WEIGHTED };

/* What the agent enforces. An absolute limit with `max` above `amount` is raised towards it under load, where the node
 * has room, and lowered again when idle. */
struct berth_limit {
    const char *resource;
    enum berth_limit_kind kind;
    int64_t amount; /* or the weight, under contention */
    int64_t max;
};

/* What one pod asks of a node. Pods with equal shapes are planned together. */
struct berth_shape {
    const struct berth_amount *requests;
    size_t requests_len;
    struct berth_gpu_need gpu;
    const struct berth_limit *limits;
    size_t limits_len;
    const char *node; /* exactly this one */
    const char *arch, *runtime;
    const char *const *domains; /* any of these; empty: anywhere */
    size_t domains_len;
    const struct berth_term *require; /* on node labels; any one suffices */
    size_t require_len;
    const struct berth_term *prefer;
    size_t prefer_len;
    const struct berth_toleration *tolerations;
    size_t tolerations_len;
    const struct berth_port *ports;
    size_t ports_len;
    const char *const *volumes; /* ids */
    size_t volumes_len;
    const char *const *images;
    size_t images_len;
    const char *near_zone; /* where its data or its clients are */
    const struct berth_spread *spread;
    size_t spread_len;
    const struct berth_near *near;
    size_t near_len;
    uint32_t max_per_node; /* pods of this workload on one node; 0: no limit */
};

enum berth_workload_kind { BERTH_SERVICE, BERTH_JOB, BERTH_VM };

/* When the node of an instance is lost. */
enum berth_on_lost {
    BERTH_LOST_DEFAULT, /* services with several replicas: replace; others: fence */
    BERTH_LOST_REPLACE, /* at once */
    BERTH_LOST_FENCE,   /* after fence_ns, when its agent has stopped it */
    BERTH_LOST_WAIT,    /* for the node */
};

/* When its node is drained. */
enum berth_on_drain {
    BERTH_DRAIN_DEFAULT, /* services: move; others: wait */
    BERTH_DRAIN_MOVE,    /* the new one is ready before the old one stops */
    BERTH_DRAIN_WAIT,    /* for its end */
    BERTH_DRAIN_STOP,    /* at once, whatever min_available says, and start elsewhere */
};

/* What policies look at beside size, time and age. Levels are 0 to 100, urgency -1000 to 1000. */
struct berth_traits {
    int32_t user_level, group_level, urgency;
    int64_t parameters;              /* of the model that is trained; 0: none */
    int64_t attained_ns;             /* it has run for so long in earlier attempts */
    int32_t interference;            /* millionths: how much slower it and its neighbours get; 0: not known */
    const struct berth_label *words; /* type, class, network, ...: attributes that formulas may compare */
    size_t words_len;
};

struct berth_workload {
    const char *id;
    enum berth_workload_kind kind;
    uint32_t replicas;  /* or tasks */
    int32_t priority;   /* higher first */
    int64_t created_ns; /* among equals, earlier first; then by id */
    bool suspended;
    int64_t begin_ns;       /* nothing new is placed before: a start time, or a pause after failures */
    uint32_t min_available; /* never fewer ready on purpose; 0: all but one, and 1 of 1 */
    enum berth_on_lost on_lost;
    enum berth_on_drain on_drain;
    int64_t fence_ns;  /* 0: 10 minutes */
    const char *gang;  /* workloads of one gang are placed together or not at all */
    uint32_t gang_min; /* tasks of this workload that must be placed at least; 0: all */
    const struct berth_label *labels;
    size_t labels_len;
    struct berth_shape shape;
    /* What work that waits for its turn says; see "who comes first" below. */
    const char *const *quotas; /* that its pods count against, each with its parents; the first is its account */
    size_t quotas_len;
    const char *queue;   /* of the policy's; ordered and ranked as that says */
    int64_t estimate_ns; /* how long a pod will run; 0: limit_ns, or as the policy says */
    int64_t limit_ns;    /* a pod that has run for so long is stopped; 0: never */
    int64_t deadline_ns; /* nothing is placed that could not end by then; 0: none */
    int64_t min_run_ns;  /* a pod is not stopped for others before; the policy's if that is longer */
    bool unpreemptible;  /* not at all */
    struct berth_traits traits;
};

/* What a pod may mount. */
struct berth_volume {
    const char *id;
    const char *zone, *node; /* where it can be reached; empty: everywhere */
    const char *driver;      /* counts against the node's `attach-DRIVER` resource, once per volume and node */
    bool shared;             /* mountable on several nodes at once */
};

enum berth_state {
    BERTH_RESERVED, /* placed, but waiting for named instances to stop; its node does not hear of it */
    BERTH_ASSIGNED,
    BERTH_STARTING,
    BERTH_RUNNING,
    BERTH_STOPPING,
    BERTH_ENDED, /* well; a task of a job that is done. Holds nothing; its node may be gone */
};

struct berth_usage {
    const char *resource;
    int64_t used;
    int64_t used_since_ns; /* of the present level of use */
    int64_t limit;         /* in force; 0: as the workload says */
    int64_t limit_since_ns;
};

struct berth_instance {
    uint64_t id; /* above 0; never used again */
    const char *workload;
    uint32_t ordinal; /* the pod is WORKLOAD/ORDINAL */
    const char *node;
    enum berth_state state;
    bool ready; /* healthy; counts as available */
    bool
        outdated; /* placed from a description that is no longer the wished one: services replace it, a few at a time */
    int64_t since_ns;
    /* Its use counts from then on: when it first ran, or up to when BERTH_FACT_USAGE has it. 0: of one that runs since_ns, of
     * others not yet. */
    int64_t counted_ns;
    int64_t fence_ns;      /* in silence, as its node was told; BERTH_NEVER_NS: none; 0: as the workload says */
    uint64_t gpus;         /* devices held, a bit each */
    uint64_t replaces;     /* the instance this one takes over from; 0: none */
    const uint64_t *waits; /* of a reserved one: the instances whose stop it awaits */
    size_t waits_len;
    const struct berth_usage *usage;
    size_t usage_len;
    const struct berth_shape
        *shape; /* as it was placed; NULL: as it is, or of a new one the workload's present shape */
};

/* What all work of a user, a group or a queue may have. Quotas form trees: what counts here counts in the parents, too.
 * Beside resources there are "gpu" (in thousandths of one), "pods", and "jobs" (workloads of which something is placed). */
struct berth_quota {
    const char *id;     /* "user/ann", "group/vision", "queue/prod", ... */
    const char *parent; /* "": none */
    uint32_t weight;    /* among those of the same parent, for fair shares; 0 counts as 1 */
    bool weighted;      /* guaranteed is its weight's share of what the parent is guaranteed, or the cluster has */
    const struct berth_amount *limits; /* held at once at most: nothing is placed beyond */
    size_t limits_len;
    const struct berth_amount
        *guarantees; /* held by right. What is beyond is borrowed: placed after all that is held by
                                              right, and stopped for it. Of what is not listed everything is by right */
    size_t guarantees_len;
    const struct berth_amount *admitted; /* asked for at most by all that waits and runs together; berth_judge */
    size_t admitted_len;
    const struct berth_total *totals;
    size_t totals_len;
};

/* A cumulative limit: nothing begins that would, by its estimate, exceed it. */
struct berth_total {
    const char *resource;
    int64_t limit, spent; /* amount x seconds; spent by what is over, since since_ns */
    int64_t since_ns;
    int64_t period_ns; /* spent counts from zero again this long after since_ns; 0: never */
};

struct berth_cluster;

BERTH_API struct berth_cluster *berth_cluster_new(void);
BERTH_API void berth_cluster_free(struct berth_cluster *cluster); /* its snapshots and plans first */

/* Adds, or replaces what has the same id. An instance needs its node; one whose workload is not there is stopped by the
 * next plan. A node that still holds instances cannot be removed. Removing a workload leaves its instances, to be
 * stopped by the next plan. An instance that holds a port or a GPU which another one holds is refused with -EBUSY. */
BERTH_API int berth_resource_put(struct berth_cluster *cluster, const struct berth_resource *resource,
                                 struct berth_err *err);
BERTH_API int berth_node_put(struct berth_cluster *cluster, const struct berth_node *node, struct berth_err *err);
BERTH_API int berth_node_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_volume_put(struct berth_cluster *cluster, const struct berth_volume *volume, struct berth_err *err);
/* A quota that is named and not there, or no longer, limits nothing. -ELOOP for one that would be its own ancestor. */
BERTH_API int berth_quota_put(struct berth_cluster *cluster, const struct berth_quota *quota, struct berth_err *err);
BERTH_API int berth_quota_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_workload_put(struct berth_cluster *cluster, const struct berth_workload *workload,
                                 struct berth_err *err);
BERTH_API int berth_workload_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_instance_put(struct berth_cluster *cluster, const struct berth_instance *instance,
                                 struct berth_err *err);
BERTH_API int berth_instance_remove(struct berth_cluster *cluster, uint64_t id, struct berth_err *err);

/* Compares every maintained counter and list with a recomputation from the instances, and checks that no port and no GPU
 * is held twice. -EBADMSG and the first breach in words if one is found. O(all). */
BERTH_API int berth_audit(const struct berth_cluster *cluster, struct berth_err *err);
/* Nodes whose instances hold more than their capacity, as on a node that shrank; no plan brings it about. O(all). */
BERTH_API size_t berth_over(const struct berth_cluster *cluster);

/* ---- looking back, for telling people ----------------------------------------------------------------------------- */

struct berth_workload_seen {
    const char *id; /* valid while the cluster is */
    uint32_t replicas;
    bool suspended;
};

struct berth_instance_seen {
    uint64_t id;
    uint32_t ordinal;
    const char *node;
    enum berth_state state;
};

BERTH_API size_t berth_nodes(const struct berth_cluster *cluster);
/* The workload at place i, in no particular order; false past the end. Places of removed ones have the id "". */
BERTH_API bool berth_workload_at(const struct berth_cluster *cluster, size_t i, struct berth_workload_seen *ret);
BERTH_API bool berth_workload_find(const struct berth_cluster *cluster, const char *id,
                                   struct berth_workload_seen *ret);
/* What a node has of a resource, over-commit apart, and what pods hold of it; of "gpu" in thousandths. */
struct berth_node_use {
    int64_t there, held;
};
BERTH_API bool berth_node_use(const struct berth_cluster *cluster, const char *node, const char *resource,
                              struct berth_node_use *ret); /* false: there is no such node */
/* Calls back for every instance of a workload, also of one that was removed. O(its instances). */
BERTH_API void berth_instances(const struct berth_cluster *cluster, const char *workload,
                               void (*tell)(void *ctx, const struct berth_instance_seen *instance), void *ctx);

/* ---- deciding --------------------------------------------------------------------------------------------------- */

struct berth_snapshot;

/* O(nodes), a few bits per workload and instance, and what changed since the last freeze. The cluster may change afterwards; the snapshot does not. */
BERTH_API struct berth_snapshot *berth_freeze(struct berth_cluster *cluster, int64_t now_ns, uint64_t seed);
BERTH_API void berth_snapshot_free(struct berth_snapshot *snapshot);

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
};

/* The profiles that are built in, "default" first; NULL past the end. */
BERTH_API const struct berth_profile *berth_profile_at(size_t i);
BERTH_API const struct berth_profile *berth_profile_find(const char *name); /* NULL: none of that name */

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
    bool strict;           /* nothing at all is placed that comes after a job which found no place */
    int64_t
        estimate_ns; /* of jobs that do not say how long they run; 0: an hour. Who runs for longer is expected to need
                              twice as long, and again, at most its limit */
};

struct berth_preemption {
    bool on;
    bool services;      /* pods of services and VMs are stopped for others, too; else of jobs alone */
    int64_t min_run_ns; /* that every pod may run before */
    uint32_t most;      /* pods that are told to stop at one moment; 0: 200 */
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
    struct berth_pressure pressure;
    bool shed; /* services leave a node that holds more than it has: lowest priority first, then the youngest */
    struct berth_headroom headroom;
    struct berth_rebalance rebalance;
    struct berth_order order;
    struct berth_backfill backfill;
    struct berth_preemption preemption;
    const struct berth_window *windows;
    size_t windows_len;
    /* Told now and then; has no influence. */
    void (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
};

/* Pressure at 95 % and 85 % with 10 s and 10 drops, shedding, two moves of at least 15 % and 10 minutes; no headroom; fifo,
 * 100 reservations, preemption after a minute. */
BERTH_API struct berth_policy berth_policy_usual(void);

enum berth_op {
    BERTH_PLACE,   /* a pod gets an instance on a node; with `replaces`, to take over from that one */
    BERTH_RESERVE, /* the same, waiting for stops */
    BERTH_PROMOTE, /* a reserved instance becomes assigned */
    BERTH_STOP,    /* an instance is told to stop; a reserved one is dropped */
    BERTH_LOSE,    /* an instance on a lost node counts as ended: its agent has fenced it */
    BERTH_ADJUST,  /* an instance gets another limit */
};

enum berth_cause {
    BERTH_CAUSE_PENDING, /* no instance yet */
    BERTH_CAUSE_REMOVED, /* its workload is gone */
    BERTH_CAUSE_SUSPENDED,
    BERTH_CAUSE_SCALED,     /* more than asked for */
    BERTH_CAUSE_LOST,       /* its node is lost */
    BERTH_CAUSE_DRAINED,    /* its node is being drained */
    BERTH_CAUSE_MOVED,      /* its replacement is ready, or evens out the load */
    BERTH_CAUSE_BROKEN,     /* its gang lost a task */
    BERTH_CAUSE_INFEASIBLE, /* a reservation that fits no longer */
    BERTH_CAUSE_BUSY,       /* use near its limit */
    BERTH_CAUSE_IDLE,       /* use far below its limit */
    BERTH_CAUSE_OUTDATED,   /* its workload has changed, or is to be restarted */
    BERTH_CAUSE_PRESSURE,   /* its node runs out of memory */
    BERTH_CAUSE_OVER,       /* its node holds more than it has */
    BERTH_CAUSE_BY_HAND,    /* somebody asked for the move */
    BERTH_CAUSE_UNDONE,     /* the move is taken back, or took too long */
    BERTH_CAUSE_PREEMPTED,  /* for work of a higher tier, which is reserved its place by the same plan */
    BERTH_CAUSE_EXPIRED,    /* it has run for as long as it may */
};

struct berth_action {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload;
    uint32_t ordinal;
    const char *node;
    uint64_t instance; /* concerned; 0 for one yet to be made */
    uint64_t replaces;
    uint64_t gpus; /* devices to hold */
    const uint64_t *waits;
    size_t waits_len;
    const char *resource; /* of ADJUST */
    int64_t limit;
};

/* What a decision leaves to be remembered, in the same commit as the actions. A later snapshot brings it back. */
enum berth_fact_kind {
    BERTH_FACT_USAGE,       /* (amount, at) of a tenant, decayed in closed form */
    BERTH_FACT_RESERVATION, /* (workload, start, since when it is that) */
    BERTH_FACT_MIGRATION,   /* (old instance, phase and cause, since), with the node wished for as its key */
    BERTH_FACT_SINCE,       /* of hysteresis and back-off */
    BERTH_FACT_LEDGER,      /* cumulative consumption */
    BERTH_FACT_PREDICTION,  /* (value, version) */
    BERTH_FACT_POLICY,      /* version in force */
    BERTH_FACT_PRESSURE,    /* (node, since, or since somebody was last picked to stop for it) */
};

struct berth_fact {
    enum berth_fact_kind kind;
    uint64_t subject; /* an instance id where the kind is about one: then that names it */
    const char *key;  /* else this does */
    int64_t value;
    int64_t at_ns;
    bool over; /* no longer true: forget it */
};

/* A migration is this fact and the two instances; so it goes on after any crash. Somebody who wants one puts WISHED by hand;
 * who wants it back puts UNDONE, before the old one is told to stop: the new one is stopped, and for an hour the old one
 * is not moved to even out load. The fact of one that came about, or of which nothing is left, is over. */
enum berth_migration_phase {
    BERTH_MIGRATION_STARTING = 1, /* the new one comes */
    BERTH_MIGRATION_STOPPING,     /* it has taken over, the old one goes */
    BERTH_MIGRATION_WISHED,       /* no place yet */
    BERTH_MIGRATION_UNDONE,
};

/* The value of such a fact, and what it says. */
BERTH_API int64_t berth_migration_value(enum berth_migration_phase phase, enum berth_cause cause);
BERTH_API enum berth_migration_phase berth_migration_phase(int64_t value);
BERTH_API enum berth_cause berth_migration_cause(int64_t value);

BERTH_API int berth_fact_put(struct berth_cluster *cluster, const struct berth_fact *fact, struct berth_err *err);

/* Why a node refuses a pod, or why a pod waits. */
struct berth_reason {
    const char *reason; /* a stable word, one of berth_reason_at */
    const char *what;   /* the resource, port or volume, where there is one; else "" */
    uint64_t nodes;     /* that refuse for it, whatever else they refuse for */
    uint64_t only;      /* of these: that refuse for nothing else */
    const char *text;   /* a sentence */
};

/* The vocabulary: word and sentence; NULL past the end. */
BERTH_API const char *berth_reason_at(size_t i, const char **ret_sentence);
/* The plugins by name, with a sentence each; NULL past the end. */
BERTH_API const char *berth_filter_at(size_t i, const char **ret_sentence);
BERTH_API const char *berth_score_at(size_t i, const char **ret_sentence);

/* Pods of one workload that got no place. */
struct berth_pending {
    const char *workload;
    const uint32_t *ordinals;
    size_t ordinals_len;
    const struct berth_reason *reasons; /* most nodes first */
    size_t reasons_len;
    const char *help; /* the smallest change that would let one more be placed; "" if none was found */
};

/* The factors of rankings and the rankings themselves, by name, with a sentence each; NULL past the end. */
BERTH_API const char *berth_factor_at(size_t i, const char **ret_sentence);
BERTH_API const char *berth_ranking_at(size_t i, const char **ret_sentence);

enum berth_entitlement { BERTH_SPARE, BERTH_BORROWED, BERTH_BY_RIGHT };

/* Where a workload that waits stands. */
struct berth_standing {
    uint32_t position; /* in the order, from 1; of all that wait */
    enum berth_entitlement entitlement;
    int32_t priority;
    bool waited; /* it has waited for longer than max_wait_ns */
    const char *queue, *ranking;
    int64_t key;
    /* Its factors, in the order of berth_factor_at, and the weight each has in the ranking (0: none, or a formula). */
    int32_t factors[32], weights[32];
    size_t factors_len;
    /* Its reservation; start_ns 0: none was made, or nobody can say when. */
    int64_t start_ns, end_ns;
    const char *node;         /* the first one */
    uint32_t nodes;           /* how many */
    const uint64_t *blockers; /* instances whose end it awaits there, the latest last; some of them if many */
    size_t blockers_len;
};

/* What is left to be said to a workload before it is put: is it within its quotas? */
struct berth_verdict {
    bool ok;
    const char *quota, *resource, *kind;  /* the limit that would be exceeded: "limit", "admitted" or "total" */
    int64_t limit, used, asked, accepted; /* of it; the most that would be accepted */
};

/* Counts what is admitted already (all workloads that are there but `draft->id` itself), not what has a place. A limit is
 * exceeded by what could never be placed. Texts are valid while the cluster is unchanged. */
BERTH_API struct berth_verdict berth_judge(const struct berth_cluster *cluster, const struct berth_workload *draft,
                                           int64_t now_ns);

/* What is held and asked for of a resource of a quota; false: there is no such quota. */
struct berth_quota_use {
    int64_t held, asked; /* by what is placed (stopping included); by what is admitted */
};
BERTH_API bool berth_quota_use(const struct berth_cluster *cluster, const char *quota, const char *resource,
                               struct berth_quota_use *ret);

/* Past use, decayed in closed form: BERTH_FACT_USAGE of a quota is (units x seconds in thousandths, at). What an instance adds
 * that held `rate` thousandths of units from start to end, as of `at`, and what an amount is worth later. */
BERTH_API int64_t berth_usage_decay(int64_t amount, int64_t from_ns, int64_t at_ns, int64_t half_life_ns);
BERTH_API int64_t berth_usage_add(int64_t rate, int64_t start_ns, int64_t end_ns, int64_t at_ns, int64_t half_life_ns);
/* Thousandths of units that a pod of this shape costs each second. */
BERTH_API int64_t berth_usage_rate(const struct berth_shape *shape, const struct berth_order *order);

struct berth_plan;

/* Decides. On success *ret_plan is the caller's, to be freed before the snapshot. Fails only for a policy that names
 * what does not exist, or that has weights or lists out of their range. */
BERTH_API int berth_plan_make(const struct berth_snapshot *snapshot, const struct berth_policy *policy,
                              struct berth_plan **ret_plan, struct berth_err *err);
BERTH_API void berth_plan_free(struct berth_plan *plan);

BERTH_API size_t berth_plan_actions(const struct berth_plan *plan);
BERTH_API struct berth_action berth_plan_action(const struct berth_plan *plan, size_t i);
BERTH_API size_t berth_plan_facts(const struct berth_plan *plan);
BERTH_API struct berth_fact berth_plan_fact(const struct berth_plan *plan, size_t i);
/* One per workload with pods left over, in order of the plan. The first call for a shape evaluates its reasons. */
BERTH_API size_t berth_plan_pendings(const struct berth_plan *plan);
BERTH_API struct berth_pending berth_plan_pending(struct berth_plan *plan, size_t i);
/* Its workload alone, without evaluating reasons. */
BERTH_API const char *berth_plan_pending_name(const struct berth_plan *plan, size_t i);
/* Where it stands; factors are computed when asked. */
BERTH_API struct berth_standing berth_plan_standing(struct berth_plan *plan, size_t i);
/* The first moment at which time alone could change the plan; BERTH_NEVER_NS: none. */
BERTH_API int64_t berth_plan_recheck_ns(const struct berth_plan *plan);
/* More than a third of the nodes are lost: nothing was replaced, somebody should look. */
BERTH_API bool berth_plan_alarm(const struct berth_plan *plan);
/* A fingerprint of actions, facts and recheck. */
BERTH_API uint64_t berth_plan_hash(const struct berth_plan *plan);
/* Search effort, for benchmarks and the curious. */
struct berth_plan_stats {
    uint64_t searches;      /* for the best node */
    uint64_t blocks_opened; /* of at most 64 nodes of one hardware kind, over all searches */
    uint64_t blocks;        /* in the cluster */
    uint64_t placed, unplaced;
};
BERTH_API struct berth_plan_stats berth_plan_stats(const struct berth_plan *plan);

/* Does to the cluster what a commit of the whole plan would: new instances get ids from first_id upwards, in order of
 * the actions. -ESTALE if the cluster has changed since the freeze. */
BERTH_API int berth_apply(struct berth_cluster *cluster, const struct berth_plan *plan, uint64_t first_id,
                          struct berth_err *err);

BERTH_API const char *berth_op_name(enum berth_op op);
BERTH_API const char *berth_cause_name(enum berth_cause cause);
BERTH_API const char *berth_state_name(enum berth_state state);
BERTH_API const char *berth_node_state_name(enum berth_node_state state);
BERTH_API const char *berth_version(void);

#if defined(__cplusplus)
}
#endif
