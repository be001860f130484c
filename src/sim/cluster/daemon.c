/* daemon.c - the daemon's logic under a virtual clock: its environment, the speed of its store, its start and end. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "control/sched/scheduler.h"
#include "control/system/metrics.h"
#include "sim/cluster/request.h"

/* ---- environment ------------------------------------------------------------------------------------------------ */

static int64_t clock_ns(void *ctx)
{
    return world_wall_ns(ctx);
}

static int64_t steady_ns(void *ctx)
{
    return ((struct sim_world *)ctx)->now_ns;
}

static void fill_random(void *ctx, void *buf, size_t len)
{
    struct sim_world *w = ctx;
    unsigned char *at = buf;
    for (size_t i = 0; i < len; i++)
        at[i] = (unsigned char)random_next(&w->daemon_rng);
}

static void worker_task_end(struct sim_world *w)
{
    struct worker_task *e = take_ptr(&w->daemon.worker_task);
    if (!e->worked)
        e->work(e->arg);
    e->after(e->arg);
    mem_free(e);
}

static void worker_task_due(struct sim_world *w, void *arg)
{
    uint64_t life = (uint64_t)(uintptr_t)arg;
    if (!w->daemon.worker_task || life != w->daemon.life)
        return;
    world_trace(w, "the plan is made");
    worker_task_end(w);
    daemon_schedule_pump(w);
}

/* Runs a plan at once, soon, or so late that the state has changed much. The work itself runs at the beginning or at
 * the end. */
static void run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    struct sim_world *w = ctx;
    struct random_stream *rng = &w->daemon_rng;
    assert(!w->daemon.worker_task);
    if (random_per_mille(rng, 100)) {
        work(arg);
        after(arg);
        return;
    }
    struct worker_task *e = mem_zalloc(sizeof *e);
    *e = (struct worker_task){.work = work, .after = after, .arg = arg};
    if (random_per_mille(rng, 500)) {
        work(arg);
        e->worked = true;
    }
    w->daemon.worker_task = e;
    int64_t delay_ns = random_per_mille(rng, 600)   ? random_range(rng, 100 * MICROSECOND, 3 * MILLISECOND)
                       : random_per_mille(rng, 800) ? random_range(rng, 10 * MILLISECOND, 500 * MILLISECOND)
                                                    : random_range(rng, SECOND, 15 * SECOND);
    world_schedule(w, delay_ns, worker_task_due, (void *)(uintptr_t)w->daemon.life, NULL);
}

/* Runs a forecast immediately: forecasts only answer queries and decide nothing. */
static void run_slow(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    after(arg);
}

static void tick(struct sim_world *w, void *arg)
{
    struct sim_daemon *d = &w->daemon;
    if (!d->control || (uint64_t)(uintptr_t)arg != d->life || d->wake_ns != w->now_ns)
        return;
    d->wake_ns = INT64_MAX;
    world_trace(w, "tick");
    control_tick(d->control);
    daemon_schedule_pump(w);
}

static void wake_at(void *ctx, int64_t at_ns)
{
    struct sim_world *w = ctx;
    struct sim_daemon *d = &w->daemon;
    int64_t soonest = w->now_ns + random_range(&w->daemon_rng, 20 * MICROSECOND, 2 * MILLISECOND);
    if (d->dying)
        return;
    if (at_ns < soonest)
        at_ns = soonest;
    if (at_ns >= d->wake_ns)
        return;
    d->wake_ns = at_ns;
    world_schedule(w, at_ns - w->now_ns, tick, (void *)(uintptr_t)d->life, NULL);
}

/* ---- speed of the store ----------------------------------------------------------------------------------------- */

static void heard(void *ctx, const struct store_event *event)
{
    struct sim_world *w = ctx;
    struct watched_event h = {.key = mem_strdup(event->key),
                              .value = mem_alloc(event->value.len + 1),
                              .len = event->value.len,
                              .gone = event->gone,
                              .created = event->created,
                              .revision = event->revision};
    if (h.len)
        memcpy(h.value, event->value.at, h.len);
    vec_push(&w->heard, h);
}

static uint64_t activity_count(const struct sim_world *w)
{
    struct scheduler_status mirror_doc = scheduler_status(control_scheduler(w->daemon.control));
    uint64_t x = hash_pair(store_revision(w->daemon.store), w->answered.len);
    return hash_pair(x, hash_pair(mirror_doc.cycles * 1000003 + mirror_doc.plans, mirror_doc.assumed));
}

static void pump(struct sim_world *w, void *arg)
{
    struct sim_daemon *d = &w->daemon;
    if (!d->control || (uint64_t)(uintptr_t)arg != d->life)
        return;
    world_trace(w, "the store writes");
    d->pump_ns = INT64_MAX;
    uint64_t before = activity_count(w);
    control_pump(d->control);
    if (activity_count(w) != before)
        d->pumps = 3;
    if (d->pumps && --d->pumps)
        daemon_schedule_pump(w);
}

void daemon_schedule_pump(struct sim_world *w)
{
    struct sim_daemon *d = &w->daemon;
    struct random_stream *rng = &w->daemon_rng;
    if (!d->control || d->dying)
        return;
    if (d->pumps == 0)
        d->pumps = 2;
    if (d->pump_ns != INT64_MAX)
        return;
    int64_t delay_ns = faults_store_slow(w)         ? random_range(rng, SECOND, 12 * SECOND)
                       : random_per_mille(rng, 970) ? random_range(rng, 50 * MICROSECOND, 4 * MILLISECOND)
                                                    : random_range(rng, 20 * MILLISECOND, 900 * MILLISECOND);
    d->pump_ns = w->now_ns + delay_ns;
    world_schedule(w, delay_ns, pump, (void *)(uintptr_t)d->life, NULL);
}

/* ---- start and end ---------------------------------------------------------------------------------------------- */

int daemon_start(struct sim_world *w, struct berth_err *err)
{
    struct sim_daemon *d = &w->daemon;
    const struct control_env env = {
        .ctx = w,
        .clock_ns = clock_ns,
        .steady_ns = steady_ns,
        .random = fill_random,
        .run = run,
        .run_slow = run_slow,
        .wake_at = wake_at,
        .log = &d->log,
    };
    const struct control_options options = {.seed = w->options->seed,
                                            /* no default requests, so that old seeds stay valid */
                                            .bare = true,
                                            .lease_ns = LEASE_S * SECOND,
                                            .audit_every = 50,
                                            .history_max = HISTORY_REVISIONS,
                                            .secret_key_given = true,
                                            .secret_key = "of the simulator"};
    if (!d->store)
        d->store = store_memory_new();
    if (!d->log.out)
        d->log = (struct log){.out = open_memstream(&d->log_text, &d->log_len), .level = LEVEL_WARN};
    d->life++;
    d->started_ns = w->now_ns;
    d->wake_ns = d->pump_ns = INT64_MAX;
    d->pumps = 0;
    struct control *control;
    int rc = control_new(&env, &options, d->store, &control, err);
    if (rc < 0)
        return rc;
    d->control = control;
    rc = store_watch(d->store, "", store_revision(d->store), heard, w, &d->watch, err);
    daemon_schedule_pump(w);
    return rc;
}

/* Shuts down the daemon; anything that it still outputs or writes is ignored. */
static void shut_down(struct sim_world *w)
{
    struct sim_daemon *d = &w->daemon;
    d->dying = true;
    store_unwatch(take_ptr(&d->watch));
    store_memory_fail(d->store, EIO, SIZE_MAX);
    control_quiesce(d->control);
    if (d->worker_task)
        worker_task_end(w);
    store_drain(d->store);
    control_free(take_ptr(&d->control));
    for (size_t i = 0; i < w->asked.len; i++) {
        struct sim_pending_request *a = w->asked.at[i];
        if (!a || a->answered)
            continue;
        if (a->life == d->life)
            world_breach(w, 9, "request %" PRIu64 " (%s %s) was never answered", a->number, a->ask.method, a->ask.path);
    }
    store_close(take_ptr(&d->store));
    d->dying = false;
}

void daemon_crash(struct sim_world *w, bool orderly)
{
    struct sim_daemon *d = &w->daemon;
    if (!d->control)
        return;
    if (orderly) {
        control_quiesce(d->control);
        world_settle(w);
    }
    struct store *left = store_memory_crash(d->store);
    if (w->options->sabotage && w->options->sabotage->crashed)
        left = w->options->sabotage->crashed(w->options->sabotage->ctx, left);
    w->counts.plans += scheduler_status(control_scheduler(d->control)).plans;
    w->counts.crashes++;
    watchers_down(w);
    shut_down(w);
    d->store = left;
}

void daemon_close(struct sim_world *w)
{
    struct sim_daemon *d = &w->daemon;
    if (d->control) {
        watchers_down(w);
        shut_down(w);
    }
    store_close(d->store);
    d->store = NULL;
    if (d->log.out)
        (void)fclose(d->log.out);
    free(d->log_text);
}
