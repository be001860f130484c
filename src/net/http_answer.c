/* http_answer.c - answers. */
#include <assert.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/http_inner.h"

void exchange_suspend(struct http_exchange *x)
{
    assert(!x->suspended);
    x->suspended = true;
    deadline_drop(x->conn);
    MHD_suspend_connection(x->conn->mhd);
}

void exchange_resume(struct http_exchange *x)
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

/* A header that the library will not have, with a line break in it, is left out: nothing may be smuggled. */
static void header_add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

void answer_with(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
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
        exchange_resume(x);
}

enum MHD_Result answer_queue(struct http_exchange *x)
{
    struct MHD_Response *response = take_ptr(&x->response);
    if (!response) /* queued before */
        return MHD_YES;
    deadline_set(x->conn, DEADLINE_ANSWER);
    enum MHD_Result result = MHD_queue_response(x->conn->mhd, x->status, response);
    MHD_destroy_response(response); /* the library has its own reference */
    return result;
}

void http_answer(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                 const void *body, size_t len)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)body, MHD_RESPMEM_MUST_COPY);
    x->server->stats.bytes_out += len;
    assert(response);
    answer_with(x, status, headers, content_type, response);
}

void http_answer_file(struct http_exchange *x, int status, const struct http_header *headers, const char *content_type,
                      int fd, uint64_t len)
{
    struct stat st;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= len;
    struct MHD_Response *response = good ? MHD_create_response_from_fd64(len, fd) : NULL;
    if (!response) {
        (void)close(fd);
        answer_refusal(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "the file is not what it was taken for");
        return;
    }
    x->server->stats.bytes_out += len;
    answer_with(x, status, headers, content_type, response);
}

void answer_refusal(struct http_exchange *x, int status, const char *text)
{
    CLEANUP(str) struct str line = {0};
    str_add(&line, text);
    str_add_char(&line, '\n');
    x->server->stats.refused++;
    http_answer(x, status, NULL, "text/plain; charset=utf-8", line.at, line.len);
}
