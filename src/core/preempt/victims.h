/* victims.h - who could be stopped for others: parties of instances that go together, by node.
 *
 * A pod goes with the one that is about to take over from it; a pod of a gang with the whole gang, unless it is spare. Found
 * once per plan, when somebody first asks. What is too young yet, not to be preempted, moving or on a lost node is in no
 * party of its own.
 */
#pragma once

#include "base/bits.h"
#include "core/plan/plan.h"

struct party {
    uint32_t first, len; /* of victims.members */
    int64_t tier;        /* the highest of its pods */
    int64_t lost;        /* work: seconds times thousandths of a node */
    uint64_t id;         /* the youngest */
    uint32_t workload;   /* of the first */
    uint32_t of_gang;    /* that of its workload, or NONE */
    uint32_t root;       /* harm_root of its workload */
    bool gang;           /* the whole of one */
    bool available;      /* it counts as such for its service */
};

/* What is at hand of a member, for it is asked for often. */
struct victim_pod {
    const struct class *k;
    uint64_t gpus;
    uint32_t position;
    int64_t has[RESOURCES_BUILT_IN]; /* of what nearly all ask for */
};

struct harms;
struct budgets;
struct cleared;

struct victims {
    const struct party *parties;
    uint32_t parties_len;
    const uint32_t *members;       /* instance slots */
    const struct victim_pod *pods; /* [member] */
    uint32_t members_len;
    const uint32_t *first; /* [position + 1]: into `at` */
    const uint32_t *at;    /* parties with somebody there, as often as that; those who should go first come first */
    int64_t *lowest;       /* [position]: tier */
    int64_t *least_lost;   /* [position]: of the parties of that tier */
    uint32_t *by_harm;     /* positions with somebody there, by these two */
    uint32_t by_harm_len;
    int64_t least;        /* tier of any */
    int64_t *quota_least; /* [quota] */
    uint64_t *present;    /* workloads of which somebody could go */
    int32_t *spare;       /* [workload]: of services, those available beyond min_available */
    uint32_t stopped;     /* pods that were told to stop at this moment */
    struct harms **memos; /* [class]: of preempt_cost.c */
    size_t memo_bytes;
    struct in_vain {
        int64_t tier, duration_ns;
        uint32_t needed, stops; /* stops + 1 */
        uint32_t round;         /* of reservation.c */
    } * in_vain;                /* [class]: the last gang for which too few could be stopped */
    uint32_t *changed;          /* positions on which somebody was stopped, or something was taken back, in order */
    uint32_t changed_len, changed_room;
    struct {
        uint32_t *at;
        size_t len, room;
    } placed;                /* positions on which something was placed or reserved, in order */
    size_t acts;             /* up to which actions were noted in both */
    struct budgets *budgets; /* of disruption_budget.c; NULL: there are none */
    struct cleared *cleared; /* [class]: of preempt_blockers.c; NULL: not asked yet */
    uint32_t looks;          /* that preempt_blockers.c had at nodes */
    uint32_t *back;          /* parties that were stopped, and may be wished for again */
    uint32_t back_len;
    uint32_t *gone; /* all parties that were stopped, in order */
    uint32_t gone_len;
    const uint64_t *protected; /* [party]: a bit for each that spare_victims.h keeps from being stopped; NULL: none */
};

/* Finds all; `tier`: of who asks first, those below which time alone may free are noted for a recheck. */
struct victims *victims_new(struct berth_plan *p, int64_t tier);

/* What spare_victims.h protects may be stopped from now on, and budgets may be broken. */
void victims_unprotect(struct berth_plan *p);

/* What there is to be had on the node may have changed for the better. */
void victims_changed(struct berth_plan *p, uint32_t position);
/* Notes what was decided since. */
void victims_catch_up(struct berth_plan *p);
/* Actions from there on were taken back, or stand elsewhere. */
void victims_rewind(struct berth_plan *p, size_t acts);

/* May it (still) be stopped as a whole? */
bool party_stands(const struct berth_plan *p, const struct party *party);
/* How many of it are not told to stop yet. */
uint32_t party_pods(const struct berth_plan *p, const struct party *party);
static inline bool member_stands(const struct berth_plan *p, uint32_t slot)
{
    return !bits_has(p->c.stopped, slot) && !bits_has(p->c.removed, slot);
}
