/* plan.h - the state of one plan while it is made, and the plan that results.
 *
 * plan.c runs the passes in order: select the workloads to examine (order.c), stop instances that are no longer wanted
 * or possible (reconcile.c, using the evictions found by eviction.c), place missing pods (placement.c), rebalance real
 * use (rebalance.c), adjust limits (adjust_limits.c). explain.c gives the reasons for pods that stay pending.
 */
#pragma once

#include "base/sort.h"
#include "core/explain/reason.h"
#include "core/plan/cycle.h"
#include "core/search/attempt.h"

/* A demand: pods of one workload that need a place. One demand per waiting workload exists and each is visited several
 * times, so the struct is kept within a few cache lines. */
struct demand {
    uint32_t workload;
    struct class_ix class;
    uint32_t first, len;      /* ordinals first .. first+len-1, or `ordinals` */
    const uint32_t *ordinals; /* [len]; NULL: the range above */
    uint32_t replaces;        /* slot of the instance that the single pod replaces, or NONE */
    uint32_t placed;          /* how many of `len` are placed; they are placed in order */
    uint32_t group;           /* gang index, shared by all demands of the gang; or NONE */
    uint32_t needed;          /* gang only: the minimum number of pods to place */
    uint32_t only;            /* if `bound`: position of the only allowed node */
    union {
        struct {              /* migrations only: */
            uint32_t from;    /* position of the replaced instance */
            uint32_t movable; /* available instances of the workload when the demand was made */
        };
        struct {                /* gangs only: */
            uint32_t gang_fits; /* tasks of the whole gang that fitted at once */
            uint32_t gang_needs;
        };
    };
    uint8_t cause;
    bool elsewhere; /* not on the node of the replaced instance (`from`) */
    bool bound;
    /* Set by tier.c: the position among all demands; see berth_policy.h, "order of demands". */
    bool waited;  /* waited longer than max_wait_ns: first in its tier */
    bool is_part; /* reached through the `more` of another demand */
    bool elastic; /* pods beyond the minimum of an elastic gang */
    bool short_of_quota;
    bool over_budget;     /* its account has reached its limit of pods that are about to start */
    bool behind;          /* strict backfill: an earlier demand found no place */
    bool refused_in_time; /* some node had room, but not for long enough */
    bool blocked;         /* gang: too many earlier instances are still stopping */
    bool gang_failed;
    /* Copied from the workload's claim, which is scattered in memory, because every placement attempt reads them. */
    bool dated, never_preempts;
    uint8_t quotas;   /* number of quotas of the claim, without their parents */
    uint32_t account; /* the first of these quotas, or NONE */
    int64_t tier, key;
    int64_t backfill_key;      /* set by demand_order.c if backfill has its own ranking */
    const struct claim *claim; /* the workload's claim; NULL: none */
    int64_t duration_ns;       /* expected run time of its pods */
    uint32_t queue;            /* index into the policy's queues, or NONE */
    uint32_t more;             /* demand with the lower-tier pods of the same workload, or NONE */
    /* elastic gang: these pods are placed only after the minimum of this gang stands; or NONE */
    uint32_t spare_of;
    int32_t queue_priority;
    const struct reservation *reservation; /* of reservation.c; NULL: none */
};

static inline uint32_t demand_ordinal(const struct demand *w, uint32_t i)
{
    return w->ordinals ? w->ordinals[i] : w->first + i;
}

/* Sets the claim of the demand and the fields copied from it. `claim` NULL: the workload has none. */
static inline void demand_set_claim(struct demand *w, const struct claim *claim)
{
    w->claim = claim;
    w->dated = claim && claim->deadline_ns;
    w->never_preempts = claim && claim->never_preempts;
    w->quotas = claim ? (uint8_t)claim->quotas_len : 0;
    w->account = w->quotas ? claim->quotas[0] : NONE;
}

static inline struct attempt_spec demand_attempt_spec(const struct demand *w)
{
    return (struct attempt_spec){w->workload, w->class, w->replaces, w->bound ? w->only : NONE,
                                 w->elsewhere ? w->from : NONE};
}

struct explanation {
    const struct berth_reason *reasons;
    size_t len;
    bool never;              /* the first reason: the pod is larger than any node */
    const uint64_t *refused; /* positions that refuse at any time; NULL without windows */
};

struct berth_plan {
    const struct berth_snapshot *s;
    struct arena arena, scratch;
    struct cycle c;
    VEC(struct demand) demands;
    VEC(struct berth_fact) facts;
    struct migrations *migrations;              /* owned by migration.c */
    struct evictions *evictions;                /* owned by eviction.c */
    struct plan_quotas *plan_quotas;            /* owned by plan_quota.c */
    struct tiers *tiers;                        /* owned by tier.c */
    struct ranks *ranks;                        /* owned by rank.c; NULL: nothing was ranked yet */
    struct victims *victims;                    /* owned by preempt.c */
    const struct victim_protection *protection; /* of spare_victims.h; NULL: every victim may be stopped */
    /* set by order.c: all workloads that count against quotas, by priority, creation time, id */
    const uint32_t *accounted_order;
    uint32_t accounted_order_len;
    uint32_t stops;           /* number of stops this plan decided; resources freed later grow with it */
    uint32_t stop_generation; /* grows with each stop and with each revoked stop */
    uint32_t stop_set;        /* identifies the set of stops; restored when all stops of a trial are revoked */
    struct failed_attempt *failed_attempt; /* owned by placement.c: failed attempts that need not be repeated */
    uint8_t *gang_stands;                  /* [gang]: the gang has its minimum, counting placements of this plan */
    int64_t *starting;                     /* owned by placement_budget.c: [quota]; NULL: no account has a budget */
    size_t starting_seen;                  /* number of actions counted in `starting` */
    bool starting_gang; /* a gang minimum is being placed whose size was checked against the budget */
    bool queue_blocked; /* strict backfill: a job found no place, so nothing after it is placed */
    int64_t recheck_ns;
    bool alarm;
    uint32_t lost; /* number of lost nodes */
    uint64_t placed, unplaced;
    VEC(uint32_t) left;                       /* demands that were not placed in full */
    const struct explanation **explained;     /* [class] */
    struct filter_refusals **filter_refusals; /* owned by explain.c: [rules][filter] */
    struct sentence_cache *sentence_cache;    /* owned by explain.c: sentences */
    struct policy_copy {
        void (*progress)(void *ctx, size_t done, size_t total);
        void *ctx;
        struct berth_pressure pressure;
        struct berth_rebalance rebalance;
        bool shed;
        struct berth_order order; /* texts and lists belong to the caller and are valid while the plan is made */
        struct berth_backfill backfill;
        struct berth_preemption preemption;
        const struct berth_window *windows;
        size_t windows_len;
        uint32_t starting;
    } policy;
};

/* Returns the workloads that the plan must examine, ordered by priority, creation time and id. Whole gangs stand at
 * their first member. */
uint32_t *order_make(struct berth_plan *p, uint32_t *ret_len);

/* Stops, drops, loses and promotes instances; collects demands. */
void reconcile(struct berth_plan *p, const uint32_t *order, uint32_t len);

/* Places demands, in rounds until nothing changes. */
void place(struct berth_plan *p);
/* Places up to `upto` pods of a demand on resources that are free once all stops are done, best nodes first. `only`: a
 * bit per allowed position; NULL: any node on which something stops. Returns whether only free room limited the result
 * (no topology constraints or other node-specific conditions). */
bool place_later(struct berth_plan *p, struct demand *w, uint32_t upto, const uint64_t *only);
/* Does the same on any node with room, for a demand that waits only until other instances of its quotas have
 * stopped. */
void place_after_quota_stops(struct berth_plan *p, struct demand *w, uint32_t upto);
void place_revoke(struct berth_plan *p, struct demand *w);
/* Records in a reserving action the instances it waits for: all that stop on its node. */
void place_record_waits(struct berth_plan *p, struct plan_act *a);
/* Places up to `upto` pods of a demand on free or stopping resources, as far as its quotas allow. */
void place_some(struct berth_plan *p, struct demand *w, uint32_t upto);
/* Returns whether placements of other pods could make room for pods of the class. */
bool class_gains_from_placements(const struct berth_plan *p, struct class_ix class);
/* Returns whether an instance of the workload is stopping, by this plan or since before. Until it has stopped, nothing
 * is placed beyond the minimum of the workload's gang. */
bool workload_is_stopping(const struct berth_plan *p, uint32_t workload);

/* Places a replacement instance. Changes nothing if that fails. */
bool place_move(struct berth_plan *p, struct demand *w);

/* Evens out real use by a few migrations; returns whether any was placed. */
bool rebalance(struct berth_plan *p);

/* Raises and lowers the limits of running instances. */
void adjust(struct berth_plan *p);

/* Returns the reasons for a demand that was not placed in full. */
const struct explanation *explain(struct berth_plan *p, const struct demand *w);
/* Implements berth_plan_nearest. */
size_t explain_nearest(struct berth_plan *p, const struct demand *w, struct berth_near_miss *ret, size_t cap);
/* Implements berth_plan_advise (advice.c) for a demand; `left` pods of its workload have no place. */
size_t advice_find(struct berth_plan *p, const struct demand *w, uint32_t left, const struct berth_policy *policy,
                   size_t tries, struct berth_advice *ret, size_t cap);
/* Returns the cached sentence of a reason with these numbers. If it points to NULL, the caller stores the text,
 * allocated in the plan's arena. Cached because thousands of pods wait for the same reason with few different
 * numbers. */
const char **sentence_cache_slot(struct berth_plan *p, enum reason reason, int64_t a, int64_t b);

/* Adds an action. */
struct plan_act *plan_act(struct berth_plan *p, enum berth_op op, enum berth_cause cause, uint32_t instance);
/* Stops an instance (drops a reserved one) and updates the books. */
void plan_stop(struct berth_plan *p, uint32_t instance, enum berth_cause cause);
/* Notes that time alone may change the plan at this moment. */
void plan_recheck(struct berth_plan *p, int64_t at_ns);
