#include "berthd/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "berthd/dashboard.h"
#include "control/watch/watch.h"
#include "net/http/http.h"

enum {
    CONNECTIONS_PER_ADDRESS = 1024, /* default */
    CONNECTIONS_PER_USER = 256,
    BYTES_PER_ADDRESS = 64 << 20, /* bytes of bodies, and of answers that were not read yet */
    BYTES_PER_USER = 16 << 20,
};

struct server {
    struct http_server *http;
    struct control *control;
    struct server_request *pending_requests; /* requests that the control has to answer, and streams */
    bool dashboard;
};

/* A request that the control has to answer, or a stream. It outlives its `http` if the client disconnects before the
 * answer. */
struct server_request {
    struct server *server;
    struct server_request *next, **link;
    struct http_request *http; /* NULL: the client has disconnected */
    struct stream *stream;
    bool asked; /* the control has not answered yet */
};

static struct server_request *pending_request_new(struct server *s, struct http_request *http)
{
    struct server_request *x = mem_zalloc(sizeof *x);

    x->server = s;
    x->http = http;
    x->next = s->pending_requests;
    x->link = &s->pending_requests;
    if (s->pending_requests)
        s->pending_requests->link = &x->next;
    s->pending_requests = x;
    return x;
}

static void pending_request_free(struct server_request *x)
{
    if (x->link) {
        *x->link = x->next;
        if (x->next)
            x->next->link = x->link;
    }
    mem_free(x);
}

/* Called when the client disconnects or the stream has ended. */
static void stream_closed(void *ctx)
{
    struct server_request *x = ctx;
    struct stream *stream = x->stream;

    x->stream = NULL;
    if (stream)
        stream_stop(stream);
}

/* Called when the HTTP server has finished the request for any reason. */
static void pending_request_drop(void *data)
{
    struct server_request *x = data;

    stream_closed(x);
    x->http = NULL;
    if (!x->asked)
        pending_request_free(x);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static bool sink_send(void *ctx, const char *at, size_t len)
{
    struct server_request *x = ctx;
    return x->http && http_stream_send(x->http, at, len);
}

static void sink_end(void *ctx)
{
    struct server_request *x = ctx;

    x->stream = NULL;
    if (x->http)
        http_stream_end(x->http);
}

static size_t sink_backlog(void *ctx)
{
    const struct server_request *x = ctx;
    return x->http ? http_stream_backlog(x->http) : 0;
}

static void on_stream_sent(void *ctx)
{
    struct server_request *x = ctx;

    if (x->stream)
        stream_drained(x->stream);
}

static void stream_answer(struct server_request *x, struct answer *a, const struct http_header *headers)
{
    const struct stream_sink sink = {.ctx = x, .send = sink_send, .end = sink_end, .backlog = sink_backlog};

    x->stream = take_ptr(&a->stream);
    http_stream(x->http, a->status, headers, stream_content_type(x->stream), stream_closed, x);
    http_stream_on_drained(x->http, on_stream_sent, x);
    stream_start(x->stream, &sink);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

enum { HEADERS_MAX = 5, HEADER_VALUE_MAX = 64 };

struct headers {
    struct http_header at[HEADERS_MAX + 1]; /* ends with a NULL name */
    char values[HEADERS_MAX][HEADER_VALUE_MAX];
    size_t len;
};

static void header_add(struct headers *h, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void header_add(struct headers *h, const char *name, const char *fmt, ...)
{
    va_list args;

    assert(h->len < HEADERS_MAX);
    va_start(args, fmt);
    (void)vsnprintf(h->values[h->len], HEADER_VALUE_MAX, fmt, args);
    va_end(args);
    h->at[h->len] = (struct http_header){name, h->values[h->len]};
    h->len++;
}

static void headers_make(struct headers *h, const struct answer *a)
{
    if (a->revision)
        header_add(h, "Berth-Revision", "%llu", (unsigned long long)a->revision);
    if (a->retry_after_s)
        header_add(h, "Retry-After", "%lld", (long long)a->retry_after_s);
    if (a->etag[0])
        header_add(h, "ETag", "\"%s\"", a->etag);
    if (a->status == 401)
        header_add(h, "WWW-Authenticate", "Bearer");
    if (a->file)
        header_add(h, "Content-Disposition", "attachment; filename=\"berth-%llu.backup\"",
                   (unsigned long long)a->revision);
}

static void file_answer(struct server_request *x, const struct answer *a, const struct http_header *headers)
{
    static const char lost[] =
        "{\"error\":{\"code\":\"unavailable\",\"message\":\"the file was deleted before it could be sent; try "
        "again\"}}\n";
    struct stat size;
    int fd = open(a->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0 && fstat(fd, &size) == 0) {
        http_answer_file(x->http, a->status, headers, "application/octet-stream", fd, (uint64_t)size.st_size);
        return;
    }
    if (fd >= 0)
        (void)close(fd);
    http_answer(x->http, 503, NULL, "application/json", lost, sizeof lost - 1);
}

static int text_add(const char *at, size_t len, void *to)
{
    http_text_add(to, at, len);
    return 0;
}

static void body_answer(struct server_request *x, const struct answer *a, const struct http_header *headers)
{
    struct http_text text = {0};

    if (a->body) {
        (void)json_dump_callback(a->body, text_add, &text, JSON_COMPACT);
        http_text_add(&text, "\n", 1);
    } else {
        http_text_add(&text, str_text(&a->text), a->text.len);
    }
    http_answer_text(x->http, a->status, headers,
                     a->body       ? "application/json"
                     : a->text.len ? a->content_type
                                   : NULL,
                     &text);
}

/* Takes the control's answer. Frees the request, unless the answer is a stream. */
static void answered(void *ctx, struct answer *a)
{
    struct server_request *x = ctx;
    struct headers headers = {0};

    x->asked = false;
    if (!x->http) {
        pending_request_free(x);
        return;
    }
    headers_make(&headers, a);
    if (a->stream)
        stream_answer(x, a, headers.at);
    else if (a->file)
        file_answer(x, a, headers.at);
    else
        body_answer(x, a, headers.at);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static const char *query(const void *from, const char *name)
{
    return http_query(from, name);
}

/* Returns the token of "Authorization: Bearer TOKEN"; NULL: no such header; "" for another scheme, which is not a valid
 * token. */
static const char *bearer(const struct http_request *http)
{
    const char *text = http_header(http, "Authorization");

    if (!text)
        return NULL;
    if (strncasecmp(text, "Bearer ", 7) != 0)
        return "";
    return text + 7 + strspn(text + 7, " ");
}

static struct request_input request_of(const struct http_request *http)
{
    const struct http_peer *peer = http_peer(http);
    struct request_input r = {
        .method = http_method(http),
        .path = http_path(http),
        .token = bearer(http),
        .peer = peer ? peer->name : NULL,
        .peer_serial = peer ? peer->serial : NULL,
        .peer_until_ns = peer ? peer->until_ns : 0,
        .idempotency_key = http_header(http, "Idempotency-Key"),
        .if_match = http_header(http, "If-Match"),
        .accept = http_header(http, "Accept"),
        .remote = http_remote(http),
        .query = query,
        .query_from = http,
        .body = "",
    };
    return r;
}

static void request_submit(struct server *s, struct http_request *http, const struct request_input *request)
{
    struct server_request *x = pending_request_new(s, http);

    http_set_data(http, x, pending_request_drop);
    x->asked = true;
    control_handle(s->control, request, answered, x);
}

/* Rejects a body that is announced to be larger than the route allows, with an error document of the API. */
static void body_reject(struct http_request *http, uint64_t max)
{
    char text[160];
    int len =
        snprintf(text, sizeof text,
                 max ? "{\"error\":{\"code\":\"too-large\",\"message\":\"the body may have at most %llu bytes\"}}\n"
                     : "{\"error\":{\"code\":\"too-large\",\"message\":\"this route accepts no body\"}}\n",
                 (unsigned long long)max);
    http_answer(http, 413, NULL, "application/json", text, (size_t)len);
}

/* Rejects a request because too many bytes are held for the user or the address. */
static void limit_reject(struct http_request *http, const char *why)
{
    static const struct http_header later[] = {
        {"Retry-After", "1" },
        {NULL,          NULL}
    };
    CLEANUP(str) struct str text = {0};

    str_add(&text, "{\"error\":{\"code\":\"rate\",\"message\":");
    str_add_json(&text, why);
    str_add(&text, "}}\n");
    http_answer(http, 429, later, "application/json", text.at, text.len);
}

static int64_t admit(void *ctx, struct http_request *http)
{
    struct server *s = ctx;
    struct request_input request = request_of(http);
    const char *length = http_header(http, "Content-Length");
    struct control_admitted admitted;
    struct berth_err err;
    int64_t announced;

    if (s->dashboard && dashboard_answer(http))
        return -1;
    if (control_admit(s->control, &request, &admitted) != 0) {
        request_submit(s, http, &request); /* rejected at once by the control, whatever the body may be */
        return -1;
    }
    if (http_set_user(http, admitted.user[0] ? admitted.user : NULL, &err) < 0) {
        limit_reject(http, err.text);
        return -1;
    }
    if (length && (!str_parse_i64(length, &announced) || (announced > 0 && (uint64_t)announced > admitted.body_max))) {
        body_reject(http, admitted.body_max);
        return -1;
    }
    return (int64_t)admitted.body_max;
}

static void handle(void *ctx, struct http_request *http)
{
    struct request_input request = request_of(http);

    request.body = http_body(http, &request.body_len);
    request_submit(ctx, http, &request);
}

/* ---- new and free ----------------------------------------------------------------------------------------------- */

int server_new(struct loop *loop, struct control *control, const struct server_config *config, struct server **ret,
               struct berth_err *err)
{
    struct server *s = mem_zalloc(sizeof *s);
    const struct http_config http = {
        .address = config->address,
        .port = config->port,
        .cert_pem = config->cert_pem,
        .key_pem = config->key_pem,
        .client_ca_pem = config->client_ca_pem,
        .tls13_only = config->tls13_only,
        .connections_max = config->connections_max,
        .connections_per_address_max =
            config->connections_per_address_max ? config->connections_per_address_max : CONNECTIONS_PER_ADDRESS,
        .length_required = true,
        .connections_per_user_max = CONNECTIONS_PER_USER,
        .bytes_per_address_max = BYTES_PER_ADDRESS,
        .bytes_per_user_max = BYTES_PER_USER,
        .admit = admit,
        .handle = handle,
        .ctx = s,
    };

    s->control = control;
    s->dashboard = config->dashboard;
    int rc = http_server_new(loop, &http, &s->http, err);
    if (rc < 0) {
        mem_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

uint16_t server_port(const struct server *s)
{
    return http_server_port(s->http);
}

void server_quiesce(struct server *s)
{
    http_server_quiesce(s->http);
}

size_t server_busy(const struct server *s)
{
    return http_server_busy(s->http);
}

void server_free(struct server *s)
{
    if (!s)
        return;
    http_server_free(s->http); /* drops every request */
    for (struct server_request *x = s->pending_requests, *next; x; x = next) {
        next = x->next; /* the control frees the request when it answers */
        x->link = NULL;
        x->server = NULL;
    }
    mem_free(s);
}
