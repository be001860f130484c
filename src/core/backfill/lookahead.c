/* lookahead.c - makes and applies plans one after another on a copy of the cluster. */
#include "core/backfill/lookahead.h"

#include <assert.h>

#include "base/bits.h"
#include "base/hash.h"
#include "core/backfill/timeline.h"

#define SECOND_NS ((int64_t)1000000000)

enum {
    IDLE_MAX = 64,      /* maximum number of consecutive plans without an action once no event is expected */
    RECHECK_SHARE = 50, /* rechecks are at least this fraction of the simulated time apart */
    EXACT_SIZE = 3000,  /* number of nodes, instances and workloads up to which a plan is made at every event */
    LATE_PERMILLE = 20  /* maximum delay in larger clusters, of the simulated time */
};
#define RECHECK_LEAST_NS (5 * SECOND_NS)
#define STOP_LEAST_NS (2 * SECOND_NS)

/* An expected event. */
struct lookahead_event {
    int64_t at_ns;
    uint64_t instance; /* 0: only another plan */
    bool stopped;      /* its stop is done; else the instance ends by itself */
    bool expired;      /* it was stopped by its time limit */
    bool guess;        /* no user has stated the time */
};

/* A suspended workload and a workload that it waits for. */
struct workload_wait {
    uint32_t workload, other; /* slots */
    bool started, met;
};

struct lookahead_state {
    struct berth_cluster *c;
    struct berth_policy policy;
    struct berth_backfill runs; /* backfill settings for expected run times: without until_limit */
    const struct lookahead_bounds *bounds;
    struct lookahead *to;
    int64_t from_ns, now_ns;
    uint64_t seed, next_id;
    size_t waiting, idle; /* number of workloads without a start, suspended ones included; plans without an action */
    uint32_t subject;     /* the only workload to find a start for, or NONE */
    bool found;           /* the subject has a start */
    VEC(struct workload_wait) workload_wait;
    VEC(struct lookahead_event) event; /* a heap: the first is the next event */
    VEC(uint64_t) without_start;       /* bit set of workload slots that wait and have no start yet */
    VEC(uint64_t) guessed_nodes;       /* bit set of node slots on which a pod has ended at a guessed time */
    VEC(uint64_t) guessed_quotas;      /* bit set of quotas that such a pod counted against */
    bool any_guess;                    /* a pod has ended at a guessed time */
};

/* ---- expected events -------------------------------------------------------------------------------------------- */

static bool event_before(const struct lookahead_event *a, const struct lookahead_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->instance < b->instance;
}

static void event_add(struct lookahead_state *a, struct lookahead_event x)
{
    vec_push(&a->event, x);
    size_t i = a->event.len - 1;
    for (; i > 0 && event_before(&x, &a->event.at[(i - 1) / 2]); i = (i - 1) / 2)
        a->event.at[i] = a->event.at[(i - 1) / 2];
    a->event.at[i] = x;
}

static struct lookahead_event event_take(struct lookahead_state *a)
{
    struct lookahead_event first = a->event.at[0], last = a->event.at[--a->event.len];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < a->event.len; i = child) {
        child += child + 1 < a->event.len && event_before(&a->event.at[child + 1], &a->event.at[child]);
        if (!event_before(&a->event.at[child], &last))
            break;
        a->event.at[i] = a->event.at[child];
    }
    if (a->event.len)
        a->event.at[i] = last;
    return first;
}

/* Returns whether no user has stated how long the workload runs. */
static bool is_guessed(const struct workload *w, const struct claim *t)
{
    return w->kind == BERTH_JOB && (!t || t->predicted || (t->estimate_ns == 0 && t->limit_ns == 0));
}

/* Adds the expected end of a running instance. `sure`: its start is not a guess. */
static void expect_end(struct lookahead_state *a, const struct instance *i, bool sure)
{
    const struct workload *w = cluster_workload(a->c, i->workload.v);
    const struct claim *t = cluster_claim(a->c, i->workload.v);
    int64_t end = expected_end(w, t, &a->runs, i->since_ns, a->now_ns);
    if (end == BERTH_NEVER_NS)
        return;
    bool outrun = add_ns(i->since_ns, expected_duration(w, t, &a->runs)) <= a->now_ns;
    bool at_limit = t && t->limit_ns && end == add_ns(i->since_ns, t->limit_ns);
    event_add(a, (struct lookahead_event){
                     .at_ns = end, .instance = i->id, .guess = !sure || is_guessed(w, t) || (outrun && !at_limit)});
}

static void expect_stop(struct lookahead_state *a, const struct instance *i, bool expired)
{
    int64_t at = add_ns(i->since_ns, a->bounds->stop_ns), least = a->now_ns + STOP_LEAST_NS;
    event_add(a, (struct lookahead_event){
                     .at_ns = at > least ? at : least, .instance = i->id, .stopped = true, .expired = expired});
}

/* Adds a moment at which nothing ends but a plan may differ. */
static void expect_replan(struct lookahead_state *a, int64_t at_ns)
{
    if (at_ns >= a->now_ns && at_ns != BERTH_NEVER_NS)
        event_add(a, (struct lookahead_event){.at_ns = at_ns});
}

static void expect_all(struct lookahead_state *a)
{
    for (uint32_t i = 0; i < a->c->instances.len; i++) {
        const struct instance x = *cluster_instance(a->c, i);
        if (x.id >= a->next_id)
            a->next_id = x.id + 1;
        if (x.id == 0 || x.state == BERTH_ENDED || x.state == BERTH_RESERVED)
            continue;
        if (x.state == BERTH_STOPPING) {
            expect_stop(a, &x, false);
            continue;
        }
        if (x.state != BERTH_RUNNING) { /* it is about to start */
            ((struct instance *)pages_edit(&a->c->instances, i))->ready = true;
            instance_set_state(a->c, i, BERTH_RUNNING, x.since_ns);
        }
        expect_end(a, &x, true);
    }
    for (size_t i = 0; i < a->policy.windows_len; i++) {
        expect_replan(a, a->policy.windows[i].start_ns);
        expect_replan(a, a->policy.windows[i].end_ns);
    }
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static void mark_guess(struct lookahead_state *a, const struct instance *i)
{
    const struct claim *t = cluster_claim(a->c, i->workload.v);
    uint32_t chain[QUOTA_CHAIN_MAX], len = t ? quota_chain(a->c->quotas.at, t, chain) : 0;
    bits_add(a->guessed_nodes.at, i->node.v);
    for (uint32_t n = 0; n < len; n++)
        bits_add(a->guessed_quotas.at, chain[n]);
    a->any_guess = true;
}

/* Adds a workload whose start is to be found. */
static void add_waiting(struct lookahead_state *a, uint32_t workload)
{
    if (bits_has(a->without_start.at, workload))
        return;
    bits_add(a->without_start.at, workload);
    a->waiting++;
    expect_replan(a, cluster_workload(a->c, workload)->begin_ns);
}

/* Resumes a workload that waits for no other workload any more. */
static void resume_workload(struct lookahead_state *a, uint32_t workload)
{
    ((struct workload *)pages_edit(&a->c->workloads, workload))->suspended = false;
    cluster_settle(a->c, workload);
    expect_replan(a, a->now_ns);
}

/* Notes that the workload has started or ended, and resumes the workloads that waited for nothing else. */
static void note_start_or_end(struct lookahead_state *a, uint32_t workload, bool ended)
{
    for (size_t i = 0; i < a->workload_wait.len; i++) {
        struct workload_wait *h = &a->workload_wait.at[i];
        if (h->met || h->other != workload || !(ended || h->started))
            continue;
        h->met = true;
        bool open = false;
        for (size_t n = 0; n < a->workload_wait.len; n++)
            open = open || (a->workload_wait.at[n].workload == h->workload && !a->workload_wait.at[n].met);
        if (!open)
            resume_workload(a, h->workload);
    }
}

static void add_all_waits(struct lookahead_state *a)
{
    for (size_t i = 0; i < a->bounds->waits_len; i++) {
        const struct lookahead_wait *w = &a->bounds->waits[i];
        uint32_t workload = cluster_workload_find(a->c, w->workload), other = cluster_workload_find(a->c, w->other);
        if (workload == NONE || other == NONE || !cluster_workload(a->c, workload)->suspended)
            continue;
        vec_push(&a->workload_wait, ((struct workload_wait){workload, other, w->started, false}));
        add_waiting(a, workload);
    }
}

/* Removes a job whose pods have all ended. */
static void remove_finished_job(struct lookahead_state *a, uint32_t workload)
{
    const struct workload *w = cluster_workload(a->c, workload);
    struct berth_err err;
    if (w->gone || w->kind != BERTH_JOB || w->ended < w->replicas)
        return;
    VEC(uint64_t) ids = {0};
    for (uint32_t i = w->first; i != NONE; i = cluster_instance(a->c, i)->next_of_workload)
        vec_push(&ids, cluster_instance(a->c, i)->id);
    (void)berth_workload_remove(a->c, intern_text(&a->c->names, w->id), &err);
    for (size_t i = 0; i < ids.len; i++)
        (void)berth_instance_remove(a->c, ids.at[i], &err);
    vec_done(&ids);
    note_start_or_end(a, workload, true);
}

static void end(struct lookahead_state *a, const struct instance *i)
{
    struct berth_err err;
    uint32_t workload = i->workload.v;
    struct berth_instance over = {.id = i->id,
                                  .workload = intern_text(&a->c->names, cluster_workload(a->c, workload)->id),
                                  .ordinal = i->ordinal,
                                  .node = intern_text(&a->c->names, i->node_id),
                                  .state = BERTH_ENDED,
                                  .since_ns = a->now_ns};
    if (berth_instance_put(a->c, &over, &err) == 0)
        remove_finished_job(a, workload);
}

static void apply_event(struct lookahead_state *a, const struct lookahead_event *d)
{
    struct berth_err err;
    uint32_t slot = d->instance ? cluster_instance_find(a->c, d->instance) : NONE;
    if (slot == NONE)
        return;
    const struct instance i = *cluster_instance(a->c, slot);
    if (i.state == BERTH_ENDED || d->stopped != (i.state == BERTH_STOPPING))
        return; /* it was stopped meanwhile, or is gone */
    if (d->guess)
        mark_guess(a, &i);
    if (d->stopped && !d->expired)
        (void)berth_instance_remove(a->c, i.id, &err);
    else
        end(a, &i);
}

/* ---- actions of a plan ------------------------------------------------------------------------------------------ */

/* Returns whether the instance might have started at another time if pods had run for another time than guessed. */
static bool rests_on_guess(const struct lookahead_state *a, const struct instance *i)
{
    const struct claim *t = cluster_claim(a->c, i->workload.v);
    uint32_t chain[QUOTA_CHAIN_MAX], len = t ? quota_chain(a->c->quotas.at, t, chain) : 0;
    bool guess = bits_has(a->guessed_nodes.at, i->node.v) || (a->any_guess && a->policy.headroom.reserves_len);
    for (uint32_t n = 0; n < len && !guess; n++) {
        const struct quota_terms *terms = a->c->quotas.at[chain[n]].terms;
        guess = terms && terms->limits_len && bits_has(a->guessed_quotas.at, chain[n]);
    }
    return guess && a->now_ns > a->from_ns;
}

static bool same_estimate(const void *ctx, uint32_t at, const void *workload)
{
    return strcmp(((const struct lookahead *)ctx)->at.at[at].workload, workload) == 0;
}

static void note_start(struct lookahead_state *a, const struct instance *i, bool guess)
{
    uint32_t slot = i->workload.v;
    const struct workload *w = cluster_workload(a->c, slot);
    const char *node = intern_text(&a->c->names, i->node_id);
    struct lookahead *l = a->to;
    struct start_estimate *last = l->at.len ? &l->at.at[l->at.len - 1] : NULL;
    if (slot / 64 < a->without_start.len && bits_has(a->without_start.at, slot)) {
        const char *id = intern_text(&a->c->names, w->id);
        int64_t duration = expected_duration(w, cluster_claim(a->c, slot), &a->runs);
        map_add(&l->by_workload, hash_bytes(id, strlen(id), 0), (uint32_t)l->at.len);
        vec_push(&l->at, ((struct start_estimate){id, node, 1, a->now_ns, add_ns(a->now_ns, duration), guess}));
        bits_drop(a->without_start.at, slot);
        a->waiting--;
        a->found = a->found || slot == a->subject;
    } else if (last && last->start_ns == a->now_ns && strcmp(last->workload, intern_text(&a->c->names, w->id)) == 0) {
        last->nodes += strcmp(last->node, node) != 0; /* more of its pods at the same moment */
        last->guess = last->guess || guess;
    }
}

/* Makes a placed instance run at once. */
static void start(struct lookahead_state *a, uint32_t slot)
{
    struct instance *i = pages_edit(&a->c->instances, slot);
    i->ready = true;
    i->counted_ns = a->now_ns;
    instance_set_state(a->c, slot, BERTH_RUNNING, a->now_ns);
    const struct instance now = *cluster_instance(a->c, slot);
    bool guess = rests_on_guess(a, &now);
    note_start(a, &now, guess);
    note_start_or_end(a, now.workload.v, false);
    expect_end(a, &now, !guess);
}

/* Carries out the plan's actions. New instances have ids in the order of the actions. */
static void apply_actions(struct lookahead_state *a, const struct berth_plan *plan)
{
    for (size_t n = 0; n < plan->c.acts.len; n++) {
        const struct plan_act *x = &plan->c.acts.at[n];
        uint32_t slot = x->instance;
        switch ((enum berth_op)x->op) {
        case BERTH_PLACE: start(a, cluster_instance_find(a->c, a->next_id++)); break;
        case BERTH_RESERVE: a->next_id++; break;
        case BERTH_PROMOTE: start(a, slot); break;
        case BERTH_STOP:
            if (cluster_instance(a->c, slot)->id && cluster_instance(a->c, slot)->state == BERTH_STOPPING)
                expect_stop(a, cluster_instance(a->c, slot), x->cause == BERTH_CAUSE_EXPIRED);
            break;
        case BERTH_LOSE:
        case BERTH_ADJUST: continue; /* no workload waits for it */
        }
        a->idle = 0;
    }
}

/* Adds the workloads that have no place before the first plan, or wait for a stop. */
static void add_all_waiting(struct lookahead_state *a, const struct berth_plan *plan)
{
    for (uint32_t i = 0; i < a->c->instances.len; i++)
        if (cluster_instance(a->c, i)->id && cluster_instance(a->c, i)->state == BERTH_RESERVED)
            add_waiting(a, cluster_instance(a->c, i)->workload.v);
    for (size_t i = 0; i < plan->left.len; i++)
        add_waiting(a, plan->demands.at[plan->left.at[i]].workload);
    for (size_t n = 0; n < plan->c.acts.len; n++)
        if (plan->c.acts.at[n].op == BERTH_PLACE || plan->c.acts.at[n].op == BERTH_RESERVE)
            add_waiting(a, plan->c.acts.at[n].workload);
}

/* Makes and applies one plan. *ret_again: the plan's recheck time. */
static bool step(struct lookahead_state *a, int64_t *ret_again)
{
    struct berth_err err;
    struct berth_plan *plan = NULL;
    struct berth_snapshot *s = berth_freeze(a->c, a->now_ns, a->seed);
    bool ok = berth_plan_make(s, &a->policy, &plan, &err) == 0;
    if (ok && a->to->plans == 0)
        add_all_waiting(a, plan);
    ok = ok && berth_apply(a->c, plan, a->next_id, &err) == 0;
    a->to->plans++;
    a->to->until_ns = a->now_ns;
    a->idle++;
    if (ok) {
        *ret_again = berth_plan_recheck_ns(plan);
        apply_actions(a, plan);
    }
    berth_plan_free(plan);
    berth_snapshot_free(s);
    return ok;
}

/* ---- the simulation --------------------------------------------------------------------------------------------- */

/* Returns how much later than an event a plan may be made: in a large cluster there is an event at every moment. */
static int64_t lateness(const struct lookahead_state *a)
{
    uint64_t size = a->c->nodes.len + a->c->instances.len + a->waiting;
    uint64_t permille = size / EXACT_SIZE;
    permille = permille > LATE_PERMILLE ? LATE_PERMILLE : permille;
    return (a->now_ns - a->from_ns) / 1000 * (int64_t)permille;
}

/* Returns the time of the next plan; BERTH_NEVER_NS: no further event is expected. */
static int64_t next_moment(const struct lookahead_state *a, int64_t again_ns)
{
    int64_t next = a->event.len ? add_ns(a->event.at[0].at_ns, lateness(a)) : BERTH_NEVER_NS;
    if (again_ns != BERTH_NEVER_NS && (a->event.len || a->idle < IDLE_MAX)) {
        int64_t pause = (a->now_ns - a->from_ns) / RECHECK_SHARE;
        int64_t least = a->now_ns + (pause > RECHECK_LEAST_NS ? pause : RECHECK_LEAST_NS);
        again_ns = again_ns > least ? again_ns : least;
        next = again_ns < next ? again_ns : next;
    }
    return next > a->now_ns || next == BERTH_NEVER_NS ? next : a->now_ns + SECOND_NS;
}

static bool may_continue(const struct lookahead_state *a)
{
    const struct lookahead_bounds *b = a->bounds;
    return a->to->plans < b->plans_max && (!b->goes_on || b->goes_on(b->ctx)) &&
           (b->horizon_ns == 0 || a->now_ns - a->from_ns <= b->horizon_ns);
}

static void run_until_done(struct lookahead_state *a)
{
    int64_t again = BERTH_NEVER_NS;
    while (may_continue(a) && step(a, &again)) {
        int64_t next = a->waiting && !a->found ? next_moment(a, again) : BERTH_NEVER_NS;
        if (next == BERTH_NEVER_NS) {
            a->to->complete = true;
            return;
        }
        a->now_ns = next;
        while (a->event.len && a->event.at[0].at_ns <= a->now_ns) {
            struct lookahead_event d = event_take(a);
            apply_event(a, &d);
        }
    }
}

void lookahead_run(struct berth_cluster *copy, const struct berth_policy *policy, int64_t now_ns, uint64_t seed,
                   const struct lookahead_bounds *bounds, struct lookahead *ret)
{
    struct lookahead_state a = {.c = copy,
                                .policy = *policy,
                                .runs = policy->backfill,
                                .bounds = bounds,
                                .to = ret,
                                .from_ns = now_ns,
                                .now_ns = now_ns,
                                .seed = seed,
                                .next_id = 1,
                                .subject = bounds->subject ? cluster_workload_find(copy, bounds->subject) : NONE};
    *ret = (struct lookahead){.until_ns = now_ns};
    a.policy.rebalance = (struct berth_rebalance){0};
    a.policy.pressure = (struct berth_pressure){0};
    a.policy.starting = 0; /* no placement budget: pods run as soon as they are placed */
    a.runs.until_limit = false;
    vec_resize(&a.without_start, bits_words(copy->workloads.len) + 1);
    vec_resize(&a.guessed_nodes, bits_words(copy->nodes.len) + 1);
    vec_resize(&a.guessed_quotas, bits_words(copy->quotas.len) + 1);
    assert(a.without_start.at && a.guessed_nodes.at && a.guessed_quotas.at); /* one word each at least */
    expect_all(&a);
    add_all_waits(&a);
    run_until_done(&a);
    vec_done(&a.event);
    vec_done(&a.workload_wait);
    vec_done(&a.without_start);
    vec_done(&a.guessed_nodes);
    vec_done(&a.guessed_quotas);
}

void lookahead_done(struct lookahead *l)
{
    vec_done(&l->at);
    map_done(&l->by_workload);
    *l = (struct lookahead){0};
}

const struct start_estimate *lookahead_find(const struct lookahead *l, const char *workload)
{
    uint32_t at = map_find(&l->by_workload, hash_bytes(workload, strlen(workload), 0), same_estimate, l, workload);
    return at == MAP_NONE ? NULL : &l->at.at[at];
}
