/* Tests of logs, shells and signals: people and agents are played by requests. */
#include "control/kit_test.h"

#include "base/base64.h"
#include "base/vec.h"
#include "control/relay.h"

/* ---- a caller whose answer may come later, or be a stream ------------------------------------------------------------ */

struct caller_end {
    bool answered;
    int status;
    json_t *body;
    char type[64];
    struct stream *stream;
    struct str text; /* what the stream has brought */
    size_t read, backlog;
    bool paced, ended; /* the reader takes nothing unless told to */
};

static bool sink_send(void *ctx, const char *at, size_t len)
{
    struct caller_end *e = ctx;
    str_add_bytes(&e->text, at, len);
    e->backlog += e->paced ? len : 0;
    return true;
}

static void sink_end(void *ctx)
{
    struct caller_end *e = ctx;
    e->stream = NULL;
    e->ended = true;
}

static size_t sink_backlog(void *ctx)
{
    return ((struct caller_end *)ctx)->backlog;
}

static void end_answered(void *ctx, struct answer *a)
{
    struct caller_end *e = ctx;
    assert_false(e->answered);
    e->answered = true;
    e->status = a->status;
    e->body = json_incref(a->body);
    if (!a->stream)
        return;
    struct sink sink = {.ctx = e, .send = sink_send, .end = sink_end, .backlog = sink_backlog};
    e->stream = take_ptr(&a->stream);
    (void)snprintf(e->type, sizeof e->type, "%s", stream_content_type(e->stream));
    stream_start(e->stream, &sink);
}

static void send_request(struct kit *k, const char *who, const char *method, const char *url, const char *body,
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
    struct request request = {
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

static void end_done(struct caller_end *e)
{
    if (e->stream)
        stream_stop(e->stream);
    json_decref(e->body);
    str_done(&e->text);
    *e = (struct caller_end){0};
}

static void end_cleanup(struct caller_end *e)
{
    end_done(e);
}

/* The reader has read all there is. */
static void end_read(struct kit *k, struct caller_end *e)
{
    e->backlog = 0;
    if (e->stream)
        stream_drained(e->stream);
    control_pump(k->control);
}

/* The next line; NULL: none. */
static json_t *end_line(struct caller_end *e)
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

static const char *member(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text ? text : "";
}

#define EXPECT(e, status_)                                                                                             \
    do {                                                                                                               \
        char *text_ = json_dumps((e)->body ? (e)->body : json_null(), JSON_ENCODE_ANY);                                \
        if (!(e)->answered || (e)->status != (status_))                                                                \
            fail_msg("line %d: %s with %d instead of %d: %s", __LINE__,                                                \
                     (e)->answered ? "answered" : "not answered", (e)->status, status_, text_);                        \
        free(text_);                                                                                                   \
    } while (0)

static void expect_words(const struct caller_end *e, const char *words)
{
    CLEANUP(mem) char *text = json_dumps(e->body, JSON_ENCODE_ANY);
    if (!text || !strstr(text, words))
        fail_msg("expected \"%s\": %s", words, text ? text : "nothing");
}

/* ---- the cluster ---------------------------------------------------------------------------------------------------- */

struct scene {
    struct kit k;
    struct caller_end agent, other; /* streams of n1's and n2's agents */
    char id[24];                    /* of alice's instance on n1 */
};

#define ALICE "user:alice"
#define BOB "user:bob"
#define CAROL "user:carol"
#define N1 "node:n1"
#define N2 "node:n2"

static void instance_put(struct kit *k, const char *id, const char *node, const char *state, const char *ordinal)
{
    char doc[400];
    (void)snprintf(doc, sizeof doc,
                   "{v: 1, id: %s, workload: web.alice, ordinal: %s, node: %s, state: %s, generation: 1, created: "
                   "2026-03-01T12:00:00Z, since: 2026-03-01T12:00:00Z}",
                   id, ordinal, node, state);
    kit_put(k, KIND_INSTANCE, id, doc);
}

static void scene_open(struct scene *s)
{
    *s = (struct scene){0};
    kit_open(&s->k);
    kit_people(&s->k);
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

static void scene_done(struct scene *s)
{
    end_done(&s->agent);
    end_done(&s->other);
    kit_done(&s->k);
}

static size_t under_way(const struct scene *s)
{
    return relay_len(control_relay(((struct scene *)s)->k.control));
}

/* Brings bytes or an end, as the agent of a node. */
static void bring(struct scene *s, const char *who, const char *node, const char *call, const char *query,
                  const char *body, size_t len, struct caller_end *ret)
{
    char url[160];
    (void)snprintf(url, sizeof url, "/v1/nodes/%s/calls/%s?%s", node, call, query);
    send_request(&s->k, who, "POST", url, body, len, ret);
}

/* Opens a command for alice and returns what the agent was told; *ret_call is its id. */
static json_t *exec_open(struct scene *s, const char *body, char ret_call[static 24])
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

static void call_url(char buf[static 64], const char *call, const char *sub)
{
    (void)snprintf(buf, 64, "/v1/calls/%s%s", call, sub);
}

/* ---- logs ----------------------------------------------------------------------------------------------------------- */

static void logs_go_through(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end reader = {0}, post = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, ALICE, "GET", "/v1/instances/901/logs?tail=5&follow=true", NULL, 0, &reader);
    assert_false(reader.answered); /* the agent may have a reason why not */
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_string_equal(member(line, "verb"), "logs");
    assert_int_equal(json_integer_value(json_object_get(line, "instance")), 901);
    assert_int_equal(json_integer_value(json_object_get(line, "tail")), 5);
    assert_true(json_is_true(json_object_get(line, "follow")));

    bring(&s, N1, "n1", member(line, "call"), "stream=out", "one\n\0two", 8, &post);
    EXPECT(&post, 200);
    EXPECT(&reader, 200);
    assert_string_equal(reader.type, "text/plain; charset=utf-8");
    assert_int_equal(reader.text.len, 8);
    assert_memory_equal(reader.text.at, "one\n\0two", 8);
    end_done(&post);
    bring(&s, N1, "n1", member(line, "call"), "end=true", NULL, 0, &post);
    EXPECT(&post, 200);
    assert_true(reader.ended);
    assert_int_equal(under_way(&s), 0);
    end_done(&post);
    bring(&s, N1, "n1", member(line, "call"), "stream=out", "x", 1, &post);
    EXPECT(&post, 404);
    scene_done(&s);
}

static void logs_that_cannot_be(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end reader = {0}, post = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, CAROL, "GET", "/v1/instances/901/logs", NULL, 0, &reader);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_int_equal(json_integer_value(json_object_get(line, "tail")), -1);
    static const char why[] = "{\"error\": \"its log was on a disk that is full\"}";
    bring(&s, N1, "n1", member(line, "call"), "end=true", why, strlen(why), &post);
    EXPECT(&post, 200);
    EXPECT(&reader, 409);
    expect_words(&reader, "a disk that is full");
    assert_int_equal(under_way(&s), 0);
    scene_done(&s);
}

static void a_silent_log_begins_by_itself(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end reader = {0}, post = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, ALICE, "GET", "/v1/instances/901/logs?follow=true", NULL, 0, &reader);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    kit_sleep(&s.k, 1);
    assert_false(reader.answered);
    kit_sleep(&s.k, 2);
    EXPECT(&reader, 200);
    assert_int_equal(reader.text.len, 0);
    kit_sleep(&s.k, 300); /* nothing is written into a log, and an idle one stays */
    assert_int_equal(reader.text.len, 0);
    assert_int_equal(under_way(&s), 1);
    static const char why[] = "{\"error\": \"gone\"}";
    bring(&s, N1, "n1", member(line, "call"), "end=true", why, strlen(why), &post);
    assert_string_equal(reader.text.at, "berth: the log ends here: gone\n");
    assert_true(reader.ended);
    scene_done(&s);
}

static void which_instance(void **state)
{
    static const struct {
        const char *who, *url;
        int status;
        const char *words; /* of the error; else the instance the agent is asked about */
    } rows[] = {
        {ALICE, "/v1/instances/904/logs",          409, "is lost"             },
        {ALICE, "/v1/instances/901/logs",          0,   "901"                 },
        {ALICE, "/v1/instances/902/logs",          0,   "902"                 },
        {ALICE, "/v1/instances/903/logs",          409, "has not started yet" },
        {ALICE, "/v1/instances/905/logs",          503, "is not connected"    },
        {BOB,   "/v1/instances/901/logs",          404, "no instance"         },
        {ALICE, "/v1/instances/777/logs",          404, "no instance"         },
        {ALICE, "/v1/instances/777/logs?node=n1",  404, "no instance"         },
        {ALICE, "/v1/instances/901/logs?tail=x",   400, "tail"                },
        {ALICE, "/v1/instances/901/logs?follow=1", 400, "follow"              },
        {ALICE, "/v1/apps/web/logs",               0,   "901"                 },
        {ALICE, "/v1/apps/web/logs?ordinal=1",     0,   "902"                 },
        {ALICE, "/v1/apps/web/logs?ordinal=5",     409, "not run yet"         },
        {ALICE, "/v1/apps/web/logs?previous=true", 409, "no earlier instance" },
        {BOB,   "/v1/apps/web.alice/logs",         404, "no app"              },
        {CAROL, "/v1/apps/web.alice/logs",         0,   "901"                 },
        {ALICE, "/v1/jobs/9/logs",                 404, "no job"              },
    };
    struct scene s;
    (void)state;
    scene_open(&s);
    CALL(&s.k, 201, ADMIN, "POST", "/v1/nodes", "{id: n3, allocatable: {cpu: 16, memory: 64Gi}}");
    kit_put(&s.k, KIND_NODE, "n4",
            "{v: 1, id: n4, state: lost, since: 2026-03-01T12:00:00Z, allocatable: {cpu: 16, memory: 64Gi}}");
    instance_put(&s.k, "902", "n1", "stopping", "1");
    instance_put(&s.k, "903", "n1", "assigned", "4");
    instance_put(&s.k, "904", "n4", "running", "2");
    instance_put(&s.k, "905", "n3", "running", "3");
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(end) struct caller_end e = {0};
        CLEANUP(json) json_t *line = NULL;
        send_request(&s.k, rows[i].who, "GET", rows[i].url, NULL, 0, &e);
        line = end_line(&s.agent);
        if (rows[i].status == 0) {
            char asked[24];
            if (!line)
                fail_msg("%s: the agent was not asked", rows[i].url);
            (void)str_u64((uint64_t)json_integer_value(json_object_get(line, "instance")), asked);
            assert_string_equal(asked, rows[i].words);
            kit_sleep(&s.k, 3); /* it begins, and is hung up on */
            end_done(&e);
            control_pump(s.k.control);
            CLEANUP(json) json_t *over = end_line(&s.agent);
            assert_true(json_is_true(json_object_get(over, "close")));
            assert_string_equal(member(over, "call"), member(line, "call"));
            continue;
        }
        if (e.status != rows[i].status || line)
            fail_msg("%s as %s: %d instead of %d", rows[i].url, rows[i].who, e.status, rows[i].status);
        expect_words(&e, rows[i].words);
    }
    assert_int_equal(under_way(&s), 0);
    scene_done(&s);
}

/* ---- commands ------------------------------------------------------------------------------------------------------- */

static void a_command_from_end_to_end(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0}, post = {0}, early = {0};
    (void)state;
    scene_open(&s);
    CLEANUP(json) json_t *line =
        exec_open(&s, "{\"command\": [\"cat\", \"-\"], \"env\": {\"A\": \"b\"}, \"terminal\": true, \"rows\": 24, \"columns\": 80}", call);
    assert_string_equal(member(line, "verb"), "exec");
    assert_string_equal(json_string_value(json_array_get(json_object_get(line, "command"), 1)), "-");
    assert_string_equal(member(json_object_get(line, "env"), "A"), "b");
    assert_int_equal(json_integer_value(json_object_get(line, "rows")), 24);

    bring(&s, N1, "n1", call, "stream=out", "hello", 5, &early);
    assert_false(early.answered); /* nobody listens yet */
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    EXPECT(&reader, 200);
    EXPECT(&early, 200);
    CLEANUP(json) json_t *out = end_line(&reader);
    assert_string_equal(member(out, "out"), "aGVsbG8=");

    call_url(url, call, "/input");
    send_request(&s.k, ALICE, "POST", url, "\0\1\2", 3, &post);
    EXPECT(&post, 200);
    CLEANUP(json) json_t *input = end_line(&s.agent);
    assert_string_equal(member(input, "input"), "AAEC");
    assert_null(json_object_get(input, "eof"));
    end_done(&post);
    call_url(url, call, "/resize");
    send_request(&s.k, ALICE, "POST", url, "{\"rows\": 50, \"columns\": 100}", 28, &post);
    EXPECT(&post, 200);
    CLEANUP(json) json_t *size = end_line(&s.agent);
    assert_int_equal(json_integer_value(json_object_get(size, "rows")), 50);
    end_done(&post);
    call_url(url, call, "/input?eof=true");
    send_request(&s.k, ALICE, "POST", url, NULL, 0, &post);
    EXPECT(&post, 200);
    CLEANUP(json) json_t *eof = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(eof, "eof")));
    assert_null(json_object_get(eof, "input"));
    end_done(&post);
    send_request(&s.k, ALICE, "POST", url, "x", 1, &post);
    EXPECT(&post, 409);
    end_done(&post);

    bring(&s, N1, "n1", call, "stream=err", "oh", 2, &post);
    end_done(&post);
    bring(&s, N1, "n1", call, "end=true&exit=130", NULL, 0, &post);
    EXPECT(&post, 200);
    CLEANUP(json) json_t *said = end_line(&reader);
    assert_string_equal(member(said, "err"), "b2g=");
    CLEANUP(json) json_t *exit = end_line(&reader);
    assert_int_equal(json_integer_value(json_object_get(exit, "exit")), 130);
    assert_true(reader.ended);
    assert_int_equal(under_way(&s), 0);
    scene_done(&s);
}

static void what_cannot_be_run(void **state)
{
    static const struct {
        const char *who, *url, *body;
        int status;
        const char *words;
    } rows[] = {
        {ALICE, "/v1/instances/901/exec",   "{}",                                 400, "command"         },
        {ALICE, "/v1/instances/901/exec",   "{\"command\": []}",                  400, "command"         },
        {ALICE, "/v1/instances/901/exec",   "{\"command\": [\"a\"], \"tty\": 1}", 400, "tty"             },
        {ALICE, "/v1/instances/902/exec",   "{\"command\": [\"a\"]}",             409, "it is starting"  },
        {BOB,   "/v1/instances/901/exec",   "{\"command\": [\"a\"]}",             404, "no instance"     },
        {CAROL, "/v1/instances/905/exec",   "{\"command\": [\"a\"]}",             503, "is not connected"},
        {ALICE, "/v1/instances/901/signal", "{\"signal\": \"BOO\"}",              400, "no signal"       },
        {ALICE, "/v1/instances/902/signal", "{\"signal\": \"HUP\"}",              409, "it is starting"  },
        {BOB,   "/v1/instances/901/signal", "{\"signal\": \"HUP\"}",              404, "no instance"     },
        {N1,    "/v1/instances/901/exec",   "{\"command\": [\"a\"]}",             403, "may not"         },
        {ALICE, "/v1/nodes/n1/calls",       NULL,                                 403, "may not"         },
        {N1,    "/v1/nodes/n1/calls",       NULL,                                 400, "epoch"           },
        {N1,    "/v1/nodes/n2/calls?epoch=9", NULL,                               404, "no node"         },
        {N1,    "/v1/nodes/n1/calls?epoch=6", NULL,                               409, "epoch 7"         },
    };
    struct scene s;
    (void)state;
    scene_open(&s);
    CALL(&s.k, 201, ADMIN, "POST", "/v1/nodes", "{id: n3, allocatable: {cpu: 16, memory: 64Gi}}");
    instance_put(&s.k, "902", "n1", "starting", "1");
    instance_put(&s.k, "905", "n3", "running", "3");
    kit_plan(&s.k); /* what the loop has to write */
    uint64_t records = store_log_last(s.k.store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(end) struct caller_end e = {0};
        const char *body = rows[i].body;
        send_request(&s.k, rows[i].who, body ? "POST" : "GET", rows[i].url, body, body ? strlen(body) : 0, &e);
        if (e.status != rows[i].status)
            fail_msg("%s as %s with %s: %d instead of %d", rows[i].url, rows[i].who, body, e.status, rows[i].status);
        expect_words(&e, rows[i].words);
    }
    assert_int_equal(store_log_last(s.k.store), records); /* what was refused is no deed */
    assert_int_equal(under_way(&s), 0);
    assert_null(end_line(&s.agent));
    scene_done(&s);
}

static void a_signal_waits_for_the_agents_word(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    for (int bad = 0; bad < 3; bad++) {
        CLEANUP(end) struct caller_end e = {0}, post = {0};
        send_request(&s.k, ALICE, "POST", "/v1/instances/901/signal", "{\"signal\": \"sighup\"}", 20, &e);
        assert_false(e.answered);
        CLEANUP(json) json_t *line = end_line(&s.agent);
        assert_string_equal(member(line, "verb"), "signal");
        assert_string_equal(member(line, "signal"), "HUP");
        static const char why[] = "{\"error\": \"no such process\"}";
        if (bad == 2)
            kit_sleep(&s.k, 21);
        else
            bring(&s, N1, "n1", member(line, "call"), "end=true", bad ? why : NULL, bad ? strlen(why) : 0, &post);
        EXPECT(&e, bad == 0 ? 200 : bad == 1 ? 409 : 503);
        if (bad)
            expect_words(&e, bad == 1 ? "no such process" : "not known whether");
        assert_int_equal(under_way(&s), 0);
    }
    scene_done(&s);
}

/* ---- the record ----------------------------------------------------------------------------------------------------- */

static void every_deed_is_recorded(void **state)
{
    struct scene s;
    char call[24];
    CLEANUP(end) struct caller_end e = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"rm\", \"-rf\", \"x\"], \"env\": {\"PASSWORD\": \"hush\"}}", call));
    send_request(&s.k, CAROL, "POST", "/v1/instances/901/signal", "{\"signal\": \"KILL\"}", 18, &e);
    CALL(&s.k, 200, ADMIN, "GET", "/v1/audit?limit=2", NULL);
    assert_string_equal(kit_text(&s.k, "items/0/who"), "alice");
    assert_string_equal(kit_text(&s.k, "items/0/kind"), "POST /v1/instances/{id}/exec");
    assert_string_equal(kit_text(&s.k, "items/0/subject"), "instances/901");
    assert_string_equal(kit_text(&s.k, "items/0/errand/command/1"), "-rf");
    assert_string_equal(kit_text(&s.k, "items/0/errand/node"), "n1");
    assert_string_equal(kit_text(&s.k, "items/0/errand/workload"), "web.alice");
    assert_string_equal(kit_text(&s.k, "items/1/who"), "carol");
    assert_string_equal(kit_text(&s.k, "items/1/errand/signal"), "KILL");
    assert_null(strstr(s.k.text, "hush"));
    scene_done(&s);
    assert_int_equal(e.status, 503); /* the daemon stopped before the agent said a word */
}

/* A request that is sent again, because its answer was lost, runs nothing twice. */
static void once_only(void **state)
{
    struct scene s;
    char call[24];
    (void)state;
    scene_open(&s);
    s.k.key = "abc";
    json_decref(exec_open(&s, "{\"command\": [\"make\"]}", call));
    CLEANUP(end) struct caller_end again = {0};
    s.k.key = "abc";
    send_request(&s.k, ALICE, "POST", "/v1/instances/901/exec", "{\"command\": [\"make\"]}", 21, &again);
    EXPECT(&again, 200);
    assert_string_equal(member(again.body, "call"), call);
    assert_null(end_line(&s.agent));
    assert_int_equal(under_way(&s), 1);
    scene_done(&s);
}

/* ---- others --------------------------------------------------------------------------------------------------------- */

static void an_errand_is_its_openers_alone(void **state)
{
    static const struct {
        const char *who, *method, *sub;
    } rows[] = {
        {BOB,   "GET",    ""       },
        {CAROL, "GET",    ""       },
        {ADMIN, "GET",    ""       },
        {BOB,   "POST",   "/input" },
        {CAROL, "POST",   "/resize"},
        {ADMIN, "DELETE", ""       },
    };
    struct scene s;
    char call[24], url[64];
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"sh\"]}", call));
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(end) struct caller_end e = {0}, none = {0};
        call_url(url, call, rows[i].sub);
        send_request(&s.k, rows[i].who, rows[i].method, url, NULL, 0, &e);
        EXPECT(&e, 404);
        call_url(url, "ffffffffffffffff", rows[i].sub);
        send_request(&s.k, rows[i].who, rows[i].method, url, NULL, 0, &none);
        EXPECT(&none, 404);
        assert_string_equal(member(json_object_get(none.body, "error"), "code"), "not-found");
    }
    CLEANUP(end) struct caller_end foreign = {0}, forged = {0}, bad = {0};
    bring(&s, N2, "n2", call, "stream=out", "evil", 4, &foreign); /* its own path, another's errand */
    EXPECT(&foreign, 404);
    bring(&s, N2, "n1", call, "stream=out", "evil", 4, &forged); /* another's path */
    EXPECT(&forged, 404);
    bring(&s, N1, "n1", call, "stream=both", "x", 1, &bad);
    EXPECT(&bad, 400);
    assert_null(end_line(&s.agent));
    scene_done(&s);
}

static void everything_has_a_bound(void **state)
{
    enum { TRIES = 10000 };
    struct scene s;
    size_t taken = 0, refused = 0;
    (void)state;
    scene_open(&s);
    for (int i = 0; i < TRIES; i++) {
        CLEANUP(end) struct caller_end e = {0};
        send_request(&s.k, ALICE, "POST", "/v1/instances/901/exec", "{\"command\": [\"a\"]}", 18, &e);
        taken += e.status == 200;
        refused += e.status == 429;
    }
    assert_int_equal(taken, RELAY_USER_MAX);
    assert_int_equal(refused, TRIES - RELAY_USER_MAX);
    assert_int_equal(under_way(&s), RELAY_USER_MAX);
    CLEANUP(end) struct caller_end carol = {0};
    send_request(&s.k, CAROL, "POST", "/v1/instances/901/exec", "{\"command\": [\"a\"]}", 18, &carol);
    EXPECT(&carol, 200); /* others are not hindered */
    kit_sleep(&s.k, 61); /* nobody listens to any of them */
    assert_int_equal(under_way(&s), 0);
    size_t closed = 0;
    for (json_t *line; (line = end_line(&s.agent)); json_decref(line))
        closed += json_is_true(json_object_get(line, "close"));
    assert_int_equal(closed, RELAY_USER_MAX + 1);
    scene_done(&s);
}

/* ---- slow and absent ------------------------------------------------------------------------------------------------ */

static void the_agent_waits_for_a_slow_reader(void **state)
{
    enum { PIECES = 3 }; /* with base64 the second goes over the bound */
    static char piece[RELAY_PIECE_MAX];
    struct scene s;
    char call[24], url[64];
    struct caller_end posts[PIECES] = {0};
    CLEANUP(end) struct caller_end reader = {.paced = true};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"yes\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    for (size_t i = 0; i < PIECES; i++) {
        memset(piece, 'a' + (int)i, sizeof piece);
        bring(&s, N1, "n1", call, "stream=out", piece, sizeof piece, &posts[i]);
        assert_int_equal(posts[i].answered, i + 1 < PIECES);
    }
    size_t before = reader.text.len;
    assert_true(before < 3 * (size_t)RELAY_BACKLOG_MAX);
    end_read(&s.k, &reader);
    EXPECT(&posts[PIECES - 1], 200);
    for (size_t i = 0; i < PIECES; i++) { /* all of it, once, in order */
        CLEANUP(json) json_t *line = end_line(&reader);
        CLEANUP(str) struct str bytes = {0};
        const char *text = member(line, "out");
        assert_true(str_add_base64_bytes(&bytes, text, strlen(text)));
        assert_int_equal(bytes.len, sizeof piece);
        assert_int_equal(bytes.at[0], 'a' + (int)i);
        end_done(&posts[i]);
    }
    end_read(&s.k, &reader);
    /* One who reads no more is given up after a minute, and whoever waits is told. */
    for (size_t i = 0; i < PIECES; i++) {
        bring(&s, N1, "n1", call, "stream=out", piece, sizeof piece, &posts[i]);
        assert_int_equal(posts[i].answered, i + 1 < PIECES);
    }
    kit_sleep(&s.k, 62);
    EXPECT(&posts[PIECES - 1], 404);
    assert_true(reader.ended);
    assert_int_equal(under_way(&s), 0);
    CLEANUP(json) json_t *close = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(close, "close")));
    for (size_t i = 0; i < PIECES; i++)
        end_done(&posts[i]);
    scene_done(&s);
}

static void input_waits_for_a_slow_agent(void **state)
{
    static char piece[RELAY_PIECE_MAX];
    struct scene s;
    char call[24], url[64];
    size_t sent = 0;
    CLEANUP(end) struct caller_end waits = {0}, second = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"cat\"]}", call));
    s.agent.paced = true;
    call_url(url, call, "/input");
    for (;; sent++) {
        CLEANUP(end) struct caller_end post = {0};
        struct caller_end *at = sent < 3 ? &post : &waits;
        send_request(&s.k, ALICE, "POST", url, piece, sizeof piece, at);
        if (at == &waits)
            break;
        EXPECT(&post, 200);
    }
    assert_false(waits.answered);
    send_request(&s.k, ALICE, "POST", url, "late", 4, &second);
    EXPECT(&second, 409);
    end_read(&s.k, &s.agent);
    EXPECT(&waits, 200);
    scene_done(&s);
}

static void a_later_piece_takes_the_place_of_one_given_up(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end first = {0}, again = {0}, reader = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    bring(&s, N1, "n1", call, "stream=out", "once", 4, &first);
    assert_false(first.answered);
    bring(&s, N1, "n1", call, "stream=out", "once", 4, &again);
    EXPECT(&first, 409);
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    EXPECT(&again, 200);
    json_decref(end_line(&reader));
    assert_null(end_line(&reader));
    scene_done(&s);
}

static void who_hangs_up_ends_it(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0}, second = {0}, post = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &second);
    EXPECT(&second, 409);
    end_done(&reader);
    bring(&s, N1, "n1", call, "stream=out", "x", 1, &post);
    EXPECT(&post, 404);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(line, "close")));
    assert_int_equal(under_way(&s), 0);
    scene_done(&s);
}

static void delete_ends_it(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0}, gone = {0}, again = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    send_request(&s.k, ALICE, "DELETE", url, NULL, 0, &gone);
    EXPECT(&gone, 200);
    assert_true(reader.ended);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(line, "close")));
    send_request(&s.k, ALICE, "DELETE", url, NULL, 0, &again);
    EXPECT(&again, 404);
    scene_done(&s);
}

/* ---- agents come and go --------------------------------------------------------------------------------------------- */

static void an_agent_comes_back(void **state)
{
    static const struct {
        const char *label, *url;
        bool heard, fed, goes_on;
    } rows[] = {
        {"the same agent, heard of",           "/v1/nodes/n1/calls?epoch=7", true,  false, true },
        {"the same agent, not heard of",       "/v1/nodes/n1/calls?epoch=7", false, false, false},
        {"the same agent, input may be lost",  "/v1/nodes/n1/calls?epoch=7", true,  true,  false},
        {"a new agent knows nothing of it",    "/v1/nodes/n1/calls?epoch=8", true,  false, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct scene s;
        char call[24], url[64];
        CLEANUP(end) struct caller_end reader = {0}, post = {0}, input = {0}, after = {0};
        scene_open(&s);
        json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
        call_url(url, call, "");
        send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
        if (rows[i].heard)
            bring(&s, N1, "n1", call, "stream=out", "x", 1, &post);
        call_url(url, call, "/input");
        if (rows[i].fed)
            send_request(&s.k, ALICE, "POST", url, "y", 1, &input);
        end_done(&s.agent); /* its connection breaks */
        control_pump(s.k.control);
        kit_sleep(&s.k, 20);
        assert_int_equal(under_way(&s), 1);
        send_request(&s.k, N1, "GET", rows[i].url, NULL, 0, &s.agent);
        EXPECT(&s.agent, 200);
        control_pump(s.k.control);
        if ((under_way(&s) == 1) != rows[i].goes_on)
            fail_msg("%s", rows[i].label);
        bring(&s, N1, "n1", call, "stream=out", "z", 1, &after);
        EXPECT(&after, rows[i].goes_on ? 200 : 404);
        assert_int_equal(reader.ended, !rows[i].goes_on);
        scene_done(&s);
    }
}

static void an_agent_that_stays_away(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0}, post = {0}, refused = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    bring(&s, N1, "n1", call, "stream=out", "x", 1, &post);
    end_done(&s.agent);
    send_request(&s.k, ALICE, "POST", "/v1/instances/901/exec", "{\"command\": [\"a\"]}", 18, &refused);
    EXPECT(&refused, 503);
    expect_words(&refused, "is not connected");
    kit_sleep(&s.k, 61);
    assert_int_equal(under_way(&s), 0);
    json_decref(end_line(&reader));
    CLEANUP(json) json_t *line = end_line(&reader);
    assert_string_equal(member(line, "error"), "the node's agent is not connected any more");
    assert_true(reader.ended);
    scene_done(&s);
}

static void a_newer_stream_ends_the_older(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end newer = {0}, older = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, N1, "GET", "/v1/nodes/n1/calls?epoch=8", NULL, 0, &newer);
    EXPECT(&newer, 200);
    assert_true(s.agent.ended);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_string_equal(member(line, "code"), "replaced");
    send_request(&s.k, N1, "GET", "/v1/nodes/n1/calls?epoch=7", NULL, 0, &older);
    EXPECT(&older, 409);
    assert_false(newer.ended);
    scene_done(&s);
}

/* ---- the end -------------------------------------------------------------------------------------------------------- */

static void a_daemon_that_stops_answers_all(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end logs = {0}, piece = {0}, reader = {0}, signalled = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, ALICE, "GET", "/v1/instances/901/logs", NULL, 0, &logs);
    json_decref(end_line(&s.agent));
    send_request(&s.k, ALICE, "POST", "/v1/instances/901/signal", "{}", 2, &signalled);
    json_decref(end_line(&s.agent));
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    bring(&s, N1, "n1", call, "stream=out", "x", 1, &piece);
    json_decref(exec_open(&s, "{\"command\": [\"b\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    control_quiesce(s.k.control);
    EXPECT(&logs, 503);
    EXPECT(&signalled, 503);
    EXPECT(&piece, 404);
    CLEANUP(json) json_t *line = end_line(&reader);
    assert_string_equal(member(line, "error"), "berthd is stopping; try again soon");
    assert_true(reader.ended);
    assert_true(s.agent.ended);
    assert_int_equal(under_way(&s), 0);
    scene_done(&s);
}

/* Whoever may no longer do it is cut off. */
static void rights_that_are_taken_end_it(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"sh\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    CALL(&s.k, 200, ADMIN, "POST", "/v1/users/alice/disable", NULL);
    control_pump(s.k.control);
    control_pump(s.k.control);
    assert_true(reader.ended);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(line, "close")));
    assert_int_equal(under_way(&s), 0);
    scene_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_go_through),
        cmocka_unit_test(logs_that_cannot_be),
        cmocka_unit_test(a_silent_log_begins_by_itself),
        cmocka_unit_test(which_instance),
        cmocka_unit_test(a_command_from_end_to_end),
        cmocka_unit_test(what_cannot_be_run),
        cmocka_unit_test(a_signal_waits_for_the_agents_word),
        cmocka_unit_test(every_deed_is_recorded),
        cmocka_unit_test(once_only),
        cmocka_unit_test(an_errand_is_its_openers_alone),
        cmocka_unit_test(everything_has_a_bound),
        cmocka_unit_test(the_agent_waits_for_a_slow_reader),
        cmocka_unit_test(input_waits_for_a_slow_agent),
        cmocka_unit_test(a_later_piece_takes_the_place_of_one_given_up),
        cmocka_unit_test(who_hangs_up_ends_it),
        cmocka_unit_test(delete_ends_it),
        cmocka_unit_test(an_agent_comes_back),
        cmocka_unit_test(an_agent_that_stays_away),
        cmocka_unit_test(a_newer_stream_ends_the_older),
        cmocka_unit_test(a_daemon_that_stops_answers_all),
        cmocka_unit_test(rights_that_are_taken_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
