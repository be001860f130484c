/* instance.c - lifecycle of one instance on this node: prepare, launch, watch, stop, clean up, forget. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "agent/instance/exclusive.h"
#include "agent/instance/probes.h"
#include "net/client/client.h"

/* longest delays: 16 s between cleanups, some 4 minutes between changes */
enum { TRIES_DOUBLING = 6, CHANGES_DOUBLING = 10 };

static void launch(struct agent_instance *r);

/* ---- list of instances ------------------------------------------------------------------------------------------ */

static size_t index_of(const struct agent *a, uint64_t id)
{
    return vec_lower_bound(&a->runs, id, id);
}

struct agent_instance *instance_find(const struct agent *a, uint64_t id)
{
    size_t at = index_of(a, id);
    return at < a->runs.len && a->runs.at[at]->id == id ? a->runs.at[at] : NULL;
}

struct agent_instance *instance_list_add(struct agent *a, uint64_t id, const json_t *config)
{
    struct agent_instance *r = mem_zalloc(sizeof *r);
    size_t at = index_of(a, id);
    *r = (struct agent_instance){
        .agent = a, .id = id, .launched = {.pidfd = -1}, .pid_fd = -1, .watched = -1, .exit = -1};
    (void)snprintf(r->group, sizeof r->group, "i%" PRIu64, id);
    r->config = json_deep_copy(config);
    vec_push(&a->runs, r);
    memmove(&a->runs.at[at + 1], &a->runs.at[at], (a->runs.len - 1 - at) * sizeof(struct agent_instance *));
    a->runs.at[at] = r;
    return r;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void instance_free(struct agent_instance *r)
{
    struct agent *a = r->agent;
    size_t at = index_of(a, r->id);
    memmove(&a->runs.at[at], &a->runs.at[at + 1], (a->runs.len - 1 - at) * sizeof(struct agent_instance *));
    a->runs.len--;
    usage_poll_end(r);
    health_free(r->health);
    loop_source_free(r->source);
    loop_source_free(r->timer);
    loop_source_free(r->rechange);
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

const char *instance_owner(const struct agent_instance *r)
{
    const char *owner = json_string_value(json_object_get(r->config, "owner"));
    return owner && *owner ? owner : "berth";
}

uint16_t instance_port(const struct agent_instance *r, const char *endpoint)
{
    for (size_t i = 0; i < r->ports.len; i++)
        if (strcmp(r->ports.at[i].endpoint, endpoint) == 0)
            return r->ports.at[i].port;
    return 0;
}

/* ---- end -------------------------------------------------------------------------------------------------------- */

static void instance_ended(struct agent_instance *r, enum node_end end, int exit, const char *text)
{
    struct node_outcome outcome = {.end = end,
                                   .exit = exit,
                                   .text = text && *text ? text : NULL,
                                   .oom_killed = end == NODE_FAILED && r->oom_killed};
    r->phase = INSTANCE_ENDED;
    exclusive_claims_remove_all(r->agent->claims, r->id);
    port_guard_drop(r->agent->guard, r->id);
    if (r->net.in + r->net.out > 0)
        node_total_usage(r->agent->node, r->id, "traffic", r->net.in + r->net.out);
    node_instance_ended(r->agent->node, r->id, &outcome); /* this call may free or remove r */
}

static void ended_by_exit(struct agent_instance *r)
{
    char text[LAUNCH_TEXT_MAX + 64];
    if (r->killed[0])
        instance_ended(r, NODE_FAILED, r->exit, r->killed);
    else if (r->exit_text[0])
        instance_ended(r, NODE_FAILED, r->exit, r->exit_text);
    else if (r->exit == 0)
        instance_ended(r, NODE_ENDED, 0, NULL);
    else if (r->exit < 0)
        instance_ended(r, NODE_FAILED, -1, "its shim ended without reporting an exit code");
    else if (r->exit > 128) {
        bool oom = r->exit == 128 + SIGKILL && r->oom_killed;
        (void)snprintf(text, sizeof text, oom ? "killed: exceeded its memory limit" : "killed by SIG%s",
                       sigabbrev_np(r->exit - 128) ? sigabbrev_np(r->exit - 128) : "?");
        instance_ended(r, NODE_FAILED, r->exit, text);
    } else {
        (void)snprintf(text, sizeof text, "exit code %d%s", r->exit,
                       r->oom_killed ? "; one of its processes was killed for exceeding the memory limit" : "");
        instance_ended(r, NODE_FAILED, r->exit, text);
    }
}

static void reap_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->exit = -1;
    r->exit_text[0] = '\0';
    if (launch_exit(r->agent->state_dir, r->id, &r->exit, r->exit_text) < 0)
        r->exit = -1;
    (void)cgroup_usage(r->agent->cgroups, r->group, &r->used);
    r->oom_killed = r->oom_killed || r->used.oom_kills > 0;
    r->rc = compose_clear(r);
}

static void reap_again(void *ctx)
{
    instance_reap(ctx);
}

void instance_set_timer(struct agent_instance *r, loop_call *call, int64_t after_ns)
{
    loop_source_free(r->timer);
    r->timer = loop_timer_new(r->agent->loop, call, r);
    loop_timer_set(r->timer, loop_now_ns(r->agent->loop) + after_ns);
}

/* Schedules another attempt with exponential backoff. */
static void cleanup_retry_later(struct agent_instance *r, loop_call *again)
{
    unsigned doublings = r->tries < TRIES_DOUBLING ? r->tries++ : TRIES_DOUBLING;
    NOTE(r->agent, LEVEL_WARN, "instance.stays", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", r->err.text));
    instance_set_timer(r, again, RETRY_NS << doublings);
}

static void reap_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    if (r->rc < 0) { /* a process cannot die yet, or a file system is still mounted */
        cleanup_retry_later(r, reap_again);
        return;
    }
    ended_by_exit(r);
}

void instance_reap(struct agent_instance *r)
{
    r->phase = INSTANCE_REAPING;
    r->busy = true;
    worker_run(r->agent->cleaner, reap_work, reap_after, r);
}

static void shim_ended(void *ctx, uint32_t events)
{
    struct agent_instance *r = ctx;
    (void)events;
    loop_source_free(r->source);
    r->source = NULL;
    health_free(r->health);
    r->health = NULL;
    usage_poll_end(r);
    loop_source_free(r->timer);
    r->timer = NULL;
    r->phase = INSTANCE_REAPING;
    if (!r->busy) /* otherwise the worker's callback does it */
        instance_reap(r);
}

void instance_watch(struct agent_instance *r)
{
    struct berth_err err;
    r->pid_fd = launch_first_process(&r->launched);
    if (loop_watch_fd(r->agent->loop, r->launched.pidfd, EPOLLIN, shim_ended, r, &r->source, &err) < 0) {
        NOTE(r->agent, LEVEL_ERROR, "instance.unwatched", LOG_TEXT("text", err.text));
        instance_kill(r);
    }
}

/* ---- launch ----------------------------------------------------------------------------------------------------- */

const char *instance_secret(void *ctx, const char *secret, const char *key)
{
    const struct agent_instance *r = ctx;
    return json_string_value(json_object_get(json_object_get(r->secrets, secret), key));
}

/* Tells whether no other instance of the same owner is in a phase between `from` and INSTANCE_ENDED. */
static bool is_alone_of_owner(const struct agent_instance *r, enum instance_phase from)
{
    const struct agent *a = r->agent;
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i] != r && a->runs.at[i]->phase >= from && a->runs.at[i]->phase < INSTANCE_ENDED &&
            strcmp(instance_owner(a->runs.at[i]), instance_owner(r)) == 0)
            return false;
    return true;
}

static void launch_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->rc = compose_launch(r);
}

void instance_start_probes(struct agent_instance *r)
{
    usage_poll_begin(r);
    r->health = instance_probe_new(r);
}

static void report_started(struct agent_instance *r)
{
    struct node_port ports[ENDPOINTS_MAX];
    size_t len = r->ports.len < ENDPOINTS_MAX ? r->ports.len : ENDPOINTS_MAX;
    for (size_t i = 0; i < len; i++)
        ports[i] = (struct node_port){r->ports.at[i].endpoint, r->ports.at[i].port};
    node_started(r->agent->node, r->id, &(struct node_start){ports, len, r->exclusive, r->unenforced});
}

static void launched_running(struct agent_instance *r)
{
    r->phase = INSTANCE_RUNNING;
    instance_watch(r);
    report_started(r);
    if (json_object_get(r->config, "image"))
        trim_images(r->agent);
    if (r->next && !r->stop_asked) {
        CLEANUP(json) json_t *next = take_ptr(&r->next);
        agent_machine.change(r->agent, r->id, next);
    }
    if (r->stop_asked)
        instance_stop(r);
    else
        instance_start_probes(r);
}

static void launch_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    json_decref(take_ptr(&r->secrets));
    if (r->rc < 0)
        instance_ended(r, NODE_FAILED, -1, r->err.text);
    else
        launched_running(r);
}

/* Returns the next launcher in round-robin order; creates it on first use. */
static struct worker *launcher(struct agent *a)
{
    struct worker **w = &a->launchers[a->launcher++ % LAUNCHERS];
    if (!*w)
        *w = worker_new(a->loop);
    return *w;
}

static void launch(struct agent_instance *r)
{
    if (r->stop_asked) {
        instance_ended(r, NODE_STOPPED, -1, "stopped before it was started");
        return;
    }
    if (r->trouble) {
        instance_ended(r, NODE_FAILED, -1, r->trouble);
        return;
    }
    r->phase = INSTANCE_LAUNCHING;
    r->busy = true;
    r->alone = is_alone_of_owner(r, INSTANCE_LAUNCHING);
    worker_run(launcher(r->agent), launch_work, launch_after, r);
}

static void await_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->rc = launch_adopt(r->agent->state_dir, r->id, &r->launched, &r->err);
    if (r->rc == 0)
        bundle_started(r->agent->state_dir, r->id);
    else if (r->rc != -ESRCH)
        launch_prevent(r->agent->state_dir, r->id);
}

static void await_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    if (r->rc < 0) {
        if (r->rc != -ESRCH)
            NOTE(r->agent, LEVEL_WARN, "instance.refused", LOG_NUMBER("id", (int64_t)r->id),
                 LOG_TEXT("text", r->err.text));
        instance_reap(r);
        return;
    }
    limits_adopt(r);
    NOTE(r->agent, LEVEL_INFO, "instance.adopted", LOG_NUMBER("id", (int64_t)r->id),
         LOG_NUMBER("shim", r->launched.shim));
    launched_running(r);
}

void instance_await(struct agent_instance *r)
{
    r->phase = INSTANCE_LAUNCHING;
    r->busy = true;
    worker_run(launcher(r->agent), await_work, await_after, r);
}

static void pull_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->rc = image_ensure(r->agent->state_dir, r->config, &r->err);
}

static void pull_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    if (r->rc < 0 && !r->trouble)
        r->trouble = mem_strdup(r->err.text);
    launch(r);
}

static void prepared(struct agent_instance *r)
{
    if (r->stop_asked || r->trouble ||
        (!json_object_get(r->config, "image") && !json_object_get(r->config, "rootfs"))) {
        launch(r);
        return;
    }
    r->busy = true;
    worker_run(r->agent->puller, pull_work, pull_after, r);
}

/* ---- secrets ---------------------------------------------------------------------------------------------------- */

struct secret_fetch {
    struct agent *agent;
    uint64_t id;
    char *secret;
    void (*then)(struct agent_instance *r);
};

static void fetched(void *ctx, int status, const char *body, size_t len)
{
    struct secret_fetch *f = ctx;
    struct agent_instance *r = status == LINK_GONE ? NULL : instance_find(f->agent, f->id);
    void (*then)(struct agent_instance * r) = f->then;
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

/* Requests every secret that the files of the configuration name, then calls `then`. */
static void fetch_secrets(struct agent_instance *r, const json_t *config, void (*then)(struct agent_instance *r))
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
        struct secret_fetch *f = mem_zalloc(sizeof *f);
        *f = (struct secret_fetch){r->agent, r->id, mem_strdup(secret), then};
        (void)json_object_set_new(r->secrets, secret, json_object()); /* marks it as requested */
        str_add(&path, "/secrets/");
        client_encode(&path, secret);
        r->fetching++;
        link_get(r->agent->link, path.at, fetched, f);
    }
    if (--r->fetching == 0)
        then(r);
}

/* ---- interface to node/ ----------------------------------------------------------------------------------------- */

static void start(void *ctx, uint64_t id, const json_t *config)
{
    struct agent *a = ctx;
    if (instance_find(a, id)) { /* the daemon listed it again while its earlier run is still being cleaned up */
        static const struct node_outcome again = {NODE_FAILED, -1, "it has already run on this node"};
        node_instance_ended(a->node, id, &again);
        return;
    }
    struct agent_instance *r = instance_list_add(a, id, config);
    r->phase = INSTANCE_PREPARING;
    fetch_secrets(r, config, prepared);
}

static void change_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->rc = compose_change(r);
}

static void change_now(struct agent_instance *r);

static void change_again(void *ctx)
{
    struct agent_instance *r = ctx;
    if (r->phase == INSTANCE_RUNNING && !r->stop_asked && !r->busy && !r->fetching)
        fetch_secrets(r, r->config, change_now);
}

/* Schedules another attempt: the daemon does not send the same configuration twice, and the failure may be temporary,
 * such as an unavailable secret. */
static void change_later(struct agent_instance *r)
{
    unsigned doublings = r->change_tries < CHANGES_DOUBLING ? r->change_tries++ : CHANGES_DOUBLING;
    if (!r->rechange)
        r->rechange = loop_timer_new(r->agent->loop, change_again, r);
    loop_timer_set(r->rechange, loop_now_ns(r->agent->loop) + (RETRY_NS << doublings));
}

static void change_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    json_decref(take_ptr(&r->secrets));
    if (r->rc < 0)
        NOTE(r->agent, LEVEL_WARN, "instance.unchanged", LOG_NUMBER("id", (int64_t)r->id),
             LOG_TEXT("text", r->err.text));
    else
        limits_report(r);
    if (r->phase == INSTANCE_REAPING)
        instance_reap(r);
    else if (r->stop_asked)
        instance_stop(r);
    else if (r->next) {
        CLEANUP(json) json_t *next = take_ptr(&r->next);
        agent_machine.change(r->agent, r->id, next);
    } else if (r->rc < 0) {
        change_later(r);
    }
}

static void change_now(struct agent_instance *r)
{
    if (r->phase != INSTANCE_RUNNING || r->busy) /* busy: it is being killed */
        return;
    mem_free(take_ptr(&r->trouble));
    r->busy = true;
    worker_run(r->agent->cleaner, change_work, change_after, r);
}

static void change(void *ctx, uint64_t id, const json_t *config)
{
    struct agent_instance *r = instance_find(ctx, id);
    if (!r || r->phase > INSTANCE_RUNNING)
        return;
    if (r->busy || r->fetching || r->phase != INSTANCE_RUNNING) {
        json_decref(r->next);
        r->next = json_deep_copy(config);
        return;
    }
    json_decref(r->config);
    r->config = json_deep_copy(config);
    r->change_tries = 0;
    if (r->rechange)
        loop_timer_set(r->rechange, INT64_MAX);
    fetch_secrets(r, config, change_now);
}

static void stop(void *ctx, uint64_t id, bool now)
{
    struct agent_instance *r = instance_find(ctx, id);
    if (!r)
        return;
    r->stop_asked = true;
    r->stop_now = r->stop_now || now;
    health_free(r->health);
    r->health = NULL;
    if (r->phase == INSTANCE_RUNNING)
        instance_stop(r);
}

static void forget_work(void *ctx)
{
    struct agent_instance *r = ctx;
    const json_t *keep = json_object_get(json_object_get(r->config, "log"), "keep_ns");
    r->rc = compose_clear(r);
    if (r->rc == 0 && keep) /* without a recorded retention time the log is kept until space is needed */
        (void)log_keep(r->agent->state_dir, r->id, json_integer_value(keep), NULL);
    if (r->rc == 0 && r->last)
        compose_leftovers(r);
    if (r->rc == 0)
        r->rc = instance_dir_remove(r->agent->state_dir, r->id, &r->err);
}

static void forget_again(void *ctx)
{
    struct agent_instance *r = ctx;
    agent_machine.forget(r->agent, r->id);
}

static void forget_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    if (r->rc == 0 || r->rc == -ENOENT) {
        instance_free(r);
        return;
    }
    cleanup_retry_later(r, forget_again);
}

static void forget(void *ctx, uint64_t id)
{
    struct agent_instance *r = instance_find(ctx, id);
    if (!r || r->busy)
        return;
    r->phase = INSTANCE_REMOVING;
    r->last = is_alone_of_owner(r, INSTANCE_PREPARING);
    r->busy = true;
    worker_run(r->agent->cleaner, forget_work, forget_after, r);
}

const struct node_machine agent_machine = {start, change, stop, forget};
