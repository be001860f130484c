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
 * To add a field to a description: berth_model.h, core/model/describe.c (its rules), src/wire/ (its spelling), and where it is used.
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
BERTH_API void berth_cluster_free(struct berth_cluster *cluster); /* its snapshots and plans first */

/* Adds, or replaces what has the same id. An instance needs its node; one whose workload is not there is stopped by the
 * next plan. A node that still holds instances cannot be removed. Removing a workload leaves its instances, to be
 * stopped by the next plan. An instance that holds a port or a GPU which another one holds is refused with -EBUSY, unless it is put as found: then both
 * count, and a plan adds nothing to it. */
BERTH_API int berth_resource_put(struct berth_cluster *cluster, const struct berth_resource *resource,
                                 struct berth_err *err);
BERTH_API int berth_node_put(struct berth_cluster *cluster, const struct berth_node *node, struct berth_err *err);
BERTH_API int berth_node_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_volume_put(struct berth_cluster *cluster, const struct berth_volume *volume, struct berth_err *err);
/* Does an instance on the node hold the volume? */
BERTH_API bool berth_volume_used(const struct berth_cluster *cluster, const char *volume, const char *node);
/* A quota that is named and not there, or no longer, limits nothing. -ELOOP for one that would be its own ancestor. */
BERTH_API int berth_quota_put(struct berth_cluster *cluster, const struct berth_quota *quota, struct berth_err *err);
BERTH_API int berth_quota_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
/* Pods may count against several budgets. `allowed` is of the moment: berth_apply takes off what it stops for others, who stops
 * them otherwise says so; a put sets it anew. */
BERTH_API int berth_budget_put(struct berth_cluster *cluster, const struct berth_budget *budget, struct berth_err *err);
BERTH_API int berth_budget_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
/* A pod of the workload is stopped for another: one less is allowed of each budget it counts against, if any was. */
BERTH_API void berth_budget_spend(struct berth_cluster *cluster, const char *workload);
BERTH_API int berth_workload_put(struct berth_cluster *cluster, const struct berth_workload *workload,
                                 struct berth_err *err);
BERTH_API int berth_workload_remove(struct berth_cluster *cluster, const char *id, struct berth_err *err);
BERTH_API int berth_instance_put(struct berth_cluster *cluster, const struct berth_instance *instance,
                                 struct berth_err *err);
BERTH_API int berth_instance_remove(struct berth_cluster *cluster, uint64_t id, struct berth_err *err);

/* Compares every maintained counter and list with a recomputation from the instances, and checks that no port and no GPU
 * is held twice, but by what was put as found. -EBADMSG and the first breach in words if one is found. O(all). */
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

/* The profiles that are built in, "default" first; NULL past the end. */
BERTH_API const struct berth_profile *berth_profile_at(size_t i);
BERTH_API const struct berth_profile *berth_profile_find(const char *name); /* NULL: none of that name */

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
    /* Of PLACE and RESERVE, for people and no part of the fingerprint: what the node scored, and a bound on what any node of
     * another group of equal ones could have; the same number if there was none. */
    int32_t score, rival;
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
};

/* Changes by which more pods of a workload may be placed. All but one are changes to the workload. */
enum berth_change {
    BERTH_CHANGE_REQUEST,       /* its request of the resource `name` is `amount` */
    BERTH_CHANGE_GPUS,          /* its pods ask for `amount` GPUs each */
    BERTH_CHANGE_GANG,          /* its `gang_min` is `amount` */
    BERTH_CHANGE_TOLERATION,    /* it tolerates every taint with the key `name` */
    BERTH_CHANGE_UNCORDON,      /* the node `name` is ready */
    BERTH_CHANGE_NODE,          /* it names no node */
    BERTH_CHANGE_LABELS,        /* it requires no labels of a node */
    BERTH_CHANGE_DOMAIN,        /* it names no domains */
    BERTH_CHANGE_RUNTIME,       /* it names no runtime */
    BERTH_CHANGE_ARCH,          /* it names no architecture */
    BERTH_CHANGE_GPU_KIND,      /* it names neither models nor memory of its GPUs */
    BERTH_CHANGE_PORTS,         /* it has no ports */
    BERTH_CHANGE_VOLUMES,       /* it mounts no volumes */
    BERTH_CHANGE_SPREAD,        /* it requires no spread */
    BERTH_CHANGE_AFFINITY,      /* it requires no pods to be near */
    BERTH_CHANGE_ANTI_AFFINITY, /* it requires no pods to be apart */
    BERTH_CHANGE_PER_NODE,      /* its pods on one node are not limited */
};

/* A change that a plan has shown to help: with it and nothing else changed, that plan gives places to more pods of
 * the workload. */
struct berth_advice {
    enum berth_change change;
    const char *name;
    int64_t amount;
    uint32_t starts;  /* pods of the workload to which that plan gives places */
    uint32_t after;   /* of these, how many wait for other instances to stop first */
    uint32_t waiting; /* pods of the workload without a place before the plan */
    const char *node; /* of the first one */
    const char *what; /* "with 1500m of cpu instead of 2" */
    const char *text; /* "with 1500m of cpu instead of 2, the pod starts on b" */
};

/* A node that does not take a pod, and what it refuses it for. */
struct berth_miss {
    const char *node;
    const char *text; /* "has 2 of cpu free, 4 needed; has a taint that is not tolerated: gpu" */
    uint32_t reasons; /* how many */
};

/* The factors of rankings and the rankings themselves, by name, with a sentence each; NULL past the end. */
BERTH_API const char *berth_factor_at(size_t i, const char **ret_sentence);
BERTH_API const char *berth_ranking_at(size_t i, const char **ret_sentence);

enum berth_entitlement { BERTH_SPARE, BERTH_BORROWED, BERTH_BY_RIGHT };

/* A part of a key: value x weight. The order of workloads by the sum of their terms is the order by their keys. */
struct berth_rank_term {
    const char *name, *sentence;
    double value, weight;
};
enum { BERTH_RANK_TERMS_MAX = 2 };

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
    /* The terms whose sum is the key, where the ranking weighs no factors. There are none for fifo, where all keys are
     * equal, and for a formula. */
    struct berth_rank_term terms[BERTH_RANK_TERMS_MAX];
    size_t terms_len;
    /* Its reservation; start_ns 0: none was made, or nobody can say when. */
    int64_t start_ns, end_ns;
    const char *node;         /* the first one */
    uint32_t nodes;           /* how many */
    const uint64_t *blockers; /* instances whose end it awaits there, the latest last; some of them if many */
    size_t blockers_len;
};

/* Where the account of some work stands in the fair tree. */
struct berth_share {
    const char *quota; /* the account: the first quota of the work */
    uint32_t weight;   /* among its siblings */
    int64_t used;      /* thousandths of units x seconds: past use, decayed until now, and what runs */
    int32_t factor;    /* millionths: `fair_share` of its work; a million is owed the most */
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

/* The GPU models that nodes have, each once whatever its case, spelled as one of the nodes does; NULL past the end. */
BERTH_API const char *berth_gpu_model_at(const struct berth_cluster *cluster, size_t i);

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

/* Idle GPUs in thousandths, and of these the expected part that a pod which usually comes (see berth_policy) cannot use. */
struct berth_fragmentation {
    double useless_milli, idle_milli;
};

/* Of one node; "": of all. What stops or is reserved counts as held. Fails for a policy out of range, and with -ENOENT. O(nodes, and
 * what the demand is taken from). */
BERTH_API int berth_fragmentation(const struct berth_snapshot *snapshot, const struct berth_policy *policy,
                                  const char *node, struct berth_fragmentation *ret, struct berth_err *err);

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
/* The nodes that come nearest to taking one more of its pods, `cap` at most: those that refuse for the fewest reasons, of these the ones that lack least
 * in proportion, then in order of nodes. Returns how many. Reservations of others and quotas are not looked at. O(nodes). */
BERTH_API size_t berth_plan_nearest(struct berth_plan *plan, size_t i, struct berth_miss *ret, size_t cap);
/* Finds changes by which more pods of the i-th pending workload are placed: `cap` changes at most, the smallest
 * first. Each change is applied to a copy of the plan's snapshot and planned with the policy, `tries` plans at most; a
 * change after which no more pods are placed is not told. `policy` is the one that the plan was made with. Returns the
 * number of changes. O(tries x plan). */
BERTH_API size_t berth_plan_advise(struct berth_plan *plan, const struct berth_policy *policy, size_t i, size_t tries,
                                   struct berth_advice *ret, size_t cap);
/* Where it stands; factors are computed when asked. */
BERTH_API struct berth_standing berth_plan_standing(struct berth_plan *plan, size_t i);
/* Calls back for every account that has used something, or has work that waits or runs; in no order. Computed when first asked. */
BERTH_API void berth_plan_shares(struct berth_plan *plan, void (*tell)(void *ctx, const struct berth_share *share),
                                 void *ctx);
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
