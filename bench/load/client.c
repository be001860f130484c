#include "bench/load/client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/lib/cli.h"

enum { EVENTS_MAX = 256, READ_BYTES = 64 * 1024 };

struct bench_conn {
    int fd; /* -1: the server closed the connection between two answers */
    bool busy, writing;
    size_t sent; /* bytes of the request sent */
    int64_t began_ns;
    struct str request;
    struct bench_answer answer;
};

struct bench_fleet {
    const struct bench_server *server;
    struct bench_conn *conns;
    size_t len, busy;
    int epoll_fd;
    bool stopped;
    VEC(size_t) woken;
    const struct bench_fleet_calls *calls; /* of the current run */
    void *ctx;
    char *buf;
};

void bench_request(struct str *to, const struct bench_server *server, const char *method, const char *path,
                   const char *headers, const char *body)
{
    char host[INET_ADDRSTRLEN];

    (void)inet_ntop(AF_INET, &server->address.sin_addr, host, sizeof host);
    str_addf(to, "%s %s HTTP/1.1\r\nHost: %s:%u\r\n", method, path, host, ntohs(server->address.sin_port));
    if (server->token)
        str_addf(to, "Authorization: Bearer %s\r\n", server->token);
    if (headers)
        str_add(to, headers);
    if (body)
        str_addf(to, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        str_add(to, "\r\n");
}

/* ---- one connection --------------------------------------------------------------------------------------------- */

static int conn_open(struct bench_fleet *f, size_t i, struct berth_err *err)
{
    struct bench_conn *c = &f->conns[i];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    const int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return err_set(err, errno, "cannot open connection %zu: %s; raise the limit of open files", i + 1,
                       strerror(errno));
    /* A blocking connect is fine: it ends at once on the same machine, and the run has not begun. */
    if (connect(c->fd, (const struct sockaddr *)&f->server->address, sizeof f->server->address) < 0 ||
        fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0 || setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
        epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) < 0)
        return err_set(err, errno, "cannot connect for the %zuth time: %s", i + 1, strerror(errno));
    return 0;
}

static void conn_close(struct bench_conn *c)
{
    if (c->fd >= 0)
        (void)close(c->fd); /* also removes it from the epoll set */
    c->fd = -1;
    c->writing = false;
}

static void conn_listen(struct bench_fleet *f, size_t i, bool writing)
{
    struct bench_conn *c = &f->conns[i];
    struct epoll_event event = {.events = writing ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.u64 = i};

    if (c->writing == writing)
        return;
    c->writing = writing;
    (void)epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static int conn_write(struct bench_fleet *f, size_t i, struct berth_err *err)
{
    struct bench_conn *c = &f->conns[i];

    while (c->sent < c->request.len) {
        ssize_t n = send(c->fd, c->request.at + c->sent, c->request.len - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR)
            return err_set(err, errno, "cannot send on connection %zu: %s", i + 1, strerror(errno));
        if (n > 0)
            c->sent += (size_t)n;
    }
    conn_listen(f, i, c->sent < c->request.len);
    return 0;
}

static int conn_send_request(struct bench_fleet *f, size_t i, struct berth_err *err)
{
    struct bench_conn *c = &f->conns[i];

    assert(!c->busy);
    str_clear(&c->request);
    if (f->stopped || !f->calls->next(f->ctx, i, &c->request))
        return 0;
    if (c->fd < 0) {
        int rc = conn_open(f, i, err);
        if (rc < 0)
            return rc;
    }
    c->busy = true;
    f->busy++;
    c->sent = 0;
    c->began_ns = cli_clock_ns();
    return conn_write(f, i, err);
}

static int conn_answered(struct bench_fleet *f, size_t i, struct berth_err *err)
{
    struct bench_conn *c = &f->conns[i];
    bool closes = c->answer.closes;

    c->busy = false;
    f->busy--;
    f->calls->answered(f->ctx, i, &c->answer, cli_clock_ns() - c->began_ns);
    bench_answer_reset(&c->answer);
    if (closes)
        conn_close(c);
    return conn_send_request(f, i, err);
}

static int conn_received(struct bench_fleet *f, size_t i, size_t len, struct berth_err *err)
{
    struct bench_conn *c = &f->conns[i];

    if (!c->busy)
        return err_set(err, EPROTO, "the server sent unexpected data on connection %zu", i + 1);
    bool before = c->answer.at <= ANSWER_HEADER;
    ssize_t n = bench_answer_feed(&c->answer, f->buf, len, err);
    if (n < 0)
        return (int)n;
    if (f->calls->begun && before && c->answer.at > ANSWER_HEADER)
        f->calls->begun(f->ctx, i, &c->answer);
    if (f->calls->piece && c->answer.body.len && f->calls->piece(f->ctx, i, c->answer.body.at, c->answer.body.len))
        str_clear(&c->answer.body);
    if (c->answer.at != ANSWER_COMPLETE)
        return 0;
    if ((size_t)n < len)
        return err_set(err, EPROTO, "the server sent unexpected data on connection %zu", i + 1);
    return conn_answered(f, i, err);
}

static int conn_read(struct bench_fleet *f, size_t i, struct berth_err *err)
{
    struct bench_conn *c = &f->conns[i];
    ssize_t n = recv(c->fd, f->buf, READ_BYTES, 0);

    if (n > 0)
        return conn_received(f, i, (size_t)n, err);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    int code = n < 0 ? errno : ECONNRESET;
    conn_close(c);
    if (!c->busy)
        return 0;
    if (bench_answer_ended(&c->answer))
        return conn_answered(f, i, err);
    return err_set(err, code, "the server closed connection %zu before its response was complete", i + 1);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

int bench_fleet_new(const struct bench_server *server, size_t len, struct bench_fleet **ret, struct berth_err *err)
{
    CLEANUP(bench_fleet) struct bench_fleet *f = mem_zalloc(sizeof *f);

    f->server = server;
    f->conns = mem_zarray(len, sizeof *f->conns);
    f->len = len;
    f->buf = mem_alloc(READ_BYTES);
    for (size_t i = 0; i < len; i++)
        f->conns[i].fd = -1;
    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (f->epoll_fd < 0)
        return err_set(err, errno, "cannot wait for connections: %s", strerror(errno));
    for (size_t i = 0; i < len; i++) {
        int rc = conn_open(f, i, err);
        if (rc < 0)
            return rc;
    }
    *ret = take_ptr(&f);
    return 0;
}

void bench_fleet_free(struct bench_fleet *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->len; i++) {
        conn_close(&f->conns[i]);
        str_done(&f->conns[i].request);
        bench_answer_done(&f->conns[i].answer);
    }
    if (f->epoll_fd >= 0)
        (void)close(f->epoll_fd);
    vec_done(&f->woken);
    mem_free(f->conns);
    mem_free(f->buf);
    mem_free(f);
}

void bench_fleet_wake(struct bench_fleet *f, size_t i)
{
    vec_push(&f->woken, i);
}

void bench_fleet_stop(struct bench_fleet *f)
{
    f->stopped = true;
}

static int send_wakeup(struct bench_fleet *f, struct berth_err *err)
{
    for (size_t i = 0; i < f->woken.len; i++) {
        int rc = f->conns[f->woken.at[i]].busy ? 0 : conn_send_request(f, f->woken.at[i], err);
        if (rc < 0)
            return rc;
    }
    f->woken.len = 0;
    return 0;
}

/* Handles one round of epoll events, at most until `end_ns`. */
static int fleet_round(struct bench_fleet *f, int64_t end_ns, struct berth_err *err)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t left_ns = end_ns - cli_clock_ns();

    if (left_ns <= 0)
        return err_set(err, ETIMEDOUT, "the server does not respond: %zu of %zu connections wait", f->busy, f->len);
    int n = epoll_wait(f->epoll_fd, events, EVENTS_MAX, (int)(left_ns / 1000000) + 1);
    if (n < 0 && errno != EINTR)
        return err_set(err, errno, "cannot wait for connections: %s", strerror(errno));
    for (int e = 0; e < n && !f->stopped; e++) {
        size_t i = (size_t)events[e].data.u64;
        int rc = 0;
        if (events[e].events & EPOLLOUT)
            rc = conn_write(f, i, err);
        if (rc == 0 && events[e].events & ~(uint32_t)EPOLLOUT)
            rc = conn_read(f, i, err);
        if (rc < 0)
            return rc;
    }
    return send_wakeup(f, err);
}

int bench_fleet_run(struct bench_fleet *f, const struct bench_fleet_calls *calls, void *ctx, int64_t patience_ns,
                    struct berth_err *err)
{
    int64_t end_ns = cli_clock_ns() + patience_ns;
    int rc = 0;

    f->calls = calls;
    f->ctx = ctx;
    f->stopped = false;
    for (size_t i = 0; rc == 0 && i < f->len && !f->stopped; i++)
        if (!f->conns[i].busy)
            rc = conn_send_request(f, i, err);
    while (rc == 0 && f->busy && !f->stopped)
        rc = fleet_round(f, end_ns, err);
    return rc;
}
