/* session_kit_test.h - test helper: clients and agents as requests, whose answers may be deferred or be streams.
 *
 * A scene has the nodes n1 and n2 with their agents, and alice's app web, whose instance 901 runs on n1.
 */
#pragma once

#include "control/api/kit_test.h"

#include "base/base64.h"
#include "base/vec.h"
#include "control/session/session.h"

/* ---- a request whose answer may be deferred, or be a stream ----------------------------------------------------- */

struct caller_end {
    bool answered;
    int status;
    json_t *body;
    char type[64];
    struct stream *stream;
    struct str text; /* output of the stream */
    size_t read, backlog;
    bool paced, ended; /* `paced`: reads only on copy_side_parse */
};

static inline bool sink_send(void *ctx, const char *at, size_t len)
{
    struct caller_end *e = ctx;
    str_add_bytes(&e->text, at, len);
    e->backlog += e->paced ? len : 0;
    return true;
}

static inline void sink_end(void *ctx)
{
    struct caller_end *e = ctx;
    e->stream = NULL;
    e->ended = true;
}

static inline size_t sink_backlog(void *ctx)
{
    return ((struct caller_end *)ctx)->backlog;
}

static inline void end_answered(void *ctx, struct answer *a)
{
    struct caller_end *e = ctx;
    assert_false(e->answered);
    e->answered = true;
    e->status = a->status;
    e->body = json_incref(a->body);
    if (!a->stream)
        return;
    struct stream_sink sink = {.ctx = e, .send = sink_send, .end = sink_end, .backlog = sink_backlog};
    e->stream = take_ptr(&a->stream);
    (void)snprintf(e->type, sizeof e->type, "%s", stream_content_type(e->stream));
    stream_start(e->stream, &sink);
}

static inline void send_request(struct kit *k, const char *who, const char *method, const char *url, const char *body,
                                size_t len, struct caller_end *ret)
{
    struct kit_query query = {0};
    char path[256];
    const char *mark = strchr(url, '?');
    (void)snprintf(path, sizeof path, "%.*s", mark ? (int)(mark - url) : (int)strlen(url), url);
    if (mark) {
        query.len = (size_t)snprintf(query.text, sizeof query.text, "%s", mark + 1) + 1;
        for (size_t i = 0; i + 1 < query.len; i++)
            if (query.text[i] == '&' || query.text[i] == '=')
                query.text[i] = '\0';
    }
    struct request_input request = {
        .method = method,
        .path = path,
        .peer = who,
        .idempotency_key = k->key,
        .remote = "192.0.2.1",
        .body = body,
        .body_len = len,
        .query = kit_query_find,
        .query_from = &query,
    };
    k->key = NULL;
    bool paced = ret->paced;
    *ret = (struct caller_end){.paced = paced};
    control_handle(k->control, &request, end_answered, ret);
    control_pump(k->control);
    control_pump(k->control);
}

static inline void end_done(struct caller_end *e)
{
    if (e->stream)
        stream_stop(e->stream);
    json_decref(e->body);
    str_done(&e->text);
    *e = (struct caller_end){0};
}

static inline void end_cleanup(struct caller_end *e)
{
    end_done(e);
}

/* Reads everything that waits. */
static inline void end_read(struct kit *k, struct caller_end *e)
{
    e->backlog = 0;
    if (e->stream)
        stream_drained(e->stream);
    control_pump(k->control);
}

/* Returns the next line; NULL: none. */
static inline json_t *end_line(struct caller_end *e)
{
    for (;;) {
        const char *at = str_text(&e->text) + e->read;
        size_t len = strcspn(at, "\n");
        if (!at[len])
            return NULL;
        e->read += len + 1;
        if (len)
            return json_loadb(at, len, JSON_REJECT_DUPLICATES, NULL);
    }
}

static inline const char *member(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text ? text : "";
}

#define EXPECT(e, status_)                                                                                             \
    do {                                                                                                               \
        char *text_ = json_dumps((e)->body ? (e)->body : json_null(), JSON_ENCODE_ANY);                                \
        if (!(e)->answered || (e)->status != (status_))                                                                \
            fail_msg("line %d: %s with %d instead of %d: %s", __LINE__, (e)->answered ? "answered" : "not answered",   \
                     (e)->status, status_, text_);                                                                     \
        free(text_);                                                                                                   \
    } while (0)

static inline void expect_words(const struct caller_end *e, const char *words)
{
    CLEANUP(mem) char *text = json_dumps(e->body, JSON_ENCODE_ANY);
    if (!text || !strstr(text, words))
        fail_msg("expected \"%s\": %s", words, text ? text : "nothing");
}

/* ---- the cluster ------------------------------------------------------------------------------------------------ */

struct scene {
    struct kit k;
    struct caller_end agent, other; /* streams of n1's and n2's agents */
    char id[24];                    /* alice's instance on n1 */
};

#define ALICE "user:alice"
#define BOB "user:bob"
#define CAROL "user:carol"
#define N1 "node:n1"
#define N2 "node:n2"

static inline void instance_put(struct kit *k, const char *id, const char *node, const char *state, const char *ordinal)
{
    char doc[400];
    (void)snprintf(doc, sizeof doc,
                   "{v: 1, id: %s, workload: web.alice, ordinal: %s, node: %s, state: %s, generation: 1, created: "
                   "2026-03-01T12:00:00Z, since: 2026-03-01T12:00:00Z}",
                   id, ordinal, node, state);
    kit_put(k, KIND_INSTANCE, id, doc);
}

static inline void scene_open(struct scene *s)
{
    *s = (struct scene){0};
    kit_open(&s->k);
    kit_add_users(&s->k);
    for (int i = 1; i <= 2; i++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{id: n%d, allocatable: {cpu: 16, memory: 64Gi}}", i);
        CALL(&s->k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    CALL(&s->k, 201, ALICE, "POST", "/v1/apps", "{name: web, replicas: 6, resources: {cpu: 1}}");
    (void)snprintf(s->id, sizeof s->id, "901");
    instance_put(&s->k, "901", "n1", "running", "0");
    send_request(&s->k, N1, "GET", "/v1/nodes/n1/calls?epoch=7", NULL, 0, &s->agent);
    EXPECT(&s->agent, 200);
    send_request(&s->k, N2, "GET", "/v1/nodes/n2/calls?epoch=3", NULL, 0, &s->other);
    EXPECT(&s->other, 200);
}

static inline void scene_done(struct scene *s)
{
    end_done(&s->agent);
    end_done(&s->other);
    kit_done(&s->k);
}

static inline size_t sessions_open(const struct scene *s)
{
    return session_hub_len(control_session_hub(((struct scene *)s)->k.control));
}

/* Sends output, or an end, as the agent of a node. */
static inline void agent_send_output(struct scene *s, const char *who, const char *node, const char *call,
                                     const char *query, const char *body, size_t len, struct caller_end *ret)
{
    char url[160];
    (void)snprintf(url, sizeof url, "/v1/nodes/%s/calls/%s?%s", node, call, query);
    send_request(&s->k, who, "POST", url, body, len, ret);
}

/* Opens a command for alice and returns the line that the agent got; *ret_call is the session's id. */
static inline json_t *exec_open(struct scene *s, const char *body, char ret_call[static 24])
{
    CLEANUP(end) struct caller_end e = {0};
    send_request(&s->k, ALICE, "POST", "/v1/instances/901/exec", body, strlen(body), &e);
    EXPECT(&e, 200);
    (void)snprintf(ret_call, 24, "%s", member(e.body, "call"));
    json_t *line = end_line(&s->agent);
    assert_non_null(line);
    assert_string_equal(member(line, "call"), ret_call);
    return line;
}

static inline void call_url(char buf[static 64], const char *call, const char *sub)
{
    (void)snprintf(buf, 64, "/v1/calls/%s%s", call, sub);
}
