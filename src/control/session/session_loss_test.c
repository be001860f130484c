/* session_loss_test.c - sessions with slow readers, reconnecting agents, and a stopping daemon. */
#include "control/session/session_kit_test.h"

/* ---- slow and disconnected peers -------------------------------------------------------------------------------- */

static void the_agent_waits_for_a_slow_reader(void **state)
{
    enum { PIECES = 3 }; /* with base64 the second piece exceeds the bound */
    static char piece[SESSION_BODY_MAX];
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
        agent_send_output(&s, N1, "n1", call, "stream=out", piece, sizeof piece, &posts[i]);
        assert_int_equal(posts[i].answered, i + 1 < PIECES);
    }
    size_t before = reader.text.len;
    assert_true(before < 3 * (size_t)SESSION_BACKLOG_MAX);
    end_read(&s.k, &reader);
    EXPECT(&posts[PIECES - 1], 200);
    for (size_t i = 0; i < PIECES; i++) { /* each piece once, in order */
        CLEANUP(json) json_t *line = end_line(&reader);
        CLEANUP(str) struct str bytes = {0};
        const char *text = member(line, "out");
        assert_true(str_add_base64_bytes(&bytes, text, strlen(text)));
        assert_int_equal(bytes.len, sizeof piece);
        assert_int_equal(bytes.at[0], 'a' + (int)i);
        end_done(&posts[i]);
    }
    end_read(&s.k, &reader);
    /* A reader that stops reading is dropped after a minute, and the waiting requests are answered. */
    for (size_t i = 0; i < PIECES; i++) {
        agent_send_output(&s, N1, "n1", call, "stream=out", piece, sizeof piece, &posts[i]);
        assert_int_equal(posts[i].answered, i + 1 < PIECES);
    }
    kit_sleep(&s.k, 62);
    EXPECT(&posts[PIECES - 1], 404);
    assert_true(reader.ended);
    assert_int_equal(sessions_open(&s), 0);
    CLEANUP(json) json_t *close = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(close, "close")));
    for (size_t i = 0; i < PIECES; i++)
        end_done(&posts[i]);
    scene_done(&s);
}

static void input_waits_for_a_slow_agent(void **state)
{
    static char piece[SESSION_BODY_MAX];
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

static void later_output_replaces_abandoned_output(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end first = {0}, again = {0}, reader = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    agent_send_output(&s, N1, "n1", call, "stream=out", "once", 4, &first);
    assert_false(first.answered);
    agent_send_output(&s, N1, "n1", call, "stream=out", "once", 4, &again);
    EXPECT(&first, 409);
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    EXPECT(&again, 200);
    json_decref(end_line(&reader));
    assert_null(end_line(&reader));
    scene_done(&s);
}

static void client_disconnect_ends_session(void **state)
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
    agent_send_output(&s, N1, "n1", call, "stream=out", "x", 1, &post);
    EXPECT(&post, 404);
    CLEANUP(json) json_t *line = end_line(&s.agent);
    assert_true(json_is_true(json_object_get(line, "close")));
    assert_int_equal(sessions_open(&s), 0);
    scene_done(&s);
}

static void delete_ends_session(void **state)
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

/* ---- reconnecting agents ---------------------------------------------------------------------------------------- */

/* A reconnected agent has dropped its sessions. */
static void agent_reconnect_ends_sessions(void **state)
{
    static const struct {
        const char *label;
        unsigned epoch;
        bool heard, fed;
        const char *why;
    } rows[] = {
        {"the same agent, heard of",     7, true,  false, "the connection to the node broke"   },
        {"the same agent, not heard of", 7, false, false, "the connection to the node broke"   },
        {"the same agent, sent input",   7, true,  true,  "the connection to the node broke"   },
        {"a new agent",                  8, true,  false, "the agent of the node was restarted"},
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
            agent_send_output(&s, N1, "n1", call, "stream=out", "x", 1, &post);
        call_url(url, call, "/input");
        if (rows[i].fed)
            send_request(&s.k, ALICE, "POST", url, "y", 1, &input);
        end_done(&s.agent); /* the connection breaks */
        control_pump(s.k.control);
        kit_sleep(&s.k, 20);
        assert_int_equal(sessions_open(&s), 1);
        (void)snprintf(url, sizeof url, "/v1/nodes/n1/calls?epoch=%u", rows[i].epoch);
        send_request(&s.k, N1, "GET", url, NULL, 0, &s.agent);
        EXPECT(&s.agent, 200);
        control_pump(s.k.control);
        if (sessions_open(&s) || !reader.ended)
            fail_msg("%s", rows[i].label);
        if (rows[i].heard)
            json_decref(end_line(&reader));
        CLEANUP(json) json_t *line = end_line(&reader);
        assert_string_equal(member(line, "error"), rows[i].why);
        agent_send_output(&s, N1, "n1", call, "stream=out", "z", 1, &after);
        EXPECT(&after, 404);
        scene_done(&s);
    }
}

static void absent_agent_ends_sessions(void **state)
{
    struct scene s;
    char call[24], url[64];
    CLEANUP(end) struct caller_end reader = {0}, post = {0}, refused = {0};
    (void)state;
    scene_open(&s);
    json_decref(exec_open(&s, "{\"command\": [\"a\"]}", call));
    call_url(url, call, "");
    send_request(&s.k, ALICE, "GET", url, NULL, 0, &reader);
    agent_send_output(&s, N1, "n1", call, "stream=out", "x", 1, &post);
    end_done(&s.agent);
    send_request(&s.k, ALICE, "POST", "/v1/instances/901/exec", "{\"command\": [\"a\"]}", 18, &refused);
    EXPECT(&refused, 503);
    expect_words(&refused, "is not connected");
    kit_sleep(&s.k, 61);
    assert_int_equal(sessions_open(&s), 0);
    json_decref(end_line(&reader));
    CLEANUP(json) json_t *line = end_line(&reader);
    assert_string_equal(member(line, "error"), "the agent of the node is not connected any more");
    assert_true(reader.ended);
    scene_done(&s);
}

static void newer_agent_stream_replaces_older(void **state)
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

/* ---- shutdown --------------------------------------------------------------------------------------------------- */

static void shutdown_answers_all_requests(void **state)
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
    agent_send_output(&s, N1, "n1", call, "stream=out", "x", 1, &piece);
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
    assert_int_equal(sessions_open(&s), 0);
    scene_done(&s);
}

/* A session ends when its user loses the permission. */
static void lost_permission_ends_session(void **state)
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
    assert_int_equal(sessions_open(&s), 0);
    scene_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_agent_waits_for_a_slow_reader),
        cmocka_unit_test(input_waits_for_a_slow_agent),
        cmocka_unit_test(later_output_replaces_abandoned_output),
        cmocka_unit_test(client_disconnect_ends_session),
        cmocka_unit_test(delete_ends_session),
        cmocka_unit_test(agent_reconnect_ends_sessions),
        cmocka_unit_test(absent_agent_ends_sessions),
        cmocka_unit_test(newer_agent_stream_replaces_older),
        cmocka_unit_test(shutdown_answers_all_requests),
        cmocka_unit_test(lost_permission_ends_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
