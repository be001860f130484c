/* session_test.c - logs, shells and signals: permissions, targets and results. */
#include "control/session/session_kit_test.h"

/* ---- logs ------------------------------------------------------------------------------------------------------- */

static void logs_are_forwarded(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end reader = {0}, post = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, ALICE, "GET", "/v1/instances/901/logs?tail=5&follow=true", NULL, 0, &reader);
    assert_false(reader.answered); /* the agent may refuse */
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_string_equal(member(line, "verb"), "logs");
    assert_int_equal(json_integer_value(json_object_get(line, "instance")), 901);
    assert_int_equal(json_integer_value(json_object_get(line, "tail")), 5);
    assert_true(json_is_true(json_object_get(line, "follow")));

    agent_send_output(&s, N1, "n1", member(line, "call"), "stream=out", "one\n\0two", 8, &post);
    EXPECT(&post, 200);
    EXPECT(&reader, 200);
    assert_string_equal(reader.type, "text/plain; charset=utf-8");
    assert_int_equal(reader.text.len, 8);
    assert_memory_equal(reader.text.at, "one\n\0two", 8);
    end_done(&post);
    agent_send_output(&s, N1, "n1", member(line, "call"), "end=true", NULL, 0, &post);
    EXPECT(&post, 200);
    assert_true(reader.ended);
    assert_int_equal(sessions_open(&s), 0);
    end_done(&post);
    agent_send_output(&s, N1, "n1", member(line, "call"), "stream=out", "x", 1, &post);
    EXPECT(&post, 404);
    scene_done(&s);
}

static void expect_member(struct caller_end *reader, const char *key, const char *value)
{
    CLEANUP(json) json_t *line = end_line(reader);
    const json_t *found = json_object_get(line, key);
    if (json_is_true(found))
        assert_string_equal(value, "true");
    else
        assert_string_equal(member(line, key), value);
}

static void logs_as_lines_have_cursors(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end reader = {0}, post = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, ALICE, "GET", "/v1/apps/web/logs?ordinal=0&follow=true&lines=true", NULL, 0, &reader);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_null(json_object_get(line, "cursor"));
    agent_send_output(&s, N1, "n1", member(line, "call"), "stream=out&cursor=a.0", NULL, 0, &post);
    end_done(&post);
    EXPECT(&reader, 200);
    assert_string_equal(reader.type, "application/x-ndjson");
    CLEANUP(json) json_t *head = end_line(&reader);
    assert_int_equal(json_integer_value(json_object_get(head, "instance")), 901);
    assert_string_equal(member(head, "node"), "n1");
    expect_member(&reader, "cursor", "a.0");
    agent_send_output(&s, N1, "n1", member(line, "call"), "stream=out&cursor=a.5", "one\n\0", 5, &post);
    end_done(&post);
    CLEANUP(json) json_t *piece = end_line(&reader);
    assert_string_equal(member(piece, "out"), "b25lCgA=");
    assert_string_equal(member(piece, "cursor"), "a.5");
    agent_send_output(&s, N1, "n1", member(line, "call"), "end=true", NULL, 0, &post);
    end_done(&post);
    expect_member(&reader, "end", "true");
    assert_true(reader.ended);
    end_done(&reader);

    /* The rest of the log over a new connection; the agent reconnects meanwhile. */
    send_request(&s.k, ALICE, "GET", "/v1/instances/901/logs?follow=true&lines=true&cursor=a.5&node=n1", NULL, 0,
                 &reader);
    CLEANUP(json) json_t *rest = end_line(&s.agent);
    assert_string_equal(member(rest, "cursor"), "a.5");
    agent_send_output(&s, N1, "n1", member(rest, "call"), "stream=out&cursor=b.0&gap=true", NULL, 0, &post);
    end_done(&post);
    CLEANUP(json) json_t *again = end_line(&reader);
    assert_string_equal(member(again, "node"), "n1");
    expect_member(&reader, "gap", "true");
    CLEANUP(end) struct caller_end anew = {0};
    send_request(&s.k, N1, "GET", "/v1/nodes/n1/calls?epoch=8", NULL, 0, &anew);
    kit_sleep(&s.k, 1);
    expect_member(&reader, "again", "true");
    assert_true(reader.ended);
    end_done(&reader);
    send_request(&s.k, ALICE, "GET", "/v1/instances/901/logs?cursor=a b", NULL, 0, &reader);
    EXPECT(&reader, 400);
    expect_words(&reader, "cursor");
    scene_done(&s);
}

static void invalid_log_requests_are_refused(void **state)
{
    struct scene s;
    CLEANUP(end) struct caller_end reader = {0}, post = {0};
    (void)state;
    scene_open(&s);
    send_request(&s.k, CAROL, "GET", "/v1/instances/901/logs", NULL, 0, &reader);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_int_equal(json_integer_value(json_object_get(line, "tail")), -1);
    static const char why[] = "{\"error\": \"its log was on a disk that is full\"}";
    agent_send_output(&s, N1, "n1", member(line, "call"), "end=true", why, strlen(why), &post);
    EXPECT(&post, 200);
    EXPECT(&reader, 409);
    expect_words(&reader, "a disk that is full");
    assert_int_equal(sessions_open(&s), 0);
    scene_done(&s);
}

static void silent_log_starts_after_timeout(void **state)
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
    kit_sleep(&s.k, 300); /* an idle log stays open, without heartbeats in its text */
    assert_int_equal(reader.text.len, 0);
    assert_int_equal(sessions_open(&s), 1);
    static const char why[] = "{\"error\": \"gone\"}";
    agent_send_output(&s, N1, "n1", member(line, "call"), "end=true", why, strlen(why), &post);
    assert_string_equal(reader.text.at, "berth: end of the log: gone\n");
    assert_true(reader.ended);
    scene_done(&s);
}

static void log_source_is_selected(void **state)
{
    static const struct {
        const char *who, *url;
        int status;
        const char *words; /* the expected error; with status 0, the instance that the agent is asked for */
    } rows[] = {
        {ALICE, "/v1/instances/904/logs",                    409, "is lost"            },
        {ALICE, "/v1/instances/901/logs",                    0,   "901"                },
        {ALICE, "/v1/instances/902/logs",                    0,   "902"                },
        {ALICE, "/v1/instances/903/logs",                    409, "has not started yet"},
        {ALICE, "/v1/instances/905/logs",                    503, "is not connected"   },
        {BOB,   "/v1/instances/901/logs",                    404, "no instance"        },
        {ALICE, "/v1/instances/777/logs",                    404, "no instance"        },
        {ALICE, "/v1/instances/777/logs?node=n1",            404, "no instance"        },
        {ALICE, "/v1/instances/901/logs?tail=x",             400, "tail"               },
        {ALICE, "/v1/instances/901/logs?follow=1",           400, "follow"             },
        {ALICE, "/v1/apps/web/logs",                         0,   "901"                },
        {ALICE, "/v1/apps/web/logs?ordinal=1",               0,   "902"                },
        {ALICE, "/v1/apps/web/logs?ordinal=5",               409, "not run yet"        },
        {ALICE, "/v1/apps/web/logs?previous=true",           409, "no earlier instance"},
        {BOB,   "/v1/apps/web.alice/logs",                   404, "no app"             },
        {CAROL, "/v1/apps/web.alice/logs",                   0,   "901"                },
        {ALICE, "/v1/jobs/9/logs",                           404, "no job"             },
        {ALICE, "/v1/apps/old/logs",                         0,   "802"                },
        {ALICE, "/v1/apps/old/logs?ordinal=0",               0,   "801"                },
        {ALICE, "/v1/apps/old/logs?previous=true&ordinal=1", 0,   "802"                },
        {ALICE, "/v1/apps/old/logs?ordinal=2",               409, "no longer exists"   },
        {ALICE, "/v1/instances/801/logs",                    404, "no instance"        },
        {ALICE, "/v1/instances/801/logs?node=n1",            0,   "801"                },
        {ALICE, "/v1/instances/801/logs?node=n2",            404, "no instance"        },
        {ALICE, "/v1/instances/80/logs?node=n1",             404, "no instance"        },
        {BOB,   "/v1/instances/801/logs?node=n1",            404, "no instance"        },
    };
    struct scene s;
    (void)state;
    scene_open(&s);
    CALL(&s.k, 201, ADMIN, "POST", "/v1/nodes", "{id: n3, allocatable: {cpu: 16, memory: 64Gi}}");
    kit_put(&s.k, KIND_NODE, "n4",
            "{v: 1, id: n4, state: lost, since: 2026-03-01T12:00:00Z, allocatable: {cpu: 16, memory: 64Gi}}");
    CALL(&s.k, 201, ALICE, "POST", "/v1/apps", "{name: old, stopped: true}");
    kit_put(&s.k, KIND_LAST_END, "old.alice",
            "{v: 1, items: [{instance: 802, ordinal: 1, node: n1}, {instance: 801, ordinal: 0, node: n1}, {instance: "
            "803, ordinal: 2, node: n9}]}");
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
            kit_sleep(&s.k, 3); /* the log starts, and the client disconnects */
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
    assert_int_equal(sessions_open(&s), 0);
    scene_done(&s);
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static void exec_end_to_end(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0}, post = {0}, early = {0};
    (void)state;
    scene_open(&s);
    CLEANUP(json)
    json_t *line = exec_open(
        &s,
        "{\"command\": [\"cat\", \"-\"], \"env\": {\"A\": \"b\"}, \"terminal\": true, \"rows\": 24, \"columns\": 80}",
        call);
    assert_string_equal(member(line, "verb"), "exec");
    assert_string_equal(json_string_value(json_array_get(json_object_get(line, "command"), 1)), "-");
    assert_string_equal(member(json_object_get(line, "env"), "A"), "b");
    assert_int_equal(json_integer_value(json_object_get(line, "rows")), 24);

    agent_send_output(&s, N1, "n1", call, "stream=out", "hello", 5, &early);
    assert_false(early.answered); /* the client is not connected yet */
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

    agent_send_output(&s, N1, "n1", call, "stream=err", "oh", 2, &post);
    end_done(&post);
    agent_send_output(&s, N1, "n1", call, "end=true&exit=130", NULL, 0, &post);
    EXPECT(&post, 200);
    CLEANUP(json) json_t *said = end_line(&reader);
    assert_string_equal(member(said, "err"), "b2g=");
    CLEANUP(json) json_t *exit = end_line(&reader);
    assert_int_equal(json_integer_value(json_object_get(exit, "exit")), 130);
    assert_true(reader.ended);
    assert_int_equal(sessions_open(&s), 0);
    scene_done(&s);
}

static void invalid_exec_requests_are_refused(void **state)
{
    static const struct {
        const char *who, *url, *body;
        int status;
        const char *words;
    } rows[] = {
        {ALICE, "/v1/instances/901/exec",     "{}",                                                       400, "command"         },
        {ALICE, "/v1/instances/901/exec",     "{\"command\": []}",                                        400, "command"         },
        {ALICE, "/v1/instances/901/exec",     "{\"command\": [\"a\"], \"tty\": 1}",                       400, "tty"             },
        {ALICE, "/v1/instances/901/exec",     "{\"command\": [\"a\"], \"env\": {\"B=C\": \"d\"}}",        400,
         "not a valid variable name"                                                                                             },
        {ALICE, "/v1/instances/901/exec",     "{\"command\": [\"a\"], \"rows\": 70000, \"columns\": 80}", 400, "rows"            },
        {ALICE, "/v1/instances/902/exec",     "{\"command\": [\"a\"]}",                                   409, "it is starting"  },
        {BOB,   "/v1/instances/901/exec",     "{\"command\": [\"a\"]}",                                   404, "no instance"     },
        {CAROL, "/v1/instances/905/exec",     "{\"command\": [\"a\"]}",                                   503, "is not connected"},
        {ALICE, "/v1/instances/901/signal",   "{\"signal\": \"BOO\"}",                                    400, "no signal"       },
        {ALICE, "/v1/instances/902/signal",   "{\"signal\": \"HUP\"}",                                    409, "it is starting"  },
        {BOB,   "/v1/instances/901/signal",   "{\"signal\": \"HUP\"}",                                    404, "no instance"     },
        {N1,    "/v1/instances/901/exec",     "{\"command\": [\"a\"]}",                                   403, "may not"         },
        {ALICE, "/v1/nodes/n1/calls",         NULL,                                                       403, "may not"         },
        {N1,    "/v1/nodes/n1/calls",         NULL,                                                       400, "epoch"           },
        {N1,    "/v1/nodes/n2/calls?epoch=9", NULL,                                                       404, "no node"         },
        {N1,    "/v1/nodes/n1/calls?epoch=6", NULL,                                                       409, "epoch 7"         },
    };
    struct scene s;
    (void)state;
    scene_open(&s);
    CALL(&s.k, 201, ADMIN, "POST", "/v1/nodes", "{id: n3, allocatable: {cpu: 16, memory: 64Gi}}");
    instance_put(&s.k, "902", "n1", "starting", "1");
    instance_put(&s.k, "905", "n3", "running", "3");
    kit_plan(&s.k); /* lets the scheduler finish its writes */
    uint64_t records = store_log_last(s.k.store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(end) struct caller_end e = {0};
        const char *body = rows[i].body;
        send_request(&s.k, rows[i].who, body ? "POST" : "GET", rows[i].url, body, body ? strlen(body) : 0, &e);
        if (e.status != rows[i].status)
            fail_msg("%s as %s with %s: %d instead of %d", rows[i].url, rows[i].who, body, e.status, rows[i].status);
        expect_words(&e, rows[i].words);
    }
    assert_int_equal(store_log_last(s.k.store), records); /* refused actions are not recorded */
    assert_int_equal(sessions_open(&s), 0);
    assert_null(end_line(&s.agent));
    scene_done(&s);
}

static void signal_waits_for_agent_answer(void **state)
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
            agent_send_output(&s, N1, "n1", member(line, "call"), "end=true", bad ? why : NULL, bad ? strlen(why) : 0,
                              &post);
        EXPECT(&e, bad == 0 ? 200 : bad == 1 ? 409 : 503);
        if (bad)
            expect_words(&e, bad == 1 ? "no such process" : "unknown whether");
        assert_int_equal(sessions_open(&s), 0);
    }
    scene_done(&s);
}

/* ---- journal records -------------------------------------------------------------------------------------------- */

static void exec_and_signal_are_recorded(void **state)
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
    assert_int_equal(e.status, 503); /* the daemon stopped before the agent answered */
}

/* A repeated request, whose first answer was lost, runs the command only once. */
static void repeated_request_runs_once(void **state)
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
    assert_int_equal(sessions_open(&s), 1);
    scene_done(&s);
}

/* ---- isolation and limits --------------------------------------------------------------------------------------- */

static void session_belongs_to_its_user(void **state)
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
    agent_send_output(&s, N2, "n2", call, "stream=out", "evil", 4, &foreign); /* own path, session of another agent */
    EXPECT(&foreign, 404);
    agent_send_output(&s, N2, "n1", call, "stream=out", "evil", 4, &forged); /* path of another agent */
    EXPECT(&forged, 404);
    agent_send_output(&s, N1, "n1", call, "stream=both", "x", 1, &bad);
    EXPECT(&bad, 400);
    assert_null(end_line(&s.agent));
    scene_done(&s);
}

static void sessions_are_bounded(void **state)
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
    assert_int_equal(taken, SESSIONS_USER_MAX);
    assert_int_equal(refused, TRIES - SESSIONS_USER_MAX);
    assert_int_equal(sessions_open(&s), SESSIONS_USER_MAX);
    CLEANUP(end) struct caller_end carol = {0};
    send_request(&s.k, CAROL, "POST", "/v1/instances/901/exec", "{\"command\": [\"a\"]}", 18, &carol);
    EXPECT(&carol, 200); /* other users are not affected */
    kit_sleep(&s.k, 61); /* no client connects to any of them */
    assert_int_equal(sessions_open(&s), 0);
    size_t closed = 0;
    for (json_t *line; (line = end_line(&s.agent)); json_decref(line))
        closed += json_is_true(json_object_get(line, "close"));
    assert_int_equal(closed, SESSIONS_USER_MAX + 1);
    scene_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_are_forwarded),
        cmocka_unit_test(logs_as_lines_have_cursors),
        cmocka_unit_test(invalid_log_requests_are_refused),
        cmocka_unit_test(silent_log_starts_after_timeout),
        cmocka_unit_test(log_source_is_selected),
        cmocka_unit_test(exec_end_to_end),
        cmocka_unit_test(invalid_exec_requests_are_refused),
        cmocka_unit_test(signal_waits_for_agent_answer),
        cmocka_unit_test(exec_and_signal_are_recorded),
        cmocka_unit_test(repeated_request_runs_once),
        cmocka_unit_test(session_belongs_to_its_user),
        cmocka_unit_test(sessions_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
