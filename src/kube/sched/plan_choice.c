#include "kube/sched/plan_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Beyond so many that wait it would take too long; and the order in which they find a place matters more then. */
enum { PENDING_MAX = 2000 };
/* Beyond the usual ones: as many as nodes times pods that wait allow. */
enum { MORE_MAX = 18, MORE_WORK = 20000 };

/* What nodes are filled with. */
static const char *const resources[] = {"cpu", "memory", "pods", "nvidia.com/gpu", "amd.com/gpu"};

static const struct berth_weight packed[] = {
    {"most_allocated", 10},
    {"preferences",    1 },
};
static const struct berth_weight even[] = {
    {"least_allocated", 10},
    {"preferences",     1 },
};
static const struct berth_weight shuffled[] = {
    {"random", 1},
};

static const struct berth_weight size[] = {
    {"size", -1},
};
static const struct berth_ranking smallest_first = {.name = "multifactor", .weights = size, .weights_len = 1};

static const struct manner {
    const struct berth_weight *scores; /* NULL: those of the profile */
    size_t len;
    const struct berth_ranking *order; /* within a priority; NULL: that of the policy */
} manners[] = {
    {packed,   sizeof packed / sizeof *packed,     NULL           },
    {even,     sizeof even / sizeof *even,         NULL           },
    {NULL,     0,                                  &smallest_first},
    {packed,   sizeof packed / sizeof *packed,     &smallest_first},
    {even,     sizeof even / sizeof *even,         &smallest_first},
    {shuffled, sizeof shuffled / sizeof *shuffled, NULL           }, /* and again with other seeds */
};
enum { MANNERS = sizeof manners / sizeof *manners, USUAL = 3 };

/* ---- who is left waiting --------------------------------------------------------------------------------------------- */

struct waiter {
    const char *name; /* of its plan */
    int32_t priority;
};
typedef VEC(struct waiter) waiters;

static int higher_first(const void *a, const void *b)
{
    const struct waiter *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* All that wait, the highest priority first, then by name. */
static waiters waiting(struct berth_plan *plan)
{
    waiters found = {0};
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct waiter w = {berth_plan_pending_name(plan, i), berth_plan_standing(plan, i).priority};
        vec_push(&found, w);
    }
    if (found.len)
        qsort(found.at, found.len, sizeof *found.at, higher_first);
    return found;
}

/* At the first difference the one with the lower priority, or with nobody left, leaves fewer of the higher one waiting. Sets which that is. */
static bool leaves_fewer(const waiters *a, const waiters *b, int32_t *ret_priority)
{
    for (size_t i = 0; i < b->len; i++) {
        *ret_priority = b->at[i].priority;
        if (i >= a->len || a->at[i].priority != b->at[i].priority)
            return i >= a->len || a->at[i].priority < b->at[i].priority;
    }
    return false;
}

/* Does every one of `a`, of this priority or a higher one, wait in `b`, too? */
static bool is_within(const waiters *a, const waiters *b, int32_t priority)
{
    size_t at = 0;
    for (size_t i = 0; i < a->len && a->at[i].priority >= priority; i++) {
        while (at < b->len && higher_first(&b->at[at], &a->at[i]) < 0)
            at++;
        if (at == b->len || higher_first(&b->at[at], &a->at[i]) != 0)
            return false;
    }
    return true;
}

/* In another order nobody may lose a place to who came later: only more may be placed. */
static bool is_better(const struct manner *manner, const waiters *a, const waiters *b)
{
    int32_t priority;
    return leaves_fewer(a, b, &priority) && (!manner->order || is_within(a, b, priority));
}

/* ---- plans ----------------------------------------------------------------------------------------------------------- */

static bool places_something(const struct berth_plan *plan)
{
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        enum berth_op op = berth_plan_action(plan, i).op;
        if (op == BERTH_PLACE || op == BERTH_RESERVE)
            return true;
    }
    return false;
}

void kube_choice_done(struct kube_choice *c)
{
    berth_plan_free(c->plan);
    berth_snapshot_free(c->snapshot);
    *c = (struct kube_choice){0};
}

void kube_remember(struct berth_cluster *cluster, const struct berth_plan *plan)
{
    for (size_t i = 0; i < berth_plan_facts(plan); i++) {
        const struct berth_fact fact = berth_plan_fact(plan, i);
        (void)berth_fact_put(cluster, &fact, NULL);
    }
}

static int choice_make(struct berth_cluster *cluster, int64_t now_ns, uint64_t seed, const struct berth_policy *policy,
                       struct kube_choice *ret, struct berth_err *err)
{
    struct berth_snapshot *snapshot = berth_freeze(cluster, now_ns, seed);
    int rc = berth_plan_make(snapshot, policy, &ret->plan, err);
    if (rc < 0)
        berth_snapshot_free(snapshot);
    else
        ret->snapshot = snapshot;
    return rc;
}

/* How many other ways are tried. */
static size_t tries(struct berth_cluster *cluster, const struct berth_plan *plan)
{
    size_t pending = berth_plan_pendings(plan);
    if (pending == 0 || pending > PENDING_MAX || !places_something(plan))
        return 0;
    size_t more = MORE_WORK / (berth_nodes(cluster) * pending + 1);
    return USUAL + (more < MORE_MAX ? more : MORE_MAX);
}

/* By another manner than the policy says. */
static int choice_vary(struct berth_cluster *cluster, int64_t now_ns, uint64_t seed, const struct berth_policy *policy,
                       const struct manner *manner, struct kube_choice *ret)
{
    struct berth_profile profile = *policy->profile;
    struct berth_policy other = *policy;
    if (manner->scores) {
        profile.scores = manner->scores;
        profile.scores_len = manner->len;
        profile.resources = resources;
        profile.resources_len = sizeof resources / sizeof *resources;
        other.others_len = 0; /* everybody by it */
    }
    if (manner->order)
        other.order.ranking = *manner->order;
    other.profile = &profile;
    return choice_make(cluster, now_ns, seed, &other, ret, NULL);
}

int kube_choose(struct berth_cluster *cluster, int64_t now_ns, const struct berth_policy *policy,
                struct kube_choice *ret, struct berth_err *err)
{
    int rc = choice_make(cluster, now_ns, 0, policy, ret, err);
    /* Where places are promised, who comes first counts, and not how many. */
    size_t len = rc == 0 && policy->backfill.reservations == 0 ? tries(cluster, ret->plan) : 0;
    if (len == 0)
        return rc;
    waiters best = waiting(ret->plan);
    for (size_t i = 0; i < len && best.len; i++) {
        const struct manner *manner = &manners[i < MANNERS ? i : MANNERS - 1];
        struct kube_choice choice;
        if (choice_vary(cluster, now_ns, i, policy, manner, &choice) < 0)
            continue;
        waiters left = waiting(choice.plan);
        bool better = is_better(manner, &left, &best);
        struct kube_choice worse = better ? *ret : choice;
        waiters more = better ? best : left;
        if (better) {
            *ret = choice;
            best = left;
        }
        kube_choice_done(&worse);
        vec_done(&more);
    }
    vec_done(&best);
    return 0;
}
