/* run.c - the life of one instance on this machine: prepared, launched, watched, stopped, cleared away, forgotten. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "agent/claim.h"
#include "agent/wellness.h"
#include "net/client.h"

#define GRACE_NS_DEFAULT (10 * SECOND_NS)
#define GATEWAYS_NS (2 * SECOND_NS) /* for those who watch service_info to hear that it is leaving */
#define AGAIN_NS (SECOND_NS / 4)
enum { TRIES_DOUBLING = 6 }; /* at the most every 16 s */

static void launch(struct run *r);
static void kill_all(struct run *r);
static void stop_begin(struct run *r);

/* ---- the list ------------------------------------------------------------------------------------------------------ */

static size_t place_of(const struct agent *a, uint64_t id)
{
    size_t low = 0, high = a->runs.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->runs.at[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct run *run_find(const struct agent *a, uint64_t id)
{
    size_t at = place_of(a, id);
    return at < a->runs.len && a->runs.at[at]->id == id ? a->runs.at[at] : NULL;
}

struct run *run_add(struct agent *a, uint64_t id, const json_t *config)
{
    struct run *r = mem_zalloc(sizeof *r);
    size_t at = place_of(a, id);
    *r = (struct run){.agent = a, .id = id, .launched = {.pidfd = -1}, .pid_fd = -1, .watched = -1, .exit = -1};
    (void)snprintf(r->group, sizeof r->group, "i%" PRIu64, id);
    r->config = json_deep_copy(config);
    vec_push(&a->runs, r);
    memmove(&a->runs.at[at + 1], &a->runs.at[at], (a->runs.len - 1 - at) * sizeof(struct run *));
    a->runs.at[at] = r;
    return r;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void run_free(struct run *r)
{
    struct agent *a = r->agent;
    size_t at = place_of(a, r->id);
    memmove(&a->runs.at[at], &a->runs.at[at + 1], (a->runs.len - 1 - at) * sizeof(struct run *));
    a->runs.len--;
    look_end(r);
    health_free(r->health);
    loop_source_free(r->source);
    loop_source_free(r->timer);
    close_fd(&r->launched.pidfd);
    close_fd(&r->pid_fd);
    for (size_t i = 0; i < r->ports.len; i++)
        mem_free(r->ports.at[i].endpoint);
    vec_done(&r->ports);
    json_decref(r->config);
    json_decref(r->next);
    json_decref(r->secrets);
    mem_free(r->trouble);
    json_decref(r->exclusive);
    mem_free(r);
}

uint16_t run_port(const struct run *r, const char *endpoint)
{
    for (size_t i = 0; i < r->ports.len; i++)
        if (strcmp(r->ports.at[i].endpoint, endpoint) == 0)
            return r->ports.at[i].port;
    return 0;
}

/* ---- its end ------------------------------------------------------------------------------------------------------- */

static void over(struct run *r, enum node_end end, int exit, const char *text)
{
    struct node_outcome outcome = {.end = end, .exit = exit, .text = text && *text ? text : NULL};
    r->phase = RUN_OVER;
    claims_release(r->agent->claims, r->id);
    node_over(r->agent->node, r->id, &outcome); /* r may be leaving now */
}

static void over_by_exit(struct run *r)
{
    char text[LAUNCH_TEXT_MAX + 64];
    if (r->killed[0])
        over(r, NODE_FAILED, r->exit, r->killed);
    else if (r->exit_text[0])
        over(r, NODE_FAILED, r->exit, r->exit_text);
    else if (r->exit == 0)
        over(r, NODE_ENDED, 0, NULL);
    else if (r->exit < 0)
        over(r, NODE_FAILED, -1, "its shim ended without a word; nobody knows how it went");
    else if (r->exit > 128) {
        bool oom = r->exit == 128 + SIGKILL && r->used.oom_kills > 0;
        (void)snprintf(text, sizeof text, oom ? "killed: it used more memory than its limit" : "killed by SIG%s",
                       sigabbrev_np(r->exit - 128) ? sigabbrev_np(r->exit - 128) : "?");
        over(r, NODE_FAILED, r->exit, text);
    } else {
        (void)snprintf(text, sizeof text, "exit code %d", r->exit);
        over(r, NODE_FAILED, r->exit, text);
    }
}

static void reap_work(void *ctx)
{
    struct run *r = ctx;
    r->exit = -1;
    r->exit_text[0] = '\0';
    if (launch_exit(r->agent->place, r->id, &r->exit, r->exit_text) < 0)
        r->exit = -1;
    (void)cgroup_usage(r->agent->cgroups, r->group, &r->used);
    r->rc = compose_clear(r);
}

static void reap_again(void *ctx)
{
    run_reap(ctx);
}

static void timer_set(struct run *r, loop_call *call, int64_t after_ns)
{
    loop_source_free(r->timer);
    r->timer = loop_timer_new(r->agent->loop, call, r);
    loop_timer_set(r->timer, loop_now_ns(r->agent->loop) + after_ns);
}

/* Tries again, ever less often. */
static void stays(struct run *r, loop_call *again)
{
    unsigned doublings = r->tries < TRIES_DOUBLING ? r->tries++ : TRIES_DOUBLING;
    NOTE(r->agent, LEVEL_WARN, "instance.stays", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", r->err.text));
    timer_set(r, again, AGAIN_NS << doublings);
}

static void reap_after(void *ctx)
{
    struct run *r = ctx;
    r->busy = false;
    if (r->rc < 0) { /* something of it cannot die yet, or is still mounted */
        stays(r, reap_again);
        return;
    }
    over_by_exit(r);
}

void run_reap(struct run *r)
{
    r->phase = RUN_REAPING;
    r->busy = true;
    worker_run(r->agent->cleaner, reap_work, reap_after, r);
}

static void shim_ended(void *ctx, uint32_t events)
{
    struct run *r = ctx;
    (void)events;
    loop_source_free(r->source);
    r->source = NULL;
    health_free(r->health);
    r->health = NULL;
    look_end(r);
    loop_source_free(r->timer);
    r->timer = NULL;
    r->phase = RUN_REAPING;
    if (!r->busy) /* else when the thread that has it is done */
        run_reap(r);
}

void run_watch(struct run *r)
{
    struct berth_err err;
    r->pid_fd = launch_first(&r->launched);
    if (loop_watch_fd(r->agent->loop, r->launched.pidfd, EPOLLIN, shim_ended, r, &r->source, &err) < 0) {
        NOTE(r->agent, LEVEL_ERROR, "instance.unwatched", LOG_TEXT("text", err.text));
        kill_all(r);
    }
}

/* ---- its beginning ------------------------------------------------------------------------------------------------- */

const char *run_secret(void *ctx, const char *secret, const char *key)
{
    const struct run *r = ctx;
    return json_string_value(json_object_get(json_object_get(r->secrets, secret), key));
}

static void launch_work(void *ctx)
{
    struct run *r = ctx;
    r->rc = compose_launch(r);
}

void run_well(struct run *r)
{
    look_begin(r);
    r->health = wellness_new(r);
}

static void tell_started(struct run *r)
{
    struct node_port ports[ENDPOINTS_MAX];
    size_t len = r->ports.len < ENDPOINTS_MAX ? r->ports.len : ENDPOINTS_MAX;
    for (size_t i = 0; i < len; i++)
        ports[i] = (struct node_port){r->ports.at[i].endpoint, r->ports.at[i].port};
    node_started(r->agent->node, r->id, ports, len);
    if (r->exclusive)
        node_exclusive(r->agent->node, r->id, r->exclusive);
    node_trouble(r->agent->node, r->id, r->unenforced, NULL);
}

static void launch_after(void *ctx)
{
    struct run *r = ctx;
    r->busy = false;
    json_decref(take_ptr(&r->secrets));
    if (r->rc < 0) {
        over(r, NODE_FAILED, -1, r->err.text);
        return;
    }
    r->phase = RUN_LIVING;
    run_watch(r);
    tell_started(r);
    if (json_object_get(r->config, "image"))
        trim_images(r->agent);
    if (r->next && !r->stop_asked) {
        CLEANUP(json) json_t *next = take_ptr(&r->next);
        agent_machine.change(r->agent, r->id, next);
    }
    if (r->stop_asked)
        stop_begin(r);
    else
        run_well(r);
}

/* The next of them; each is made when it is first needed. */
static struct worker *launcher(struct agent *a)
{
    struct worker **w = &a->launchers[a->launcher++ % LAUNCHERS];
    if (!*w)
        *w = worker_new(a->loop);
    return *w;
}

static void launch(struct run *r)
{
    if (r->stop_asked) {
        over(r, NODE_STOPPED, -1, "stopped before it was started");
        return;
    }
    if (r->trouble) {
        over(r, NODE_FAILED, -1, r->trouble);
        return;
    }
    r->phase = RUN_LAUNCHING;
    r->busy = true;
    worker_run(launcher(r->agent), launch_work, launch_after, r);
}

static void pull_work(void *ctx)
{
    struct run *r = ctx;
    r->rc = image_ensure(r->agent->place, r->config, &r->err);
}

static void pull_after(void *ctx)
{
    struct run *r = ctx;
    r->busy = false;
    if (r->rc < 0 && !r->trouble)
        r->trouble = mem_strdup(r->err.text);
    launch(r);
}

static void prepared(struct run *r)
{
    if (r->stop_asked || r->trouble ||
        (!json_object_get(r->config, "image") && !json_object_get(r->config, "rootfs"))) {
        launch(r);
        return;
    }
    r->busy = true;
    worker_run(r->agent->puller, pull_work, pull_after, r);
}

/* ---- secrets ------------------------------------------------------------------------------------------------------- */

struct fetch {
    struct agent *agent;
    uint64_t id;
    char *secret;
    void (*then)(struct run *r);
};

static void fetched(void *ctx, int status, const char *body, size_t len)
{
    struct fetch *f = ctx;
    struct run *r = status == LINK_GONE ? NULL : run_find(f->agent, f->id);
    void (*then)(struct run * r) = f->then;
    if (r) {
        json_t *doc = status == 200 ? json_loadb(body, len, 0, NULL) : NULL;
        json_t *data = json_object_get(doc, "data");
        struct str why = {0};
        if (json_is_object(data))
            (void)json_object_set(r->secrets, f->secret, data);
        else if (!r->trouble) {
            str_addf(&why, "the secret %s cannot be read (%d)", f->secret, status);
            r->trouble = str_take(&why);
        }
        json_decref(doc);
    }
    mem_free(f->secret);
    mem_free(f);
    if (r && --r->fetching == 0)
        then(r);
}

/* Asks for every secret that its files name, then goes on. */
static void fetch_secrets(struct run *r, const json_t *config, void (*then)(struct run *r))
{
    const json_t *files = json_object_get(config, "files");
    if (!r->secrets)
        r->secrets = json_object();
    r->fetching = 1;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *secret = json_string_value(json_object_get(json_array_get(files, i), "secret"));
        CLEANUP(str) struct str path = {0};
        if (!secret || json_object_get(r->secrets, secret))
            continue;
        struct fetch *f = mem_zalloc(sizeof *f);
        *f = (struct fetch){r->agent, r->id, mem_strdup(secret), then};
        (void)json_object_set_new(r->secrets, secret, json_object()); /* asked for */
        str_add(&path, "/secrets/");
        client_encode(&path, secret);
        r->fetching++;
        link_get(r->agent->link, path.at, fetched, f);
    }
    if (--r->fetching == 0)
        then(r);
}

int signal_number(const char *name)
{
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) && strcmp(sigabbrev_np(i), name) == 0)
            return i;
    return -1;
}

/* ---- stopping ------------------------------------------------------------------------------------------------------ */

static void kill_work(void *ctx)
{
    struct run *r = ctx;
    r->rc = cgroup_kill(r->agent->cgroups, r->group);
}

static void kill_again(void *ctx)
{
    kill_all(ctx);
}

static void kill_after(void *ctx)
{
    struct run *r = ctx;
    r->busy = false;
    if (r->phase == RUN_REAPING)
        run_reap(r);
    else
        timer_set(r, kill_again, AGAIN_NS); /* its shim will end; if not, once more */
}

/* By force, all of it. Where there are no cgroups its first process at least. */
static void kill_all(struct run *r)
{
    if (r->busy || r->phase != RUN_LIVING)
        return;
    if (r->pid_fd >= 0)
        (void)syscall(SYS_pidfd_send_signal, r->pid_fd, SIGKILL, NULL, 0);
    r->busy = true;
    worker_run(r->agent->cleaner, kill_work, kill_after, r);
}

static int64_t stop_number(const struct run *r, const char *key, int64_t fallback)
{
    const json_t *number = json_object_get(json_object_get(r->config, "stop"), key);
    return number ? json_integer_value(number) : fallback;
}

static void grace_over(void *ctx)
{
    struct run *r = ctx;
    r->stop_now = true;
    kill_all(r);
}

static void send_signal(const struct run *r, const json_t *rule, int fallback)
{
    const char *name = json_string_value(json_object_get(rule, "signal"));
    int signo = name ? signal_number(name) : fallback;
    if (r->pid_fd >= 0)
        (void)syscall(SYS_pidfd_send_signal, r->pid_fd, signo > 0 ? signo : fallback, NULL, 0);
}

/* One that can save its work is asked to first. If it ends by itself meanwhile, that is its end. */
static void stop_signal(void *ctx)
{
    struct run *r = ctx;
    const json_t *checkpoint = json_object_get(r->config, "checkpoint");
    if (checkpoint && !r->warned) {
        r->warned = true;
        send_signal(r, checkpoint, SIGUSR1);
        timer_set(r, stop_signal, json_integer_value(json_object_get(checkpoint, "grace_ns")));
        return;
    }
    r->signalled = true;
    send_signal(r, json_object_get(r->config, "stop"), SIGTERM);
    timer_set(r, grace_over, stop_number(r, "grace_ns", GRACE_NS_DEFAULT));
}

static void stop_begin(struct run *r)
{
    if (r->stop_now)
        kill_all(r);
    else if (!r->signalled && !r->warned)
        timer_set(r, stop_signal, stop_number(r, "delay_ns", r->ports.len ? GATEWAYS_NS : 0));
}

/* ---- what node/ asks ----------------------------------------------------------------------------------------------- */

static void start(void *ctx, uint64_t id, const json_t *config)
{
    struct agent *a = ctx;
    if (run_find(a, id)) { /* listed again after it was not: what was here of it is still being cleared away */
        static const struct node_outcome again = {NODE_FAILED, -1, "it has run here before"};
        node_over(a->node, id, &again);
        return;
    }
    struct run *r = run_add(a, id, config);
    r->phase = RUN_PREPARING;
    fetch_secrets(r, config, prepared);
}

static void change_work(void *ctx)
{
    struct run *r = ctx;
    r->rc = compose_change(r);
}

static void change_after(void *ctx)
{
    struct run *r = ctx;
    r->busy = false;
    json_decref(take_ptr(&r->secrets));
    if (r->rc < 0)
        NOTE(r->agent, LEVEL_WARN, "instance.unchanged", LOG_NUMBER("id", (int64_t)r->id),
             LOG_TEXT("text", r->err.text));
    else
        node_trouble(r->agent->node, r->id, r->unenforced, NULL);
    if (r->phase == RUN_REAPING)
        run_reap(r);
    else if (r->stop_asked)
        stop_begin(r);
    else if (r->next) {
        CLEANUP(json) json_t *next = take_ptr(&r->next);
        agent_machine.change(r->agent, r->id, next);
    }
}

static void change_now(struct run *r)
{
    if (r->phase != RUN_LIVING || r->busy) /* busy: it is being killed */
        return;
    mem_free(take_ptr(&r->trouble));
    r->busy = true;
    worker_run(r->agent->cleaner, change_work, change_after, r);
}

static void change(void *ctx, uint64_t id, const json_t *config)
{
    struct run *r = run_find(ctx, id);
    if (!r || r->phase > RUN_LIVING)
        return;
    if (r->busy || r->fetching || r->phase != RUN_LIVING) {
        json_decref(r->next);
        r->next = json_deep_copy(config);
        return;
    }
    json_decref(r->config);
    r->config = json_deep_copy(config);
    fetch_secrets(r, config, change_now);
}

static void stop(void *ctx, uint64_t id, bool now)
{
    struct run *r = run_find(ctx, id);
    if (!r)
        return;
    r->stop_asked = true;
    r->stop_now = r->stop_now || now;
    health_free(r->health);
    r->health = NULL;
    if (r->phase == RUN_LIVING && !r->busy)
        stop_begin(r);
    else if (r->phase == RUN_LIVING) /* the thread that has it will be done in a moment */
        timer_set(r, r->stop_now ? kill_again : stop_signal, AGAIN_NS);
}

static void forget_work(void *ctx)
{
    struct run *r = ctx;
    const json_t *keep = json_object_get(json_object_get(r->config, "log"), "keep_ns");
    r->rc = compose_clear(r);
    if (r->rc == 0 && keep) /* if it cannot be said, it stays while there is room */
        (void)log_keep(r->agent->place, r->id, json_integer_value(keep), NULL);
    if (r->rc == 0)
        r->rc = place_end(r->agent->place, r->id, &r->err);
}

static void forget_again(void *ctx)
{
    struct run *r = ctx;
    agent_machine.forget(r->agent, r->id);
}

static void forget_after(void *ctx)
{
    struct run *r = ctx;
    r->busy = false;
    if (r->rc == 0 || r->rc == -ENOENT) {
        run_free(r);
        return;
    }
    stays(r, forget_again);
}

static void forget(void *ctx, uint64_t id)
{
    struct run *r = run_find(ctx, id);
    if (!r || r->busy)
        return;
    r->phase = RUN_LEAVING;
    r->busy = true;
    worker_run(r->agent->cleaner, forget_work, forget_after, r);
}

const struct node_machine agent_machine = {start, change, stop, forget};
