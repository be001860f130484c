/* health.c - runs health checks and counts their results.
 *
 * A check is open from its start to answer(). The timer has two uses: it ends an open check at its timeout, or starts
 * the next one. The verdict callback may free the object, so it is called last.
 */
#include "machine/health/health.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/health/health_parts.h"

enum { STATUS_LINE_MAX = 64, TEXT_MAX = 160 };
enum health_result { VERDICT_NONE, VERDICT_READY, VERDICT_NOT };

struct health {
    struct loop *loop;
    struct loop_source *timer, *source; /* source: of the socket */
    struct health_config config;        /* `check` is NULL */
    struct health_plan plan;
    enum health_result verdict;
    int64_t failed; /* consecutive failures */
    int64_t asked_ns;
    bool open;
    /* fields of the open check */
    int fd;
    void *run;
    bool connected;
    struct str out; /* request */
    size_t sent, heard_len;
    char heard[STATUS_LINE_MAX];
};

/* ---- results ---------------------------------------------------------------------------------------------------- */

static void check_close(struct health *h)
{
    loop_source_free(take_ptr(&h->source));
    if (h->fd >= 0)
        (void)close(h->fd);
    h->fd = -1;
    if (h->run)
        h->config.exec_cancel(h->config.ctx, take_ptr(&h->run));
    h->open = false;
}

/* Ends the check. `wrong`: the failure; NULL: success. */
static void answer(struct health *h, const char *wrong)
{
    check_close(h);
    int64_t next_ns = h->asked_ns + h->plan.every_ns, now_ns = loop_now_ns(h->loop);
    loop_timer_set(h->timer, next_ns > now_ns ? next_ns : now_ns);
    h->failed = wrong ? h->failed + 1 : 0;
    enum health_result verdict = !wrong ? VERDICT_READY : h->failed >= h->plan.failures ? VERDICT_NOT : h->verdict;
    if (verdict == h->verdict)
        return;
    h->verdict = verdict;
    h->config.verdict(h->config.ctx, verdict == VERDICT_READY, wrong);
}

__attribute__((format(printf, 2, 3))) static void check_failed(struct health *h, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    answer(h, text);
}

/* ---- exec check ------------------------------------------------------------------------------------------------- */

static void exec_done(void *arg, int exit)
{
    struct health *h = arg;
    h->run = NULL;
    if (exit == 0)
        answer(h, NULL);
    else if (exit < 0)
        check_failed(h, "%s could not be run", h->plan.argv[0]);
    else
        check_failed(h, "%s failed with exit code %d", h->plan.argv[0], exit);
}

static void exec_check_start(struct health *h)
{
    h->run = h->config.exec(h->config.ctx, (const char *const *)h->plan.argv, h->plan.timeout_ns, exec_done, h);
    if (!h->run)
        check_failed(h, "%s could not be run", h->plan.argv[0]);
}

/* ---- http and tcp checks ---------------------------------------------------------------------------------------- */

static const char *kind_name(const struct health *h)
{
    return h->plan.kind == HEALTH_HTTP ? "http" : "tcp";
}

/* Sends the rest of the request; false: the check has failed and ended. */
static bool request_send(struct health *h)
{
    while (h->sent < h->out.len) {
        ssize_t n = send(h->fd, h->out.at + h->sent, h->out.len - h->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n < 0) {
            check_failed(h, "http: the request could not be sent: %s", strerror(errno));
            return false;
        }
        h->sent += (size_t)n;
    }
    loop_set_events(h->source, EPOLLIN);
    return true;
}

/* Parses a status line such as "HTTP/1.1 200 OK"; -1: invalid. */
static int status_of(const char *line)
{
    if (strncmp(line, "HTTP/1.", 7) != 0 || !line[7] || line[8] != ' ')
        return -1;
    int status = 0;
    for (int i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9')
            return -1;
        status = status * 10 + (line[i] - '0');
    }
    return line[12] == ' ' || line[12] == '\r' || line[12] == '\0' ? status : -1;
}

static void response_read(struct health *h)
{
    ssize_t n = recv(h->fd, h->heard + h->heard_len, sizeof h->heard - 1 - h->heard_len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        check_failed(h, "http: %s", strerror(errno));
        return;
    }
    h->heard_len += (size_t)n;
    h->heard[h->heard_len] = '\0';
    char *end = strchr(h->heard, '\n');
    if (!end && n > 0 && h->heard_len < sizeof h->heard - 1)
        return;
    if (end)
        *end = '\0';
    /* the status is at the start of a line that is too long for the buffer */
    int status = end || n > 0 ? status_of(h->heard) : -1;
    if (status < 0)
        check_failed(h, n == 0 && h->heard_len == 0 ? "http: the connection was closed without a response"
                                                    : "http: the response is not HTTP");
    else if (status < 200 || status > 399)
        check_failed(h, "http: GET %s returned %d", h->plan.path, status);
    else
        answer(h, NULL);
}

static void socket_ready(void *ctx, uint32_t events)
{
    struct health *h = ctx;
    if (!h->connected) {
        int error = 0;
        socklen_t len = sizeof error;
        if (getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
            error = errno;
        if (error) {
            check_failed(h, "%s: %s", kind_name(h), strerror(error));
            return;
        }
        if (h->plan.kind == HEALTH_TCP) {
            answer(h, NULL);
            return;
        }
        h->connected = true;
    }
    if (events & EPOLLOUT && h->sent < h->out.len && !request_send(h))
        return;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        response_read(h);
}

static void connection_check_start(struct health *h)
{
    uint16_t port = h->config.port(h->config.ctx, h->plan.endpoint);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (!port) {
        check_failed(h, "%s: the endpoint %.64s has no port", kind_name(h), h->plan.endpoint);
        return;
    }
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    h->connected = false;
    h->sent = h->heard_len = 0;
    str_clear(&h->out);
    if (h->plan.kind == HEALTH_HTTP)
        str_addf(&h->out,
                 "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: berth-health\r\nConnection: close\r\n\r\n",
                 h->plan.path, port);
    h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = h->fd < 0 ? -errno : 0;
    if (rc == 0 && connect(h->fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        rc = -errno;
    if (rc == 0)
        rc = loop_watch_fd(h->loop, h->fd, EPOLLOUT, socket_ready, h, &h->source, NULL);
    if (rc < 0)
        check_failed(h, "%s: %s", kind_name(h), strerror(-rc));
}

/* ---- timer ------------------------------------------------------------------------------------------------------ */

static void on_timer(void *ctx)
{
    struct health *h = ctx;
    if (h->open) {
        check_failed(h, "no response within %lld ms", (long long)(h->plan.timeout_ns / 1000000));
        return;
    }
    h->open = true;
    h->asked_ns = loop_now_ns(h->loop);
    loop_timer_set(h->timer, h->asked_ns + h->plan.timeout_ns);
    if (h->plan.kind == HEALTH_EXEC)
        exec_check_start(h);
    else
        connection_check_start(h);
}

int health_new(struct loop *loop, const struct health_config *config, struct health **ret, struct berth_err *err)
{
    struct health_plan plan;
    int rc = health_plan_read(config->check, &plan, err);
    if (rc < 0)
        return rc;
    struct health *h = mem_zalloc(sizeof *h);
    h->loop = loop;
    h->config = *config;
    h->config.check = NULL;
    h->plan = plan;
    h->fd = -1;
    h->timer = loop_timer_new(loop, on_timer, h);
    loop_timer_set(h->timer, loop_now_ns(loop) + plan.delay_ns);
    *ret = h;
    return 0;
}

void health_free(struct health *h)
{
    if (!h)
        return;
    check_close(h);
    loop_source_free(h->timer);
    str_done(&h->out);
    health_plan_done(&h->plan);
    mem_free(h);
}
