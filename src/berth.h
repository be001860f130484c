/* berth.h - plans a whole cluster in one call.
 *
 * The public interface of libberth. A cluster holds nodes, workloads and instances; a snapshot freezes it at one
 * moment; berth_plan_make is a pure function of the snapshot and a policy:
 *
 *     cluster --berth_freeze--> snapshot --berth_plan_make--> plan {actions, facts, recheck}
 *
 * The same snapshot and policy give the same plan on every machine, in whatever order the objects were put into the
 * cluster; a plan that has been applied leaves nothing to do. The library opens no file, reads no clock and starts no
 * thread. It is not a daemon: recording, running and reporting are up to the caller.
 *
 * Conventions. Descriptions (struct berth_node, ...) are plain data, read during the call and copied. A zeroed field
 * means "not requested". Strings are UTF-8; NULL and "" are the same. Times are nanoseconds on the caller's clock.
 * Amounts are integers: `cpu` in thousandths of a core, `memory` and all other sizes in bytes, everything else in
 * units. Functions that can fail return 0 or a negative errno, set *err (which may be NULL) to the cause, and change
 * nothing. A cluster is used by one thread at a time, and so is a plan; a snapshot may be read by several threads. If
 * memory cannot be allocated, the process exits (status 71).
 *
 * To add a field to a description: berth_model.h, core/model/describe.c (its rules), src/wire/ (its JSON form), and the
 * code that uses it.
 */
#pragma once

#include "base/err.h"
#include "berth_model.h"
#include "berth_policy.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define BERTH_API __attribute__((visibility("default")))

struct berth_cluster;

BERTH_API struct berth_cluster *berth_cluster_new(void);
BERTH_API void berth_cluster_free(struct berth_cluster *cluster); /* after its snapshots and plans */

/* Adds an object, or replaces the one with the same id. An instance needs its node; an instance whose workload does not
 * exist is stopped by the next plan. A node that still holds instances cannot be removed. Removing a workload leaves
 * its instances, which the next plan stops. An instance that holds a port or a GPU held by another one is refused with
 * -EBUSY, unless it is put as found: then both count, and plans place nothing more there. */
BERTH_API int berth_resource_put(struct berth_cluster *cluster, const struct berth_resource *resource,
                                 struct berth_err *err);
BERTH_API int berth_node_put(struct berth_cluster *cluster, const struct berth_node *node, struct berth_err *err);
BERTH_API int berth_node_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_volume_put(struct berth_cluster *cluster, const struct berth_volume *volume, struct berth_err *err);
/* Returns whether an instance on the node holds the volume. */
BERTH_API bool berth_volume_used(const struct berth_cluster *cluster, const char *volume, const char *node);
/* A quota that workloads name but that was never put, or was removed, limits nothing. -ELOOP if a quota would be its
 * own ancestor. */
BERTH_API int berth_quota_put(struct berth_cluster *cluster, const struct berth_quota *quota, struct berth_err *err);
BERTH_API int berth_quota_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
/* Pods may count against several budgets. `allowed` is a momentary value: berth_apply subtracts the pods it preempts,
 * and callers report other preemptions with berth_budget_spend; a put sets it again. */
BERTH_API int berth_budget_put(struct berth_cluster *cluster, const struct berth_budget *budget, struct berth_err *err);
BERTH_API int berth_budget_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
/* A pod of the workload was preempted: `allowed` of each budget it counts against falls by one, but not below 0. */
BERTH_API void berth_budget_spend(struct berth_cluster *cluster, const char *workload);
BERTH_API int berth_workload_put(struct berth_cluster *cluster, const struct berth_workload *workload,
                                 struct berth_err *err);
BERTH_API int berth_workload_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_instance_put(struct berth_cluster *cluster, const struct berth_instance *instance,
                                 struct berth_err *err);
BERTH_API int berth_instance_remove(struct berth_cluster *cluster, uint64_t id, struct berth_err *err);

/* Compares every maintained counter and list with a recomputation from the instances, and checks that no port and no
 * GPU is held twice, except by instances put as found. Returns -EBADMSG and describes the first inconsistency.
 * O(all). */
BERTH_API int berth_audit(const struct berth_cluster *cluster, struct berth_err *err);
/* Returns the number of nodes whose instances hold more than their capacity, for example after a node shrank; no plan
 * causes it. O(all). */
BERTH_API size_t berth_nodes_over_capacity(const struct berth_cluster *cluster);

/* ---- reading back, for display ---------------------------------------------------------------------------------- */

struct berth_workload_view {
    const char *id; /* valid as long as the cluster */
    uint32_t replicas;
    bool suspended;
};

struct berth_instance_view {
    uint64_t id;
    uint32_t ordinal;
    const char *node;
    enum berth_state state;
};

BERTH_API size_t berth_nodes(const struct berth_cluster *cluster);
/* Stores the workload with index i, in no particular order; false past the end. Indices of removed workloads have the
 * id "". */
BERTH_API bool berth_workload_at(const struct berth_cluster *cluster, size_t i, struct berth_workload_view *ret);
BERTH_API bool berth_workload_find(const struct berth_cluster *cluster, const char *id,
                                   struct berth_workload_view *ret);
/* How much a node has of a resource, without over-commit, and how much its pods hold; "gpu" in thousandths. */
struct berth_node_use {
    int64_t there, held;
};
BERTH_API bool berth_node_use(const struct berth_cluster *cluster, const char *node, const char *resource,
                              struct berth_node_use *ret); /* false: the node does not exist */
/* Calls `tell` for every instance of a workload, which may have been removed. O(its instances). */
BERTH_API void berth_instances(const struct berth_cluster *cluster, const char *workload,
                               void (*tell)(void *ctx, const struct berth_instance_view *instance), void *ctx);

/* ---- planning --------------------------------------------------------------------------------------------------- */

struct berth_snapshot;

/* Freezes the cluster. It may change afterwards; the snapshot does not. O(nodes), a few bits per workload and instance,
 * and the changes since the last freeze. */
BERTH_API struct berth_snapshot *berth_freeze(struct berth_cluster *cluster, int64_t now_ns, uint64_t seed);
BERTH_API void berth_snapshot_free(struct berth_snapshot *snapshot);

/* Returns the built-in profiles, "default" first; NULL past the end. */
BERTH_API const struct berth_profile *berth_profile_at(size_t i);
BERTH_API const struct berth_profile *berth_profile_find(const char *name); /* NULL: there is no such profile */

/* Returns the usual policy. Pressure: 95 % and 85 %, held 10 s, 10 drops. Shedding. Rebalancing: two moves, 15 % gain,
 * 10 minutes age. No headroom. Order: fifo. 100 reservations. Preemption after a minute. */
BERTH_API struct berth_policy berth_policy_usual(void);

enum berth_op {
    BERTH_PLACE,   /* creates an instance on a node; with `replaces`, to take over from that instance */
    BERTH_RESERVE, /* the same, but the instance waits for others to stop */
    BERTH_PROMOTE, /* a reserved instance becomes assigned */
    BERTH_STOP,    /* stops an instance; drops a reserved one */
    BERTH_LOSE,    /* an instance on a lost node counts as ended: its agent has fenced it */
    BERTH_ADJUST,  /* changes a limit of an instance */
};

enum berth_cause {
    BERTH_CAUSE_PENDING, /* has no instance yet */
    BERTH_CAUSE_REMOVED, /* its workload was removed */
    BERTH_CAUSE_SUSPENDED,
    BERTH_CAUSE_SCALED,        /* more instances than replicas */
    BERTH_CAUSE_LOST,          /* its node is lost */
    BERTH_CAUSE_DRAINED,       /* its node is being drained */
    BERTH_CAUSE_MOVED,         /* its replacement is ready, or the move rebalances load */
    BERTH_CAUSE_BROKEN,        /* its gang lost a task */
    BERTH_CAUSE_INFEASIBLE,    /* its reservation no longer fits */
    BERTH_CAUSE_BUSY,          /* use is near the limit */
    BERTH_CAUSE_IDLE,          /* use is far below the limit */
    BERTH_CAUSE_OUTDATED,      /* its workload has changed or is being restarted */
    BERTH_CAUSE_PRESSURE,      /* its node is short of memory */
    BERTH_CAUSE_OVER_CAPACITY, /* its node is over capacity */
    BERTH_CAUSE_MANUAL,        /* a user requested the migration */
    BERTH_CAUSE_UNDONE,        /* the migration was undone, or took too long */
    BERTH_CAUSE_PREEMPTED,     /* preempted for work of a higher tier, for which the same plan reserves its place */
    BERTH_CAUSE_EXPIRED,       /* it reached its time limit */
};

struct berth_action {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload;
    uint32_t ordinal;
    const char *node;
    uint64_t instance; /* the instance acted on; 0 for a new one */
    uint64_t replaces;
    uint64_t gpus; /* devices to hold, a bit each */
    const uint64_t *waits;
    size_t waits_len;
    const char *resource; /* ADJUST only */
    int64_t limit;
    /* PLACE and RESERVE only, for explanations and not part of the plan's hash: the score of the node, and an upper
     * bound for nodes of other groups of equal nodes; equal to score if there was none. */
    int32_t score, rival;
};

/* State that a decision leaves behind, committed together with the actions. The caller puts it into the cluster for
 * later plans. */
enum berth_fact_kind {
    BERTH_FACT_USAGE,       /* (amount, at) of an account, decayed in closed form */
    BERTH_FACT_RESERVATION, /* (workload, start, since when it has that start) */
    BERTH_FACT_MIGRATION,   /* (old instance, phase and cause, since); the key is the requested target node */
    BERTH_FACT_SINCE,       /* start of a hysteresis or back-off period */
    BERTH_FACT_LEDGER,      /* cumulative consumption */
    BERTH_FACT_PREDICTION,  /* (value, version) */
    BERTH_FACT_POLICY,      /* version in force */
    BERTH_FACT_PRESSURE,    /* (node, start of the pressure or of the last stop because of it) */
};

struct berth_fact {
    enum berth_fact_kind kind;
    uint64_t subject; /* id of the instance that the fact is about, for such kinds */
    const char *key;  /* identifies facts of all other kinds */
    int64_t value;
    int64_t at_ns;
    bool over; /* no longer true: delete it */
};

/* A migration consists of this fact and the two instances, so it continues after any crash. To request one, put a fact
 * with BERTH_MIGRATION_REQUESTED and BERTH_CAUSE_MANUAL. To undo one, put BERTH_MIGRATION_UNDONE before the old
 * instance is told to stop: the new instance is stopped, and for an hour the old one is not moved for rebalancing. The
 * fact is over when the migration is complete or nothing of it is left. */
enum berth_migration_phase {
    BERTH_MIGRATION_STARTING = 1, /* the new instance is starting */
    BERTH_MIGRATION_STOPPING,     /* the new instance has taken over, the old one stops */
    BERTH_MIGRATION_REQUESTED,    /* requested, not placed yet */
    BERTH_MIGRATION_UNDONE,
};

/* The value of a migration fact, and its parts. */
BERTH_API int64_t berth_migration_value(enum berth_migration_phase phase, enum berth_cause cause);
BERTH_API enum berth_migration_phase berth_migration_phase(int64_t value);
BERTH_API enum berth_cause berth_migration_cause(int64_t value);

BERTH_API int berth_fact_put(struct berth_cluster *cluster, const struct berth_fact *fact, struct berth_err *err);

/* A reason why nodes refuse a pod, or why a pod waits. */
struct berth_reason {
    const char *reason; /* a stable word, one of berth_reason_at */
    const char *what;   /* the resource, port or volume, if any; else "" */
    uint64_t nodes;     /* number of nodes that refuse for this reason, among others */
    uint64_t only;      /* number of nodes that refuse for this reason alone */
    const char *text;   /* a sentence */
};

/* Returns the reasons: word and sentence; NULL past the end. */
BERTH_API const char *berth_reason_at(size_t i, const char **ret_sentence);
/* Returns the filters and scores by name, with a sentence each; NULL past the end. */
BERTH_API const char *berth_filter_at(size_t i, const char **ret_sentence);
BERTH_API const char *berth_score_at(size_t i, const char **ret_sentence);

/* Pods of one workload that were not placed. */
struct berth_pending {
    const char *workload;
    const uint32_t *ordinals;
    size_t ordinals_len;
    const struct berth_reason *reasons; /* most nodes first */
    size_t reasons_len;
};

/* Changes after which more pods of a workload may be placed. All but UNCORDON change the workload. */
enum berth_change {
    BERTH_CHANGE_REQUEST,       /* request `amount` of the resource `name` */
    BERTH_CHANGE_GPUS,          /* request `amount` GPUs per pod */
    BERTH_CHANGE_GANG,          /* set `gang_min` to `amount` */
    BERTH_CHANGE_TOLERATION,    /* tolerate every taint with the key `name` */
    BERTH_CHANGE_UNCORDON,      /* uncordon the node `name` */
    BERTH_CHANGE_NODE,          /* name no node */
    BERTH_CHANGE_LABELS,        /* require no node labels */
    BERTH_CHANGE_DOMAIN,        /* name no domains */
    BERTH_CHANGE_RUNTIME,       /* name no runtime */
    BERTH_CHANGE_ARCH,          /* name no architecture */
    BERTH_CHANGE_GPU_KIND,      /* name neither models nor memory of GPUs */
    BERTH_CHANGE_PORTS,         /* have no ports */
    BERTH_CHANGE_VOLUMES,       /* mount no volumes */
    BERTH_CHANGE_SPREAD,        /* require no spread */
    BERTH_CHANGE_AFFINITY,      /* require no affinity */
    BERTH_CHANGE_ANTI_AFFINITY, /* require no anti-affinity */
    BERTH_CHANGE_PER_NODE,      /* no limit of pods per node */
};

/* A change that was shown to help: with only this change, the plan places more pods of the workload. */
struct berth_advice {
    enum berth_change change;
    const char *name;
    int64_t amount;
    uint32_t starts;  /* pods of the workload that the changed plan places */
    uint32_t after;   /* of these, pods that wait for other instances to stop */
    uint32_t waiting; /* pods of the workload without a place before the change */
    const char *node; /* node of the first placed pod */
    const char *what; /* "with 1500m of cpu instead of 2" */
    const char *text; /* "with 1500m of cpu instead of 2, the pod starts on b" */
};

/* A node that does not take a pod, and why. */
struct berth_near_miss {
    const char *node;
    const char *text; /* "has 2 of cpu free, 4 needed; has a taint that is not tolerated: gpu" */
    uint32_t reasons; /* number of reasons */
};

/* Returns the factors of rankings, and the rankings, by name with a sentence each; NULL past the end. */
BERTH_API const char *berth_factor_at(size_t i, const char **ret_sentence);
BERTH_API const char *berth_ranking_at(size_t i, const char **ret_sentence);

enum berth_entitlement { BERTH_SPARE, BERTH_BORROWED, BERTH_GUARANTEED };

/* One term of a key: value x weight. Ordering workloads by the sum of their terms orders them by their keys. */
struct berth_rank_term {
    const char *name, *sentence;
    double value, weight;
};
enum { BERTH_RANK_TERMS_MAX = 2 };

/* The position of a waiting workload in the order. */
struct berth_queue_position {
    uint32_t position; /* from 1, among all waiting workloads */
    enum berth_entitlement entitlement;
    int32_t priority;
    bool waited; /* it has waited longer than max_wait_ns */
    const char *queue, *ranking;
    int64_t key;
    /* Its factors, in the order of berth_factor_at, and their weights in the ranking (0: none, or a formula). */
    int32_t factors[32], weights[32];
    size_t factors_len;
    /* The terms whose sum is the key, if the ranking weighs no factors. None for fifo, where all keys are equal, and
     * for a formula. */
    struct berth_rank_term terms[BERTH_RANK_TERMS_MAX];
    size_t terms_len;
    /* Its reservation. start_ns 0: none was made, or the start cannot be estimated. */
    int64_t start_ns, end_ns;
    const char *node;         /* the first node of the reservation */
    uint32_t nodes;           /* number of nodes */
    const uint64_t *blockers; /* instances that must end first, the latest last; only some of very many */
    size_t blockers_len;
};

/* The share of an account in the fair-share tree. */
struct berth_share {
    const char *quota; /* the account: the first quota of a workload */
    uint32_t weight;   /* among its siblings */
    int64_t used;      /* thousandths of units x seconds: past use, decayed until now, and running work */
    int32_t factor;    /* millionths: the `fair_share` of its workloads; a million has the highest priority */
};

/* The result of the admission check of a workload: whether it is within its quotas. */
struct berth_admission_result {
    bool ok;
    const char *quota, *resource, *kind;  /* the exceeded limit; kind is "limit", "admitted" or "total" */
    int64_t limit, used, asked, accepted; /* of that limit; accepted: the most that would be accepted */
};

/* Checks a workload before it is put. Counts all admitted workloads except `draft->id` itself, placed or not. A "limit"
 * is exceeded only by work that could never be placed. Texts are valid while the cluster is unchanged. */
BERTH_API struct berth_admission_result berth_admission_check(const struct berth_cluster *cluster,
                                                              const struct berth_workload *draft, int64_t now_ns);

/* Returns the GPU models of the nodes, each once regardless of case, spelled as on one of the nodes; NULL past the
 * end. */
BERTH_API const char *berth_gpu_model_at(const struct berth_cluster *cluster, size_t i);

/* Amounts of a resource held and requested under a quota. berth_quota_use returns false if the quota does not exist. */
struct berth_quota_use {
    int64_t held, asked; /* held by placed pods, stopping ones included; requested by admitted workloads */
};
BERTH_API bool berth_quota_use(const struct berth_cluster *cluster, const char *quota, const char *resource,
                               struct berth_quota_use *ret);

/* Past use, decayed in closed form: BERTH_FACT_USAGE of a quota is (units x seconds in thousandths, at).
 * berth_usage_decay returns what an amount is worth later; berth_usage_add returns the use, as of `at`, of an instance
 * that held `rate` thousandths of units from start to end. */
BERTH_API int64_t berth_usage_decay(int64_t amount, int64_t from_ns, int64_t at_ns, int64_t half_life_ns);
BERTH_API int64_t berth_usage_add(int64_t rate, int64_t start_ns, int64_t end_ns, int64_t at_ns, int64_t half_life_ns);
/* Returns the thousandths of units that a pod of this shape costs each second. */
BERTH_API int64_t berth_usage_rate(const struct berth_shape *shape, const struct berth_order *order);

/* Idle GPUs in thousandths, and the expected part of them that a typical pod (see berth_policy.demand) cannot use. */
struct berth_fragmentation {
    double useless_milli, idle_milli;
};

/* Computes it for one node; "" for all nodes. Stopping and reserved instances count as holding their GPUs. Fails for a
 * policy out of range, and with -ENOENT. O(nodes, and the workloads that the typical pods are taken from). */
BERTH_API int berth_fragmentation(const struct berth_snapshot *snapshot, const struct berth_policy *policy,
                                  const char *node, struct berth_fragmentation *ret, struct berth_err *err);

struct berth_plan;

/* Makes a plan. On success *ret_plan belongs to the caller, who must free it before the snapshot. Fails only if the
 * policy names something unknown, or has weights or lists out of range. */
BERTH_API int berth_plan_make(const struct berth_snapshot *snapshot, const struct berth_policy *policy,
                              struct berth_plan **ret_plan, struct berth_err *err);
BERTH_API void berth_plan_free(struct berth_plan *plan);

BERTH_API size_t berth_plan_actions(const struct berth_plan *plan);
BERTH_API struct berth_action berth_plan_action(const struct berth_plan *plan, size_t i);
BERTH_API size_t berth_plan_facts(const struct berth_plan *plan);
BERTH_API struct berth_fact berth_plan_fact(const struct berth_plan *plan, size_t i);
/* Workloads with pods that were not placed, in the order of the plan. The first call for a shape evaluates its
 * reasons. */
BERTH_API size_t berth_plan_pendings(const struct berth_plan *plan);
BERTH_API struct berth_pending berth_plan_pending(struct berth_plan *plan, size_t i);
/* Returns only the id of the workload, without evaluating reasons. */
BERTH_API const char *berth_plan_pending_name(const struct berth_plan *plan, size_t i);
/* Returns the nodes that come nearest to taking one more pod of the workload, at most `cap`: fewest reasons first, then
 * the smallest relative shortage, then the order of nodes. Returns how many. Ignores quotas and reservations of other
 * workloads. O(nodes). */
BERTH_API size_t berth_plan_nearest(struct berth_plan *plan, size_t i, struct berth_near_miss *ret, size_t cap);
/* Finds changes after which more pods of the i-th pending workload are placed: at most `cap` changes, the smallest
 * first. Each change is applied to a copy of the plan's snapshot and planned with the policy, with at most `tries`
 * plans; changes that do not help are left out. `policy` is the one that the plan was made with. Returns the number of
 * changes. O(tries x plan). */
BERTH_API size_t berth_plan_advise(struct berth_plan *plan, const struct berth_policy *policy, size_t i, size_t tries,
                                   struct berth_advice *ret, size_t cap);
/* Returns the position of the i-th pending workload; factors are computed on request. */
BERTH_API struct berth_queue_position berth_plan_queue_position(struct berth_plan *plan, size_t i);
/* Calls `tell` for every account with past use or with waiting or running work, in no particular order. Computed on
 * first use. */
BERTH_API void berth_plan_shares(struct berth_plan *plan, void (*tell)(void *ctx, const struct berth_share *share),
                                 void *ctx);
/* Returns the first moment at which time alone could change the plan; BERTH_NEVER_NS: none. */
BERTH_API int64_t berth_plan_recheck_ns(const struct berth_plan *plan);
/* Returns whether more than a third of the nodes are lost. Then nothing is replaced, and an operator should
 * investigate. */
BERTH_API bool berth_plan_alarm(const struct berth_plan *plan);
/* Returns a hash of actions, facts and recheck. */
BERTH_API uint64_t berth_plan_hash(const struct berth_plan *plan);
/* Search effort, for benchmarks. */
struct berth_plan_stats {
    uint64_t searches;      /* for the best node */
    uint64_t blocks_opened; /* groups of at most 64 nodes of one hardware kind, summed over all searches */
    uint64_t blocks;        /* such groups in the cluster */
    uint64_t placed, unplaced;
};
BERTH_API struct berth_plan_stats berth_plan_stats(const struct berth_plan *plan);

/* Changes the cluster as a commit of the whole plan would. New instances get ids from first_id upwards, in the order of
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
