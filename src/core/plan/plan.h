/* plan.h - a plan in the making and made.
 *
 * plan.c runs the passes in order: who is to be looked at (order.c), what is no longer wanted or possible
 * (reconcile.c, by what eviction.c found), places for what is missing (placement.c), evening out (rebalance.c), limits
 * (adjust.c). explain.c answers for what was left over.
 */
#pragma once

#include "base/sort.h"
#include "core/explain/reason.h"
#include "core/plan/cycle.h"
#include "core/search/attempt.h"

/* Pods of one workload that want a place. There are as many as workloads wait, and each is met several times: two cache lines. */
struct wish {
    uint32_t workload;
    struct class_ix class;
    uint32_t first, len;      /* ordinals first .. first+len-1, or those listed */
    const uint32_t *ordinals; /* NULL: as above */
    uint32_t replaces;        /* an instance slot: the one pod is to take over from it; else NONE */
    uint32_t placed;          /* of len, in order */
    uint32_t group;           /* wishes of one gang have one group; NONE */
    uint32_t needed;          /* of a gang: how many must be placed at least */
    uint32_t only;            /* of a bound one: on that node alone */
    union {
        struct {              /* of a move: */
            uint32_t from;    /* the position of the one that it takes over from */
            uint32_t movable; /* instances that are available when it was wished for */
        };
        struct {                /* of a gang: */
            uint32_t gang_fits; /* tasks of the whole of it that found room at once */
            uint32_t gang_needs;
        };
    };
    uint8_t cause;
    bool elsewhere; /* not where the one is that it takes over from */
    bool bound;
    /* Of tier.c: where it stands among all wishes; see berth.h, "who comes first". */
    bool waited;  /* for longer than max_wait_ns: before all others of its tier */
    bool is_part; /* it is one of those that `more` leads to */
    bool elastic; /* of a gang: more than it needs */
    bool short_of_quota;
    bool over_budget;     /* its account has as many pods that are about to start as it may */
    bool behind;          /* strict: one before it found no place */
    bool refused_in_time; /* some node had room, but not for long enough */
    bool blocked;         /* of a gang: too many earlier instances are still stopping */
    bool gang_failed;
    /* Of its workload's claim, which is scattered in memory: what is asked at every turn. */
    bool dated, never_preempts;
    uint8_t quotas;   /* that it counts against; their parents do not count here */
    uint32_t account; /* the first of these, or NONE */
    int64_t tier, key;
    int64_t back_key;          /* of demand_order.c, where the backfill has an order of its own */
    const struct claim *claim; /* its workload's; NULL: none */
    int64_t duration_ns;       /* that its pods are expected to hold their places */
    uint32_t queue;            /* of the policy's, or NONE */
    uint32_t more;             /* another wish of the same workload with what of it is of a lower tier, or NONE */
    uint32_t spare_of;         /* of an elastic gang: which must stand before these pods are placed; or NONE */
    int32_t queue_priority;
    const struct reservation *reservation; /* of reservation.c; NULL: none */
};

static inline uint32_t wish_ordinal(const struct wish *w, uint32_t i)
{
    return w->ordinals ? w->ordinals[i] : w->first + i;
}

/* NULL: its workload says nothing of its turn. */
static inline void wish_claim(struct wish *w, const struct claim *claim)
{
    w->claim = claim;
    w->dated = claim && claim->deadline_ns;
    w->never_preempts = claim && claim->never_preempts;
    w->quotas = claim ? (uint8_t)claim->quotas_len : 0;
    w->account = w->quotas ? claim->quotas[0] : NONE;
}

static inline struct asker wish_asker(const struct wish *w)
{
    return (struct asker){w->workload, w->class, w->replaces, w->bound ? w->only : NONE, w->elsewhere ? w->from : NONE};
}

struct explanation {
    const struct berth_reason *reasons;
    size_t len;
    bool never;              /* the first reason: no node is that large */
    const uint64_t *refused; /* positions that refuse whatever the time; NULL without windows */
};

struct berth_plan {
    const struct berth_snapshot *s;
    struct arena arena, scratch;
    struct cycle c;
    VEC(struct wish) wishes;
    VEC(struct berth_fact) facts;
    struct migrations *migrations;       /* of migration.c */
    struct leavers *leavers;             /* of eviction.c */
    struct allotments *allotments;       /* of plan_quota.c */
    struct tiers *tiers;                 /* of tier.c */
    struct ranks *ranks;                 /* of rank.c; NULL: nothing was ranked yet */
    struct victims *victims;             /* of preempt.c */
    const struct protection *protection; /* of spare_victims.h; NULL: every victim may be stopped */
    const uint32_t *by_age; /* of order.c: all workloads that count against quotas, by priority, creation, id */
    uint32_t by_age_len;
    uint32_t stops;       /* that this plan has decided; what may come to stand there grows with it */
    uint32_t stop_turns;  /* grows with each stop, and with each that is taken back */
    uint32_t stop_state;  /* another number for each set of stops; again the same when all of a try were taken back */
    struct vain *vain;    /* of placement.c: what need not be tried */
    uint8_t *gang_stands; /* [gang]: it has its minimum, with what this plan placed */
    int64_t *starting;    /* of placement_budget.c: [quota]; NULL: no account has a budget */
    size_t starting_seen; /* actions that its counts have */
    bool starting_gang;   /* the minimum of a gang is being placed, whose size the budget allows */
    bool queue_blocked;   /* strict: a job found no place, and nothing comes after it */
    int64_t recheck_ns;
    bool alarm;
    uint32_t lost; /* nodes */
    uint64_t placed, unplaced;
    VEC(uint32_t) left;                   /* wishes that were not granted in full */
    const struct explanation **explained; /* [class] */
    struct heard **heard;                 /* of explain.c: [rules][filter] */
    struct told *told;                    /* of explain.c: sentences */
    struct policy_copy {
        void (*progress)(void *ctx, size_t done, size_t total);
        void *ctx;
        struct berth_pressure pressure;
        struct berth_rebalance rebalance;
        bool shed;
        struct berth_order order; /* texts and lists are the caller's: valid while the plan is made */
        struct berth_backfill backfill;
        struct berth_preemption preemption;
        const struct berth_window *windows;
        size_t windows_len;
        uint32_t starting;
    } policy;
};

/* Workloads that a plan must look at, in order: priority, creation, id; whole gangs stand with their first member. */
uint32_t *order_make(struct berth_plan *p, uint32_t *ret_len);

/* Stops, drops, loses and promotes; collects wishes. */
void reconcile(struct berth_plan *p, const uint32_t *order, uint32_t len);

/* Grants wishes, in rounds until nothing changes. */
void place(struct berth_plan *p);
/* Grants up to `upto` pods of a wish on what is free once all stops are done, best nodes first; `only`: on these nodes
 * (NULL: anywhere something stops); returns whether nothing but room counted. Takes the last placement of a wish back. */
bool place_later(struct berth_plan *p, struct wish *w, uint32_t upto, const uint64_t *only);
/* The same wherever there is room, for one that waits for nothing but its quotas: until others of them have stopped. */
void place_allotted(struct berth_plan *p, struct wish *w, uint32_t upto);
void place_revoke(struct berth_plan *p, struct wish *w);
/* Notes in a reservation which instances it waits for: all that stop on its node. */
void place_note_waits(struct berth_plan *p, struct act *a);
/* Grants up to `upto` pods of a wish at once or on what is stopping, as far as that goes and its quotas do. */
void place_some(struct berth_plan *p, struct wish *w, uint32_t upto);
/* Could something placed by others make room for pods of the class? */
bool place_may_rise(const struct berth_plan *p, struct class_ix class);
/* Does an instance of the workload stop, told by this plan or before? So long nothing is placed beyond the minimum of its gang. */
bool place_still_stops(const struct berth_plan *p, uint32_t workload);

/* Places what takes over from another, or leaves everything as it was. */
bool place_move(struct berth_plan *p, struct wish *w);

/* Evens out real use by a few moves; returns whether there were any. */
bool rebalance(struct berth_plan *p);

/* Raises and lowers limits. */
void adjust(struct berth_plan *p);

/* Reasons of a wish that was left over. */
const struct explanation *explain(struct berth_plan *p, const struct wish *w);
/* As berth_plan_nearest. */
size_t explain_nearest(struct berth_plan *p, const struct wish *w, struct berth_miss *ret, size_t cap);
/* advice.c: as berth_plan_advise, of a wish of whose workload `left` pods have no place. */
size_t advice_find(struct berth_plan *p, const struct wish *w, uint32_t left, const struct berth_policy *policy,
                   size_t tries, struct berth_advice *ret, size_t cap);
/* Where the sentence stands that is told for a reason with these numbers; NULL there: the caller writes it, into the arena of
 * the plan. Thousands wait for the same reason, and few numbers differ. */
const char **told_text(struct berth_plan *p, enum reason reason, int64_t a, int64_t b);

/* Adds an action. */
struct act *plan_act(struct berth_plan *p, enum berth_op op, enum berth_cause cause, uint32_t instance);
/* Tells an instance to stop (a reserved one is dropped), and keeps the books. */
void plan_stop(struct berth_plan *p, uint32_t instance, enum berth_cause cause);
/* Time alone may change the plan then. */
void plan_recheck(struct berth_plan *p, int64_t at_ns);
