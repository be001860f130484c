/* berth_model.h - the objects of a cluster as plain data: nodes, workloads, instances, quotas. Part of berth.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of the model; a description that exceeds one is refused with its name. */
enum {
    BERTH_NAME_MAX = 253,      /* bytes of an id, label key or value, resource name */
    BERTH_LIST_MAX = 1024,     /* entries of any one list in a description */
    BERTH_RESOURCES_MAX = 256, /* distinct resource names in a cluster */
    BERTH_NODE_GPUS_MAX = 64,  /* GPUs of one node */
    BERTH_REPLICAS_MAX = 10000000,
    BERTH_GPU_MILLI = 1000, /* one whole GPU */
    BERTH_RATIO_ONE = 1000, /* over-commit ratio of 1: no over-commit */
    BERTH_WEIGHT_MAX = 100,
    BERTH_STEPS_MAX = 1000000,      /* score steps of a profile */
    BERTH_TYPICAL_PODS_MAX = 65536, /* kinds of typical pods */
    BERTH_OTHERS_MAX = 16,          /* profiles of a policy besides its own */
};
#define BERTH_AMOUNT_MAX ((int64_t)1 << 53) /* 8 PiB; the largest amount of anything on one node or in one request */
#define BERTH_NEVER_NS INT64_MAX

/* ---- objects of a cluster --------------------------------------------------------------------------------------- */

struct berth_label {
    const char *key, *value;
};

struct berth_amount {
    const char *resource;
    int64_t amount;
};

enum berth_match { BERTH_IN, BERTH_NOT_IN, BERTH_EXISTS, BERTH_NOT_EXISTS, BERTH_GT, BERTH_LT };

/* One condition on a label. GT and LT compare integers: they take one value, and the label must be an integer too.
 * NOT_IN and NOT_EXISTS also hold if the label is missing. */
struct berth_expr {
    const char *key;
    enum berth_match match;
    const char *const *values;
    size_t values_len;
};

/* Holds if every expression holds. An empty term never holds. */
struct berth_term {
    const struct berth_expr *exprs;
    size_t exprs_len;
    /* of a preference: 1 to BERTH_WEIGHT_MAX, for nodes also negative to avoid them; of a requirement: 0 */
    int32_t weight;
};

enum berth_effect { BERTH_EFFECT_ANY, BERTH_NO_SCHEDULE, BERTH_PREFER_NO_SCHEDULE, BERTH_NO_EXECUTE };

struct berth_taint {
    const char *key, *value;
    enum berth_effect effect; /* not ANY */
};

/* Without key and with `exists`: tolerates every taint. */
struct berth_toleration {
    const char *key, *value;
    bool exists; /* matches any value */
    enum berth_effect effect;
};

struct berth_gpu {
    const char *model;
    int64_t memory_bytes;
    bool unhealthy; /* current holders keep it; nothing new is placed on it */
};

enum berth_protocol { BERTH_TCP, BERTH_UDP, BERTH_SCTP };

/* A range of `count` ports (0 counts as 1) from `port` upwards, at one address of the node or at all ("" or "0.0.0.0").
 * Two ports conflict if protocol and number are equal, and the addresses are equal or one is all addresses. */
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
    BERTH_NODE_JOINING,  /* not ready yet */
    BERTH_NODE_CORDONED, /* keeps its instances, gets nothing new */
    BERTH_NODE_DRAINING, /* its instances move away */
    BERTH_NODE_LOST,     /* stopped reporting at since_ns */
};

struct berth_node {
    const char *id;
    enum berth_node_state state;
    int64_t since_ns; /* start of the state */
    const char *zone, *rack, *domain, *arch;
    uint32_t rank; /* among nodes with equal scores the lowest rank is taken, then a fixed order that ends in the id */
    int64_t page_size_bytes; /* the only huge-page size this node offers; 0: any */

    const struct berth_amount *allocatable; /* the total less the system's reserve, not reduced by instances */
    size_t allocatable_len;
    const struct berth_amount *overcommit; /* thousandths of allocatable that may be requested; 1000 where absent */
    size_t overcommit_len;
    const struct berth_amount *consumed; /* of cumulative resources, since consumed_ns */
    size_t consumed_len;
    int64_t consumed_ns;
    const struct berth_amount *consumed_begun; /* start, in ns, for resources whose period began at another time */
    size_t consumed_begun_len;
    const struct berth_amount *used; /* real use of the whole machine, as reported; only `cpu` and `memory` count */
    size_t used_len;
    const struct berth_label *labels;
    size_t labels_len;
    const struct berth_taint *taints;
    size_t taints_len;
    const struct berth_gpu *gpus; /* a device is identified by its index in this list */
    size_t gpus_len;
    const char *const *runtimes; /* "process", "oci", "vm", ...; empty: any */
    size_t runtimes_len;
    const struct berth_image *images;
    size_t images_len;
    const struct berth_port *ports; /* used by the system itself */
    size_t ports_len;
};

enum berth_resource_kind {
    BERTH_INSTANT,    /* CPU, memory, bandwidth: free again when the instance ends */
    BERTH_CUMULATIVE, /* storage, traffic: past consumption also counts until the period ends */
};

/* Only cumulative resources need a definition. */
struct berth_resource {
    const char *name;
    enum berth_resource_kind kind;
    int64_t period_ns; /* consumption restarts at zero this long after it began; 0: never */
};

/* A request for `count` whole GPUs, or, with count 1, for `milli` thousandths of one. */
struct berth_gpu_need {
    uint32_t count;
    uint32_t milli;            /* 0 or 1000: whole */
    int64_t memory_bytes;      /* of each device: its size; of a share: its free memory */
    const char *const *models; /* any of these, regardless of case; empty: any */
    size_t models_len;
};

/* The nodes on which a spread counts pods, and the domains it keeps even. */
enum berth_spread_nodes {
    /* Counts pods on all nodes, with and without stopping ones (a soft spread: only without). Domains: those of nodes
     * that could take the pod, ignoring resources held there. */
    BERTH_SPREAD_POSSIBLE,
    /* Counts pods that are not stopping, on nodes that have the topologies of all required spreads of the pod (for a
     * soft spread: of all soft ones). Domains: those of these nodes, as in Kubernetes. */
    BERTH_SPREAD_ALL,
    BERTH_SPREAD_REQUIRED,  /* of these nodes, those that satisfy `require` */
    BERTH_SPREAD_TOLERATED, /* ... those without a taint that keeps the pod away */
    BERTH_SPREAD_BOTH,
};

/* Topology spread constraint. A domain is the set of nodes that share the value of the label `topology` ("node", "zone"
 * and "rack" are built in). `select` selects the counted pods by the labels of their workloads. */
struct berth_spread {
    const char *topology;
    struct berth_term select;
    uint32_t max_skew;    /* pods above the emptiest domain; at least 1 */
    bool soft;            /* a preference, not a requirement */
    uint32_t min_domains; /* with fewer domains, the emptiest counts as empty; 0: no minimum */
    enum berth_spread_nodes nodes;
};

struct berth_affinity {
    const char *topology;
    struct berth_term select; /* weight 0: a requirement, else a preference */
    bool apart;               /* anti-affinity; if required, it binds both sides */
};

enum berth_limit_kind { BERTH_ABSOLUTE, BERTH_WEIGHTED };

/* A limit that the agent enforces. An absolute limit with `max` above `amount` is raised towards `max` under load,
 * where the node has room, and lowered again when idle. */
struct berth_limit {
    const char *resource;
    enum berth_limit_kind kind;
    int64_t amount; /* or the weight, which applies under contention */
    int64_t max;
};

/* The requests and constraints of one pod. Pods with equal shapes are planned together. */
struct berth_shape {
    const struct berth_amount *requests;
    size_t requests_len;
    struct berth_gpu_need gpu;
    const struct berth_limit *limits;
    size_t limits_len;
    const char *node; /* the only allowed node */
    const char *arch, *runtime;
    const char *const *domains; /* any of these; empty: all */
    size_t domains_len;
    const struct berth_term *require; /* on node labels; one matching term is enough */
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
    const char *near_zone; /* the zone of its data or its clients */
    const char *profile;   /* one of the policy's `others`, which then ranks nodes; "" or unknown: the policy's own */
    const struct berth_spread *spread;
    size_t spread_len;
    const struct berth_affinity *near;
    size_t near_len;
    uint32_t max_per_node; /* pods of this workload per node; 0: no limit */
};

enum berth_workload_kind { BERTH_SERVICE, BERTH_JOB, BERTH_VM };

/* The treatment of an instance whose node is lost. */
enum berth_on_lost {
    BERTH_LOST_DEFAULT, /* services with several replicas: REPLACE; others: FENCE */
    BERTH_LOST_REPLACE, /* at once */
    BERTH_LOST_FENCE,   /* after fence_ns, when its agent has stopped it */
    BERTH_LOST_WAIT,    /* wait for the node */
};

/* The treatment of an instance whose node is drained. */
enum berth_on_drain {
    BERTH_DRAIN_DEFAULT, /* services: MOVE; others: WAIT */
    BERTH_DRAIN_MOVE,    /* the new instance is ready before the old one stops */
    BERTH_DRAIN_WAIT,    /* wait for the instance to end */
    BERTH_DRAIN_STOP,    /* stop at once, whatever min_available says, and start elsewhere */
};

/* Inputs of rankings besides size, time and age. Levels are 0 to 100, urgency -1000 to 1000. */
struct berth_traits {
    int32_t user_level, group_level, urgency;
    int64_t parameters;              /* of the trained model; 0: none */
    int64_t attained_ns;             /* run time of earlier attempts */
    int32_t interference;            /* millionths: how much it and its neighbours slow down; 0: unknown */
    const struct berth_label *words; /* attributes that formulas may compare: type, class, network, ... */
    size_t words_len;
};

struct berth_workload {
    const char *id;
    enum berth_workload_kind kind;
    uint32_t replicas;  /* or tasks */
    int32_t priority;   /* higher first */
    int64_t created_ns; /* ties of priority: earlier first; then by id */
    bool suspended;
    int64_t begin_ns;       /* nothing new is placed before: a start time, or a pause after failures */
    uint32_t min_available; /* minimum of ready instances during planned disruptions; 0: all but one, and 1 of 1 */
    enum berth_on_lost on_lost;
    enum berth_on_drain on_drain;
    int64_t fence_ns;  /* 0: 10 minutes */
    const char *gang;  /* workloads of one gang are placed together or not at all */
    uint32_t gang_min; /* minimum number of tasks of this workload to place; 0: all */
    const struct berth_label *labels;
    size_t labels_len;
    struct berth_shape shape;
    /* For queued work; see "order of demands" in berth_policy.h. */
    const char *const *quotas; /* quotas that its pods count against, each with its parents; the first is its account */
    size_t quotas_len;
    const char *queue;   /* one of the policy's queues, which orders and ranks the workload */
    int64_t estimate_ns; /* expected run time of a pod; 0: limit_ns, or as the policy says */
    bool predicted;      /* estimate_ns was predicted, not stated by a user; does not affect plans */
    int64_t limit_ns;    /* a pod is stopped after this run time; 0: never */
    int64_t deadline_ns; /* pods that could not end by then are not placed; 0: none */
    int64_t min_run_ns;  /* a pod is not preempted before this run time; the policy's value applies if it is longer */
    bool unpreemptible;  /* its pods are never preempted */
    bool never_preempts; /* neither it nor any other workload of its gang preempts */
    struct berth_traits traits;
};

/* A volume that pods may mount. */
struct berth_volume {
    const char *id;
    const char *zone, *node; /* where it is reachable; empty: everywhere */
    const char *driver;      /* each node with the volume uses one of its `attach-DRIVER` resource */
    bool shared;             /* can be mounted on several nodes at once */
};

enum berth_state {
    BERTH_RESERVED, /* placed, but waiting for named instances to stop; its node is not told yet */
    BERTH_ASSIGNED,
    BERTH_STARTING,
    BERTH_RUNNING,
    BERTH_STOPPING,
    BERTH_ENDED, /* a finished task of a job. Holds nothing; its node may be gone */
};

struct berth_usage {
    const char *resource;
    int64_t used;
    int64_t used_since_ns; /* since when use has been at this level */
    int64_t limit;         /* in force; 0: as the workload says */
    int64_t limit_since_ns;
};

struct berth_instance {
    uint64_t id; /* above 0; never reused */
    const char *workload;
    uint32_t ordinal; /* the pod is WORKLOAD/ORDINAL */
    const char *node;
    enum berth_state state;
    bool ready;    /* healthy; counts as available */
    bool found;    /* not placed by Berth: its ports and GPUs may also be held by another instance */
    bool outdated; /* placed from an older description: services replace it, a few at a time */
    int64_t since_ns;
    /* Use is counted from this moment: when it first ran, or up to when BERTH_FACT_USAGE includes it. 0: since_ns if
     * running, else not counted yet. */
    int64_t counted_ns;
    int64_t fence_ns;      /* silence after which its node fences it; BERTH_NEVER_NS: never; 0: as the workload says */
    uint64_t gpus;         /* devices held, a bit each */
    uint64_t replaces;     /* the instance this one takes over from; 0: none */
    const uint64_t *waits; /* if reserved: the instances whose stop it waits for */
    size_t waits_len;
    const struct berth_usage *usage;
    size_t usage_len;
    /* shape it was placed with; NULL: unchanged, or for a new instance the workload's present shape */
    const struct berth_shape *shape;
};

/* Limits for all workloads of a user, a group or a queue. Quotas form trees: what counts against a quota counts against
 * its parents, too. Besides resources there are "gpu" (in thousandths), "pods", and "jobs" (workloads with a placed
 * pod). */
struct berth_quota {
    const char *id;     /* "user/ann", "group/vision", "queue/prod", ... */
    const char *parent; /* "": none */
    uint32_t weight;    /* among siblings, for fair shares; 0 counts as 1 */
    bool weighted;      /* its guarantee is its weight's share of the parent's guarantee, or of the cluster */
    const struct berth_amount *limits; /* hard limit on concurrent use */
    size_t limits_len;
    /* Guaranteed amounts. Use beyond them is borrowed: placed after all guaranteed use, and preempted for it.
     * Resources that are not listed are fully guaranteed. */
    const struct berth_amount *guarantees;
    size_t guarantees_len;
    /* limit on the requests of all waiting and running work together; see berth_admission_check */
    const struct berth_amount *admitted;
    size_t admitted_len;
    const struct berth_total *totals;
    size_t totals_len;
};

/* A cumulative limit: a pod is not started if its estimate would exceed it. */
struct berth_total {
    const char *resource;
    int64_t limit, spent; /* amount x seconds; spent by ended work since since_ns */
    int64_t since_ns;
    int64_t period_ns; /* `spent` restarts at zero this long after since_ns; 0: never */
};

/* A disruption budget: how many of the selected pods may still be preempted. */
struct berth_budget {
    const char *id;
    struct berth_term select; /* selects by the labels of their workloads */
    uint32_t allowed;
};
