#include "agent/net/link.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

#define SECOND INT64_C(1000000000)
#define LINE_BYTES_MAX ((size_t)64 << 20)
#define REREAD_NS (3 * SECOND)
#define REPORT_TIMEOUT_NS (10 * SECOND)
#define POST_TIMEOUT_NS (120 * SECOND) /* long: the daemon delays the answer while a client reads output slowly */
#define RECONNECT_NS_MAX (5 * SECOND)

/* A stream of JSON lines; reopened whenever it ends. */
struct line_stream {
    struct daemon_link *link;
    const char *name;
    void (*path)(const struct daemon_link *l, struct str *to);
    void (*line)(struct daemon_link *l, const json_t *line);
    void (*lost)(struct daemon_link *l); /* NULL: no action */
    struct net_sandbox_request *call;
    struct loop_source *timer;
    struct str buffer;
    unsigned failures;
    bool heard; /* data has arrived since it was opened */
};

struct daemon_link {
    struct loop *loop;
    struct net_sandbox *net_sandbox;
    const struct node_identity *id;
    const struct log *log;
    struct link_handlers heard;
    uint64_t epoch;
    size_t at;             /* index of the current address */
    bool listens, rereads; /* rereads: a reopening is scheduled */
    char hash[80];
    struct line_stream config, sessions;
    struct loop_source *reread;
    struct net_sandbox_request *report;
    uint64_t report_seq;
    struct link_request *smalls; /* pending requests of link_get and link_post */
};

static void url_make(const struct daemon_link *l, const char *path, struct str *to)
{
    const char *base = l->id->controls[l->at];
    size_t len = strlen(base);
    while (len && base[len - 1] == '/')
        len--;
    str_add_bytes(to, base, len);
    str_addf(to, "/v1/nodes/%s%s", l->id->node, path);
}

static void note(const struct daemon_link *l, enum log_level level, const char *event, const char *text)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    log_write(l->log, now.tv_sec * SECOND + now.tv_nsec, level, event, LOG_TEXT("control", l->id->controls[l->at]),
              LOG_TEXT("text", text));
}

/* ---- listening -------------------------------------------------------------------------------------------------- */

static void take_line(struct line_stream *s, const char *at, size_t len)
{
    if (len == 0) /* keep-alive */
        return;
    json_t *line = json_loadb(at, len, 0, NULL);
    if (json_is_object(line))
        s->line(s->link, line);
    else
        note(s->link, LEVEL_WARN, "stream.garbage", s->name);
    json_decref(line);
}

static void took_piece(void *ctx, const char *at, size_t len)
{
    struct line_stream *s = ctx;
    if (!s->heard) {
        s->heard = true;
        s->failures = 0;
    }
    if (s->buffer.len + len > LINE_BYTES_MAX)
        str_clear(&s->buffer);
    str_add_bytes(&s->buffer, at, len);
    size_t done = 0;
    for (const char *end; (end = memchr(s->buffer.at + done, '\n', s->buffer.len - done));) {
        take_line(s, s->buffer.at + done, (size_t)(end - s->buffer.at) - done);
        done = (size_t)(end - s->buffer.at) + 1;
    }
    if (done) {
        memmove(s->buffer.at, s->buffer.at + done, s->buffer.len - done);
        s->buffer.len -= done;
    }
}

static void stream_ended(void *ctx, const struct async_answer *answer)
{
    struct line_stream *s = ctx;
    struct daemon_link *l = s->link;
    int64_t wait_ns = s->failures < 5 ? (SECOND / 5) << s->failures : RECONNECT_NS_MAX;
    s->call = NULL;
    s->failures++;
    str_clear(&s->buffer);
    if (s->lost)
        s->lost(l);
    note(l, LEVEL_DEBUG, "stream.ended", answer->status ? s->name : answer->text);
    loop_timer_set(s->timer, loop_now_ns(l->loop) + (wait_ns < RECONNECT_NS_MAX ? wait_ns : RECONNECT_NS_MAX));
}

static void stream_open(void *ctx)
{
    struct line_stream *s = ctx;
    CLEANUP(str) struct str path = {0}, url = {0};
    if (s->call)
        return;
    s->path(s->link, &path);
    url_make(s->link, path.at, &url);
    s->heard = false;
    struct async_request request = {
        .method = "GET", .url = url.at, .piece = took_piece, .done = stream_ended, .ctx = s};
    s->call = net_sandbox_start(s->link->net_sandbox, &request);
}

static void stream_again(struct line_stream *s)
{
    if (s->call) {
        net_sandbox_cancel(s->call);
        s->call = NULL;
        if (s->lost)
            s->lost(s->link);
    }
    str_clear(&s->buffer);
    if (s->link->listens)
        loop_timer_set(s->timer, loop_now_ns(s->link->loop));
}

static void config_path(const struct daemon_link *l, struct str *to)
{
    str_addf(to, "/config?epoch=%llu&watch=%s", (unsigned long long)l->epoch, l->hash);
}

static void config_line(struct daemon_link *l, const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    const char *hash = json_string_value(json_object_get(line, "hash"));
    const json_t *object = json_object_get(line, "object");
    if (!type || strcmp(type, "put") != 0 || !hash || !json_is_object(object))
        return;
    (void)snprintf(l->hash, sizeof l->hash, "%s", hash);
    loop_timer_set(l->reread, INT64_MAX);
    l->rereads = false;
    l->heard.config(l->heard.ctx, hash, object);
}

static void sessions_path(const struct daemon_link *l, struct str *to)
{
    str_addf(to, "/calls?epoch=%llu", (unsigned long long)l->epoch);
}

static void session_line(struct daemon_link *l, const json_t *line)
{
    if (json_object_get(line, "call"))
        l->heard.session(l->heard.ctx, line);
}

static void sessions_lost(struct daemon_link *l)
{
    l->heard.sessions_lost(l->heard.ctx);
}

void link_listen(struct daemon_link *l)
{
    if (l->listens)
        return;
    l->listens = true;
    stream_open(&l->config);
    stream_open(&l->sessions);
}

static void on_reread_timer(void *ctx)
{
    struct daemon_link *l = ctx;
    l->rereads = false;
    l->hash[0] = '\0';
    stream_again(&l->config);
}

void link_reread(struct daemon_link *l)
{
    if (!l->listens || l->rereads) /* reports may come more often than REREAD_NS */
        return;
    l->rereads = true;
    loop_timer_set(l->reread, loop_now_ns(l->loop) + REREAD_NS);
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Switches to the next daemon address and reopens both streams there. */
static void switch_address(struct daemon_link *l, const char *text)
{
    note(l, LEVEL_WARN, "control.unreachable", text);
    if (l->id->controls_len < 2)
        return;
    l->at = (l->at + 1) % l->id->controls_len;
    stream_again(&l->config);
    stream_again(&l->sessions);
}

/* Logs why the daemon refused a report: the daemon's message, or, for an invalid certificate, how to join again. */
static void note_refused(const struct daemon_link *l, int status, const json_t *doc)
{
    const char *message = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));
    if (status == 401)
        message =
            "this node was removed, or has joined again elsewhere; 'berth node add NAME' prints the join command, "
            "which "
            "with --force joins this machine again";
    note(l, LEVEL_WARN, "report.refused", message ? message : "no reason given");
}

static void report_done(void *ctx, const struct async_answer *answer)
{
    struct daemon_link *l = ctx;
    json_t *doc = answer->status ? json_loadb(answer->body, answer->len, 0, NULL) : NULL;
    l->report = NULL;
    if (answer->status == 0)
        switch_address(l, answer->text);
    else if (answer->status != 200)
        note_refused(l, answer->status, doc);
    l->heard.reported(l->heard.ctx, l->report_seq, answer->status, doc);
    json_decref(doc);
}

void link_report(struct daemon_link *l, uint64_t seq, char *text)
{
    CLEANUP(str) struct str url = {0};
    url_make(l, "/report", &url);
    l->report_seq = seq;
    struct async_request request = {.method = "POST",
                                    .url = url.at,
                                    .body = text,
                                    .body_len = strlen(text),
                                    .timeout_ns = REPORT_TIMEOUT_NS,
                                    .done = report_done,
                                    .ctx = l};
    l->report = net_sandbox_start(l->net_sandbox, &request);
    free(text);
}

struct link_request {
    struct link_request *next, **back; /* back: the pointer that points to this entry */
    link_answered *answered;
    void *ctx;
};

static void link_request_end(struct link_request *s, int status, const char *body, size_t len)
{
    *s->back = s->next;
    if (s->next)
        s->next->back = s->back;
    s->answered(s->ctx, status, body, len);
    mem_free(s);
}

static void link_request_done(void *ctx, const struct async_answer *answer)
{
    const char *said = answer->status ? answer->body : answer->text;
    link_request_end(ctx, answer->status, said, answer->status ? answer->len : strlen(said));
}

static void link_request_start(struct daemon_link *l, const char *path, struct async_request *request,
                               link_answered *answered, void *ctx)
{
    CLEANUP(str) struct str url = {0};
    struct link_request *s = mem_zalloc(sizeof *s);
    *s = (struct link_request){.next = l->smalls, .back = &l->smalls, .answered = answered, .ctx = ctx};
    if (l->smalls)
        l->smalls->back = &s->next;
    l->smalls = s;
    url_make(l, path, &url);
    request->url = url.at;
    request->done = link_request_done;
    request->ctx = s;
    (void)net_sandbox_start(l->net_sandbox, request);
}

void link_get(struct daemon_link *l, const char *path, link_answered *answered, void *ctx)
{
    struct async_request request = {.method = "GET"};
    link_request_start(l, path, &request, answered, ctx);
}

void link_post(struct daemon_link *l, const char *path, const char *type, const void *body, size_t len,
               link_answered *answered, void *ctx)
{
    struct async_request request = {
        .method = "POST", .content_type = type, .body = body, .body_len = len, .timeout_ns = POST_TIMEOUT_NS};
    link_request_start(l, path, &request, answered, ctx);
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

static void line_stream_init(struct line_stream *s, struct daemon_link *l, const char *name)
{
    s->link = l;
    s->name = name;
    s->timer = loop_timer_new(l->loop, stream_open, s);
}

static void certificate_checked(void *ctx, int64_t not_after_ns, const char *text, bool trial)
{
    const struct daemon_link *l = ctx;
    l->heard.certificate(l->heard.ctx, not_after_ns, text, trial);
}

struct daemon_link *link_new(struct loop *loop, const struct node_identity *id, const struct net_sandbox_user *user,
                             uint64_t epoch, const struct link_handlers *heard, const struct log *log)
{
    struct daemon_link *l = mem_zalloc(sizeof *l);
    *l = (struct daemon_link){.loop = loop, .id = id, .epoch = epoch, .heard = *heard, .log = log};
    l->net_sandbox = net_sandbox_new(
        loop,
        &(struct net_sandbox_config){
            .user = *user, .ca_path = id->ca_path, .pem_path = id->pem_path, .known = certificate_checked, .ctx = l},
        log);
    l->config = (struct line_stream){.path = config_path, .line = config_line};
    l->sessions = (struct line_stream){.path = sessions_path, .line = session_line, .lost = sessions_lost};
    line_stream_init(&l->config, l, "configuration");
    line_stream_init(&l->sessions, l, "errands");
    l->reread = loop_timer_new(loop, on_reread_timer, l);
    return l;
}

void link_free(struct daemon_link *l)
{
    if (!l)
        return;
    net_sandbox_free(l->net_sandbox);
    while (l->smalls)
        link_request_end(l->smalls, LINK_GONE, "", 0);
    loop_source_free(l->config.timer);
    loop_source_free(l->sessions.timer);
    loop_source_free(l->reread);
    str_done(&l->config.buffer);
    str_done(&l->sessions.buffer);
    mem_free(l);
}

void link_try_certificate(struct daemon_link *l, const char *pem)
{
    net_sandbox_try(l->net_sandbox, pem);
}

void link_reopen_streams(struct daemon_link *l)
{
    stream_again(&l->config);
    stream_again(&l->sessions);
}
