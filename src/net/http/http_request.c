/* http_request.c - processes a request from its first line to `handle`, and gives access to its content. */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "net/http/http_inner.h"

enum {
    /* A rejected body up to this size is read and discarded, which keeps the connection. For larger bodies, closing
     * costs less. */
    DISCARD_BYTES_MAX = 64 << 10,
    /* libmicrohttpd stores the request and the header of the answer in one block of memory, and closes the connection
     * without an answer if the header does not fit. ANSWER_HEADER_BYTES are reserved for the answer; each header of a
     * request needs VALUE_BYTES in addition to its text. */
    ANSWER_HEADER_BYTES = 1024,
    VALUE_BYTES = 64,
};

/* ---- the header ------------------------------------------------------------------------------------------------- */

/* Headers that may occur only once, in addition to the framing headers: two programs could each use a different one of
 * two values. */
static const char *const once_names[] = {"Authorization", "Idempotency-Key", "If-Match", "Content-Type"};
enum { ONCE = sizeof once_names / sizeof *once_names };

/* Headers that determine the body, with their counts. A repeated header is rejected, because it is ambiguous. */
struct framing {
    unsigned hosts, lengths, encodings;
    unsigned once[ONCE]; /* count of each of once_names */
    const char *length, *encoding;
    bool has_control;
};

static bool has_control(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
            return true;
    return false;
}

static enum MHD_Result framing_count(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct framing *f = ctx;

    (void)kind;
    value = value ? value : "";
    if (has_control(name) || has_control(value))
        f->has_control = true;
    if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
        f->hosts++;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        f->lengths++;
        f->length = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        f->encodings++;
        f->encoding = value;
    }
    for (size_t i = 0; i < ONCE; i++)
        f->once[i] += strcasecmp(name, once_names[i]) == 0;
    return MHD_YES;
}

static uint64_t length_of(const char *digits)
{
    uint64_t n = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*digits - '0'), &n))
            return UINT64_MAX;
    return n;
}

/* Returns a description of an error in the target or the header; NULL: none. */
static const char *request_fault(const struct http_request *x, const struct framing *f)
{
    if (x->why)
        return x->why;
    if (f->has_control)
        return "the header has control characters";
    if (f->hosts != 1 && !(f->hosts == 0 && x->old))
        return f->hosts ? "the header names more than one host" : "the header names no host";
    if (f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings))
        return "the header gives the body's length in more than one way";
    if (f->encoding && (strcasecmp(f->encoding, "chunked") != 0 || x->old))
        return "the body's transfer encoding is not chunked";
    for (size_t i = 0; i < ONCE; i++)
        if (f->once[i] > 1)
            return "the header gives twice what it may give once: Authorization, Idempotency-Key, If-Match or Content-Type";
    return NULL;
}

/* Sends an error directly to the socket and closes the connection. */
static enum MHD_Result refuse_and_close(struct http_request *x, unsigned status, const char *text)
{
    x->server->stats.refused++;
    conn_send_error(x->conn, status, text);
    x->conn->linger = true;
    return MHD_NO;
}

/* Called when the header is complete: checks the header and the announced body. */
static enum MHD_Result request_begin(struct http_request *x, struct MHD_Connection *mhd, const char *method,
                                     const char *version)
{
    struct http_server *s = x->server;
    struct conn *c = x->conn;
    struct framing f = {0};
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t header_bytes = info ? info->header_size : 0;

    x->begun = true;
    x->method = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? MHD_HTTP_METHOD_GET : method;
    s->stats.requests++;
    s->stats.bytes_in += header_bytes;
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, framing_count, &f);
    int values = MHD_get_connection_values(mhd, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, NULL, NULL);
    if (header_bytes + (size_t)values * VALUE_BYTES + ANSWER_HEADER_BYTES > s->header_bytes_max)
        return refuse_and_close(x, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too large");
    uint64_t length = f.length ? length_of(f.length) : 0;
    bool waits = http_header(x, MHD_HTTP_HEADER_EXPECT) != NULL;
    const char *fault = strict_fault(x, method, version, header_bytes);

    fault = fault ? fault : request_fault(x, &f);
    /* libmicrohttpd closes the connection after an answer that is queued this early. That is correct where the start of
     * the next request is uncertain. */
    c->linger = true;
    if (fault) {
        answer_refusal(x, MHD_HTTP_BAD_REQUEST, fault);
        return answer_queue(x);
    }
    if (f.encodings && s->length_required) {
        answer_refusal(x, MHD_HTTP_LENGTH_REQUIRED,
                       "the request needs a Content-Length; chunked bodies are not accepted");
        return answer_queue(x);
    }
    int64_t body_max = s->admit(s->ctx, x);
    assert(body_max >= 0 || x->answered);
    x->body_max = body_max < 0 ? 0 : (uint64_t)body_max;
    if (!x->answered && length > x->body_max)
        answer_refusal(x, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
    bool has_body = length > 0 || f.encodings;
    if (x->answered && (length > DISCARD_BYTES_MAX || f.encodings || (has_body && waits)))
        return answer_queue(x);
    c->linger = false;
    if (has_body)
        deadline_set(c, DEADLINE_REQUEST);
    return MHD_YES; /* called again for the body, or at once for the answer */
}

/* ---- the body --------------------------------------------------------------------------------------------------- */

static enum MHD_Result request_body(struct http_request *x, const char *piece, size_t *len)
{
    size_t n = *len;

    *len = 0;
    x->server->stats.bytes_in += n;
    if (x->answered)
        return MHD_YES;
    /* libmicrohttpd accepts no answer between the header and the end of the body. */
    if (n > x->body_max - x->body.len)
        return refuse_and_close(x, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
    if (!held_bytes_fit(x, n))
        return refuse_and_close(x, MHD_HTTP_TOO_MANY_REQUESTS, "too many bytes at a time; try again later");
    held_bytes_add(x, n);
    str_add_bytes(&x->body, piece, n);
    return MHD_YES;
}

/* Called when the request is complete, and again after a suspension when there is an answer. */
static enum MHD_Result request_end(struct http_request *x)
{
    struct http_server *s = x->server;

    deadline_drop(x->conn);
    if (!x->handled) {
        x->handled = true;
        if (!x->answered)
            s->handle(s->ctx, x);
    }
    if (x->answered)
        return answer_queue(x);
    request_suspend(x);
    return MHD_YES;
}

/* ---- callbacks of libmicrohttpd --------------------------------------------------------------------------------- */

void *request_line(void *ctx, const char *uri, struct MHD_Connection *mhd)
{
    struct http_server *s = ctx;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct conn *c = info->socket_context;
    uri = uri ? uri : "";
    struct http_request *x = mem_zalloc(sizeof *x + target_room(uri));

    x->server = s;
    x->conn = c;
    x->line_target = uri;
    x->line_target_len = strlen(uri);
    if (!target_parse(uri, x->text, &x->target, &x->why))
        x->target = (struct request_target){.text = ""};
    x->next = s->requests_list;
    if (x->next)
        x->next->prev = x;
    s->requests_list = x;
    s->busy++;
    c->request = x;
    s->conns_without_request -= !c->known;
    c->known = true;
    if (c->deadline == DEADLINE_IDLE)
        deadline_set(c, DEADLINE_REQUEST);
    return x;
}

enum MHD_Result request_step(void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,
                             const char *version, const char *upload, size_t *upload_len, void **request)
{
    struct http_request *x = *request;

    (void)ctx;
    (void)url;
    if (x->server->stopping)
        return MHD_NO;
    if (!x->begun) {
        x->old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
        return request_begin(x, mhd, method, version);
    }
    if (*upload_len)
        return request_body(x, upload, upload_len);
    return request_end(x);
}

static void request_free(struct http_request *x)
{
    struct http_server *s = x->server;

    if (x->streams) {
        s->stats.streams--;
        if (!x->ended && x->closed)
            x->closed(x->closed_ctx);
    }
    if (x->drop)
        x->drop(x->data);
    if (x->response)
        MHD_destroy_response(x->response);
    *(x->prev ? &x->prev->next : &s->requests_list) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    s->busy--;
    held_bytes_drop(x, x->held);
    http_text_done(&x->text_left);
    str_done(&x->body);
    str_done(&x->backlog);
    mem_free(x);
}

void request_completed(void *ctx, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode how)
{
    struct http_server *s = ctx;
    struct http_request *x = *request;

    (void)mhd;
    if (!x)
        return;
    struct conn *c = x->conn;
    /* Without chunked encoding, the end of the connection marks the end of a stream. */
    bool closes = how != MHD_REQUEST_TERMINATED_COMPLETED_OK || (x->streams && x->old);
    *request = NULL;
    c->request = NULL;
    loop_source_free(c->watch);
    c->watch = NULL;
    request_free(x);
    /* The connection may be about to be closed; the deadline is harmless in that case. */
    deadline_set(c, DEADLINE_IDLE);
    if (closes)
        conn_force_processing(c);
    else if (s->quiesced && !c->linger)
        conn_shutdown(c);
}

/* ---- content of a request --------------------------------------------------------------------------------------- */

const char *http_method(const struct http_request *x)
{
    return x->method;
}

const char *http_path(const struct http_request *x)
{
    return x->target.text;
}

const char *http_query(const struct http_request *x, const char *name)
{
    return target_param(&x->target, name);
}

const char *http_header(const struct http_request *x, const char *name)
{
    return MHD_lookup_connection_value(x->conn->mhd, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_request *x, size_t *ret_len)
{
    *ret_len = x->body.len;
    return str_text(&x->body);
}

const char *http_remote(const struct http_request *x)
{
    return x->conn->peer->remote;
}

void http_set_data(struct http_request *x, void *data, void (*drop)(void *data))
{
    if (x->drop && x->data != data)
        x->drop(x->data);
    x->data = data;
    x->drop = drop;
}

void *http_data(const struct http_request *x)
{
    return x->data;
}
