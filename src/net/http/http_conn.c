/* http_conn.c - accepts and closes connections.
 *
 * The server accepts connections itself, not libmicrohttpd. A connection above a bound then gets an answer, and running
 * out of descriptors leads to a pause instead of a busy loop.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "net/http/http_inner.h"

enum {
    BACKLOG = 4096,
    ACCEPTS_PER_ROUND = 128,
    SAID_MAX = 512,
    LINGER_BYTES_MAX = 16 << 20,
    KEEPALIVE_IDLE_S = 60,
    KERNEL_UNSENT_BYTES_MAX =
        /* unsent bytes in the kernel for a client that does not read; further bytes stay in the server, which counts
         * them */
    128 << 10,
    KEEPALIVE_EVERY_S = 15,
};
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS)

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static bool peer_same(const void *ctx, uint32_t value, const void *key)
{
    const struct http_server *s = ctx;
    return strcmp(s->peers.at[value]->remote, key) == 0;
}

static uint64_t peer_hash(const struct http_server *s, const char *remote)
{
    return hash_bytes(remote, strlen(remote), s->peer_seed);
}

/* Formats the address; an IPv4 address on an IPv6 socket is written as IPv4. */
static void remote_text(const struct sockaddr_storage *from, char to[static INET6_ADDRSTRLEN])
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    const struct sockaddr_in *four = (const struct sockaddr_in *)from;
    const void *at = from->ss_family == AF_INET6 ? (const void *)&six->sin6_addr : (const void *)&four->sin_addr;
    int family = from->ss_family;

    if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        at = &six->sin6_addr.s6_addr[12];
        family = AF_INET;
    }
    if (!inet_ntop(family, at, to, INET6_ADDRSTRLEN))
        to[0] = '\0';
}

struct peer *peer_ref(struct http_server *s, const char *remote)
{
    uint64_t hash = peer_hash(s, remote);
    uint32_t index = map_find(&s->peer_map, hash, peer_same, s, remote);
    if (index == MAP_NONE) {
        size_t len = strlen(remote);
        struct peer *p = mem_zalloc(sizeof *p + len + 1);
        if (s->peers_unused.len) {
            index = s->peers_unused.at[--s->peers_unused.len];
        } else {
            index = (uint32_t)s->peers.len;
            vec_push(&s->peers, NULL);
        }
        p->index = index;
        memcpy(p->remote, remote, len + 1);
        s->peers.at[index] = p;
        map_add(&s->peer_map, hash, index);
    }
    s->peers.at[index]->conns++;
    return s->peers.at[index];
}

void peer_unref(struct http_server *s, struct peer *p)
{
    assert(p->conns > 0);
    if (--p->conns)
        return;
    assert(p->bytes == 0 && p->trusted == 0);
    map_drop(&s->peer_map, peer_hash(s, p->remote), p->index);
    s->peers.at[p->index] = NULL;
    vec_push(&s->peers_unused, p->index);
    mem_free(p);
}

void peers_done(struct http_server *s)
{
    map_done(&s->peer_map);
    vec_done(&s->peers);
    vec_done(&s->peers_unused);
}

/* ---- accepting -------------------------------------------------------------------------------------------------- */

/* Sends an error and closes the socket. The answer occupies a few hundred bytes in the kernel. */
static void refuse_connection(struct http_server *s, int fd, unsigned status, const char *text)
{
    struct conn c = {.server = s, .fd = fd};
    s->stats.refused++;
    conn_send_error(&c, status, text);
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd);
}

static void conn_add(struct http_server *s, int fd, const struct sockaddr_storage *from, socklen_t from_len)
{
    char remote[INET6_ADDRSTRLEN];

    s->stats.accepted++;
    if (s->stats.connections >= s->connections_max) {
        refuse_connection(s, fd, MHD_HTTP_SERVICE_UNAVAILABLE, "too many connections; try again later");
        return;
    }
    remote_text(from, remote);
    struct peer *p = peer_ref(s, remote);
    if (s->connections_per_address_max && p->conns - p->trusted > s->connections_per_address_max) {
        peer_unref(s, p);
        refuse_connection(s, fd, MHD_HTTP_TOO_MANY_REQUESTS, "too many connections from this address; try again later");
        return;
    }
    struct conn *c = mem_zalloc(sizeof *c);
    c->server = s;
    c->fd = fd;
    c->peer = p;
    s->stats.connections++;
    s->conns_without_request++;
    deadline_set(c, DEADLINE_REQUEST);
    s->conn_being_added = c;
    (void)MHD_add_connection(s->mhd, fd, (const struct sockaddr *)from, from_len); /* closes fd on failure */
    if (s->conn_being_added) { /* conn_notify was not called: libmicrohttpd rejected the connection */
        s->conn_being_added = NULL;
        s->stats.refused++;
        conn_free(c);
    }
}

static void listen_ready(void *ctx, uint32_t events)
{
    struct http_server *s = ctx;
    struct sockaddr_storage from = {0};

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        socklen_t from_len = sizeof from;
        int fd = accept4(s->listen_fd, (struct sockaddr *)&from, &from_len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            conn_add(s, fd, &from, from_len);
            continue;
        }
        if (errno == EAGAIN)
            break;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            loop_set_events(s->listen_source, 0);
            loop_timer_set(s->accept_timer, loop_now_ns(s->loop) + ACCEPT_PAUSE_NS);
            break;
        }
    }
}

void listen_retry(void *ctx)
{
    struct http_server *s = ctx;
    if (s->listen_source)
        loop_set_events(s->listen_source, EPOLLIN);
}

static bool address_parse(const char *address, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        *ret_len = sizeof *four;
        return true;
    }
    if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        *ret_len = sizeof *six;
        return true;
    }
    return false;
}

/* Sets socket options, which connections inherit. With them the kernel detects a peer that vanished. */
static void listen_options(const struct http_server *s, int fd)
{
    const int on = 1, idle = KEEPALIVE_IDLE_S, every = KEEPALIVE_EVERY_S, unsent = KERNEL_UNSENT_BYTES_MAX;
    int64_t ms = s->answer_ns_max / NS_PER_MS;
    const unsigned unread = ms > INT32_MAX ? INT32_MAX : ms < 1000 ? 1000 : (unsigned)ms;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unread, sizeof unread);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent); /* inherited by connections */
}

static int listen_error(const char *address, uint16_t port, struct berth_err *err)
{
    const char *hint = errno == EADDRINUSE      ? "; another program uses this port"
                       : errno == EADDRNOTAVAIL ? "; no interface of this machine has this address"
                       : errno == EACCES        ? "; ports below 1024 need CAP_NET_BIND_SERVICE"
                                                : "";
    return err_set(err, errno, "cannot listen on %s port %u: %s%s", address, port, strerror(errno), hint);
}

int listen_open(struct http_server *s, const char *address, uint16_t port, struct berth_err *err)
{
    struct sockaddr_storage at;
    socklen_t len;

    if (!address_parse(address, port, &at, &len))
        return err_set(err, EINVAL, "cannot listen on '%s': not a numeric address such as 127.0.0.1 or ::", address);
    s->listen_fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listen_fd < 0)
        return listen_error(address, port, err);
    listen_options(s, s->listen_fd);
    if (bind(s->listen_fd, (struct sockaddr *)&at, len) < 0 || listen(s->listen_fd, BACKLOG) < 0 ||
        getsockname(s->listen_fd, (struct sockaddr *)&at, &len) < 0)
        return listen_error(address, port, err);
    /* IPv4 and IPv6 addresses have the port at the same offset. */
    s->port = ntohs(((struct sockaddr_in *)&at)->sin_port);
    return loop_watch_fd(s->loop, s->listen_fd, EPOLLIN, listen_ready, s, &s->listen_source, err);
}

void listen_close(struct http_server *s)
{
    loop_source_free(s->listen_source);
    s->listen_source = NULL;
    if (s->listen_fd >= 0)
        (void)close(s->listen_fd);
    s->listen_fd = -1;
}

/* ---- closing ---------------------------------------------------------------------------------------------------- */

void conn_send_error(struct conn *c, unsigned status, const char *text)
{
    char said[SAID_MAX];
    const char *retry =
        status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_TOO_MANY_REQUESTS ? "Retry-After: 1\r\n" : "";
    int len = snprintf(said, sizeof said,
                       "HTTP/1.1 %u %s\r\n"
                       "Connection: close\r\n"
                       "Content-Type: text/plain; charset=utf-8\r\n"
                       "Content-Length: %zu\r\n"
                       "Cache-Control: no-store\r\n"
                       "X-Content-Type-Options: nosniff\r\n"
                       "%s\r\n%s\n",
                       status, MHD_get_reason_phrase_for(status), strlen(text) + 1, retry, text);
    assert(len > 0 && (size_t)len < sizeof said);
    if (!c->server->tls) {
        (void)send(c->fd, said, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (c->request) { /* a request has begun, so the TLS handshake is complete */
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (info)
            (void)gnutls_record_send(info->tls_session, said, (size_t)len);
    }
}

void conn_force_processing(struct conn *c)
{
    struct http_server *s = c->server;
    if (s->stopping)
        return;
    (void)MHD_set_connection_option(c->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
    server_wake(s);
}

void conn_shutdown(struct conn *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
    conn_force_processing(c);
}

void conn_free(struct conn *c)
{
    struct http_server *s = c->server;
    assert(!c->request);
    deadline_drop(c);
    loop_source_free(c->watch);
    if (!c->mhd && c->linger)
        (void)close(c->fd);
    c->peer->trusted -= c->trusted;
    peer_unref(s, c->peer);
    if (c->user)
        peer_unref(s, c->user);
    s->stats.connections--;
    s->conns_without_request -= !c->known;
    mem_free(c->shown.name);
    mem_free(c);
}

/* Reads and discards data. Closing a socket with unread data resets the connection, and the client may then lose the
 * answer that is still in transit. */
static void linger_ready(void *ctx, uint32_t events)
{
    struct conn *c = ctx;
    char waste[16384];
    ssize_t n = -1;

    (void)events;
    for (int i = 0; i < 16 && (n = recv(c->fd, waste, sizeof waste, MSG_DONTWAIT)) > 0; i++)
        c->progress_bytes += (uint64_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN) || c->progress_bytes > LINGER_BYTES_MAX)
        conn_free(c);
}

/* Keeps a duplicate of the socket open after libmicrohttpd closes its own. Returns false if there is no descriptor. */
static bool linger(struct conn *c)
{
    int copy = c->server->stopping ? -1 : fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return false;
    loop_source_free(c->watch);
    c->watch = NULL;
    c->fd = copy;
    c->mhd = NULL;
    c->progress_bytes = 0;
    (void)shutdown(copy, SHUT_WR);
    deadline_set(c, DEADLINE_LINGER);
    if (loop_watch_fd(c->server->loop, copy, EPOLLIN | EPOLLRDHUP, linger_ready, c, &c->watch, NULL) < 0)
        conn_free(c);
    return true;
}

void conn_notify(void *ctx, struct MHD_Connection *mhd, void **conn, enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = ctx;
    struct conn *c = *conn;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = s->conn_being_added;
        s->conn_being_added = NULL;
        c->mhd = mhd;
        *conn = c;
        return;
    }
    *conn = NULL;
    if (!c->linger || !linger(c)) {
        c->linger = false;
        conn_free(c);
    }
}
