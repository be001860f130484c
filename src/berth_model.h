/* berth_model.h - what a cluster is made of, as plain data: nodes, workloads, instances, quotas. Part of berth.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    BERTH_STEPS_MAX = 1000000, /* of a profile's scores */
    BERTH_DEMAND_MAX = 65536,  /* kinds of pods that usually come */
    BERTH_OTHERS_MAX = 16,     /* profiles of a policy beside its own */
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
    bool unhealthy; /* who holds it keeps it; nobody else gets it */
};

enum berth_protocol { BERTH_TCP, BERTH_UDP, BERTH_SCTP };

/* A block of `count` ports (0 counts as 1) from `port` upwards, at one address of the node or at all ("" or "0.0.0.0"). Two
 * clash where protocol and number are the same, and the address is or one is at all. */
struct berth_port {
    enum berth_protocol protocol;
    uint16_t port, count;
    const char *address;
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
    const struct berth_amount *consumed_begun; /* of those whose period began at another time: when, in ns */
    size_t consumed_begun_len;
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
    int64_t period_ns; /* consumption counts from zero again this long after it began; 0: never */
};

/* Of `count` GPUs each is held wholly, or, with count 1, `milli` thousandths of one are. */
struct berth_gpu_need {
    uint32_t count;
    uint32_t milli;            /* 0 or 1000: whole */
    int64_t memory_bytes;      /* of each device: its size, or of a share: what is still free */
    const char *const *models; /* any of these, whatever their case; empty: any */
    size_t models_len;
};

/* Where a spread counts pods, and of which domains one is the emptiest. */
enum berth_spread_nodes {
    BERTH_SPREAD_POSSIBLE, /* pods everywhere, with stopping ones and again without them (of a soft one: without);
                              domains of nodes that could take the pod but for what is held there */
    /* Pods that do not stop on nodes that have the topologies of all required (or, of a soft one, all soft) spreads of
     * the pod, and the domains of these nodes: as in Kubernetes. */
    BERTH_SPREAD_ALL,
    BERTH_SPREAD_REQUIRED,  /* of them the nodes that satisfy `require` */
    BERTH_SPREAD_TOLERATED, /* ... without a taint that keeps the pod away */
    BERTH_SPREAD_BOTH,
};

/* Counting within domains: nodes that share the value of the label `topology` ("node", "zone" and "rack" are built in).
 * `select` picks by the labels of workloads whose pods count. */
struct berth_spread {
    const char *topology;
    struct berth_term select;
    uint32_t max_skew;    /* above the emptiest domain; at least 1 */
    bool soft;            /* a preference, not a requirement */
    uint32_t min_domains; /* where there are fewer, the emptiest counts as empty; 0: none needed */
    enum berth_spread_nodes nodes;
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
    const char *profile;   /* one of the policy's `others` says which nodes are better; "", or none of them: its own */
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
    bool predicted;      /* estimate_ns was predicted, not stated by a user; no plan depends on it */
    int64_t limit_ns;    /* a pod that has run for so long is stopped; 0: never */
    int64_t deadline_ns; /* nothing is placed that could not end by then; 0: none */
    int64_t min_run_ns;  /* a pod is not stopped for others before; the policy's if that is longer */
    bool unpreemptible;  /* not at all */
    bool never_preempts; /* it has its place in the order, but nobody is stopped for it, nor for another of its gang */
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
    bool found; /* put as it was found, placed by others: ports and GPUs may be held by it and by another */
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

/* Of some pods only so many more may be stopped for others. */
struct berth_budget {
    const char *id;
    struct berth_term select; /* on the labels of their workloads */
    uint32_t allowed;
};
