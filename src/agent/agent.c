#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "agent/instance/exclusive.h"
#include "agent/instance/footprint.h"
#include "agent/optask/optask.h"
#include "machine/mount/mount_plan.h"
#include "machine/net/net_limit.h"
#include "net/notify.h"

#define RENEW_AGAIN_NS (600 * SECOND_NS)

static int64_t clock_read(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

int64_t agent_clock_ns(void)
{
    return clock_read(CLOCK_REALTIME);
}

int64_t agent_boottime_ns(void)
{
    return clock_read(CLOCK_BOOTTIME);
}

/* ---- environment of the node logic ------------------------------------------------------------------------------ */

static int64_t env_steady(void *ctx)
{
    (void)ctx;
    return agent_boottime_ns();
}

static int64_t env_clock(void *ctx)
{
    (void)ctx;
    return agent_clock_ns();
}

static void env_report(void *ctx, uint64_t seq, char *text)
{
    link_report(((struct agent *)ctx)->link, seq, text);
}

static void on_daemon_contact(void *ctx, int64_t sent_ns)
{
    struct agent *a = ctx;
    state_dir_set_contact_ns(a->state_dir, sent_ns);
    link_listen(a->link);
    if (a->told)
        return;
    a->told = true;
    if (geteuid() != 0)
        NOTE(a, LEVEL_WARN, "agent.unprivileged",
             LOG_TEXT(
                 "text",
                 "not running as root: all instances run as one user, without limits, files, mounts and containers"));
    NOTE(a, LEVEL_INFO, "agent.ready", LOG_TEXT("node", a->identity.node));
    (void)fprintf(a->ready, "ready %s\n", a->identity.node);
    (void)fflush(a->ready);
    footprint_trim();
}

static void env_reread(void *ctx)
{
    link_reread(((struct agent *)ctx)->link);
}

/* node.c stops all instances; ticked() then stops the loop. */
static void env_superseded(void *ctx, const char *text)
{
    struct agent *a = ctx;
    (void)text;
    a->superseded = true;
}

static void env_wake_at(void *ctx, int64_t steady_ns)
{
    struct agent *a = ctx;
    int64_t at_ns = loop_now_ns(a->loop) + (steady_ns - agent_boottime_ns());
    if (at_ns >= a->tick_ns)
        return;
    a->tick_ns = at_ns;
    loop_timer_set(a->tick, at_ns);
}

static bool has_instances(const struct agent *a)
{
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->phase < INSTANCE_ENDED)
            return true;
    return false;
}

static void on_tick(void *ctx)
{
    struct agent *a = ctx;
    a->tick_ns = INT64_MAX;
    node_tick(a->node);
    if (a->superseded && !has_instances(a))
        loop_stop(a->loop);
    else if (a->superseded)
        env_wake_at(a, agent_boottime_ns() + SECOND_NS / 4);
}

/* ---- messages of the daemon ------------------------------------------------------------------------------------- */

static void on_config(void *ctx, const char *hash, const json_t *config)
{
    struct agent *a = ctx;
    struct berth_err err;
    /* Only one configuration stream is open at a time, so the order of arrival is the order of the configurations. */
    if (node_configure(a->node, ++a->configs, hash, config, &err) < 0)
        NOTE(a, LEVEL_ERROR, "config.refused", LOG_TEXT("text", err.text));
    else if (!a->superseded)
        optasks_configure(a->optasks, config);
}

static void on_session_line(void *ctx, const json_t *line)
{
    sessions_handle_line(((struct agent *)ctx)->sessions, line);
}

static void on_sessions_lost(void *ctx)
{
    sessions_close_all(((struct agent *)ctx)->sessions);
}

static void on_report_answered(void *ctx, uint64_t seq, int status, const json_t *answer)
{
    struct agent *a = ctx;
    node_reported(a->node, seq, status, answer);
    if (a->superseded)
        env_wake_at(a, agent_boottime_ns());
}

/* ---- the certificate -------------------------------------------------------------------------------------------- */

static void renew_set(struct agent *a, int64_t in_ns)
{
    loop_timer_set(a->renew, loop_now_ns(a->loop) + in_ns);
}

static void secret_drop(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    mem_free(take_ptr(text));
}

static void renew_failed(struct agent *a, const char *text)
{
    secret_drop(&a->new_pem);
    NOTE(a, LEVEL_WARN, "certificate.unrenewed", LOG_TEXT("text", text));
    renew_set(a, RENEW_AGAIN_NS);
}

/* The net sandbox checks the certificate; the agent does not parse it. */
static void renew_answered(void *ctx, int status, const char *body, size_t len)
{
    struct agent *a = ctx;
    if (status == LINK_GONE)
        return;
    json_t *doc = status == 200 || status == 201 ? json_loadb(body, len, 0, NULL) : NULL;
    const char *certificate = json_string_value(json_object_get(doc, "certificate"));
    if (certificate)
        a->new_pem = identity_pem(certificate, a->new_key);
    json_decref(doc);
    secret_drop(&a->new_key);
    if (a->new_pem)
        link_try_certificate(a->link, a->new_pem);
    else
        renew_failed(a, status ? "the daemon refused the request" : "the daemon cannot be reached");
}

static void renew_tried(struct agent *a, int64_t not_after_ns, const char *text)
{
    struct berth_err err;
    if (not_after_ns == 0 || identity_renew(&a->identity, a->new_pem, &err) < 0) {
        renew_failed(a, not_after_ns == 0 ? text : err.text);
        return;
    }
    secret_drop(&a->new_pem);
    NOTE(a, LEVEL_INFO, "certificate.renewed");
    identity_until(&a->identity, not_after_ns);
    link_reopen_streams(a->link);
    renew_set(a, identity_wait_ns(&a->identity, agent_clock_ns()));
}

/* Without a valid certificate at startup the agent fails; later it continues, because a renewal may still succeed. */
static void on_certificate(void *ctx, int64_t not_after_ns, const char *text, bool trial)
{
    struct agent *a = ctx;
    if (trial) {
        renew_tried(a, not_after_ns, text);
    } else if (not_after_ns > 0) {
        identity_until(&a->identity, not_after_ns);
        renew_set(a, identity_wait_ns(&a->identity, agent_clock_ns()));
    } else {
        NOTE(a, LEVEL_ERROR, "network.failed", LOG_TEXT("text", text));
        if (a->identity.renew_ns)
            return;
        (void)err_set(&a->failure, EIO, "%s", text);
        loop_stop(a->loop);
    }
}

static void on_renew_timer(void *ctx)
{
    struct agent *a = ctx;
    struct berth_err err;
    CLEANUP(mem) char *request = NULL;
    int64_t wait_ns = identity_wait_ns(&a->identity, agent_clock_ns());
    if (a->new_key || a->new_pem)
        return;
    if (wait_ns > 0) {
        renew_set(a, wait_ns);
        return;
    }
    if (identity_request(&a->new_key, &request, &err) < 0) {
        renew_set(a, RENEW_AGAIN_NS);
        return;
    }
    json_t *doc = json_pack("{s:s}", "request", request);
    char *text = json_dumps(doc, JSON_COMPACT);
    link_post(a->link, "/certificate", NULL, text, strlen(text), renew_answered, a);
    free(text);
    json_decref(doc);
}

/* ---- startup and shutdown --------------------------------------------------------------------------------------- */

static void on_stop_requested(void *ctx)
{
    struct agent *a = ctx;
    NOTE(a, LEVEL_INFO, "agent.stopping", LOG_TEXT("text", "instances keep running"));
    (void)notify_send("STOPPING=1");
    loop_stop(a->loop);
}

static void ignore_event(void *ctx)
{
    (void)ctx;
}

static int loop_start(struct agent *a, struct berth_err *err)
{
    int rc = loop_new(&a->loop, err);
    if (rc == 0)
        rc = loop_service_signals(a->loop, on_stop_requested, ignore_event, a, err);
    if (rc < 0)
        return rc;
    a->tick = loop_timer_new(a->loop, on_tick, a);
    a->tick_ns = INT64_MAX;
    a->renew = loop_timer_new(a->loop, on_renew_timer, a);
    a->cleaner = worker_new(a->loop);
    a->puller = worker_new(a->loop);
    return 0;
}

/* Looks for berth-shim beside this program, then at its installation path. */
static int shim_find(struct agent *a, struct berth_err *err)
{
    char self[STATE_PATH_MAX];
    static const char *const beside[] = {"/berth-shim", "/../shim/berth-shim"};
    if (a->options->shim)
        a->shim = mem_strdup(a->options->shim);
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    while (len > 0 && self[len] != '/')
        len--;
    for (size_t i = 0; !a->shim && len > 0 && i < sizeof beside / sizeof *beside; i++) {
        struct str path = {0};
        str_add_bytes(&path, self, (size_t)len);
        str_add(&path, beside[i]);
        if (access(path.at, X_OK) == 0)
            a->shim = str_take(&path);
        str_done(&path);
    }
    if (!a->shim)
        a->shim = mem_strdup(BERTH_SHIM);
    if (access(a->shim, X_OK) < 0)
        return err_set(err, ENOENT, "cannot find the program berth-shim (%s); use --shim FILE", a->shim);
    return 0;
}

static int machine_start(struct agent *a, struct berth_err *err)
{
    const struct agent_options *o = a->options;
    struct net_sandbox_user user;
    int rc = shim_find(a, err);
    if (rc == 0)
        rc = state_dir_open(o->state, &a->state_dir, err);
    if (rc == 0)
        rc = net_sandbox_user_find(o, &user, err);
    if (rc == 0 && geteuid() == 0)
        state_dir_set_fetcher(a->state_dir, user.uid, user.gid);
    if (rc == 0)
        state_dir_set_image_bounds(a->state_dir, &(struct image_bounds){o->image_max_mib << 20, o->image_files});
    if (rc == 0)
        rc = cgroups_open(o->cgroup_root, o->cgroup, &a->cgroups, err);
    a->nets = net_limiter_new(o->uplink, o->bandwidth_bytes);
    a->guard = port_guard_new();
    a->disks = disks_new(a);
    if (rc == 0)
        rc = users_open(a->state_dir, o->accounts ? o->accounts_group : NULL, (uid_t)o->uid_first, &a->users, err);
    if (rc == 0)
        a->gpus = gpu_monitor_new(a);
    (void)pthread_mutex_init(&a->mps_lock, NULL);
    (void)pthread_mutex_init(&a->userns_reason_lock, NULL);
    if (rc == 0)
        rc = usage_poll_new(a, &a->look, err);
    /* a separate directory for settings; instances with settings need not create it */
    (void)mkdir(SETTINGS_FOLDER, 0755);
    (void)chmod(SETTINGS_FOLDER, 0755); /* independent of the umask: owners must be able to enter it */
    a->oci = oci_runtime_find();
    compose_check(a);
    a->claims = exclusive_claims_new();
    a->sessions = sessions_new(a);
    return rc;
}

static int node_start(struct agent *a, struct berth_err *err)
{
    const struct node_env env = {a,           env_steady, env_report, on_daemon_contact, env_reread, env_superseded,
                                 env_wake_at, a->log,     env_clock};
    const struct node_options options = {.id = a->identity.node,
                                         .epoch = a->identity.epoch + state_dir_epoch(a->state_dir),
                                         .heard_ns = state_dir_contact_ns(a->state_dir),
                                         .heartbeat_ns = (int64_t)a->options->heartbeat_ms * 1000000};
    const struct link_handlers heard = {on_config,          on_session_line, on_sessions_lost,
                                        on_report_answered, on_certificate,  a};
    struct net_sandbox_user user;
    int rc = net_sandbox_user_find(a->options, &user, err);
    if (rc == 0)
        rc = node_new(&env, &agent_machine, a, &options, &a->node, err);
    if (rc == 0)
        a->link = link_new(a->loop, &a->identity, &user, options.epoch, &heard, a->log);
    if (rc == 0)
        rc = adopt_all(a, err);
    if (rc == 0)
        rc = optasks_new(a, options.epoch, &a->optasks, err);
    if (rc < 0)
        return rc;
    node_begin(a->node);
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->phase == INSTANCE_RUNNING)
            instance_start_probes(a->runs.at[i]);
    return 0;
}

static void agent_done(struct agent *a)
{
    for (size_t i = 0; i < LAUNCHERS; i++)
        worker_free(a->launchers[i]);
    worker_free(a->cleaner);
    worker_free(a->puller);
    sessions_free(a->sessions);
    optasks_free(a->optasks);
    while (a->runs.len)
        instance_free(a->runs.at[a->runs.len - 1]);
    vec_done(&a->runs);
    exec_processes_release(a);
    node_free(a->node);
    link_free(a->link);
    usage_poll_free(a->look);
    gpu_monitor_free(a->gpus);
    (void)pthread_mutex_destroy(&a->mps_lock);
    (void)pthread_mutex_destroy(&a->userns_reason_lock);
    users_free(a->users);
    disks_free(a->disks);
    net_limiter_free(a->nets);
    port_guard_free(a->guard);
    cgroups_free(a->cgroups);
    exclusive_claims_free(a->claims);
    state_dir_free(a->state_dir);
    loop_source_free(a->tick);
    loop_source_free(a->renew);
    loop_free(a->loop);
    identity_done(&a->identity);
    secret_drop(&a->new_key);
    secret_drop(&a->new_pem);
    mem_free(a->shim);
}

int agent_run(const struct agent_options *options, FILE *ready, const struct log *log, struct berth_err *err)
{
    struct agent a = {.options = options, .log = log, .ready = ready};
    int rc = identity_read(options->state, &a.identity, err);
    if (rc == 0)
        rc = loop_start(&a, err);
    if (rc == 0)
        rc = machine_start(&a, err);
    if (rc == 0)
        rc = node_start(&a, err);
    if (rc == 0)
        /* leftover instances are adopted; the first contact with the daemon may come later */
        (void)notify_send("READY=1");
    if (rc == 0)
        rc = loop_run(a.loop, err);
    if (rc == 0 && a.failure.code)
        rc = err_set(err, a.failure.code, "%s", a.failure.text);
    if (rc == 0 && a.superseded)
        rc = err_set(err, EALREADY,
                     "another agent with a later epoch runs as node %s; all instances here were stopped. To use this "
                     "machine as a separate node, join it again",
                     a.identity.node);
    agent_done(&a);
    return rc;
}
