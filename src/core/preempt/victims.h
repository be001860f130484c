/* victims.h - possible victims: groups of instances that stop together, indexed by node.
 *
 * A pod stops together with the instance that is about to take over from it, and a pod of a gang with the whole gang,
 * unless it is spare. The groups are found once per plan, on the first preemption attempt. Instances that have not run
 * for their minimum, may not be preempted, are moving or are on a lost node form no group of their own.
 */
#pragma once

#include "base/bits.h"
#include "core/plan/plan.h"

struct victim_group {
    uint32_t first, len; /* into victims.members */
    int64_t tier;        /* the highest of its pods */
    int64_t lost;        /* work: seconds times thousandths of a node */
    uint64_t id;         /* the youngest member */
    uint32_t workload;   /* of the first member */
    uint32_t of_gang;    /* gang of its workload, or NONE */
    uint32_t root;       /* preempt_root_quota of its workload */
    bool gang;           /* the whole of a gang */
    bool available;      /* the pod counts as available for its service */
};

/* Often used data of a member. */
struct victim_pod {
    const struct class *k;
    uint64_t gpus;
    uint32_t position;
    int64_t has[RESOURCES_BUILT_IN]; /* amounts of the built-in resources */
};

struct preempt_costs;
struct budgets;
struct failed_clearing;

struct victims {
    const struct victim_group *victim_groups;
    uint32_t victim_groups_len;
    const uint32_t *members;       /* instance slots */
    const struct victim_pod *pods; /* [member] */
    uint32_t members_len;
    const uint32_t *first; /* [position + 1]: index into `at` */
    const uint32_t *at;    /* groups with members on a node, once per member; the preferred victims first */
    int64_t *lowest;       /* [position]: lowest tier of a group */
    int64_t *least_lost;   /* [position]: least work lost of the groups of that tier */
    uint32_t *by_min_cost; /* positions with possible victims, sorted by these two */
    uint32_t by_min_cost_len;
    int64_t least;                /* lowest tier of all groups */
    int64_t *quota_lowest;        /* [quota]: lowest tier of the groups that count against it */
    uint64_t *present;            /* bit set of workloads that have possible victims */
    int32_t *spare;               /* [workload]: of services, available pods beyond min_available */
    uint32_t stopped;             /* pods stopped at this moment */
    struct preempt_costs **memos; /* [class]: of preempt_node.c */
    size_t memo_bytes;
    struct failed_gang {
        int64_t tier, duration_ns;
        uint32_t needed, stops; /* stops + 1 */
        uint32_t round;         /* of reservation.c */
    } * failed_gang;            /* [class]: the last gang for which preemption failed */
    uint32_t *changed;          /* positions where a pod was stopped or an action undone, in order */
    uint32_t changed_len, changed_room;
    struct {
        uint32_t *at;
        size_t len, room;
    } placed;                        /* positions where a pod was placed or reserved, in order */
    size_t acts;                     /* number of actions noted in both */
    struct budgets *budgets;         /* of disruption_budget.c; NULL: there are none */
    struct failed_clearing *cleared; /* [class]: of preempt_blockers.c; NULL: not used yet */
    uint32_t looks;                  /* nodes that preempt_blockers.c has examined */
    uint32_t *back;                  /* stopped groups that may get a demand again */
    uint32_t back_len;
    uint32_t *gone; /* all groups that were stopped, in order */
    uint32_t gone_len;
    const uint64_t *protected; /* [group]: a bit for each that spare_victims.h protects; NULL: none */
};

/* Finds all victim groups. `tier` is the tier of the first preemptor: where only time keeps instances below it from
 * being victims, the time is noted for a recheck. */
struct victims *victims_new(struct berth_plan *p, int64_t tier);

/* Ends the protection of spare_victims.h: its instances may be stopped and budgets may be broken. */
void victims_unprotect(struct berth_plan *p);

/* Call when more victims or more room may be available on the node. */
void victims_changed(struct berth_plan *p, uint32_t position);
/* Notes the actions since the last call. */
void victims_catch_up(struct berth_plan *p);
/* Call when the actions from index `acts` on were undone or moved. */
void victims_rewind(struct berth_plan *p, size_t acts);

/* Returns whether the group may still be stopped as a whole. */
bool victim_group_stands(const struct berth_plan *p, const struct victim_group *victim_group);
/* Returns how many members are not stopping yet. */
uint32_t victim_group_pods(const struct berth_plan *p, const struct victim_group *victim_group);
static inline bool victim_stands(const struct berth_plan *p, uint32_t slot)
{
    return !bits_has(p->c.stopped, slot) && !bits_has(p->c.removed, slot);
}
