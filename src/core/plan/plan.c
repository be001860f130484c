/* plan.c - runs the passes of a plan, and implements the functions that read a plan. */
#include "core/plan/plan.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/sort.h"
#include "core/backfill/reservation.h"
#include "core/gpu/typical_pods.h"
#include "core/plan/eviction.h"
#include "core/plan/headroom.h"
#include "core/plan/migration.h"
#include "core/plan/policy.h"
#include "core/plan/profile_view.h"
#include "core/plan/spare_victims.h"
#include "core/preempt/disruption_budget.h"
#include "core/preempt/victims.h"
#include "core/queue/plan_quota.h"
#include "core/queue/rank.h"
#include "core/queue/ranking.h"
#include "core/queue/tier.h"
#include "core/search/holders.h"

enum { PREFETCH = 8 }; /* workloads in order are scattered in memory, so they are prefetched */

struct plan_act *plan_act(struct berth_plan *p, enum berth_op op, enum berth_cause cause, uint32_t instance)
{
    struct plan_act a = {
        .op = (uint8_t)op, .cause = (uint8_t)cause, .instance = instance, .replaces = NONE, .next = NONE};
    if (instance != NONE) {
        const struct instance *i = snapshot_instance(p->s, instance);
        a.workload = i->workload.v;
        a.ordinal = i->ordinal;
        a.position = snapshot_position(p->s, i);
        a.gpus = i->gpus;
    }
    vec_push(&p->c.acts, a);
    return &p->c.acts.at[p->c.acts.len - 1];
}

void plan_stop(struct berth_plan *p, uint32_t instance, enum berth_cause cause)
{
    const struct instance *i = snapshot_instance(p->s, instance);
    (void)plan_act(p, BERTH_STOP, cause, instance);
    bits_add(p->c.stopped, instance);
    plan_quota_stop(p, instance);
    p->stops++;
    p->stop_set = ++p->stop_generation;
    if (i->state == BERTH_RESERVED) {
        bits_add(p->c.removed, instance); /* must be set before the books are checked again */
        cycle_unreserve(&p->c, i);
        holds_release(&p->c, i);
    } else {
        cycle_stop(&p->c, i);
    }
}

void plan_recheck(struct berth_plan *p, int64_t at_ns)
{
    if (at_ns > p->s->now_ns && at_ns < p->recheck_ns)
        p->recheck_ns = at_ns;
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

/* Sorts facts by the id of their instance. Facts about nodes come first, in the order of the layout. */
static void facts_sort(struct berth_plan *p)
{
    struct keyed *rows = arena_alloc(&p->scratch, (2 * p->facts.len + 1) * sizeof *rows);
    struct berth_fact *old = arena_dup(&p->scratch, p->facts.at, p->facts.len * sizeof *old);
    for (uint32_t i = 0; i < p->facts.len; i++)
        rows[i] = (struct keyed){old[i].subject, i};
    sort_keyed(rows, rows + p->facts.len, p->facts.len);
    for (size_t i = 0; i < p->facts.len; i++)
        p->facts.at[i] = old[rows[i].value];
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* Counts lost nodes. More than a third of the nodes, and more than one, raise the alarm: a broken network is more
 * likely than so many broken nodes. */
static void count_lost(struct berth_plan *p)
{
    for (uint32_t i = 0; i < p->s->idle_len; i++)
        p->lost += p->s->state[p->s->idle[i]] == BERTH_NODE_LOST;
    p->alarm = p->lost > 1 && (uint64_t)p->lost * 3 > p->s->layout->len;
}

static int run_passes(struct berth_plan *p, struct berth_err *err)
{
    uint32_t len;
    count_lost(p);
    migrations_index(p);
    evictions_find(p);
    plan_quotas_begin(p);
    const uint32_t *order = order_make(p, &len);
    reconcile(p, order, len);
    int rc = tiers_make(p, err);
    if (rc)
        return rc;
    reservations_begin(p);
    place(p);
    if (rebalance(p))
        place(p); /* other pods may need to be near a moved instance */
    adjust(p);
    evictions_close(p);
    migrations_close(p);
    reservations_record(p);
    facts_sort(p);
    return 0;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return hash_bytes(text, strlen(text), seed);
}

static uint64_t hash_plan(const struct berth_plan *p)
{
    uint64_t h = 0;
    for (size_t i = 0; i < p->c.acts.len; i++) {
        const struct plan_act *a = &p->c.acts.at[i];
        struct berth_action x = berth_plan_action(p, i);
        uint64_t words[] = {a->op, a->cause, a->ordinal, x.instance, x.replaces, x.gpus, (uint64_t)x.limit};
        h = hash_bytes(words, sizeof words, hash_text(x.workload, hash_text(x.node, h)));
        h = hash_bytes(x.waits, x.waits_len * sizeof *x.waits, hash_text(x.resource ? x.resource : "", h));
    }
    for (size_t i = 0; i < p->facts.len; i++) {
        const struct berth_fact *f = &p->facts.at[i];
        uint64_t words[] = {f->kind, f->subject, (uint64_t)f->value, (uint64_t)f->at_ns, f->over};
        h = hash_bytes(words, sizeof words, hash_text(f->key, h));
    }
    return hash_pair(h, (uint64_t)p->recheck_ns);
}

/* Returns the number of pods without a place, including those of the demand's later parts. */
static uint32_t demand_pods_left(const struct berth_plan *p, const struct demand *w)
{
    uint32_t left = w->len - w->placed;
    for (; w->more != NONE; w = &p->demands.at[w->more])
        left += p->demands.at[w->more].len - p->demands.at[w->more].placed;
    return left;
}

static void count_pods_left(struct berth_plan *p)
{
    for (uint32_t i = 0; i < p->demands.len; i++) {
        const struct demand *w = &p->demands.at[i];
        p->placed += w->placed;
        p->unplaced += w->len - w->placed;
        if (!w->is_part && demand_pods_left(p, w))
            vec_push(&p->left, i);
    }
}

/* Resolves all profiles of the policy, its own first. */
static int profiles_resolve(const struct berth_policy *policy, const struct berth_snapshot *s,
                            struct profile ret[1 + BERTH_OTHERS_MAX], struct berth_err *err)
{
    const struct berth_profile *own = policy && policy->profile ? policy->profile : berth_profile_at(0);
    int rc = profile_resolve(own, s, &ret[0], err);
    for (size_t i = 0; rc == 0 && policy && i < policy->others_len; i++)
        rc = profile_resolve(&policy->others[i], s, &ret[1 + i], err);
    return rc;
}

static bool any_by_fragmentation(const struct profile *profiles, size_t len)
{
    while (len && !profiles[len - 1].fragmentation)
        len--;
    return len > 0;
}

/* The input of a plan. */
struct plan_input {
    const struct berth_snapshot *s;
    const struct berth_policy *policy;
    struct profile profiles[1 + BERTH_OTHERS_MAX];
};

/* `protection`: NULL when the plan is made for the first time. */
static int make(const struct plan_input *in, const struct victim_protection *protection, struct berth_plan **ret_plan,
                struct berth_err *err)
{
    const struct berth_snapshot *s = in->s;
    const struct berth_policy *policy = in->policy;
    const struct profile *profiles = in->profiles;
    size_t others_len = policy ? policy->others_len : 0;
    struct berth_plan *p = mem_zalloc(sizeof *p);
    p->s = s;
    p->recheck_ns = s->recheck_ns;
    if (policy)
        p->policy = (struct policy_copy){.progress = policy->progress,
                                         .ctx = policy->progress_ctx,
                                         .pressure = policy->pressure,
                                         .rebalance = policy->rebalance,
                                         .shed = policy->shed,
                                         .order = policy->order,
                                         .backfill = policy->backfill,
                                         .preemption = policy->preemption,
                                         .windows = policy->windows,
                                         .windows_len = policy->windows_len,
                                         .starting = policy->starting};
    p->protection = protection;
    if (protection && protection->keeps_budgets)
        p->policy.preemption.break_budgets = false;
    arena_init(&p->arena);
    arena_init(&p->scratch);
    cycle_init(&p->c, s, &profiles[0], &p->arena, &p->scratch);
    if (policy)
        views_begin(&p->c, policy->others, profiles + 1, others_len);
    if (policy)
        p->c.headroom = headroom_new(&p->c, &policy->headroom);
    if (policy && policy->demand_len && any_by_fragmentation(profiles, 1 + others_len))
        p->c.typical = typical_pods_new(s, policy->demand, policy->demand_len, &p->arena);
    int rc = run_passes(p, err);
    if (rc) {
        berth_plan_free(p);
        return rc;
    }
    count_pods_left(p);
    *ret_plan = p;
    return 0;
}

/* Returns the plan, or a plan made again that wastes less (spare_victims.h). Victims found needless in one plan are
 * protected in the next. */
static struct berth_plan *make_again(const struct plan_input *in, struct berth_plan *first)
{
    enum { AGAIN_MAX = 3 };
    struct berth_plan *best = first, *last = first, *again;
    struct victim_protection protection = {.break_budgets = first->policy.preemption.break_budgets};
    if (!first->victims || first->victims->gone_len == 0)
        return first;
    protection.instances = mem_zarray(bits_words(in->s->instances.len) + 1, sizeof *protection.instances);
    bool more;
    struct preemption_waste least = preemption_waste_of(first, &protection, &more);
    for (uint32_t n = 0; n < AGAIN_MAX && more; n++) {
        if (make(in, &protection, &again, NULL) != 0)
            break;
        struct preemption_waste waste = preemption_waste_of(again, &protection, &more);
        if (last != best)
            berth_plan_free(last);
        last = again;
        if (wastes_less(again, waste, best, least)) {
            berth_plan_free(best);
            best = again;
            least = waste;
        }
    }
    if (last != best)
        berth_plan_free(last);
    mem_free(protection.instances);
    return best;
}

int berth_plan_make(const struct berth_snapshot *s, const struct berth_policy *policy, struct berth_plan **ret_plan,
                    struct berth_err *err)
{
    struct plan_input in = {.s = s, .policy = policy};
    struct berth_plan *p = NULL;
    int rc = policy ? policy_check(policy, err) : 0;
    if (rc == 0)
        rc = profiles_resolve(policy, s, in.profiles, err);
    if (rc == 0)
        rc = make(&in, NULL, &p, err);
    if (rc == 0)
        *ret_plan = make_again(&in, p);
    return rc;
}

void berth_plan_free(struct berth_plan *p)
{
    if (!p)
        return;
    migrations_done(p);
    evictions_done(p);
    reservations_done(p);
    if (p->victims)
        budgets_done(p->victims->budgets);
    vec_done(&p->c.acts);
    vec_done(&p->c.waits);
    vec_done(&p->c.given);
    vec_done(&p->c.changed);
    vec_done(&p->demands);
    vec_done(&p->facts);
    vec_done(&p->left);
    arena_done(&p->scratch);
    arena_done(&p->arena);
    mem_free(p);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

size_t berth_plan_actions(const struct berth_plan *p)
{
    return p->c.acts.len;
}

struct berth_action berth_plan_action(const struct berth_plan *p, size_t i)
{
    const struct plan_act *a = &p->c.acts.at[i];
    const struct berth_snapshot *s = p->s;
    struct berth_action x = {
        .op = (enum berth_op)a->op,
        .cause = (enum berth_cause)a->cause,
        .workload = snapshot_text(s, snapshot_workload(s, a->workload)->id),
        .ordinal = a->ordinal,
        .node = snapshot_text(s, s->layout->id[a->position]),
        .instance = a->instance == NONE ? 0 : snapshot_instance(s, a->instance)->id,
        .replaces = a->replaces == NONE ? 0 : snapshot_instance(s, a->replaces)->id,
        .gpus = a->gpus,
        .score = a->score,
        .rival = a->rival,
    };
    if (a->op == BERTH_RESERVE) {
        x.waits = p->c.waits.at + a->aux;
        x.waits_len = a->aux_len;
    }
    if (a->op == BERTH_ADJUST) {
        x.resource = snapshot_text(s, s->resources[a->aux].name);
        x.limit = a->limit;
    }
    return x;
}

size_t berth_plan_facts(const struct berth_plan *p)
{
    return p->facts.len;
}

struct berth_fact berth_plan_fact(const struct berth_plan *p, size_t i)
{
    return p->facts.at[i];
}

size_t berth_plan_pendings(const struct berth_plan *p)
{
    return p->left.len;
}

const char *berth_plan_pending_name(const struct berth_plan *p, size_t i)
{
    const struct demand *w = &p->demands.at[p->left.at[i]];
    return snapshot_text(p->s, snapshot_workload(p->s, w->workload)->id);
}

/* Returns the first part of the demand that has pods left. */
static const struct demand *first_with_pods_left(const struct berth_plan *p, const struct demand *w)
{
    while (w->placed == w->len && w->more != NONE)
        w = &p->demands.at[w->more];
    return w;
}

/* Prefetches the pending demands that are likely to be read next: callers mostly read them in order. Always inlined:
 * the compiler would treat a function that only prefetches as one without effect. */
static inline __attribute__((always_inline)) void prefetch_pendings(const struct berth_plan *p, size_t i)
{
    if (i + 2 * PREFETCH < p->left.len)
        __builtin_prefetch(snapshot_workload(p->s, p->demands.at[p->left.at[i + 2 * PREFETCH]].workload));
    if (i + PREFETCH >= p->left.len)
        return;
    const struct demand *w = &p->demands.at[p->left.at[i + PREFETCH]];
    __builtin_prefetch(pages_at(&p->s->names.strings, snapshot_workload(p->s, w->workload)->id));
}

struct berth_pending berth_plan_pending(struct berth_plan *p, size_t i)
{
    prefetch_pendings(p, i);
    const struct demand *w = &p->demands.at[p->left.at[i]];
    const struct explanation *e = explain(p, first_with_pods_left(p, w));
    uint32_t left = demand_pods_left(p, w), n = 0;
    uint32_t *ordinals = ARENA_ARRAY(&p->arena, uint32_t, left);
    for (;; w = &p->demands.at[w->more]) {
        for (uint32_t at = w->placed; at < w->len; at++)
            ordinals[n++] = demand_ordinal(w, at);
        if (w->more == NONE)
            break;
    }
    return (struct berth_pending){
        .workload = berth_plan_pending_name(p, i),
        .ordinals = ordinals,
        .ordinals_len = left,
        .reasons = e->reasons,
        .reasons_len = e->len,
    };
}

size_t berth_plan_nearest(struct berth_plan *p, size_t i, struct berth_near_miss *ret, size_t cap)
{
    return explain_nearest(p, first_with_pods_left(p, &p->demands.at[p->left.at[i]]), ret, cap);
}

size_t berth_plan_advise(struct berth_plan *p, const struct berth_policy *policy, size_t i, size_t tries,
                         struct berth_advice *ret, size_t cap)
{
    const struct demand *w = &p->demands.at[p->left.at[i]];
    return advice_find(p, first_with_pods_left(p, w), demand_pods_left(p, w), policy, tries, ret, cap);
}

struct berth_queue_position berth_plan_queue_position(struct berth_plan *p, size_t i)
{
    const struct demand *w = first_with_pods_left(p, &p->demands.at[p->left.at[i]]);
    const struct berth_ranking *ranking = rank_of_queue(p, w->queue);
    struct berth_queue_position s = {
        .position = (uint32_t)i + 1,
        .entitlement = (enum berth_entitlement)(w->tier >> 32),
        .priority = snapshot_workload(p->s, w->workload)->priority,
        .waited = w->waited,
        .queue = w->queue == NONE ? "" : p->policy.order.queues[w->queue].id,
        .ranking = ranking->name && *ranking->name ? ranking->name : "fifo",
        .key = ranking_key_for_display(ranking, w->key),
    };
    s.factors_len = rank_factors(p, w->workload, s.factors);
    rank_weights(p, w->queue, s.weights);
    s.terms_len = rank_terms(p, w->workload, s.terms);
    reservation_describe(p, w, &s);
    return s;
}

void berth_plan_shares(struct berth_plan *p, void (*tell)(void *ctx, const struct berth_share *share), void *ctx)
{
    rank_shares(p, tell, ctx);
}

int64_t berth_plan_recheck_ns(const struct berth_plan *p)
{
    return p->recheck_ns;
}

bool berth_plan_alarm(const struct berth_plan *p)
{
    return p->alarm;
}

uint64_t berth_plan_hash(const struct berth_plan *p)
{
    return hash_plan(p);
}

struct berth_plan_stats berth_plan_stats(const struct berth_plan *p)
{
    return (struct berth_plan_stats){p->c.searches, p->c.opened, p->c.l->segments, p->placed, p->unplaced};
}
