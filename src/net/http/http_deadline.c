/* http_deadline.c - deadlines of connections.
 *
 * The timeout of libmicrohttpd starts again with every byte, so a client that sends one byte every few seconds defeats
 * it. Here a deadline is set once for each phase of a connection. All deadlines of one kind have the same length, so
 * each kind has a list that stays ordered by appending. Setting a deadline is O(1).
 */
#include <assert.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "net/http/http_inner.h"

/* Bytes that a client must read during one deadline to get another one. */
enum { READ_BYTES_MIN = 64 << 10 };

void deadline_drop(struct conn *c)
{
    struct conn_list *list = &c->server->deadlines[c->deadline];
    if (c->deadline == DEADLINE_NONE)
        return;
    *(c->prev ? &c->prev->next : &list->first) = c->next;
    *(c->next ? &c->next->prev : &list->last) = c->prev;
    c->prev = c->next = NULL;
    c->deadline = DEADLINE_NONE;
}

static int64_t length_ns(const struct http_server *s, enum deadline deadline)
{
    switch (deadline) {
    case DEADLINE_REQUEST:
    case DEADLINE_LINGER: return s->request_ns_max;
    case DEADLINE_IDLE: return s->idle_ns_max;
    case DEADLINE_ANSWER: return s->answer_ns_max;
    case DEADLINE_NONE:
    case DEADLINES: break;
    }
    return INT64_MAX;
}

/* Returns the bytes that the peer's kernel has acknowledged since the connection began. */
static uint64_t acked_bytes(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    memset(&info, 0, sizeof info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_bytes_acked : 0;
}

void deadline_set(struct conn *c, enum deadline deadline)
{
    struct http_server *s = c->server;
    struct conn_list *list = &s->deadlines[deadline];

    deadline_drop(c);
    if (__builtin_add_overflow(loop_now_ns(s->loop), length_ns(s, deadline), &c->deadline_ns))
        c->deadline_ns = INT64_MAX;
    assert(!list->last || list->last->deadline_ns <= c->deadline_ns);
    c->deadline = deadline;
    c->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = c;
    list->last = c;
    if (c->deadline_ns < s->deadline_next_ns) {
        s->deadline_next_ns = c->deadline_ns;
        loop_timer_set(s->deadline_timer, c->deadline_ns);
    }
}

static void deadline_expire(struct conn *c)
{
    struct http_server *s = c->server;
    enum deadline deadline = c->deadline;

    if (deadline == DEADLINE_ANSWER) {
        uint64_t acked = acked_bytes(c->fd), before = c->progress_bytes;
        if (acked >= before + READ_BYTES_MIN) {
            c->progress_bytes = acked;
            deadline_set(c, DEADLINE_ANSWER);
            return;
        }
    }
    deadline_drop(c);
    if (deadline == DEADLINE_LINGER) {
        conn_free(c);
        return;
    }
    if (deadline == DEADLINE_REQUEST)
        conn_send_error(c, MHD_HTTP_REQUEST_TIMEOUT, "the request did not arrive in time");
    if (deadline != DEADLINE_IDLE)
        s->stats.refused++;
    conn_shutdown(c);
}

void deadlines_expire(void *ctx)
{
    struct http_server *s = ctx;
    int64_t now = loop_now_ns(s->loop);

    s->deadline_next_ns = INT64_MAX;
    for (size_t i = 0; i < DEADLINES; i++) {
        struct conn_list *list = &s->deadlines[i];
        while (list->first && list->first->deadline_ns <= now)
            deadline_expire(list->first);
        if (list->first && list->first->deadline_ns < s->deadline_next_ns)
            s->deadline_next_ns = list->first->deadline_ns;
    }
    loop_timer_set(s->deadline_timer, s->deadline_next_ns);
}
