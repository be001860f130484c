#include "agent/instance/probes.h"

#include <sys/epoll.h>

/* A probe program that runs in the instance. Its output is discarded. */
struct probe_exec {
    struct agent_instance *run;
    struct exec_process beside;
    struct loop_source *source, *timer;
    void (*done)(void *arg, int exit);
    void *arg;
};

static uint16_t port(void *ctx, const char *endpoint)
{
    return instance_port(ctx, endpoint);
}

static void probe_exec_free(struct probe_exec *q)
{
    loop_source_free(q->source);
    loop_source_free(q->timer);
    exec_process_close(&q->beside);
    mem_free(q);
}

static void note_probe_not_run(const struct agent_instance *r, const struct berth_err *err)
{
    NOTE(r->agent, LEVEL_WARN, "health.unasked", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", err->text));
}

static void on_probe_readable(void *ctx, uint32_t events)
{
    struct probe_exec *q = ctx;
    void (*done)(void *arg, int exit) = q->done;
    void *arg = q->arg;
    struct berth_err err;
    int code = exec_process_exit(q->beside.pidfd);
    (void)events;
    if (exec_process_error(&q->beside, &err) < 0) {
        note_probe_not_run(q->run, &err);
        code = -1;
    }
    probe_exec_free(q);
    done(arg, code);
}

static void probe_exec_kill(struct probe_exec *q)
{
    loop_source_free(take_ptr(&q->source));
    exec_process_kill(q->run->agent, &q->beside);
    probe_exec_free(q);
}

static void probe_timed_out(void *ctx)
{
    struct probe_exec *q = ctx;
    void (*done)(void *arg, int exit) = q->done;
    void *arg = q->arg;
    probe_exec_kill(q);
    done(arg, -1);
}

static void *exec_probe_start(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit),
                              void *arg)
{
    struct agent_instance *r = ctx;
    struct berth_err err;
    struct probe_exec *q = mem_zalloc(sizeof *q);
    *q = (struct probe_exec){.run = r, .done = done, .arg = arg};
    if (exec_process_start(r->agent->state_dir, r->id, argv, NULL, EXEC_SILENT, 0, 0, &q->beside, &err) < 0) {
        note_probe_not_run(r, &err);
        mem_free(q);
        return NULL;
    }
    if (loop_watch_fd(r->agent->loop, q->beside.pidfd, EPOLLIN, on_probe_readable, q, &q->source, &err) < 0) {
        note_probe_not_run(r, &err);
        probe_exec_kill(q);
        return NULL;
    }
    q->timer = loop_timer_new(r->agent->loop, probe_timed_out, q);
    loop_timer_set(q->timer, loop_now_ns(r->agent->loop) + timeout_ns);
    return q;
}

static void exec_probe_cancel(void *ctx, void *asked)
{
    (void)ctx;
    probe_exec_kill(asked);
}

static void verdict(void *ctx, bool ready, const char *text)
{
    struct agent_instance *r = ctx;
    node_health(r->agent->node, r->id, ready, text);
}

/* ---- awaited ports ---------------------------------------------------------------------------------------------- */

/* An instance becomes ready soon after its ports accept connections; a start of up to a second is not reported as a
 * failure. */
enum { AWAIT_EVERY_MS = 500, AWAIT_TIMEOUT_MS = 250, AWAIT_FAILURES = 3 };

/* The next endpoint whose port has not accepted a connection yet; NULL: all have. */
static const char *awaited_next(struct agent_instance *r)
{
    const json_t *ports = json_object_get(r->config, "ports");
    for (; r->awaited < json_array_size(ports); r->awaited++) {
        const json_t *port = json_array_get(ports, r->awaited);
        if (json_is_true(json_object_get(port, "await")))
            return json_string_value(json_object_get(port, "endpoint"));
    }
    return NULL;
}

static struct health *await_new(struct agent_instance *r);

/* Once a port has accepted a connection it is not tried again. */
static void await_verdict(void *ctx, bool accepts, const char *text)
{
    struct agent_instance *r = ctx;
    if (!accepts) {
        CLEANUP(str) struct str why = {0};
        const char *endpoint = awaited_next(r);
        str_addf(&why, "its port %u (%s) does not accept connections: %s", instance_port(r, endpoint ? endpoint : ""),
                 endpoint ? endpoint : "", text);
        node_health(r->agent->node, r->id, false, str_text(&why));
        return;
    }
    r->awaited++;
    health_free(r->health);
    r->health = await_new(r);
    if (!r->health)
        node_health(r->agent->node, r->id, true, NULL);
}

/* NULL: no port has to accept connections any more. */
static struct health *await_new(struct agent_instance *r)
{
    const char *endpoint = awaited_next(r);
    struct health *health = NULL;
    struct berth_err err;
    if (!endpoint)
        return NULL;
    CLEANUP(json)
    json_t *check = json_pack("{s:{s:s}, s:I, s:I, s:i}", "tcp", "endpoint", endpoint, "every_ns",
                              (json_int_t)AWAIT_EVERY_MS * 1000000, "timeout_ns",
                              (json_int_t)AWAIT_TIMEOUT_MS * 1000000, "failures", AWAIT_FAILURES);
    struct health_config config = {.check = check,
                                   .port = port,
                                   .exec = exec_probe_start,
                                   .exec_cancel = exec_probe_cancel,
                                   .verdict = await_verdict,
                                   .ctx = r};
    if (health_new(r->agent->loop, &config, &health, &err) < 0)
        node_health(r->agent->node, r->id, false, err.text);
    return health;
}

struct health *instance_probe_new(struct agent_instance *r)
{
    const json_t *check = json_object_get(r->config, "health");
    struct health_config config = {.check = check,
                                   .port = port,
                                   .exec = exec_probe_start,
                                   .exec_cancel = exec_probe_cancel,
                                   .verdict = verdict,
                                   .ctx = r};
    struct health *health = NULL;
    struct berth_err err;
    if (!check)
        return await_new(r);
    if (health_new(r->agent->loop, &config, &health, &err) < 0)
        node_health(r->agent->node, r->id, false, err.text);
    return health;
}
