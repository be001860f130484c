/* http_answer.c - answers. */
#include <assert.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/http/http_inner.h"

enum { READ_BYTES = 16 << 10 }; /* maximum size of a piece for libmicrohttpd */

void request_suspend(struct http_request *x)
{
    assert(!x->suspended);
    x->suspended = true;
    deadline_drop(x->conn);
    MHD_suspend_connection(x->conn->mhd);
}

void request_resume(struct http_request *x)
{
    assert(x->suspended);
    x->suspended = false;
    if (!x->server->stopping)
        deadline_set(x->conn, DEADLINE_ANSWER);
    MHD_resume_connection(x->conn->mhd);
    server_wake(x->server);
}

static bool header_given(const struct http_header *headers, const char *name)
{
    for (; headers && headers->name; headers++)
        if (strcasecmp(headers->name, name) == 0)
            return true;
    return false;
}

/* Adds a header. libmicrohttpd rejects a header with a line break, which is then left out, so headers cannot be
 * injected. */
static void header_add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

void answer_with(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                 struct MHD_Response *response)
{
    assert(!x->answered && status >= 200 && status <= 999);
    if (!header_given(headers, MHD_HTTP_HEADER_CACHE_CONTROL))
        header_add(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    header_add(response, MHD_HTTP_HEADER_X_CONTENT_TYPE_OPTIONS, "nosniff");
    if (content_type)
        header_add(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    for (; headers && headers->name; headers++)
        header_add(response, headers->name, headers->value);
    if (x->server->quiesced)
        header_add(response, MHD_HTTP_HEADER_CONNECTION, "close");
    x->response = response;
    x->status = (unsigned)status;
    x->answered = true;
    if (x->suspended)
        request_resume(x);
}

enum MHD_Result answer_queue(struct http_request *x)
{
    struct MHD_Response *response = take_ptr(&x->response);
    if (!response) /* already queued */
        return MHD_YES;
    deadline_set(x->conn, DEADLINE_ANSWER);
    enum MHD_Result result = MHD_queue_response(x->conn->mhd, x->status, response);
    MHD_destroy_response(response); /* libmicrohttpd holds its own reference */
    return result;
}

void http_text_add(struct http_text *t, const void *at, size_t len)
{
    for (const char *p = at; len;) {
        if (!t->last || t->last->len == BLOCK_TEXT_BYTES) {
            struct http_block *b = mem_alloc(sizeof *b);
            b->next = NULL;
            b->len = 0;
            *(t->last ? &t->last->next : &t->first) = b;
            t->last = b;
        }
        size_t room = BLOCK_TEXT_BYTES - t->last->len, n = len < room ? len : room;
        memcpy(t->last->at + t->last->len, p, n);
        t->last->len += n;
        t->len += n;
        p += n;
        len -= n;
    }
}

static void block_drop(struct http_text *t)
{
    struct http_block *b = t->first;
    t->first = b->next;
    if (!t->first)
        t->last = NULL;
    t->len -= b->len;
    mem_free(b);
}

void http_text_done(struct http_text *t)
{
    while (t->first)
        block_drop(t);
}

/* Called by libmicrohttpd: returns the next piece of the text and frees blocks that were sent. */
static ssize_t text_read(void *ctx, uint64_t at, char *to, size_t max)
{
    struct http_request *x = ctx;
    struct http_block *b = x->text_left.first;

    (void)at;
    if (!b || x->server->stopping)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t left = b->len - x->block_sent, n = left < max ? left : max;
    memcpy(to, b->at + x->block_sent, n);
    x->block_sent += n;
    if (n == left) {
        held_bytes_drop(x, b->len);
        block_drop(&x->text_left);
        x->block_sent = 0;
    }
    return (ssize_t)n;
}

void http_answer_text(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                      struct http_text *text)
{
    static const struct http_header later[] = {
        {MHD_HTTP_HEADER_RETRY_AFTER, "1" },
        {NULL,                        NULL}
    };
    static const char much[] =
        "{\"error\":{\"code\":\"rate\",\"message\":\"too much of what you asked for waits to be read; "
        "read it, and try again\"}}\n";

    bool reads = strcmp(x->method, MHD_HTTP_METHOD_GET) == 0; /* the answer to a completed change is always held */
    if (reads && text->len > BLOCK_TEXT_BYTES && !held_bytes_fit(x, text->len)) {
        http_text_done(text);
        x->server->stats.refused++;
        http_answer(x, MHD_HTTP_TOO_MANY_REQUESTS, later, "application/json", much, sizeof much - 1);
        return;
    }
    if (!text->first || text->len <= text->first->len) { /* libmicrohttpd copies a single block */
        http_answer(x, status, headers, content_type, text->first ? text->first->at : "", text->len);
        http_text_done(text);
        return;
    }
    x->text_left = *text;
    *text = (struct http_text){0};
    held_bytes_add(x, x->text_left.len);
    x->server->stats.bytes_out += x->text_left.len;
    struct MHD_Response *response = MHD_create_response_from_callback(x->text_left.len, READ_BYTES, text_read, x, NULL);
    assert(response);
    answer_with(x, status, headers, content_type, response);
}

void http_answer(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                 const void *body, size_t len)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)body, MHD_RESPMEM_MUST_COPY);
    x->server->stats.bytes_out += len;
    assert(response);
    held_bytes_add(x, len);
    answer_with(x, status, headers, content_type, response);
}

void http_answer_file(struct http_request *x, int status, const struct http_header *headers, const char *content_type,
                      int fd, uint64_t len)
{
    struct stat st;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= len;
    struct MHD_Response *response = good ? MHD_create_response_from_fd64(len, fd) : NULL;
    if (!response) {
        (void)close(fd);
        answer_refusal(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "the file has changed; try again");
        return;
    }
    x->server->stats.bytes_out += len;
    answer_with(x, status, headers, content_type, response);
}

void answer_refusal(struct http_request *x, int status, const char *text)
{
    CLEANUP(str) struct str line = {0};
    str_add(&line, text);
    str_add_char(&line, '\n');
    x->server->stats.refused++;
    http_answer(x, status, NULL, "text/plain; charset=utf-8", line.at, line.len);
}
