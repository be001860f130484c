#include "agent/wellness.h"

#include <sys/epoll.h>

/* A program beside the instance, asked how it is. Its words are nobody's business. */
struct question {
    struct run *run;
    struct beside beside;
    struct loop_source *source, *timer;
    void (*done)(void *arg, int exit);
    void *arg;
};

static uint16_t port(void *ctx, const char *endpoint)
{
    return run_port(ctx, endpoint);
}

static void question_free(struct question *q)
{
    loop_source_free(q->source);
    loop_source_free(q->timer);
    beside_close(&q->beside);
    mem_free(q);
}

static void note_unasked(const struct run *r, const struct berth_err *err)
{
    NOTE(r->agent, LEVEL_WARN, "health.unasked", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", err->text));
}

static void answered(void *ctx, uint32_t events)
{
    struct question *q = ctx;
    void (*done)(void *arg, int exit) = q->done;
    void *arg = q->arg;
    struct berth_err err;
    int code = beside_exit(q->beside.pidfd);
    (void)events;
    if (beside_failed(&q->beside, &err) < 0) {
        note_unasked(q->run, &err);
        code = -1;
    }
    question_free(q);
    done(arg, code);
}

static void kill_question(struct question *q)
{
    loop_source_free(take_ptr(&q->source));
    beside_kill(q->run->agent, &q->beside);
    question_free(q);
}

static void too_late(void *ctx)
{
    struct question *q = ctx;
    void (*done)(void *arg, int exit) = q->done;
    void *arg = q->arg;
    kill_question(q);
    done(arg, -1);
}

static void *ask(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit), void *arg)
{
    struct run *r = ctx;
    struct berth_err err;
    struct question *q = mem_zalloc(sizeof *q);
    *q = (struct question){.run = r, .done = done, .arg = arg};
    if (beside_start(r->agent->place, r->id, argv, NULL, BESIDE_SILENT, 0, 0, &q->beside, &err) < 0) {
        note_unasked(r, &err);
        mem_free(q);
        return NULL;
    }
    if (loop_watch_fd(r->agent->loop, q->beside.pidfd, EPOLLIN, answered, q, &q->source, &err) < 0) {
        note_unasked(r, &err);
        kill_question(q);
        return NULL;
    }
    q->timer = loop_timer_new(r->agent->loop, too_late, q);
    loop_timer_set(q->timer, loop_now_ns(r->agent->loop) + timeout_ns);
    return q;
}

static void ask_cancel(void *ctx, void *asked)
{
    (void)ctx;
    kill_question(asked);
}

static void verdict(void *ctx, bool ready, const char *text)
{
    struct run *r = ctx;
    node_health(r->agent->node, r->id, ready, text);
}

struct health *wellness_new(struct run *r)
{
    const json_t *check = json_object_get(r->config, "health");
    struct health_config config = {
        .check = check, .port = port, .exec = ask, .exec_cancel = ask_cancel, .verdict = verdict, .ctx = r};
    struct health *health = NULL;
    struct berth_err err;
    if (!check)
        return NULL;
    if (health_new(r->agent->loop, &config, &health, &err) < 0)
        node_health(r->agent->node, r->id, false, err.text);
    return health;
}
