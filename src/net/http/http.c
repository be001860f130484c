/* http.c - lifetime of the HTTP server and its integration in the event loop. */
#include "net/http/http.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "net/http/http_inner.h"

enum {
    CONNECTIONS_MAX = 16384,
    HEADER_BYTES_MAX = 8192,
    HEADER_BYTES_MIN = 1024,
    DESCRIPTORS_SPARE = 128, /* for descriptors other than connections: files, databases, other listeners */
    ANSWER_SHARES = 3,       /* parts of request_ns_max that a reader may make no progress */
    BUSY_RUNS_MAX = 32,
    RESTLESS_PAUSE_NS = 1000000,
    RESTLESS_PAUSE_EACH_NS = 20000,
};

/* ---- libmicrohttpd in the event loop ---------------------------------------------------------------------------- */

/* Returns when libmicrohttpd must run again without an event. During a TLS handshake libmicrohttpd asks for this
 * continuously, and a peer may stop in the middle of a handshake. After some consecutive runs the server therefore
 * inserts pauses, which grow with the number of connections that may be in a handshake. Data from the peer is an event
 * and ends the pause. */
static int64_t next_run_ns(struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    int64_t now = loop_now_ns(s->loop);

    if (s->resumed)
        return now;
    if (MHD_get_timeout(s->mhd, &ms) != MHD_YES || ms > 0) {
        s->busy_runs = 0;
        return ms > 0 ? now + (int64_t)ms * NS_PER_MS : INT64_MAX;
    }
    if (!s->tls || !s->conns_without_request || s->busy_runs < BUSY_RUNS_MAX) {
        s->busy_runs++;
        return now;
    }
    return now + RESTLESS_PAUSE_NS + (int64_t)s->conns_without_request * RESTLESS_PAUSE_EACH_NS;
}

static void server_run(struct http_server *s)
{
    assert(!s->running);
    s->running = true;
    s->resumed = false;
    (void)MHD_run(s->mhd);
    s->running = false;
    loop_timer_set(s->run_timer, next_run_ns(s));
}

static void run_timer_expired(void *ctx)
{
    server_run(ctx);
}

static void mhd_ready(void *ctx, uint32_t events)
{
    (void)events;
    server_run(ctx);
}

void server_wake(struct http_server *s)
{
    if (s->running)
        s->resumed = true;
    else if (!s->stopping)
        loop_timer_set(s->run_timer, 0);
}

/* Disables decoding in libmicrohttpd: net/http/target.c decodes targets from the bytes that the client sent. */
static size_t unescape_disabled(void *ctx, struct MHD_Connection *mhd, char *text)
{
    (void)ctx;
    (void)mhd;
    return strlen(text);
}

/* ---- start ------------------------------------------------------------------------------------------------------ */

static struct MHD_Daemon *daemon_start(struct http_server *s, const struct http_config *config)
{
    const unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
    const char *priorities =
        config->tls13_only ? "NORMAL:-VERS-ALL:+VERS-TLS1.3" : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT,                                           0, (void *)config->cert_pem     },
        {MHD_OPTION_HTTPS_MEM_KEY,                                            0, (void *)config->key_pem      },
        {MHD_OPTION_HTTPS_PRIORITIES,                                         0, (void *)priorities           },
        {config->client_ca_pem ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, (void *)config->client_ca_pem},
        {MHD_OPTION_END,                                                      0, NULL                         },
    };
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_CONNECTION_LIMIT,                (intptr_t)s->connections_max + 1, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT,         (intptr_t)s->header_bytes_max,    NULL},
        {MHD_OPTION_NOTIFY_CONNECTION,               (intptr_t)conn_notify,            s   },
        {MHD_OPTION_NOTIFY_COMPLETED,                (intptr_t)request_completed,      s   },
        {MHD_OPTION_URI_LOG_CALLBACK,                (intptr_t)request_line,           s   },
#if MHD_VERSION >= 0x00097701
        {MHD_OPTION_CLIENT_DISCIPLINE_LVL,           2,                                NULL},
#endif
        {MHD_OPTION_UNESCAPE_CALLBACK,               (intptr_t)unescape_disabled,      NULL},
        {s->tls ? MHD_OPTION_ARRAY : MHD_OPTION_END, 0,                                tls },
        {MHD_OPTION_END,                             0,                                NULL},
    };
    return MHD_start_daemon(s->tls ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, request_step, s, MHD_OPTION_ARRAY,
                            options, MHD_OPTION_END);
}

/* Raises the soft limit of descriptors as far as needed and allowed, and lowers connections_max to the available
 * number. */
static void descriptors_reserve(struct http_server *s)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t want = s->connections_max + DESCRIPTORS_SPARE;
    if (limit.rlim_cur < want) {
        rlim_t soft = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            limit.rlim_cur = soft;
    }
    if (limit.rlim_cur < want)
        s->connections_max = limit.rlim_cur > 2 * DESCRIPTORS_SPARE ? limit.rlim_cur - DESCRIPTORS_SPARE : 16;
}

static void config_apply(struct http_server *s, const struct http_config *config)
{
    s->admit = config->admit;
    s->handle = config->handle;
    s->ctx = config->ctx;
    s->tls = config->cert_pem != NULL;
    s->connections_max = config->connections_max ? config->connections_max : CONNECTIONS_MAX;
    s->connections_per_address_max = config->connections_per_address_max;
    s->length_required = config->length_required;
    s->connections_per_user_max = config->connections_per_user_max;
    s->bytes_per_address_max = config->bytes_per_address_max;
    s->bytes_per_user_max = config->bytes_per_user_max;
    s->header_bytes_max = config->header_bytes_max ? config->header_bytes_max : HEADER_BYTES_MAX;
    if (s->header_bytes_max < HEADER_BYTES_MIN)
        s->header_bytes_max = HEADER_BYTES_MIN;
    s->request_ns_max = config->request_ns_max ? config->request_ns_max : 10 * NS_PER_S;
    s->idle_ns_max = config->idle_ns_max ? config->idle_ns_max : 60 * NS_PER_S;
    s->answer_ns_max = ANSWER_SHARES * s->request_ns_max;
}

int http_server_new(struct loop *l, const struct http_config *config, struct http_server **ret, struct berth_err *err)
{
    struct http_server *s = mem_zalloc(sizeof *s);

    assert(config->admit && config->handle && !config->cert_pem == !config->key_pem);
    s->loop = l;
    s->listen_fd = -1;
    s->deadline_next_ns = INT64_MAX;
    config_apply(s, config);
    descriptors_reserve(s);
    (void)!getrandom(&s->peer_seed, sizeof s->peer_seed, 0);
    s->run_timer = loop_timer_new(l, run_timer_expired, s);
    s->deadline_timer = loop_timer_new(l, deadlines_expire, s);
    s->accept_timer = loop_timer_new(l, listen_retry, s);
    s->mhd = daemon_start(s, config);
    int rc = 0;
    if (!s->mhd) {
        rc = err_set(err, EINVAL,
                     s->tls ? "cannot start the HTTP server: is the certificate's file complete?"
                            : "cannot start the HTTP server: no descriptors or memory left");
    } else {
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
        rc = loop_watch_fd(l, info->epoll_fd, EPOLLIN, mhd_ready, s, &s->mhd_source, err);
    }
    if (rc == 0)
        rc = listen_open(s, config->address, config->port, err);
    if (rc < 0) {
        http_server_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

/* ---- stop ------------------------------------------------------------------------------------------------------- */

void http_server_quiesce(struct http_server *s)
{
    s->quiesced = true;
    listen_close(s);
    for (struct conn *c = s->deadlines[DEADLINE_IDLE].first, *next; c; c = next) {
        next = c->next;
        deadline_drop(c);
        conn_shutdown(c);
    }
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    assert(!s->running);
    s->stopping = true;
    listen_close(s);
    /* libmicrohttpd requires that every connection is resumed before the stop. Stopping the connections ends their
     * exchanges. */
    for (struct http_request *x = s->requests_list; x; x = x->next)
        if (x->suspended)
            request_resume(x);
    loop_source_free(s->mhd_source);
    if (s->mhd)
        MHD_stop_daemon(s->mhd);
    while (s->deadlines[DEADLINE_LINGER].first)
        conn_free(s->deadlines[DEADLINE_LINGER].first);
    loop_source_free(s->run_timer);
    loop_source_free(s->deadline_timer);
    loop_source_free(s->accept_timer);
    assert(!s->requests_list && s->stats.connections == 0);
    peers_done(s);
    mem_free(s);
}

size_t http_server_busy(const struct http_server *s)
{
    return s->busy;
}

struct http_server_stats http_server_stats(const struct http_server *s)
{
    return s->stats;
}
