/* plan_quota.c - quota usage during a plan. */
#include "core/queue/plan_quota.h"

#include "base/bits.h"
#include "base/plant.h"
#include "core/backfill/reservation.h"

#define SECOND_NS ((int64_t)1000000000)

/* For a limit: the amount held now, and once all stops are done. */
struct limit_amount {
    int64_t now, later;
};

struct quota_request {
    uint32_t workload, pods;
    const struct class *k;
    bool job; /* it adds a job to the limit of jobs */
};

struct plan_quotas {
    bool any;                       /* some quota has a limit or a total */
    uint64_t *leaves;               /* bit set of instances that this plan stops or loses, or tries to stop */
    uint64_t *lost, *begins;        /* bit sets of instances that this plan loses, and of those it promotes */
    struct limit_amount **limits;   /* [quota][limit]; NULL: the quota has no limit */
    int64_t **totals;               /* [quota][total]: amount x seconds, spent and expected */
    struct quota_request *reserves; /* at most one for each demand */
    uint32_t reserves_len, reserves_room;
};

/* ---- setup ------------------------------------------------------------------------------------------------------ */

static const struct quota_book *book_find(const struct quota *q, uint32_t resource)
{
    for (size_t i = 0; i < q->books.len; i++)
        if (q->books.at[i].resource == resource)
            return &q->books.at[i];
    return NULL;
}

static int64_t product(int64_t amount, int64_t seconds)
{
    int64_t r;
    return __builtin_mul_overflow(amount, seconds, &r) ? INT64_MAX / 4 : r;
}

/* Saturates, so that sums stay far below overflow. */
static void total_add(int64_t *total, int64_t amount)
{
    if (__builtin_add_overflow(*total, amount, total) || *total > INT64_MAX / 2)
        *total = INT64_MAX / 2;
}

/* Returns the expected duration of a pod in whole seconds, which a total is charged for; a pod that never ends counts
 * an hour. */
static int64_t pod_seconds(const struct berth_plan *p, uint32_t workload)
{
    int64_t ns = expected_duration_of(p, workload);
    return ns == BERTH_NEVER_NS ? 3600 : ns / SECOND_NS;
}

static int64_t spent_of(struct berth_plan *p, const struct quota_total *t)
{
    int64_t end;
    if (t->period_ns == 0)
        return t->spent;
    if (__builtin_add_overflow(t->since_ns, t->period_ns, &end))
        return t->spent;
    plan_recheck(p, end);
    return end <= p->s->now_ns ? 0 : t->spent;
}

static bool is_stopping(const struct berth_snapshot *s, uint32_t slot)
{
    return snapshot_instance(s, slot)->state == BERTH_STOPPING;
}

/* Adds running pods to the totals: each counts for its expected duration, or for its run time so far if that is longer.
 * In a move, the old instance counts until it stops. */
static void totals_add_running(struct berth_plan *p, struct plan_quotas *a, uint32_t workload)
{
    const struct workload *w = snapshot_workload(p->s, workload);
    const struct claim *claim = snapshot_claim(p->s, workload);
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(p->s->quotas, claim, chain);
    int64_t expected = pod_seconds(p, workload);

    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(p->s, at);
        int64_t seconds = (p->s->now_ns - i->since_ns) / SECOND_NS;
        uint32_t old = snapshot_replaced(p->s, i);
        bool takes_over = i->state != BERTH_STOPPING && old != NONE && is_stopping(p->s, old);
        if (i->state == BERTH_ENDED || (old != NONE && !takes_over))
            continue;
        seconds = i->state == BERTH_STOPPING || seconds > expected ? seconds : expected;
        for (uint32_t n = 0; n < len; n++)
            for (uint32_t t = 0; a->totals[chain[n]] && t < p->s->quotas[chain[n]].terms->totals_len; t++)
                total_add(&a->totals[chain[n]][t], product(quota_need(snapshot_class(p->s, i->class),
                                                                      p->s->quotas[chain[n]].terms->totals[t].resource),
                                                           seconds > 0 ? seconds : 0));
    }
}

void plan_quotas_begin(struct berth_plan *p)
{
    const struct berth_snapshot *s = p->s;
    struct plan_quotas *a = ARENA_ARRAY(&p->arena, struct plan_quotas, 1);
    bool totals = false;

    p->plan_quotas = a;
    a->limits = ARENA_ARRAY(&p->arena, struct limit_amount *, s->quotas_len + 1);
    a->totals = ARENA_ARRAY(&p->arena, int64_t *, s->quotas_len + 1);
    for (uint32_t q = 0; q < s->quotas_len; q++) {
        const struct quota_terms *t = s->quotas[q].terms;
        if (t && t->limits_len)
            a->limits[q] = ARENA_ARRAY(&p->arena, struct limit_amount, t->limits_len);
        for (uint32_t i = 0; t && i < t->limits_len; i++) {
            const struct quota_book *b = book_find(&s->quotas[q], t->limits[i].resource);
            if (b)
                a->limits[q][i] = (struct limit_amount){
                    PLANTED(QUOTA_STOPPING) && b->later < b->active ? b->later : b->active, b->later};
        }
        if (t && t->totals_len)
            a->totals[q] = ARENA_ARRAY(&p->arena, int64_t, t->totals_len);
        for (uint32_t i = 0; t && i < t->totals_len; i++)
            a->totals[q][i] = spent_of(p, &t->totals[i]);
        totals |= a->totals[q] != NULL;
        a->any |= a->limits[q] || a->totals[q];
    }
    size_t words = a->any ? bits_words(s->instances.len) + 1 : 0;
    a->leaves = ARENA_ARRAY(&p->arena, uint64_t, words);
    a->lost = ARENA_ARRAY(&p->arena, uint64_t, words);
    a->begins = ARENA_ARRAY(&p->arena, uint64_t, words);
    for (uint32_t word = 0; totals && word < s->accounted_len; word++)
        BITS_EACH (bit, s->accounted[word])
            totals_add_running(p, a, word * 64 + (uint32_t)bit);
}

/* ---- room ------------------------------------------------------------------------------------------------------- */

static const struct claim *claim_of(const struct berth_plan *p, uint32_t workload)
{
    const struct claim *claim = p->plan_quotas->any ? snapshot_claim(p->s, workload) : NULL;
    return claim && claim->quotas_len ? claim : NULL;
}

/* Returns whether the workload has an instance, placed by this plan or before. */
static bool job_has_instances(const struct berth_plan *p, uint32_t workload)
{
    if (p->c.fresh[workload] != NONE)
        return true;
    for (uint32_t at = snapshot_workload(p->s, workload)->first; at != NONE;
         at = snapshot_instance(p->s, at)->next_of_workload)
        if (snapshot_instance(p->s, at)->state != BERTH_ENDED && !bits_has(p->c.removed, at))
            return true;
    return false;
}

/* One more pod: its class, and the class of the instance that is counted for the same pod already (NULL: none). */
struct added_pod {
    uint32_t workload;
    const struct class *k, *counted;
};

/* Returns the amount of a resource that the pod adds. Of jobs, only the first pod of a workload adds one. */
static int64_t need_of(const struct berth_plan *p, const struct added_pod *m, uint32_t resource)
{
    return resource == QUOTA_JOBS ? !job_has_instances(p, m->workload) : quota_need_beyond(m->k, m->counted, resource);
}

static int64_t total_need_of(const struct berth_plan *p, const struct added_pod *m, uint32_t resource)
{
    return product(quota_need_beyond(m->k, m->counted, resource), pod_seconds(p, m->workload));
}

/* Return whether the instance counts now, and once all stops are done, as far as this plan has decided. */
static bool is_now(const struct berth_plan *p, uint32_t slot)
{
    const struct plan_quotas *a = p->plan_quotas;
    return (state_active(snapshot_instance(p->s, slot)->state) || bits_has(a->begins, slot)) &&
           !bits_has(a->lost, slot);
}

static bool is_later(const struct berth_plan *p, uint32_t slot)
{
    enum berth_state state = snapshot_instance(p->s, slot)->state;
    return state != BERTH_ENDED && state != BERTH_STOPPING && !bits_has(p->plan_quotas->leaves, slot);
}

/* Returns the class that is counted for the pod of the old instance, beside an instance that takes over from it; NULL:
 * nothing is counted. */
static const struct class *counted_now(const struct berth_plan *p, uint32_t old)
{
    return old != NONE && is_now(p, old) ? snapshot_class(p->s, snapshot_instance(p->s, old)->class) : NULL;
}

static const struct class *counted_later(const struct berth_plan *p, uint32_t old)
{
    return old != NONE && is_later(p, old) ? snapshot_class(p->s, snapshot_instance(p->s, old)->class) : NULL;
}

static int64_t limit_amount_of(struct limit_amount r, bool later)
{
    return later || r.later > r.now ? r.later : r.now;
}

static uint32_t room_in(int64_t limit, int64_t held, int64_t need, uint32_t most)
{
    if (need <= 0)
        return most;
    int64_t left = limit > held ? limit - held : 0, all;
    if (!__builtin_mul_overflow(need, (int64_t)most, &all) && left >= all)
        return most; /* the usual case: a product is faster than a division */
    left = left ? left / need + PLANTED(QUOTA_ONE_MORE) : 0;
    return left < most ? (uint32_t)left : most;
}

static uint32_t room_on(const struct berth_plan *p, const uint32_t *chain, uint32_t len, const struct added_pod *m,
                        bool later, uint32_t most)
{
    for (uint32_t n = 0; n < len && most; n++) {
        const struct quota_terms *t = p->s->quotas[chain[n]].terms;
        for (uint32_t i = 0; t && i < t->limits_len; i++) {
            int64_t need = need_of(p, m, t->limits[i].resource);
            if (t->limits[i].resource == QUOTA_JOBS) /* one job for all pods */
                most = need && limit_amount_of(p->plan_quotas->limits[chain[n]][i], later) >= t->limits[i].amount
                           ? 0
                           : most;
            else
                most = room_in(t->limits[i].amount, limit_amount_of(p->plan_quotas->limits[chain[n]][i], later), need,
                               most);
        }
        for (uint32_t i = 0; t && i < t->totals_len; i++)
            most = room_in(t->totals[i].limit, p->plan_quotas->totals[chain[n]][i],
                           total_need_of(p, m, t->totals[i].resource), most);
    }
    return most;
}

static uint32_t room_by(const struct berth_plan *p, const struct claim *claim, const struct added_pod *m, bool later,
                        uint32_t most)
{
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(p->s->quotas, claim, chain);
    return room_on(p, chain, len, m, later, most);
}

uint32_t plan_quota_room(const struct berth_plan *p, uint32_t workload, const struct class *k, bool later,
                         uint32_t most)
{
    const struct claim *claim = claim_of(p, workload);
    return claim ? room_by(p, claim, &(struct added_pod){workload, k, NULL}, later, most) : most;
}

uint32_t plan_quota_room_of_demand(const struct berth_plan *p, const struct demand *w, bool later, uint32_t most)
{
    if (!p->plan_quotas->any || w->quotas == 0)
        return most;
    struct added_pod m = {w->workload, snapshot_class(p->s, w->class), counted_now(p, w->replaces)};
    if (w->quotas > 1)
        return room_by(p, w->claim, &m, later, most);
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_path(p->s->quotas, w->account, chain);
    return room_on(p, chain, len, &m, later, most);
}

bool plan_quota_blocking_limit(const struct berth_plan *p, uint32_t workload, const struct class *k,
                               struct quota_shortage *ret)
{
    const struct claim *claim = claim_of(p, workload);
    uint32_t chain[QUOTA_CHAIN_MAX], len = claim ? quota_chain(p->s->quotas, claim, chain) : 0;
    const struct added_pod m = {workload, k, NULL};
    for (uint32_t n = 0; n < len; n++) {
        const struct quota_terms *t = p->s->quotas[chain[n]].terms;
        for (uint32_t i = 0; t && i < t->limits_len; i++) {
            int64_t need = need_of(p, &m, t->limits[i].resource);
            int64_t held = limit_amount_of(p->plan_quotas->limits[chain[n]][i], false);
            *ret = (struct quota_shortage){chain[n], t->limits[i].resource, false, held, t->limits[i].amount, need};
            if (need && room_in(t->limits[i].amount, held, need, 1) == 0)
                return true;
        }
        for (uint32_t i = 0; t && i < t->totals_len; i++) {
            int64_t need = total_need_of(p, &m, t->totals[i].resource);
            int64_t held = p->plan_quotas->totals[chain[n]][i];
            *ret = (struct quota_shortage){chain[n], t->totals[i].resource, true, held, t->totals[i].limit, need};
            if (need && room_in(t->totals[i].limit, held, need, 1) == 0)
                return true;
        }
    }
    return false;
}

/* ---- counting pods ---------------------------------------------------------------------------------------------- */

static void rows_add(struct berth_plan *p, const struct added_pod *m, int now, int later)
{
    const struct claim *claim = claim_of(p, m->workload);
    uint32_t chain[QUOTA_CHAIN_MAX], len = claim ? quota_chain(p->s->quotas, claim, chain) : 0;
    for (uint32_t n = 0; n < len; n++) {
        const struct quota_terms *t = p->s->quotas[chain[n]].terms;
        for (uint32_t i = 0; t && i < t->limits_len; i++) {
            int64_t need = quota_need_beyond(m->k, m->counted, t->limits[i].resource);
            p->plan_quotas->limits[chain[n]][i].now += now * need;
            p->plan_quotas->limits[chain[n]][i].later += later * need;
        }
    }
}

/* Counts jobs and totals: everything except limits of resources. */
static void jobs_and_totals_add(struct berth_plan *p, uint32_t workload, const struct class *k, int jobs, int pods)
{
    const struct claim *claim = claim_of(p, workload);
    uint32_t chain[QUOTA_CHAIN_MAX], len = claim ? quota_chain(p->s->quotas, claim, chain) : 0;
    for (uint32_t n = 0; n < len; n++) {
        const struct quota_terms *t = p->s->quotas[chain[n]].terms;
        for (uint32_t i = 0; t && i < t->limits_len; i++)
            if (t->limits[i].resource == QUOTA_JOBS) {
                p->plan_quotas->limits[chain[n]][i].now += jobs;
                p->plan_quotas->limits[chain[n]][i].later += jobs;
            }
        for (uint32_t i = 0; t && i < t->totals_len; i++)
            total_add(&p->plan_quotas->totals[chain[n]][i],
                      pods * product(quota_need(k, t->totals[i].resource), pod_seconds(p, workload)));
    }
}

void plan_quota_count(struct berth_plan *p, uint32_t workload, uint32_t replaces, const struct class *k, bool later,
                      int sign)
{
    if (!claim_of(p, workload))
        return;
    rows_add(p, &(struct added_pod){workload, k, counted_now(p, replaces)}, later ? 0 : sign, 0);
    rows_add(p, &(struct added_pod){workload, k, counted_later(p, replaces)}, 0, sign);
    if (replaces == NONE) /* otherwise the pod is counted already */
        jobs_and_totals_add(p, workload, k, job_has_instances(p, workload) ? 0 : sign, sign);
}

void plan_quota_reserve(struct berth_plan *p, uint32_t workload, const struct class *k, uint32_t pods)
{
    struct plan_quotas *a = p->plan_quotas;
    if (!claim_of(p, workload) || pods == 0)
        return;
    if (a->reserves_len == a->reserves_room) {
        uint32_t room = 2 * a->reserves_room + 16;
        struct quota_request *more = ARENA_ARRAY(&p->arena, struct quota_request, room);
        for (uint32_t i = 0; i < a->reserves_len; i++)
            more[i] = a->reserves[i];
        a->reserves = more;
        a->reserves_room = room;
    }
    struct quota_request r = {workload, pods, k, !job_has_instances(p, workload)};
    a->reserves[a->reserves_len++] = r;
    rows_add(p, &(struct added_pod){workload, k, NULL}, (int)pods, (int)pods);
    jobs_and_totals_add(p, workload, k, r.job, (int)pods);
}

void plan_quota_count_reservations(struct berth_plan *p, int sign)
{
    for (uint32_t i = 0; i < p->plan_quotas->reserves_len; i++) {
        const struct quota_request *r = &p->plan_quotas->reserves[i];
        rows_add(p, &(struct added_pod){r->workload, r->k, NULL}, sign * (int)r->pods, sign * (int)r->pods);
        jobs_and_totals_add(p, r->workload, r->k, sign * (int)r->job, sign * (int)r->pods);
    }
}

void plan_quota_unreserve_all(struct berth_plan *p)
{
    plan_quota_count_reservations(p, -1);
    p->plan_quotas->reserves_len = 0;
}

/* ---- existing instances ----------------------------------------------------------------------------------------- */

/* Adds (sign 1) or subtracts (sign -1) what the instance counts for, beside the instance that it takes over from. */
static void slot_count(struct berth_plan *p, uint32_t slot, int sign)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t old = snapshot_replaced(p->s, i);
    if (is_now(p, slot))
        rows_add(p, &(struct added_pod){i->workload.v, k, counted_now(p, old)}, sign, 0);
    if (is_later(p, slot))
        rows_add(p, &(struct added_pod){i->workload.v, k, counted_later(p, old)}, 0, sign);
}

/* As slot_count, for the instance and for all that take over from it. */
static void slots_count(struct berth_plan *p, uint32_t slot, int sign)
{
    const struct instance *i = snapshot_instance(p->s, slot), *x;
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    slot_count(p, slot, sign);
    for (uint32_t at = p->s->replacing && w->other ? w->first : NONE; at != NONE; at = x->next_of_workload) {
        x = snapshot_instance(p->s, at);
        if (x->replaces == i->id)
            slot_count(p, at, sign);
    }
}

/* Changes a bit of the instance, and recounts the instance and those that take over from it. */
static void mark(struct berth_plan *p, uint32_t slot, uint64_t *bits, bool is)
{
    if (!claim_of(p, snapshot_instance(p->s, slot)->workload.v))
        return;
    slots_count(p, slot, -1);
    if (is)
        bits_add(bits, slot);
    else
        bits_drop(bits, slot);
    slots_count(p, slot, 1);
}

void plan_quota_stop(struct berth_plan *p, uint32_t slot)
{
    mark(p, slot, p->plan_quotas->leaves, true);
}

void plan_quota_undo_stop(struct berth_plan *p, uint32_t slot)
{
    mark(p, slot, p->plan_quotas->leaves, false);
}

void plan_quota_lose(struct berth_plan *p, uint32_t slot)
{
    mark(p, slot, p->plan_quotas->leaves, true);
    mark(p, slot, p->plan_quotas->lost, true);
}

void plan_quota_promote(struct berth_plan *p, uint32_t slot)
{
    mark(p, slot, p->plan_quotas->begins, true);
}

bool plan_quota_may_stay(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct claim *claim = claim_of(p, i->workload.v);
    struct added_pod m = {i->workload.v, snapshot_class(p->s, i->class), NULL};
    if (!claim)
        return true;
    m.counted = counted_later(p, snapshot_replaced(p->s, i));
    return room_by(p, claim, &m, true, 1) > 0;
}

int plan_quota_promotable(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct claim *claim = claim_of(p, i->workload.v);
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t chain[QUOTA_CHAIN_MAX], len = claim ? quota_chain(p->s->quotas, claim, chain) : 0;
    uint32_t old = claim ? snapshot_replaced(p->s, i) : NONE;
    int promise = 1;
    for (uint32_t n = 0; n < len; n++) {
        const struct quota_terms *t = p->s->quotas[chain[n]].terms;
        for (uint32_t j = 0; t && j < t->limits_len; j++) {
            const struct limit_amount *r = &p->plan_quotas->limits[chain[n]][j];
            int64_t now = quota_need_beyond(k, counted_now(p, old), t->limits[j].resource);
            if (quota_need_beyond(k, counted_later(p, old), t->limits[j].resource) && r->later > t->limits[j].amount)
                return -1;
            if (now && r->now + now > t->limits[j].amount)
                promise = 0;
        }
    }
    return promise;
}
