#include "control/sched/scheduler.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "control/control_parts.h"
#include "control/sched/batch.h"
#include "control/sched/plan_policy.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

enum { SECOND = 1000000000 };
enum { TOLD_MAX = 4096, TOLD_FOR = 64, EVENTS_PER_CYCLE_MAX = 100, REBUILD_AFTER = 200000 };
enum { FAILS_FREE = 3, PAUSE_MS = 10, PAUSE_DOUBLINGS_CONFLICT = 2, PAUSE_DOUBLINGS_MAX = 10 };

/* A plan being made; only the planning thread accesses it until it is made. */
struct plan_run {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    const struct berth_profile *profile; /* in the arena, or built in */
    struct plan_policy policy;
    struct arena arena;
    struct batch_basis basis;
    uint64_t returned; /* batches_rolled_back() at the freeze */
    struct berth_err err;
    int rc;
    int64_t took_ns;
    int64_t (*steady_ns)(void *ctx);
    void *clock_ctx;
};

struct forced_cycle {
    scheduler_planned_fn *planned;
    void *ctx;
    uint64_t cycle; /* the first cycle that includes what the caller has committed */
};

/* Workloads with pods that the last plan left unplaced, and since when every plan has. */
struct wait_since {
    uint64_t workload; /* hash of the workload's ID */
    int64_t since_ns;  /* 0: since before the first plan */
};

struct wait_times {
    struct wait_since *at;
    size_t len, cap;
    struct map by_workload;
};

struct scheduler {
    struct control *control;
    struct batches *batches;
    bool awake, planning, stopping;
    struct plan_run plan_run;
    /* The last plan, for `why`. */
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    struct plan_policy policy;
    struct map pending; /* workload to its index among the plan's pending workloads */
    struct wait_times waits;
    struct scheduler_status seen;
    int64_t next_steady_ns; /* ten seconds after the last cycle */
    VEC(struct forced_cycle) forced;
    size_t changes; /* since the cluster was rebuilt */
    struct {
        uint64_t workload, round;
    } told[TOLD_MAX];      /* workloads whose reasons were checked recently */
    unsigned fails;        /* consecutive cycles with a failed batch */
    int64_t not_before_ns; /* steady time; pause before the next plan after repeated failures */
};

static void batches_idle(void *ctx);

struct scheduler *scheduler_new(struct control *control)
{
    struct scheduler *s = mem_zalloc(sizeof *s);
    s->control = control;
    s->batches = batches_new(control, batches_idle, s);
    s->awake = true;
    s->seen.recheck_ns = BERTH_NEVER_NS;
    return s;
}

static uint64_t hash_name(const char *workload)
{
    return hash_bytes(workload, strlen(workload), 0);
}

static bool same_wait(const void *ctx, uint32_t at, const void *workload)
{
    return ((const struct wait_times *)ctx)->at[at].workload == *(const uint64_t *)workload;
}

static void wait_times_done(struct wait_times *w)
{
    mem_free(w->at);
    map_done(&w->by_workload);
}

static void last_plan_drop(struct scheduler *s)
{
    berth_plan_free(s->plan);
    berth_snapshot_free(s->snapshot);
    s->plan = NULL;
    s->snapshot = NULL;
    plan_policy_done(&s->policy);
    map_done(&s->pending);
}

void scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    last_plan_drop(s);
    if (s->planning) { /* the planning thread has ended, but made() was not called */
        berth_plan_free(s->plan_run.plan);
        plan_policy_done(&s->plan_run.policy);
        berth_snapshot_free(s->plan_run.snapshot);
        str_done(&s->plan_run.basis.assumed);
        arena_done(&s->plan_run.arena);
    }
    batches_free(s->batches);
    wait_times_done(&s->waits);
    vec_done(&s->forced);
    mem_free(s);
}

void scheduler_wake(struct scheduler *s)
{
    s->awake = true;
    s->changes++;
}

struct scheduler_status scheduler_status(const struct scheduler *s)
{
    struct scheduler_status seen = s->seen;
    seen.assumed = state_assumed(s->control->state);
    seen.batches = batches_len(s->batches);
    return seen;
}

/* ---- waiting workloads ------------------------------------------------------------------------------------------ */

static bool same_pending(const void *ctx, uint32_t at, const void *workload)
{
    const struct scheduler *s = ctx;
    return strcmp(berth_plan_pending_name(s->plan, at), workload) == 0;
}

int64_t scheduler_pending_since_ns(const struct scheduler *s, const char *workload)
{
    uint64_t hash = hash_name(workload);
    uint32_t at = map_find(&s->waits.by_workload, hash, same_wait, &s->waits, &hash);
    return at == MAP_NONE ? 0 : s->waits.at[at].since_ns;
}

bool scheduler_pending(struct scheduler *s, const char *workload, struct berth_pending *ret)
{
    if (!s->plan)
        return false;
    uint32_t at = map_find(&s->pending, hash_bytes(workload, strlen(workload), 0), same_pending, s, workload);
    if (at == MAP_NONE)
        return false;
    *ret = berth_plan_pending(s->plan, at);
    return true;
}

size_t scheduler_each_waiting(const struct scheduler *s, size_t cap, void (*tell)(void *ctx, const char *workload),
                              void *ctx)
{
    size_t len = s->plan ? berth_plan_pendings(s->plan) : 0, each = len > cap ? (len + cap - 1) / cap : 1;
    for (size_t i = 0; i < len; i += each)
        tell(ctx, berth_plan_pending_name(s->plan, i));
    return len;
}

/* "3 of 5 pods wait: all 42 nodes have too little memory left: ...; 2 of 42 nodes are not ready for new work". */
static void pending_sentence(const struct berth_pending *p, const struct object *work, struct str *to)
{
    enum { REASONS_MAX = 3 };
    str_addf(to, "%zu of %u pods are pending", p->ordinals_len, work->work->replicas);
    for (size_t i = 0; i < p->reasons_len && i < REASONS_MAX; i++)
        str_addf(to, "%s %s", i ? ";" : ":", p->reasons[i].text);
}

/* Adds one event for each workload whose pods wait for a new reason. */
static void pending_report(struct scheduler *s)
{
    size_t len = berth_plan_pendings(s->plan), said = 0;
    for (size_t i = 0; i < len && said < EVENTS_PER_CYCLE_MAX; i++) {
        CLEANUP(str) struct str text = {0};
        const char *id = berth_plan_pending_name(s->plan, i);
        const struct object *work = state_find_work(s->control->state, id);
        if (!work)
            continue;
        uint64_t hash = hash_bytes(id, strlen(id), 0), slot = hash % TOLD_MAX, round = s->seen.plans / TOLD_FOR;
        if (s->told[slot].workload == hash && s->told[slot].round == round)
            continue;
        struct berth_pending pending = berth_plan_pending(s->plan, i);
        pending_sentence(&pending, work, &text);
        struct object_event event = {.type = "FailedScheduling",
                                     .kind = work->kind,
                                     .id = id,
                                     .owner = work->owner,
                                     .group = work->group,
                                     .message = str_text(&text)};
        events_add(s->control->events, s->seen.now_ns, &event);
        s->told[slot].workload = hash;
        s->told[slot].round = round;
        said++;
    }
}

/* ---- make a plan ------------------------------------------------------------------------------------------------ */

/* Runs on the worker; accesses only `making`. */
static void make(void *ctx)
{
    struct plan_run *m = &((struct scheduler *)ctx)->plan_run;
    struct berth_policy policy = m->policy.policy;
    policy.profile = m->profile;
    int64_t start_ns = m->steady_ns(m->clock_ctx);
    m->rc = berth_plan_make(m->snapshot, &policy, &m->plan, &m->err);
    m->took_ns += m->steady_ns(m->clock_ctx) - start_ns;
}

const struct berth_profile *scheduler_profile(const struct state *s, struct arena *arena, const char **ret_name)
{
    const struct object *settings = state_find(s, KIND_SETTING, "system");
    CLEANUP(json) json_t *doc = settings ? object_doc(settings) : NULL;
    const char *name = json_string_value(json_object_get(doc, "profile"));
    const struct object *own = name ? state_find(s, KIND_PROFILE, name) : NULL;
    CLEANUP(json) json_t *own_doc = own ? object_doc(own) : NULL;
    struct berth_profile *read = arena_alloc(arena, sizeof *read);
    struct doc_meta meta;
    bool is_own = own_doc && profile_doc_read(own_doc, arena, &meta, read, NULL) == 0;
    if (!is_own && (!name || !berth_profile_find(name)))
        name = "default";
    *ret_name = arena_strdup(arena, name);
    return is_own ? read : berth_profile_find(*ret_name);
}

/* Adds a pending entry of the plan. A workload may have two: for its missing pods, and for better placements of
 * existing instances. The entry with more pods is kept; of equal ones the entry for missing pods, which comes last. */
static void pending_add(struct scheduler *s, size_t i)
{
    const char *id = berth_plan_pending_name(s->plan, i);
    uint64_t hash = hash_bytes(id, strlen(id), 0);
    uint32_t other = map_find(&s->pending, hash, same_pending, s, id);
    if (other != MAP_NONE) {
        if (berth_plan_pending(s->plan, other).ordinals_len > berth_plan_pending(s->plan, i).ordinals_len)
            return;
        map_drop(&s->pending, hash, other);
    }
    map_add(&s->pending, hash, (uint32_t)i);
}

/* Records since when each workload of the new plan has waited, from the previous record. The record outlives both
 * plans, so it holds hashes of workload IDs. */
static void wait_times_note(struct scheduler *s, const struct plan_run *m)
{
    struct wait_times now = {0};
    for (size_t i = 0; i < berth_plan_pendings(m->plan); i++) {
        uint64_t workload = hash_name(berth_plan_pending_name(m->plan, i));
        uint32_t at = map_find(&s->waits.by_workload, workload, same_wait, &s->waits, &workload);
        struct wait_since wait = {workload, at != MAP_NONE  ? s->waits.at[at].since_ns
                                            : s->seen.plans ? m->basis.now_ns
                                                            : 0};
        map_add(&now.by_workload, workload, (uint32_t)now.len);
        vec_push(&now, wait);
    }
    wait_times_done(&s->waits);
    s->waits = now;
}

static void keep_plan(struct scheduler *s, struct plan_run *m)
{
    wait_times_note(s, m);
    last_plan_drop(s);
    s->plan = take_ptr(&m->plan);
    s->snapshot = take_ptr(&m->snapshot);
    s->policy = m->policy;
    m->policy = (struct plan_policy){0};
    s->seen.pending = 0;
    for (size_t i = 0; i < berth_plan_pendings(s->plan); i++)
        pending_add(s, i);
    s->seen.plans++;
    s->seen.hash = berth_plan_hash(s->plan);
    s->seen.revision = m->basis.revision;
    s->seen.now_ns = m->basis.now_ns;
    s->seen.recheck_ns = berth_plan_recheck_ns(s->plan);
    s->seen.actions = berth_plan_actions(s->plan);
    s->seen.placed = (size_t)berth_plan_stats(s->plan).placed;
    s->seen.pending = (size_t)berth_plan_stats(s->plan).unplaced;
    s->seen.alarm = berth_plan_alarm(s->plan);
    s->seen.seconds = (double)m->took_ns / SECOND;
}

/* Returns whether a caller waits for a plan that has not begun. Other callers wait for the batches of a finished
 * plan. */
static bool forced_pending(const struct scheduler *s)
{
    for (size_t i = 0; i < s->forced.len; i++)
        if (s->forced.at[i].cycle > s->seen.cycles)
            return true;
    return false;
}

static void forced_answer(struct scheduler *s)
{
    uint64_t done = s->seen.cycles - s->planning; /* without the plan that is being made */
    for (size_t i = 0; i < s->forced.len;) {
        struct forced_cycle f = s->forced.at[i];
        if (f.cycle > done) {
            i++;
            continue;
        }
        s->forced.at[i] = s->forced.at[--s->forced.len];
        f.planned(f.ctx);
    }
}

/* After a conflict the next plan starts at once; after repeated failures (a full disk) it starts after a pause of up to
 * ten seconds. */
static void failures_handle(struct scheduler *s)
{
    enum batches_failure failure = batches_failure(s->batches);
    if (failure == BATCHES_OK) {
        if (batches_len(s->batches) == 0)
            s->fails = 0;
        return;
    }
    s->awake = true;
    if (++s->fails <= FAILS_FREE)
        return;
    /* A client that keeps changing one app must not delay other workloads for long. */
    unsigned most = failure == BATCHES_STORE_FAILED ? PAUSE_DOUBLINGS_MAX : PAUSE_DOUBLINGS_CONFLICT;
    unsigned doublings = s->fails - FAILS_FREE < most ? s->fails - FAILS_FREE : most;
    int64_t pause_ns = (int64_t)PAUSE_MS * 1000000 << doublings;
    s->not_before_ns = s->control->env.steady_ns(s->control->env.ctx) + pause_ns;
}

static int64_t next_plan_ns(const struct scheduler *s)
{
    return s->awake ? s->not_before_ns : s->next_steady_ns;
}

/* Discards a plan that counts on changes rolled back meanwhile. Callers of scheduler_force wait for the next plan
 * instead. */
static void plan_again(struct scheduler *s)
{
    s->awake = true;
    for (size_t i = 0; i < s->forced.len; i++)
        s->forced.at[i].cycle += s->forced.at[i].cycle == s->seen.cycles;
}

/* Called when every batch is committed or rolled back. */
static void batches_idle(void *ctx)
{
    struct scheduler *s = ctx;
    failures_handle(s);
    forced_answer(s);
    s->control->env.wake_at(s->control->env.ctx, next_plan_ns(s));
}

/* Reports policies whose formula fails; their jobs are ordered by creation until the policy is changed. */
static void policies_report(struct scheduler *s, struct plan_policy *p)
{
    const char *why = "", *policy;
    while ((policy = plan_policy_failure(p, &why))) {
        CLEANUP(str) struct str text = {0};
        str_addf(&text, "the formula fails, so jobs are ordered by creation time: %s", why);
        struct object_event event = {.type = "PolicyFailed",
                                     .kind = KIND_POLICY,
                                     .id = policy,
                                     .owner = "",
                                     .group = "",
                                     .message = str_text(&text)};
        events_add(s->control->events, s->control->now_ns, &event);
        log_write(s->control->env.log, s->control->now_ns, LEVEL_ERROR, "policy.failed", LOG_TEXT("policy", policy),
                  LOG_TEXT("text", why));
    }
    plan_policy_release_formulas(p);
}

/* Returns whether the plan writes nothing; the cycle ends here. */
static bool is_empty(const struct berth_plan *plan)
{
    return berth_plan_actions(plan) == 0 && berth_plan_facts(plan) == 0;
}

static void on_plan_done(void *ctx)
{
    struct scheduler *s = ctx;
    struct control *c = s->control;
    struct plan_run *m = &s->plan_run;
    s->planning = false;
    policies_report(s, &m->policy);
    metric_add(c->metrics, METRIC_CYCLES, m->rc == 0 && is_empty(m->plan) ? 2 : 0, 1);
    metric_observe(c->metrics, METRIC_CYCLE_SECONDS, m->took_ns);
    if (m->rc < 0) {
        log_write(c->env.log, c->now_ns, LEVEL_ERROR, "plan.failed", LOG_TEXT("text", m->err.text));
        berth_snapshot_free(m->snapshot);
        m->snapshot = NULL;
        plan_policy_done(&m->policy);
        s->seen.recheck_ns = BERTH_NEVER_NS; /* the next change or the next periodic plan tries again */
    } else {
        m->basis.plan_hash = berth_plan_hash(m->plan);
        keep_plan(s, m);
        if (s->seen.alarm)
            log_write(c->env.log, c->now_ns, LEVEL_ERROR, "nodes.lost",
                      LOG_TEXT("text", "more than a third of the nodes are lost: no instances are replaced; check the "
                                       "network"));
        if (batches_rolled_back(s->batches) != m->returned) {
            plan_again(s);
        } else if (!s->stopping) {
            pending_report(s);
            (void)batches_add(s->batches, s->plan, &m->basis);
        }
    }
    str_done(&m->basis.assumed);
    arena_done(&m->arena);
    if (batches_len(s->batches) == 0) {
        failures_handle(s);
        forced_answer(s);
    }
    c->env.wake_at(c->env.ctx, next_plan_ns(s));
}

static void audit(struct scheduler *s)
{
    struct control *c = s->control;
    struct berth_err err;
    /* Assumed changes of queued batches are in no document yet. */
    int rc = batches_len(s->batches) ? berth_audit(state_cluster(c->state), &err) : state_audit(c->state, &err);
    if (rc < 0)
        log_write(c->env.log, c->now_ns, LEVEL_ERROR, "audit.breach", LOG_TEXT("text", err.text));
}

/* Rebuilds the cluster, which drops names and classes that are no longer used. */
static void rebuild(struct scheduler *s)
{
    struct control *c = s->control;
    struct berth_err err;
    last_plan_drop(s);
    if (state_rebuild(c->state, &err) < 0)
        log_write(c->env.log, c->now_ns, LEVEL_ERROR, "rebuild.failed", LOG_TEXT("text", err.text));
    s->changes = 0;
}

static void begin(struct scheduler *s, int64_t now_ns, int64_t steady_ns)
{
    struct control *c = s->control;
    struct plan_run *m = &s->plan_run;
    if (s->changes > REBUILD_AFTER && state_assumed(c->state) == 0 && batches_len(s->batches) == 0 &&
        forecast_drop(c->forecast))
        rebuild(s);
    s->seen.cycles++;
    if (c->in_force.audit_every && s->seen.cycles % c->in_force.audit_every == 0)
        audit(s);
    s->awake = false;
    s->planning = true;
    s->next_steady_ns = steady_ns + s->control->in_force.cycle_ns_max;
    *m = (struct plan_run){.steady_ns = c->env.steady_ns, .clock_ctx = c->env.ctx};
    arena_init(&m->arena);
    m->basis = (struct batch_basis){.cycle = s->seen.cycles,
                                    .revision = state_revision(c->state),
                                    .state_hash = state_hash(c->state),
                                    .seed = c->in_force.seed,
                                    .now_ns = now_ns};
    for (unsigned k = 0; k < KINDS; k++)
        m->basis.kinds[k] = (uint32_t)state_hash_of(c->state, (enum kind)k);
    m->returned = batches_rolled_back(s->batches);
    m->profile = scheduler_profile(c->state, &m->arena, &m->basis.profile);
    plan_policy_read(c->state, &m->policy);
    if (batches_len(s->batches))
        batches_assumed(s->batches, &m->basis.assumed);
    m->snapshot = berth_freeze(state_cluster(c->state), now_ns, c->in_force.seed);
    m->took_ns = c->env.steady_ns(c->env.ctx) - steady_ns;
    c->env.run(c->env.ctx, make, on_plan_done, s);
}

int64_t scheduler_step(struct scheduler *s, int64_t steady_ns)
{
    if (s->planning || s->stopping)
        return INT64_MAX;
    int64_t now_ns = control_now_ns(s->control);
    if (steady_ns < s->not_before_ns)
        return s->not_before_ns;
    if (s->awake || now_ns >= s->seen.recheck_ns || forced_pending(s)) {
        begin(s, now_ns, steady_ns);
        if (s->planning)
            return INT64_MAX;
    } else if (steady_ns >= s->next_steady_ns) {
        metric_add(s->control->metrics, METRIC_CYCLES, 1, 1);
        s->next_steady_ns = steady_ns + s->control->in_force.cycle_ns_max;
    }
    int64_t next = s->next_steady_ns;
    if (s->seen.recheck_ns != BERTH_NEVER_NS && s->seen.recheck_ns - now_ns < next - steady_ns)
        next = steady_ns + (s->seen.recheck_ns > now_ns ? s->seen.recheck_ns - now_ns : 0);
    return next;
}

void scheduler_stop(struct scheduler *s)
{
    s->stopping = true;
    while (s->forced.len) { /* no further plan will be made: the callers see that and answer */
        struct forced_cycle f = s->forced.at[--s->forced.len];
        f.planned(f.ctx);
    }
}

void scheduler_force(struct scheduler *s, scheduler_planned_fn *planned, void *ctx)
{
    struct forced_cycle f = {planned, ctx, s->seen.cycles + 1};
    vec_push(&s->forced, f);
    s->control->env.wake_at(s->control->env.ctx, 0);
}

bool scheduler_planning(const struct scheduler *s)
{
    return s->planning;
}
