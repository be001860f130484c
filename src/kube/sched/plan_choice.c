#include "kube/sched/plan_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* With more pending pods further plans would take too long, and the order of placement matters more. */
enum { PENDING_MAX = 2000 };
/* Additional random plans: as many as the product of nodes and pending pods allows. */
enum { MORE_MAX = 18, MORE_WORK = 20000 };

/* Resources that the packing scores consider. */
static const char *const resources[] = {"cpu", "memory", "pods", "nvidia.com/gpu", "amd.com/gpu"};

static const struct berth_weight packed[] = {
    {"most_allocated", 10},
    {"preferences",    1 },
};
static const struct berth_weight spreading[] = {
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

static const struct plan_variant {
    const struct berth_weight *scores; /* NULL: the scores of the profile */
    size_t len;
    const struct berth_ranking *order; /* ranking within a priority; NULL: the policy's */
} variants[] = {
    {packed,    sizeof packed / sizeof *packed,       NULL           },
    {spreading, sizeof spreading / sizeof *spreading, NULL           },
    {NULL,      0,                                    &smallest_first},
    {packed,    sizeof packed / sizeof *packed,       &smallest_first},
    {spreading, sizeof spreading / sizeof *spreading, &smallest_first},
    {shuffled,  sizeof shuffled / sizeof *shuffled,   NULL           }, /* repeated with other seeds */
};
enum { VARIANTS = sizeof variants / sizeof *variants, USUAL_VARIANTS = 3 };

/* ---- pending pods ----------------------------------------------------------------------------------------------- */

struct waiting_pod {
    const char *name; /* owned by its plan */
    int32_t priority;
};
typedef VEC(struct waiting_pod) waiters;

static int higher_first(const void *a, const void *b)
{
    const struct waiting_pod *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Returns all pending pods, highest priority first, then by name. */
static waiters waiting(struct berth_plan *plan)
{
    waiters found = {0};
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct waiting_pod w = {berth_plan_pending_name(plan, i), berth_plan_queue_position(plan, i).priority};
        vec_push(&found, w);
    }
    if (found.len)
        qsort(found.at, found.len, sizeof *found.at, higher_first);
    return found;
}

/* Reports whether `a` leaves fewer pods of the highest differing priority pending. At the first difference, the list
 * with the lower priority, or the shorter one, is better. Sets *ret_priority to the priority that differs. */
static bool leaves_fewer(const waiters *a, const waiters *b, int32_t *ret_priority)
{
    for (size_t i = 0; i < b->len; i++) {
        *ret_priority = b->at[i].priority;
        if (i >= a->len || a->at[i].priority != b->at[i].priority)
            return i >= a->len || a->at[i].priority < b->at[i].priority;
    }
    return false;
}

/* Reports whether every pod of `a` of at least this priority is also pending in `b`. */
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

/* A plan in another order is better only if it places more pods and no pod loses its place to a later one. */
static bool is_better(const struct plan_variant *variant, const waiters *a, const waiters *b)
{
    int32_t priority;
    return leaves_fewer(a, b, &priority) && (!variant->order || is_within(a, b, priority));
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

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

/* Returns how many other variants are tried. */
static size_t variants_to_try(struct berth_cluster *cluster, const struct berth_plan *plan)
{
    size_t pending = berth_plan_pendings(plan);
    if (pending == 0 || pending > PENDING_MAX || !places_something(plan))
        return 0;
    size_t more = MORE_WORK / (berth_nodes(cluster) * pending + 1);
    return USUAL_VARIANTS + (more < MORE_MAX ? more : MORE_MAX);
}

/* Plans by one variant instead of the policy's own scores and order. */
static int choice_vary(struct berth_cluster *cluster, int64_t now_ns, uint64_t seed, const struct berth_policy *policy,
                       const struct plan_variant *variant, struct kube_choice *ret)
{
    struct berth_profile profile = *policy->profile;
    struct berth_policy other = *policy;
    if (variant->scores) {
        profile.scores = variant->scores;
        profile.scores_len = variant->len;
        profile.resources = resources;
        profile.resources_len = sizeof resources / sizeof *resources;
        other.others_len = 0; /* applies to all pods */
    }
    if (variant->order)
        other.order.ranking = *variant->order;
    other.profile = &profile;
    return choice_make(cluster, now_ns, seed, &other, ret, NULL);
}

int kube_choose(struct berth_cluster *cluster, int64_t now_ns, const struct berth_policy *policy,
                struct kube_choice *ret, struct berth_err *err)
{
    int rc = choice_make(cluster, now_ns, 0, policy, ret, err);
    /* with reservations the order of pods matters, not the number placed */
    size_t len = rc == 0 && policy->backfill.reservations == 0 ? variants_to_try(cluster, ret->plan) : 0;
    if (len == 0)
        return rc;
    waiters best = waiting(ret->plan);
    for (size_t i = 0; i < len && best.len; i++) {
        const struct plan_variant *variant = &variants[i < VARIANTS ? i : VARIANTS - 1];
        struct kube_choice choice;
        if (choice_vary(cluster, now_ns, i, policy, variant, &choice) < 0)
            continue;
        waiters left = waiting(choice.plan);
        bool better = is_better(variant, &left, &best);
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
