#include "control/control.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/api/idempotency.h"
#include "control/api/request_turn.h"
#include "control/control_parts.h"
#include "control/sched/route_rules.h"
#include "control/state/commit.h"
#include "control/state/upgrade.h"
#include "control/system/settings_table.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"

enum { SECOND = 1000000000, SWEEP_S = 60, SWEEP_OBJECTS_MAX = 1000 };

struct state *control_state(struct control *c)
{
    return c->state;
}

struct store *control_store(struct control *c)
{
    return c->store;
}

struct watch_hub *control_hub(struct control *c)
{
    return c->hub;
}

const struct node_config *control_node_config(struct control *c, const char *node)
{
    const struct object *object = state_find(c->state, KIND_NODE, node);
    return object ? node_statuses_config(c->lives, c->state, object) : NULL;
}

struct metrics *control_metrics(struct control *c)
{
    return c->metrics;
}

struct scheduler *control_scheduler(struct control *c)
{
    return c->scheduler;
}

void control_set_agents(struct control *c, const struct control_agents *agents)
{
    c->agents = *agents;
}

struct session_hub *control_session_hub(struct control *c)
{
    return c->session_hub;
}

const struct control_env *control_env(const struct control *c)
{
    return &c->env;
}

void control_note_report(struct control *c, const char *node, uint64_t epoch, uint64_t seq)
{
    const struct object *of = state_find(c->state, KIND_NODE, node);
    if (of)
        lease_note_report(c->leases, of, epoch, seq, c->env.steady_ns(c->env.ctx));
}

bool control_last_report(const struct control *c, const char *node, uint64_t *ret_epoch, uint64_t *ret_seq)
{
    const struct object *of = state_find(c->state, KIND_NODE, node);
    return of && lease_last(c->leases, of, ret_epoch, ret_seq);
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static uint64_t option_or_setting(uint64_t option, const struct state *s, enum system_setting setting)
{
    return option ? option : (uint64_t)system_setting_number(s, setting);
}

static void settings_changed(struct control *c)
{
    const struct control_options *o = &c->options;
    const struct state *s = c->state;
    c->in_force = (struct effective_settings){
        .lease_ns = o->lease_ns ? o->lease_ns : system_setting_number(s, SETTING_LEASE_S) * SECOND,
        .cycle_ns_max = system_setting_number(s, SETTING_CYCLE_MAX_S) * SECOND,
        .history_max = option_or_setting(o->history_max, s, SETTING_HISTORY_REVISIONS),
        .seed = option_or_setting(o->seed, s, SETTING_SEED),
        .audit_every = (size_t)option_or_setting(o->audit_every, s, SETTING_AUDIT_EVERY),
        .requests_per_s =
            o->requests_per_s > 0 ? o->requests_per_s : (double)system_setting_number(s, SETTING_REQUESTS_PER_S),
    };
}

/* ---- events of the store ---------------------------------------------------------------------------------------- */

/* Tells whether a change of this kind can affect a plan. The scheduler's own facts are in the cluster already. */
static bool affects_plan(enum kind kind)
{
    switch (kind) {
    case KIND_SETTING:
    case KIND_USER:
    case KIND_RESOURCE:
    case KIND_PROFILE:
    case KIND_GROUP:
    case KIND_POLICY:
    case KIND_QUEUE:
    case KIND_DOMAIN:
    case KIND_WINDOW:
    case KIND_SPENT:
    case KIND_PREDICTION:
    case KIND_NODE:
    case KIND_VOLUME:
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM:
    case KIND_INSTANCE:
    case KIND_FACT: return true;
    default: return false;
    }
}

static void changed(void *ctx, const struct store_event *event)
{
    struct control *c = ctx;
    struct berth_err err;
    const char *id;
    enum kind kind = object_key_split(event->key, &id);
    size_t assumed = state_assumed(c->state);
    watch_hub_change_begin(c->hub, event);
    bool remembered = kind == KIND_FACT && state_is_assumed(c->state, kind, id); /* an assumed fact of the scheduler */
    uint64_t key_before = jobs_key(c->jobs, kind, id);
    if (state_apply(c->state, event, &err) < 0) {
        /* The store has an object that this daemon rejects: the state would differ from the store from now on. */
        (void)snprintf(c->broken, sizeof c->broken, "%.200s; restart berthd, and see its log", err.text);
        log_write(c->env.log, c->now_ns, LEVEL_ERROR, "state.broken", LOG_TEXT("key", event->key),
                  LOG_TEXT("text", err.text));
    }
    jobs_event(c->jobs, kind, id, key_before);
    if (kind == KIND_CRON)
        crons_event(c->crons, id);
    optasks_event(c->optasks, kind, id);
    bool confirmed = (kind == KIND_INSTANCE && state_assumed(c->state) < assumed) || remembered;
    if (kind == KIND_SETTING)
        settings_changed(c);
    if (kind == KIND_NOTIFICATION)
        notifications_event(c->notifications);
    if (kind != KINDS && affects_plan(kind) && !confirmed)
        scheduler_wake(c->scheduler);
    watch_hub_change_end(c->hub, event);
}

void control_pump(struct control *c)
{
    (void)store_pump(c->store);
    watch_hub_flush(c->hub);
    session_hub_pump(c->session_hub);
    jobs_step(c->jobs);
    crons_step(c->crons);
    optasks_step(c->optasks);
    int64_t steady_ns = c->env.steady_ns(c->env.ctx), booked = usage_books_step(c->books, steady_ns);
    int64_t told = notifications_step(c->notifications, steady_ns);
    int64_t next = scheduler_step(c->scheduler, steady_ns);
    next = booked < next ? booked : next;
    next = told < next ? told : next;
    if (next != INT64_MAX)
        c->env.wake_at(c->env.ctx, next);
}

/* ---- housekeeping ----------------------------------------------------------------------------------------------- */

static void ignore_result(void *ctx, const struct store_result *result)
{
    (void)ctx;
    (void)result;
}

static void count_one(void *ctx, const struct berth_instance_view *instance)
{
    (void)instance;
    ++*(size_t *)ctx;
}

/* Tells whether an existing instance was placed from this spec, whose id is WORKLOAD/GENERATION. All specs of a deleted
 * workload are kept while it has instances. */
static bool spec_needed(struct control *c, const struct object *spec, struct arena *arena)
{
    const char *slash = strrchr(spec->id, '/');
    size_t left = 0;
    char generation[24];
    if (!slash)
        return false;
    const char *id = arena_strndup(arena, spec->id, (size_t)(slash - spec->id));
    const struct object *work = state_find_work(c->state, id);
    if (!work)
        berth_instances(state_cluster(c->state), id, count_one, &left);
    for (size_t i = 0; work && i < work->work->instances_len && !left; i++)
        left = strcmp(str_u64(work->work->instances[i]->instance->generation, generation), slash + 1) == 0;
    return left > 0;
}

/* Facts about failures are needed while their workload exists. */
static bool fact_needed(struct control *c, const struct object *fact, struct arena *arena)
{
    static const char prefix[] = "since/";
    if (strncmp(fact->id, prefix, sizeof prefix - 1) != 0)
        return usage_book_needed(c, fact, arena);
    return state_find_work(c->state, fact->id + sizeof prefix - 1);
}

static bool last_needed(struct control *c, const struct object *last, struct arena *arena)
{
    (void)arena;
    return state_find_work(c->state, last->id);
}

/* A window is deleted 30 days after its end. */
static bool window_needed(struct control *c, const struct object *o, struct arena *arena)
{
    enum { KEEP_DAYS = 30 };
    (void)arena;
    return c->now_ns - o->window->end_ns < KEEP_DAYS * INT64_C(86400) * SECOND;
}

/* Examines the next SWEEP_OBJECTS_MAX objects of a kind, and deletes those that are not needed. */
static void sweep_kind(struct control *c, struct change *change, enum kind kind,
                       bool (*needed)(struct control *c, const struct object *o, struct arena *arena))
{
    size_t len;
    const struct object *const *list = state_list(c->state, kind, &len);
    for (size_t i = 0; i < len && i < SWEEP_OBJECTS_MAX; i++) {
        const struct object *o = list[(c->swept[kind] + i) % len];
        if (!needed(c, o, change->arena))
            change_delete(change, kind, o->id);
    }
    c->swept[kind] = len ? (c->swept[kind] + SWEEP_OBJECTS_MAX) % len : 0;
}

/* A separate transaction, because reports change the same documents; after a conflict the next sweep tries again. */
static void usage_cut_long(struct control *c)
{
    struct arena arena;
    struct change change;
    struct berth_err err;
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    usage_cut(&change, c->now_ns);
    struct commit_note note = {.who = "berth", .verb = "usage"};
    if (commit_submit(c, &change, &note, ignore_result, NULL, &err) < 0)
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "usage.failed", LOG_TEXT("text", err.text));
    change_done(&change);
    arena_done(&arena);
}

/* Deletes expired replies, unused specs, facts and ends of deleted workloads, and old history. */
static void sweep(struct control *c)
{
    struct arena arena;
    struct change change;
    struct berth_err err;
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    (void)reply_expire(&change, control_now_ns(c));
    sweep_kind(c, &change, KIND_SPEC, spec_needed);
    sweep_kind(c, &change, KIND_FACT, fact_needed);
    sweep_kind(c, &change, KIND_LAST_END, last_needed);
    sweep_kind(c, &change, KIND_WINDOW, window_needed);
    jobs_sweep(c->jobs, &change);
    sweep_kind(c, &change, KIND_PREDICTION, usage_book_needed);
    sweep_kind(c, &change, KIND_SPENT, usage_book_needed);
    usage_expire(&change, c->now_ns);
    struct commit_note note = {.who = "berth", .verb = "sweep"};
    if (commit_submit(c, &change, &note, ignore_result, NULL, &err) < 0)
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "sweep.failed", LOG_TEXT("text", err.text));
    change_done(&change);
    arena_done(&arena);

    usage_cut_long(c);
    read_list_write(c);
    refusals_write(c);
    node_statuses_journal(c);
    uint64_t keep = c->in_force.history_max, revision = store_revision(c->store);
    if (revision > keep && revision - keep > store_compacted(c->store) + keep / 4 &&
        store_compact(c->store, revision - keep, &err) < 0)
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "compact.failed", LOG_TEXT("text", err.text));
}

/* Writes an empty record, so that the end of a store failure is noticed even if no client changes anything. */
static void store_probe(struct control *c)
{
    static const char probe[] = "{\"probe\":true}";
    struct arena arena;
    struct change change;
    struct berth_err unheard;
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    struct commit_note note = {
        .who = "berth", .verb = "store.probe", .extra = {probe, sizeof probe - 1}
    };
    (void)commit_submit(c, &change, &note, ignore_result, NULL, &unheard);
    change_done(&change);
    arena_done(&arena);
}

const char *control_refuses(const struct control *c)
{
    if (c->stopping)
        return "berthd is stopping";
    if (c->broken[0]) /* the cause is only in the log */
        return "no changes are possible at present; see the log of berthd";
    switch (store_last_errno(c->store)) {
    case 0: return NULL;
    case ENOSPC: return "the disk of the store is full: only deletions are accepted until space is freed";
    default: return "the store cannot be written; see the log of berthd";
    }
}

static void store_tick(struct control *c, int64_t steady_ns)
{
    enum { PROBE_S = 5 };
    const char *refuses = control_refuses(c);
    if (!refuses) {
        alarm_end(c, ALARM_STORE);
        return;
    }
    alarm_raise(c, ALARM_STORE, "%s", refuses);
    if (steady_ns - c->probed_ns < PROBE_S * (int64_t)SECOND)
        return;
    c->probed_ns = steady_ns;
    store_probe(c);
}

void control_tick(struct control *c)
{
    /* A stopping daemon hears no reports, so it declares no node lost, and submits nothing to the store. */
    int64_t steady_ns = c->env.steady_ns(c->env.ctx), next = c->stopping ? INT64_MAX : leases_expire(c, steady_ns);
    clock_tick(c);
    if (!c->stopping)
        store_tick(c, steady_ns);
    watch_hub_tick(c->hub, control_wall_ns(c), steady_ns);
    session_hub_tick(c->session_hub, steady_ns);
    if (!c->stopping)
        routes_step(c, steady_ns);
    if (!c->stopping && steady_ns - c->swept_ns >= SWEEP_S * (int64_t)SECOND) {
        c->swept_ns = steady_ns;
        sweep(c);
    }
    if (!c->stopping)
        sealer_step(c->sealer, steady_ns);
    series_step(c->series, steady_ns);
    if (next > steady_ns + SECOND)
        next = steady_ns + SECOND; /* streams check their tokens every second */
    c->env.wake_at(c->env.ctx, next);
    control_pump(c);
}

/* ---- start and stop --------------------------------------------------------------------------------------------- */

int control_new(const struct control_env *env, const struct control_options *options, struct store *store,
                struct control **ret, struct berth_err *err)
{
    struct state *state = NULL;
    int rc = upgrade_documents(store, &upgrades, err);
    if (rc == 0)
        rc = state_load(store, &state, err);
    if (rc < 0)
        return rc;
    assert(state);
    struct control *c = mem_zalloc(sizeof *c);
    c->env = *env;
    c->options = *options;
    c->store = store;
    c->state = state;
    settings_changed(c);
    c->metrics = metrics_new();
    c->hub = watch_hub_new(c, options->watchers_max, options->history_max);
    c->scheduler = scheduler_new(c);
    c->jobs = jobs_new(c);
    c->crons = crons_new(c);
    c->optasks = optasks_new(c);
    c->forecast = forecast_new(c);
    c->redecide = redecision_new(c, options->journal_dir);
    uint64_t limits_seed;
    env->random(env->ctx, &limits_seed, sizeof limits_seed);
    c->limits = limits_new(0, limits_seed);
    c->requests = fair_queue_new(limits_seed);
    c->events = events_new();
    c->leases = leases_new();
    c->lives = node_statuses_new();
    c->session_hub = session_hub_new(c);
    c->books = usage_books_new(c);
    c->notifications = notifications_new(c);
    c->reads = read_list_new();
    c->refusals = refusals_new();
    c->swept_ns = env->steady_ns(env->ctx);
    c->series = series_new(c);
    rc = store_watch(store, "", state_revision(state), changed, c, &c->watch, err);
    if (rc < 0) {
        control_free(c);
        return rc;
    }
    c->sealer = sealer_new(c, options->journal_dir);
    (void)leases_expire(c, env->steady_ns(env->ctx)); /* before the first plan */
    env->wake_at(env->ctx, 0);
    *ret = c;
    return 0;
}

void control_free(struct control *c)
{
    if (!c)
        return;
    store_unwatch(c->watch);
    watch_hub_free(c->hub);
    session_hub_free(c->session_hub); /* the hub has notified it of the end of all streams */
    forecast_free(c->forecast);
    redecision_free(c->redecide);
    series_free(c->series);
    scheduler_free(c->scheduler);
    jobs_free(c->jobs);
    crons_free(c->crons);
    optasks_free(c->optasks);
    limits_free(c->limits);
    fair_queue_free(c->requests);
    events_free(c->events);
    leases_free(c->leases);
    node_statuses_free(c->lives);
    usage_books_free(c->books);
    notifications_free(c->notifications);
    sealer_free(c->sealer);
    read_list_free(c->reads);
    refusals_free(c->refusals);
    metrics_free(c->metrics);
    state_free(c->state);
    arena_done(&c->spare);
    mem_free(c);
}

void control_quiesce(struct control *c)
{
    c->stopping = true;
    request_turns_drain(c);
    scheduler_stop(c->scheduler);
    usage_books_stop(c->books);
    notifications_stop(c->notifications);
    forecast_stop(c->forecast);
    redecision_stop(c->redecide);
    watch_hub_stop(c->hub);
    session_hub_stop(c->session_hub);
    read_list_write(c);
    refusals_write(c);
    store_drain(c->store);
}
