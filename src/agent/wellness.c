#include "agent/wellness.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static void question_free(struct question *q)
{
    loop_source_free(q->source);
    loop_source_free(q->timer);
    close_fd(q->beside.pidfd);
    mem_free(q);
}

static int exit_of(struct question *q)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)q->beside.pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return -1;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static void answered(void *ctx, uint32_t events)
{
    struct question *q = ctx;
    void (*done)(void *arg, int exit) = q->done;
    void *arg = q->arg;
    int code = exit_of(q);
    (void)events;
    question_free(q);
    done(arg, code);
}

static void kill_question(struct question *q)
{
    (void)syscall(SYS_pidfd_send_signal, q->beside.pidfd, SIGKILL, NULL, 0);
    siginfo_t info;
    (void)waitid(P_PIDFD, (id_t)q->beside.pidfd, &info, WEXITED);
}

static void too_late(void *ctx)
{
    struct question *q = ctx;
    void (*done)(void *arg, int exit) = q->done;
    void *arg = q->arg;
    kill_question(q);
    question_free(q);
    done(arg, -1);
}

static void *ask(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit), void *arg)
{
    struct run *r = ctx;
    struct berth_err err;
    struct question *q = mem_zalloc(sizeof *q);
    *q = (struct question){.run = r, .done = done, .arg = arg, .beside = {.pidfd = -1}};
    if (beside_start(r->agent->place, r->id, argv, NULL, false, 0, 0, &q->beside, &err) < 0) {
        NOTE(r->agent, LEVEL_WARN, "health.unasked", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", err.text));
        mem_free(q);
        return NULL;
    }
    close_fd(q->beside.in);
    close_fd(q->beside.out);
    close_fd(q->beside.err);
    if (loop_watch_fd(r->agent->loop, q->beside.pidfd, EPOLLIN, answered, q, &q->source, &err) < 0) {
        kill_question(q);
        question_free(q);
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
    question_free(asked);
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
