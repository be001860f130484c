#include "berthd/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "berthd/config.h"
#include "berthd/init.h"
#include "berthd/notification.h"
#include "berthd/server.h"
#include "control/kind/secret.h"
#include "control/sched/scheduler.h"
#include "control/system/settings_table.h"
#include "control/tenant/uid.h"
#include "net/notify.h"
#include "net/tls/tls.h"

#define SECOND_NS INT64_C(1000000000)
#define STOP_NS_MAX (4 * SECOND_NS) /* clients that do not read are then cut off */
#define STOP_CHECK_NS (SECOND_NS / 50)
enum { AGENT_NAMES_MAX = 64 };

struct daemon {
    const struct daemon_options *options;
    const struct log *log;
    struct daemon_config config;
    struct loop *loop;
    struct worker *worker, *slow;                                   /* for plans; for work that may take seconds */
    struct worker *notification_workers[NOTIFICATIONS_SENDING_MAX]; /* for notifications */
    size_t post;                                                    /* index of the next worker of `posts` */
    struct loop_source *tick, *serve, *watchdog, *stopping;         /* timers */
    int64_t tick_ns;                                                /* time that `tick` is set to */
    /* steady time; deadline of the stop; 0: not stopping */
    int64_t stop_ns;
    bool forced;
    struct store *store;
    struct control *control;
    struct server *server, *agents; /* for all clients; for agents, NULL: none */
    struct tls_identity identity, ca, agents_identity;
    struct str agents_url;
};

/* ---- environment of the control --------------------------------------------------------------------------------- */

static int64_t clock_read(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static int64_t env_clock(void *ctx)
{
    (void)ctx;
    return clock_read(CLOCK_REALTIME);
}

static int64_t env_steady(void *ctx)
{
    (void)ctx;
    return clock_read(CLOCK_MONOTONIC);
}

static int64_t env_boot(void *ctx)
{
    (void)ctx;
    return clock_read(CLOCK_BOOTTIME);
}

/* Aborts if there is no randomness, because secrets need it. */
static void env_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    for (size_t done = 0; done < len;) {
        ssize_t n = getrandom((char *)buf + done, len - done, 0);
        if (n < 0 && errno != EINTR)
            abort();
        if (n > 0)
            done += (size_t)n;
    }
}

static void env_run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    struct daemon *d = ctx;
    worker_run(d->worker, work, after, arg);
}

static void env_run_slow(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    struct daemon *d = ctx;
    worker_run(d->slow, work, after, arg);
}

static void notification_run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    struct daemon *d = ctx;
    worker_run(d->notification_workers[d->post++ % NOTIFICATIONS_SENDING_MAX], work, after, arg);
}

/* Appends scheme, host and port of a URL to the text for the log. Paths, queries and user names of webhooks are secret.
 * The error text for the user reveals nothing about the network. */
static void url_host_add(const char *url, struct str *to)
{
    const char *host = url ? strstr(url, "://") : NULL;
    if (!host)
        return;
    host += 3;
    size_t len = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', len);
    const char *from = at ? at + 1 : host;
    str_addf(to, "%.*s%.*s", (int)(host - url), url, (int)(len - (size_t)(from - host)), from);
}

static int notification_deliver(void *ctx, const struct notification_delivery *p, struct berth_err *err)
{
    const struct daemon *d = ctx;
    struct berth_err detail = {0};
    int rc = notification_send(p, &detail, err);
    if (rc < 0) {
        CLEANUP(str) struct str to = {0};
        url_host_add(p->url, &to);
        log_write(d->log, clock_read(CLOCK_REALTIME), LEVEL_INFO, "notice.undelivered",
                  LOG_TEXT("to", p->url ? str_text(&to) : p->mail), LOG_TEXT("text", detail.text));
    }
    return rc;
}

static void env_wake_at(void *ctx, int64_t steady_ns)
{
    struct daemon *d = ctx;

    if (steady_ns >= d->tick_ns)
        return;
    d->tick_ns = steady_ns;
    loop_timer_set(d->tick, steady_ns);
}

static void env_serve_soon(void *ctx)
{
    struct daemon *d = ctx;
    loop_timer_set(d->serve, 0);
}

static void on_serve_timer(void *ctx)
{
    struct daemon *d = ctx;
    control_serve(d->control);
}

static void on_tick(void *ctx)
{
    struct daemon *d = ctx;

    d->tick_ns = INT64_MAX;
    control_tick(d->control);
}

static void store_ready(void *ctx, uint32_t events)
{
    struct daemon *d = ctx;

    (void)events;
    control_pump(d->control);
}

#define NOTE(d, level, event, ...) log_write((d)->log, clock_read(CLOCK_REALTIME), level, event, ##__VA_ARGS__)

/* ---- stop ------------------------------------------------------------------------------------------------------- */

static size_t busy(const struct daemon *d)
{
    return server_busy(d->server) + (d->agents ? server_busy(d->agents) : 0);
}

/* Ends the loop when everything is answered, every stream is closed and no plan is being made, or when the time is
 * over. */
static void stop_check(void *ctx)
{
    struct daemon *d = ctx;
    bool done = busy(d) == 0 && !scheduler_planning(control_scheduler(d->control));

    if (done || clock_read(CLOCK_MONOTONIC) >= d->stop_ns)
        loop_stop(d->loop);
    else
        loop_timer_set(d->stopping, clock_read(CLOCK_MONOTONIC) + STOP_CHECK_NS);
}

static void on_stop_requested(void *ctx)
{
    struct daemon *d = ctx;

    if (d->stop_ns) {
        NOTE(d, LEVEL_WARN, "daemon.forced", LOG_TEXT("text", "second signal: stopping at once"));
        d->forced = true;
        loop_stop(d->loop);
        return;
    }
    NOTE(d, LEVEL_INFO, "daemon.stopping");
    (void)notify_send("STOPPING=1");
    d->stop_ns = clock_read(CLOCK_MONOTONIC) + STOP_NS_MAX;
    server_quiesce(d->server);
    if (d->agents)
        server_quiesce(d->agents);
    control_quiesce(d->control);
    stop_check(d);
}

static void hangup_received(void *ctx)
{
    NOTE((struct daemon *)ctx, LEVEL_INFO, "daemon.hangup", LOG_TEXT("text", "no files to reload"));
}

static void on_watchdog_timer(void *ctx)
{
    struct daemon *d = ctx;

    (void)notify_send("WATCHDOG=1");
    loop_timer_set(d->watchdog, clock_read(CLOCK_MONOTONIC) + notify_watchdog_ns() / 2);
}

/* ---- start ------------------------------------------------------------------------------------------------------ */

static int loop_start(struct daemon *d, struct berth_err *err)
{
    int rc = loop_new(&d->loop, err);
    if (rc == 0)
        rc = loop_service_signals(d->loop, on_stop_requested, hangup_received, d, err);
    if (rc < 0)
        return rc;
    d->tick = loop_timer_new(d->loop, on_tick, d);
    d->tick_ns = INT64_MAX;
    d->serve = loop_timer_new(d->loop, on_serve_timer, d);
    d->watchdog = loop_timer_new(d->loop, on_watchdog_timer, d);
    d->stopping = loop_timer_new(d->loop, stop_check, d);
    d->worker = worker_new(d->loop);
    d->slow = worker_new(d->loop);
    for (size_t i = 0; i < NOTIFICATIONS_SENDING_MAX; i++)
        d->notification_workers[i] = worker_new(d->loop);
    return 0;
}

/* Opens the store. With --init a missing cluster is created; without it the cluster must exist. */
static int store_start(struct daemon *d, const struct control_env *env, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    const struct store_options options = {.create = false};
    struct loop_source *ignored;

    if (o->init) {
        CLEANUP(str) struct str token_file = {0};
        bool made = false;
        if (o->token_file)
            str_add(&token_file, o->token_file);
        else
            str_addf(&token_file, "%s/admin.token", o->data);
        int rc = cluster_init(o->data, token_file.at, env, &made, err);
        if (rc < 0)
            return rc;
        NOTE(d, LEVEL_INFO, made ? "cluster.made" : "cluster.kept", LOG_TEXT("data", o->data),
             LOG_TEXT("token_file", token_file.at));
        if (!made && access(token_file.at, F_OK) != 0)
            NOTE(d, LEVEL_WARN, "token.absent", LOG_TEXT("token_file", token_file.at),
                 LOG_TEXT("text", "the cluster already exists, so no token was written"));
    } else if (!cluster_exists(o->data)) {
        return err_set(err, ENOENT, "there is no cluster in %s; start once with --init to create one", o->data);
    }
    int rc = store_sqlite_open(o->data, &options, &d->store, err);
    if (rc == 0 && store_fd(d->store) >= 0)
        rc = loop_watch_fd(d->loop, store_fd(d->store), EPOLLIN, store_ready, d, &ignored, err);
    return rc;
}

/* Rejects a key that opens none of the secrets: otherwise workloads with secrets would fail one by one, much later. */
static int secret_key_check(const struct daemon *d, bool there, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    struct secret_key_match fit = secret_key_fit(d->control);

    if (fit.secrets == 0 || fit.opens || o->new_secret_key)
        return 0;
    return err_set(
        err, EBADMSG,
        "%s/secret.key %s the key that encrypts the %zu secrets of this cluster; restore that file (an encrypted "
        "backup has it), or start once with --new-secret-key and set the secrets again",
        o->data, there ? "is not" : "is gone, which is", fit.secrets);
}

static int control_start(struct daemon *d, const struct control_env *env, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    CLEANUP(str) struct str journal = {0};
    str_addf(&journal, "%s/journal", o->data);
    struct control_options options = {
        .secret_key_given = true,
        .journal_dir = journal.at,
        .data_dir = o->data,
        .lease_ns = (int64_t)o->lease_s * SECOND_NS,
        .audit_every = (size_t)o->audit_every,
        .requests_per_s = (double)o->requests_per_s,
    };
    size_t users;
    bool there = false;
    int rc = secret_key_read(o->data, env, options.secret_key, &there, err);

    if (rc == 0)
        rc = control_new(env, &options, d->store, &d->control, err);
    if (rc == 0)
        rc = secret_key_check(d, there, err);
    if (rc == 0 && !there)
        rc = secret_key_write(o->data, options.secret_key, err);
    explicit_bzero(options.secret_key, sizeof options.secret_key);
    if (rc < 0)
        return rc;
    control_set_notifier(d->control, &(struct control_notifier){.ctx = d,
                                                                .run = notification_run,
                                                                .send = notification_deliver,
                                                                .mail_command = d->config.mail_command});
    if (system_setting_stored(control_state(d->control), "mail_command"))
        NOTE(d, LEVEL_WARN, "setting.ignored", LOG_TEXT("setting", "mail_command"),
             LOG_TEXT("text", "set it only in " DAEMON_CONFIG_PATH " or the file of --config"));
    rc = control_uids_assign(d->control, &users, err);
    if (rc < 0)
        return rc;
    if (users)
        NOTE(d, LEVEL_INFO, "users.numbered", LOG_NUMBER("users", (int64_t)users),
             LOG_TEXT("text", "each now has one user number (uid) on every node; a node changes the owner of the "
                              "files when nothing of the user runs there"));
    (void)state_list(control_state(d->control), KIND_USER, &users);
    if (users == 0)
        return err_set(err, ENOENT, "the store in %s is empty; remove %s/store.db and start with --init", o->data,
                       o->data);
    return 0;
}

/* Gets the server's certificate: the administrator's, or one made for the address and the machine's name. */
static int identity_start(struct daemon *d, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    char machine[256] = "";
    const char *names[3] = {NULL, NULL, NULL};
    size_t len = 0;

    if (o->tls_cert)
        return tls_identity_read(o->tls_cert, o->tls_key, &d->identity, err);
    if (!o->tls)
        return 0;
    (void)gethostname(machine, sizeof machine - 1);
    if (machine[0])
        names[len++] = machine;
    if (!host_is_any(o->host))
        names[len++] = o->host;
    return tls_identity_ensure(o->data, names, clock_read(CLOCK_REALTIME), &d->identity, err);
}

static int server_start(struct daemon *d, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    int rc = identity_start(d, err);

    if (rc < 0)
        return rc;
    const struct server_config config = {
        .address = o->host,
        .port = o->port,
        .cert_pem = d->identity.cert_pem,
        .key_pem = d->identity.key_pem,
        .connections_max = (size_t)o->connections_max,
        .connections_per_address_max = (size_t)o->connections_per_address_max,
        .dashboard = true,
    };
    return server_new(d->loop, d->control, &config, &d->server, err);
}

static void url_make(struct str *to, bool tls, const char *host, uint16_t port)
{
    bool six = strchr(host, ':');
    str_addf(to, "%s://%s%s%s:%u", tls ? "https" : "http", six ? "[" : "", host, six ? "]" : "", port);
}

/* Adds the comma-separated names to a list that ends with NULL. */
static void names_split(char *list, const char **names, size_t *len)
{
    char *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word && *len < AGENT_NAMES_MAX; word = strtok_r(NULL, ",", &rest))
        names[(*len)++] = word;
}

/* Appends the hosts of "https://A:1,https://[B]:2", separated by commas. */
static void hosts_of(const char *addresses, struct str *to)
{
    for (const char *at = addresses; *at; at += strcspn(at, ","), at += *at == ',') {
        const char *host = strncmp(at, "https://", 8) == 0 ? at + 8 : at;
        bool bracket = *host == '[';
        host += bracket;
        str_addf(to, "%s%.*s", to->len ? "," : "", (int)strcspn(host, bracket ? "],/" : ":,/"), host);
    }
}

/* Issues a certificate of the cluster's CA for all names by which agents may reach this machine. */
static int agents_identity_start(struct daemon *d, const char *machine, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    CLEANUP(mem) char *given = mem_strdup(o->names ? o->names : "");
    CLEANUP(str) struct str told = {0};
    const char *names[AGENT_NAMES_MAX + 1] = {NULL};
    struct arena arena;
    size_t len = 0;
    int rc = tls_ca_ensure(o->data, clock_read(CLOCK_REALTIME), &d->ca, err);

    if (rc < 0)
        return rc;
    arena_init(&arena);
    hosts_of(system_setting_text(control_state(d->control), SETTING_AGENT_ADDRESSES, &arena), &told);
    arena_done(&arena);
    str_add(&told, "");
    names_split(given, names, &len);
    names_split(told.at, names, &len);
    if (*machine && len < AGENT_NAMES_MAX)
        names[len++] = machine;
    if (!host_is_any(o->agents_host) && len < AGENT_NAMES_MAX)
        names[len++] = o->agents_host;
    return tls_server_cert(&d->ca, o->data, "agents", names, clock_read(CLOCK_REALTIME), &d->agents_identity, err);
}

static int agent_sign(void *ctx, const struct agent_grant *grant, const char *request_pem, char **ret_cert_pem,
                      struct berth_err *err)
{
    const struct daemon *d = ctx;
    unsigned char stamp[TLS_SERIAL_PREFIX_BYTES];

    for (size_t i = 0; i < sizeof stamp; i++)
        stamp[i] = (unsigned char)(grant->joined >> (56 - 8 * i));
    const struct tls_client_cert_spec tls = {
        .common_name = grant->name,
        .stamp = stamp,
        .not_before_ns = grant->not_before_ns,
        .not_after_ns = grant->not_after_ns,
    };
    return tls_request_sign(&d->ca, request_pem, &tls, ret_cert_pem, err);
}

/* Starts the server for agents: it uses the same control, but also accepts client certificates of the cluster. */
static int agents_start(struct daemon *d, struct berth_err *err)
{
    const struct daemon_options *o = d->options;
    char machine[256] = "", first[256];

    if (!o->agents_host[0])
        return 0;
    (void)gethostname(machine, sizeof machine - 1);
    int rc = agents_identity_start(d, machine, err);
    if (rc < 0)
        return rc;
    const struct server_config config = {
        .address = o->agents_host,
        .port = o->agents_port,
        .cert_pem = d->agents_identity.cert_pem,
        .key_pem = d->agents_identity.key_pem,
        .client_ca_pem = d->ca.cert_pem,
        .tls13_only = true, /* all agents support it */
        .connections_max = (size_t)o->connections_max,
        .connections_per_address_max = (size_t)o->connections_per_address_max,
    };
    rc = server_new(d->loop, d->control, &config, &d->agents, err);
    if (rc < 0)
        return err_prefix(err, "--agents");
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(o->names ? o->names : "", ","), o->names ? o->names : "");
    const char *host = first[0] ? first : host_is_any(o->agents_host) ? machine : o->agents_host;
    url_make(&d->agents_url, true, *host ? host : "localhost", server_port(d->agents));
    const struct control_agents agents = {
        .ctx = d,
        .sign = agent_sign,
        .ca_pem = d->ca.cert_pem,
        .pin = d->agents_identity.pin,
        .addresses = d->agents_url.at,
    };
    control_set_agents(d->control, &agents);
    return 0;
}

static int announce(struct daemon *d, FILE *ready, struct berth_err *err)
{
    CLEANUP(str) struct str url = {0};

    url_make(&url, d->identity.cert_pem, d->options->host, server_port(d->server));
    if (d->identity.cert_pem)
        NOTE(d, LEVEL_INFO, "tls.identity", LOG_TEXT("pin", d->identity.pin));
    if (d->agents)
        NOTE(d, LEVEL_INFO, "agents.ready", LOG_TEXT("url", d->agents_url.at), LOG_TEXT("pin", d->agents_identity.pin));
    NOTE(d, LEVEL_INFO, "daemon.ready", LOG_TEXT("url", url.at), LOG_TEXT("version", berth_version()),
         LOG_NUMBER("revision", (int64_t)store_revision(d->store)));
    if (fprintf(ready, "ready %s\n", url.at) < 0 || fflush(ready) != 0)
        return err_set(err, EIO, "cannot write to standard output: %s", strerror(errno));
    (void)notify_send("READY=1");
    if (notify_watchdog_ns())
        on_watchdog_timer(d);
    return 0;
}

/* ---- the whole daemon ------------------------------------------------------------------------------------------- */

static int daemon_start(struct daemon *d, FILE *ready, struct berth_err *err)
{
    const struct control_env env = {
        .ctx = d,
        .clock_ns = env_clock,
        .steady_ns = env_steady,
        .boot_ns = env_boot,
        .random = env_random,
        .run = env_run,
        .run_slow = env_run_slow,
        .wake_at = env_wake_at,
        .serve_soon = env_serve_soon,
        .log = d->log,
    };
    int rc = daemon_config_read(d->options->config, &d->config, err);

    if (rc == 0)
        rc = loop_start(d, err);
    if (rc == 0)
        rc = store_start(d, &env, err);
    if (rc == 0)
        rc = control_start(d, &env, err);
    if (rc == 0)
        rc = server_start(d, err);
    if (rc == 0)
        rc = agents_start(d, err);
    if (rc == 0)
        rc = announce(d, ready, err);
    return rc;
}

/* Frees in reverse order. Planning ends before the planned data is freed; store_close commits what was submitted. */
static void daemon_end(struct daemon *d)
{
    server_free(d->server);
    server_free(d->agents);
    if (d->worker)
        worker_free(d->worker);
    if (d->slow)
        worker_free(d->slow);
    for (size_t i = 0; i < NOTIFICATIONS_SENDING_MAX; i++)
        if (d->notification_workers[i])
            worker_free(d->notification_workers[i]);
    if (d->control && !d->stop_ns)
        control_quiesce(d->control);
    control_free(d->control);
    daemon_config_done(&d->config);
    store_close(d->store);
    loop_free(d->loop);
    tls_identity_done(&d->identity);
    tls_identity_done(&d->agents_identity);
    tls_identity_done(&d->ca);
    str_done(&d->agents_url);
}

int daemon_run(const struct daemon_options *options, FILE *ready, const struct log *log, struct berth_err *err)
{
    struct daemon d = {.options = options, .log = log};
    int rc = daemon_start(&d, ready, err);

    if (rc == 0)
        rc = loop_run(d.loop, err);
    if (rc == 0 && !d.forced && busy(&d))
        NOTE(&d, LEVEL_WARN, "daemon.late", LOG_NUMBER("busy", (int64_t)busy(&d)),
             LOG_TEXT("text", "open connections are being closed"));
    daemon_end(&d);
    if (rc == 0)
        NOTE(&d, LEVEL_INFO, "daemon.stopped");
    if (rc == 0 && d.forced)
        return err_set(err, EINTR, "stopped by a second signal before every request was answered");
    return rc;
}
