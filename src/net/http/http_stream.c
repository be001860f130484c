/* http_stream.c - streams: answers without a known end.
 *
 * libmicrohttpd asks for the next piece after it has sent the last one. If there is no piece, the connection is
 * suspended and uses no CPU time. libmicrohttpd would not notice then that the peer closes, so the server watches the
 * socket.
 */
#include <assert.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "net/http/http_inner.h"

enum {
    BACKLOG_BYTES_MAX = 1 << 20,
    /* Only for HTTP/1.0 clients; pieces for other clients use the connection's memory. */
    BLOCK_BYTES = 512,
};

static void peer_gone(void *ctx, uint32_t events)
{
    struct http_request *x = ctx;

    (void)events;
    loop_source_free(x->conn->watch);
    x->conn->watch = NULL;
    x->dead = true;
    if (x->suspended)
        request_resume(x);
    else
        conn_shutdown(x->conn);
}

/* Called by libmicrohttpd: returns the next piece, or suspends the connection. */
static ssize_t stream_read(void *ctx, uint64_t at, char *to, size_t max)
{
    struct http_request *x = ctx;

    (void)at;
    if (x->dead || x->server->stopping)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    held_bytes_drop(x, x->body.len);
    str_done(&x->body);
    if (x->moved && x->backlog.len == 0) {
        x->moved = false;
        if (x->drained && !x->ended) /* no callback after the handler has ended the stream */
            x->drained(x->drained_ctx);
    }
    size_t left = x->backlog.len - x->backlog_sent;
    if (left == 0) {
        if (x->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        request_suspend(x);
        return 0;
    }
    size_t n = left < max ? left : max;
    memcpy(to, x->backlog.at + x->backlog_sent, n);
    x->backlog_sent += n;
    held_bytes_drop(x, n);
    x->moved = true;
    x->server->stats.bytes_out += n;
    if (n == left) {
        str_done(&x->backlog);
        x->backlog_sent = 0;
    }
    return (ssize_t)n;
}

void http_stream(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                 void (*closed)(void *ctx), void *ctx)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read, x, NULL);
    struct conn *c = x->conn;

    assert(response && !x->answered && !c->watch);
    x->streams = true;
    x->closed = closed;
    x->closed_ctx = ctx;
    x->server->stats.streams++;
    /* If the watch fails, the end of the peer is only noticed when the next piece cannot be sent. */
    (void)loop_watch_fd(x->server->loop, c->fd, EPOLLRDHUP, peer_gone, x, &c->watch, NULL);
    answer_with(x, status, headers, content_type, response);
}

size_t http_stream_backlog(const struct http_request *x)
{
    return x->backlog.len - x->backlog_sent;
}

bool http_stream_send(struct http_request *x, const void *data, size_t len)
{
    assert(x->streams && !x->ended);
    size_t waits = http_stream_backlog(x);
    if (waits > BACKLOG_BYTES_MAX || ((waits || len > BLOCK_TEXT_BYTES) && !held_bytes_fit(x, len)))
        return false;
    held_bytes_add(x, len);
    if (x->backlog_sent > x->backlog.len / 2) {
        x->backlog.len -= x->backlog_sent;
        memmove(x->backlog.at, x->backlog.at + x->backlog_sent, x->backlog.len);
        x->backlog_sent = 0;
    }
    str_add_bytes(&x->backlog, data, len);
    if (x->suspended && len)
        request_resume(x);
    return true;
}

void http_stream_on_drained(struct http_request *x, void (*drained)(void *ctx), void *ctx)
{
    x->drained = drained;
    x->drained_ctx = ctx;
}

void http_stream_end(struct http_request *x)
{
    assert(x->streams && !x->ended);
    x->ended = true;
    if (x->suspended)
        request_resume(x);
}
