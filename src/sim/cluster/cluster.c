/* cluster.c - runs a simulation and reports its result. */
#include "sim/cluster/cluster.h"

#include <errno.h>
#include <inttypes.h>

#include "control/sched/scheduler.h"
#include "sim/cluster/world.h"

enum { PROGRESS_EVERY = 4096 };
#define CALM_MIN_NS (2 * MINUTE)
#define CALM_MAX_NS (90 * MINUTE) /* longer than any fence, any pause and any queue of tasks */

static void run_until(struct sim_world *w, int64_t end_ns)
{
    struct sim_event due;
    while (!w->invariant && w->queue.heap.len && w->queue.heap.at[0].at_ns <= end_ns &&
           event_queue_pop(&w->queue, &due)) {
        w->now_ns = due.at_ns;
        w->event++;
        due.run(w, due.arg);
        if (due.drop)
            due.drop(due.arg);
        world_settle(w);
        if (w->options->progress && w->event % PROGRESS_EVERY == 0)
            w->options->progress(w->options->ctx, (double)w->now_ns / (double)HOUR, w->event);
    }
}

/* Stops faults and changes, and runs until the cluster has settled. */
static void calm_down(struct sim_world *w)
{
    int64_t begin_ns = w->now_ns;
    world_trace(w, "calm");
    w->calm = true;
    agents_calm(w);
    faults_end(w);
    world_settle(w);
    run_until(w, begin_ns + CALM_MIN_NS);
    while (!w->invariant && !has_settled(w) && w->now_ns < begin_ns + CALM_MAX_NS)
        run_until(w, w->now_ns + 20 * SECOND);
    if (!has_settled(w))
        world_breach(w, 18, "%d minutes after the last fault: %s", (int)((w->now_ns - begin_ns) / MINUTE),
                     str_text(&w->unsettled));
}

static int set_up(struct sim_world *w, struct berth_err *err)
{
    char token[TOKEN_TEXT_MAX];
    w->agents = agents_new(w);
    w->ids = ids_new();
    w->guarantees = guarantees_new();
    w->unexplained = unexplained_new();
    w->jobs = jobs_history_new();
    w->watchers = watchers_new(w);
    w->faults = faults_new(w);
    int rc = daemon_start(w, err);
    if (rc == 0)
        rc = control_init(w->daemon.control, token, err);
    if (rc == 0)
        w->people = sim_users_new(w, token);
    return rc;
}

static void tear_down(struct sim_world *w)
{
    if (w->daemon.store || w->daemon.control)
        daemon_close(w);
    requests_done(w);
    event_queue_done(&w->queue);
    verify_done(w);
    sim_users_free(w->people);
    agents_free(w->agents);
    faults_free(w->faults);
    watchers_free(w->watchers);
    guarantees_free(w->guarantees);
    unexplained_free(w->unexplained);
    jobs_history_free(w->jobs);
    ids_free(w->ids);
    str_done(&w->doing);
    str_done(&w->unsettled);
    str_done(&w->breach);
}

static void result_fill(const struct sim_world *w, struct sim_result *ret)
{
    const struct sim_counts *c = &w->counts;
    *ret = (struct sim_result){
        .events = w->event,
        .requests = c->requests,
        .refused = c->refused,
        .reports = c->reports,
        .transactions = c->transactions,
        .plans = c->plans,
        .replayed = c->replayed,
        .placements = c->placements,
        .conflicts = c->conflicts,
        .crashes = c->crashes,
        .store_failures = c->store_failures,
        .lost_nodes = c->lost_nodes,
        .double_agents = c->double_agents,
        .watched = c->watched,
        .checks = c->checks,
        .revision = w->mirror.revision,
        .hash = hash_pair(w->hash, w->log_chain),
        .invariant = w->invariant,
        .breach_event = w->breach_event,
        .breach_ns = w->breach_ns,
    };
    memcpy(ret->checked, c->checked, sizeof ret->checked);
    memcpy(ret->faults, c->faults, sizeof ret->faults);
}

void sim_command(const struct sim_options *o, struct str *to)
{
    str_addf(to, "berth sim cluster --seed %" PRIu64 " --hours %g", o->seed, o->hours > 0 ? o->hours : 1);
    if (o->nodes)
        str_addf(to, " --nodes %zu", o->nodes);
    if (o->users)
        str_addf(to, " --users %zu", o->users);
    if (o->rates.people && o->rates.people != 100)
        str_addf(to, " --people %u", o->rates.people);
    if (o->rates.faults && o->rates.faults != 100)
        str_addf(to, " --trouble %u", o->rates.faults);
    if (o->faults)
        str_addf(to, " --faults=%s", o->faults);
}

static int breach_tell(const struct sim_world *w, struct berth_err *err)
{
    CLEANUP(str) struct str again = {0};
    sim_command(w->options, &again);
    return err_set(err, EBADMSG, "%s: after %.6f s, event %" PRIu64 " (%.120s): %s %s%d: %s", str_text(&again),
                   (double)w->breach_ns / (double)SECOND, w->breach_event, str_text(&w->doing),
                   w->invariant > RULES ? "requirement" : "invariant", w->invariant > RULES ? "P" : "",
                   w->invariant % RULES, str_text(&w->breach));
}

int sim_cluster_run(const struct sim_options *options, struct sim_result *ret, struct berth_err *err)
{
    double hours = options->hours > 0 ? options->hours : 1;
    struct sim_world w = {
        .options = options,
        .rng = random_stream_new(options->seed, 1),
        .daemon_rng = random_stream_new(options->seed, 2),
        .agents_rng = random_stream_new(options->seed, 3),
        .users_rng = random_stream_new(options->seed, 4),
        .faults_rng = random_stream_new(options->seed, 5),
        .now_ns = SECOND,
    };
    int rc = sim_faults_parse(options->faults ? options->faults : "all", &w.allowed, err);
    if (rc < 0)
        return rc;
    rc = set_up(&w, err);
    if (rc == 0) {
        world_settle(&w);
        run_until(&w, w.now_ns + (int64_t)(hours * (double)HOUR));
        if (!w.invariant)
            calm_down(&w);
        if (!w.invariant && w.daemon.store)
            verify_replay(&w);
        if (w.daemon.control)
            w.counts.plans += scheduler_status(control_scheduler(w.daemon.control)).plans;
    }
    result_fill(&w, ret);
    if (rc == 0 && w.invariant)
        rc = breach_tell(&w, err);
    tear_down(&w);
    return rc;
}
