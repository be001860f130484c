/* session.c - sessions and agents: opening, input and output, end. */
#include "control/session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "control/control_parts.h"
#include "control/session/session_parts.h"
#include "wire/text/document.h"

/* The agent's stream carries the lines of all its sessions. */
enum { AGENT_BACKLOG_MAX = 256 * 1024 };

struct session_hub *session_hub_new(struct control *control)
{
    struct session_hub *r = mem_zalloc(sizeof *r);
    r->control = control;
    return r;
}

int64_t session_hub_now_ns(const struct session_hub *r)
{
    const struct control_env *env = control_env(r->control);
    return env->steady_ns(env->ctx);
}

void session_hub_wake(struct session_hub *r)
{
    const struct control_env *env = control_env(r->control);
    env->wake_at(env->ctx, session_hub_now_ns(r));
}

size_t session_hub_len(const struct session_hub *r)
{
    return r->len;
}

/* ---- agents ----------------------------------------------------------------------------------------------------- */

/* Returns the agent's position, or the position where it would be inserted. */
static size_t agent_position(const struct session_hub *r, const char *node)
{
    size_t from = 0, to = r->agents.len;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(r->agents.at[middle]->node, node) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct agent_connection *agent_find(const struct session_hub *r, const char *node)
{
    size_t at = agent_position(r, node);
    return at < r->agents.len && strcmp(r->agents.at[at]->node, node) == 0 ? r->agents.at[at] : NULL;
}

struct agent_connection *agent_get(struct session_hub *r, const char *node)
{
    struct agent_connection *a = agent_find(r, node);
    if (a)
        return a;
    size_t at = agent_position(r, node);
    a = mem_zalloc(sizeof *a);
    a->session_hub = r;
    a->node = mem_strdup(node);
    a->away_ns = session_hub_now_ns(r);
    vec_push(&r->agents, a);
    memmove(r->agents.at + at + 1, r->agents.at + at, (r->agents.len - 1 - at) * sizeof *r->agents.at);
    r->agents.at[at] = a;
    return a;
}

static void agent_free(struct agent_connection *a)
{
    mem_free(a->node);
    mem_free(a);
}

static void agent_ready(void *ctx)
{
    struct agent_connection *a = ctx;
    if (!a->up)
        session_hub_wake(a->session_hub); /* some sessions may have ended while the agent was disconnected */
    a->up = true;
    for (struct session *e = a->session_hub->sessions; e && a->up; e = e->next)
        if (e->agent == a)
            session_flush(e);
}

static void on_agent_gone(void *ctx, const char *why, struct str *last)
{
    struct agent_connection *a = ctx;
    a->stream = NULL;
    a->up = false;
    a->away_ns = session_hub_now_ns(a->session_hub);
    if (why)
        str_addf(last, "{\"type\":\"end\",\"code\":\"%s\"}\n", why);
    session_hub_wake(a->session_hub);
}

const struct stream_feed agent_feed = {
    .content_type = "application/x-ndjson",
    .beat = "\n",
    .backlog_max = AGENT_BACKLOG_MAX,
    .ready = agent_ready,
    .gone = on_agent_gone,
};

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static const char *error_sentence(const char *code)
{
    if (strcmp(code, "slow") == 0)
        return "the output was not read for a minute";
    if (strcmp(code, "stopping") == 0)
        return "berthd is stopping; try again soon";
    return "the token is no longer valid, or its rights have changed";
}

static void on_client_gone(struct session *e)
{
    if (!e->stream)
        return;
    e->stream = NULL;
    e->why = "the client has disconnected";
    session_hub_wake(e->session_hub);
}

static void client_ready(void *ctx)
{
    struct session *e = ctx;
    struct request *agent_request = take_ptr(&e->agent_request);
    if (agent_request)
        request_answer(agent_request, session_output_forward(e, agent_request));
}

/* `again`: the log is interrupted and can be resumed. */
static void error_line(struct str *to, const struct session *e, const char *text, bool again)
{
    if (e->verb == SESSION_LOGS && !e->lines) {
        str_addf(to, "berth: end of the log: %s\n", text);
        return;
    }
    str_add(to, "{\"error\":");
    str_add_json(to, text);
    str_add(to, e->lines && again ? ",\"again\":true}\n" : "}\n");
}

static void client_ended(void *ctx, const char *why, struct str *last)
{
    struct session *e = ctx;
    if (why)
        error_line(last, e, error_sentence(why), strcmp(why, "slow") == 0 || strcmp(why, "stopping") == 0);
    on_client_gone(e);
}

const struct stream_feed lines_feed = {
    .content_type = "application/x-ndjson",
    .beat = "\n",
    .backlog_max = SESSION_BACKLOG_MAX,
    .ready = client_ready,
    .gone = client_ended,
};

const struct stream_feed text_feed = {
    .content_type = "text/plain; charset=utf-8",
    .backlog_max = SESSION_BACKLOG_MAX,
    .ready = client_ready,
    .gone = client_ended,
};

/* ---- sessions --------------------------------------------------------------------------------------------------- */

void session_id_make(const struct control *control, char ret[static SESSION_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[SESSION_ID_LEN / 2];
    const struct control_env *env = control_env(control);
    env->random(env->ctx, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        ret[2 * i] = digits[random[i] >> 4];
        ret[2 * i + 1] = digits[random[i] & 15];
    }
    ret[SESSION_ID_LEN] = '\0';
}

struct session *session_find(const struct session_hub *r, const char *id)
{
    struct session *e = r->sessions;
    while (e && strcmp(e->id, id) != 0)
        e = e->next;
    return e && !e->why ? e : NULL; /* a session whose end is pending counts as ended */
}

int session_check(struct request *c, const char *user, const char *node)
{
    const struct session_hub *r = c->control->session_hub;
    const struct agent_connection *a = agent_find(r, node);
    size_t own = 0;
    for (const struct session *e = r->sessions; e; e = e->next)
        own += strcmp(e->user, user) == 0;
    if (own >= SESSIONS_USER_MAX)
        return err_set(&c->err, EDQUOT, "you already have %zu open logs, shells and signals; close some", own);
    if (r->len >= SESSIONS_MAX)
        return err_set(&c->err, EDQUOT, "%zu logs, shells and signals are already open; try again later", r->len);
    if (!a || !a->up)
        return err_set(&c->err, ENOSPC,
                       "the agent of node %s is not connected; try again, or see 'berth describe node %s'", node, node);
    if (!stream_room(a->stream))
        return err_set(&c->err, ENOSPC, "the agent of node %s is busy; try again", node);
    return 0;
}

int session_open(struct request *c, enum session_verb verb, const char *id, const char *user, const char *node,
                 const json_t *line, struct session **ret)
{
    struct session_hub *r = c->control->session_hub;
    int rc = session_check(c, user, node);
    if (rc < 0)
        return rc;
    struct session *e = mem_zalloc(sizeof *e);
    e->session_hub = r;
    (void)snprintf(e->id, sizeof e->id, "%s", id);
    e->verb = verb;
    e->user = mem_strdup(user);
    e->agent = agent_find(r, node);
    e->agent->sessions++;
    e->since_ns = session_hub_now_ns(r);
    e->next = r->sessions;
    e->link = &r->sessions;
    if (r->sessions)
        r->sessions->link = &e->next;
    r->sessions = e;
    r->len++;
    session_send_to_agent(e, json_copy((json_t *)line));
    *ret = e;
    return 0;
}

void session_free(struct session *e)
{
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    e->agent->sessions--;
    e->session_hub->len--;
    mem_free(e->user);
    mem_free(e);
}

static int text_add(const char *at, size_t len, void *to)
{
    str_add_bytes(to, at, len);
    return 0;
}

void session_send_to_agent(struct session *e, json_t *line)
{
    CLEANUP(str) struct str text = {0};
    (void)json_object_set_new(line, "call", json_string(e->id));
    (void)json_dump_callback(line, text_add, &text, JSON_COMPACT);
    json_decref(line);
    str_add_char(&text, '\n');
    stream_write(e->agent->stream, text.at, text.len);
}

static void refuse_waiting(struct request **waiting, int code, const char *text)
{
    struct request *c = take_ptr(waiting);
    if (c)
        request_answer(c, err_set(&c->err, code, "%s", text));
}

void session_answer(struct session *e, int rc)
{
    struct request *c = take_ptr(&e->asked);
    if (c)
        request_answer(c, rc);
    if (!e->lines || e->headed || rc < 0 || !e->stream)
        return;
    CLEANUP(str) struct str line = {0};
    if (e->instance)
        str_addf(&line, "{\"instance\":%" PRIu64 ",\"node\":", e->instance);
    else
        str_add(&line, "{\"node\":");
    str_add_json(&line, e->agent->node);
    str_add(&line, "}\n");
    e->headed = true;
    stream_write(e->stream, line.at, line.len);
}

void session_close(struct session *e, const char *why)
{
    const char *said = why ? why : "the session was closed";
    if (e->agent->up)
        session_send_to_agent(e, json_pack("{s:b}", "close", 1));
    refuse_waiting(&e->agent_request, ENOENT, "the client has disconnected");
    refuse_waiting(&e->input, ENOENT, said);
    if (e->asked) {
        e->stream = NULL; /* belongs to the answer of `asked` */
        refuse_waiting(&e->asked, ENOSPC, said);
    }
    struct stream *stream = e->stream;
    if (stream && why) {
        CLEANUP(str) struct str last = {0};
        error_line(&last, e, why, e->again);
        stream_write(stream, last.at, last.len);
        stream = e->stream; /* the stream may have ended during the write */
    }
    e->stream = NULL;
    if (stream)
        stream_finish(stream);
    session_free(e);
}

/* ---- from the agent to the client ------------------------------------------------------------------------------- */

bool session_has_room(const struct session *e)
{
    return e->asked || (e->stream && stream_room(e->stream));
}

/* Sends a piece of a log with the cursor that follows it. A piece without bytes may contain only a cursor. */
static void log_line_send(struct session *e, const struct request *agent_request)
{
    CLEANUP(str) struct str line = {0};
    const char *cursor = request_query(agent_request, "cursor"), *gap = request_query(agent_request, "gap");
    bool gapped = gap && strcmp(gap, "true") == 0;
    if (!cursor && !gapped && !agent_request->input->body_len)
        return;
    str_add(&line, gapped ? "{\"gap\":true,\"out\":\"" : "{\"out\":\"");
    str_add_base64(&line, agent_request->input->body, agent_request->input->body_len);
    str_add_char(&line, '"');
    if (cursor && strlen(cursor) <= SESSION_CURSOR_MAX) {
        str_add(&line, ",\"cursor\":");
        str_add_json(&line, cursor);
    }
    str_add(&line, "}\n");
    stream_write(e->stream, line.at, line.len);
}

static void output_send(struct session *e, const char *stream, const struct request *agent_request)
{
    CLEANUP(str) struct str line = {0};
    const char *at = agent_request->input->body;
    size_t len = agent_request->input->body_len;
    if (e->lines) {
        log_line_send(e, agent_request);
        return;
    }
    if (len == 0)
        return;
    if (e->verb == SESSION_LOGS) {
        stream_write(e->stream, at, len);
        return;
    }
    str_addf(&line, "{\"%s\":\"", stream);
    str_add_base64(&line, at, len);
    str_add(&line, "\"}\n");
    stream_write(e->stream, line.at, line.len);
}

/* Ends the session with the agent's last message, which may be an error. */
static void session_end(struct session *e, const char *error, int64_t exit_code)
{
    CLEANUP(str) struct str last = {0};
    if (e->asked && error) {
        e->stream = NULL; /* belongs to the answer of `asked` */
        session_answer(e, err_set(&e->asked->err, EBUSY, "%s", error));
    } else if (e->asked) {
        session_answer(e, 0);
    }
    if (error)
        error_line(&last, e, error, false);
    else if (e->lines)
        str_add(&last, "{\"end\":true}\n");
    else if (e->verb == SESSION_EXEC)
        str_addf(&last, "{\"exit\":%lld}\n", (long long)exit_code);
    if (e->stream && last.len)
        stream_write(e->stream, last.at, last.len);
    struct stream *stream = take_ptr(&e->stream);
    if (stream)
        stream_finish(stream);
    refuse_waiting(&e->input, ENOENT, "the session has ended");
    refuse_waiting(&e->agent_request, ENOENT, "the session has ended");
    session_free(e);
}

/* Parses the error of {"error": TEXT}; NULL: none. */
static const char *end_error(struct request *c)
{
    CLEANUP(json) json_t *said = NULL;
    if (!c->input->body_len)
        return NULL;
    said = json_loadb(c->input->body, c->input->body_len, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_string_value(json_object_get(said, "error"));
    return text && *text ? arena_strdup(&c->arena, text) : NULL;
}

int session_output_forward(struct session *e, struct request *agent_request)
{
    const char *stream = request_query(agent_request, "stream"), *end = request_query(agent_request, "end");
    uint64_t exit_code = 0;
    int rc = request_query_number(agent_request, "exit", 0, 255, 0, &exit_code);
    if (rc < 0)
        return rc;
    agent_request->answer.body = json_object();
    if (end && strcmp(end, "true") == 0) {
        session_end(e, end_error(agent_request), (int64_t)exit_code);
        return 0;
    }
    if (e->verb == SESSION_LOGS && e->asked)
        session_answer(e, 0); /* the first output answers the client's request */
    if (e->stream)
        output_send(e, stream, agent_request);
    return 0;
}

/* ---- from the client to the agent ------------------------------------------------------------------------------- */

bool session_input_forward(struct session *e, struct request *c)
{
    const char *eof = request_query(c, "eof");
    if (!e->agent->up || !stream_room(e->agent->stream))
        return false;
    json_t *line = json_object();
    if (c->input->body_len) {
        CLEANUP(str) struct str text = {0};
        str_add_base64(&text, c->input->body, c->input->body_len);
        (void)json_object_set_new(line, "input", json_stringn(text.at, text.len));
    }
    e->eof = eof && (!*eof || strcmp(eof, "true") == 0);
    if (e->eof)
        (void)json_object_set_new(line, "eof", json_true());
    c->answer.body = json_object();
    session_send_to_agent(e, line);
    return true;
}

void session_flush(struct session *e)
{
    struct agent_connection *a = e->agent;
    if (e->resized && a->up && stream_room(a->stream)) {
        e->resized = false;
        session_send_to_agent(e,
                              json_pack("{s:I, s:I}", "rows", (json_int_t)e->rows, "columns", (json_int_t)e->columns));
    }
    if (e->input && session_input_forward(e, e->input))
        request_answer(take_ptr(&e->input), 0);
}

/* ---- timeouts --------------------------------------------------------------------------------------------------- */

void session_hub_pump(struct session_hub *r)
{
    for (struct session *e = r->sessions, *next; e; e = next) {
        next = e->next;
        if (e->why)
            session_close(e, e->why);
    }
}

/* Tells whether the agent has been disconnected for too long. */
static bool agent_away(const struct agent_connection *a, int64_t steady_ns)
{
    return !a->up && steady_ns - a->away_ns >= SESSION_AWAY_NS;
}

static bool is_node_lost(const struct session_hub *r, const char *node)
{
    const struct object *o = state_find(control_state(r->control), KIND_NODE, node);
    return !o || o->node->state == BERTH_NODE_LOST;
}

static const char *session_overdue(struct session *e, int64_t steady_ns)
{
    int64_t age_ns = steady_ns - e->since_ns;
    if (agent_away(e->agent, steady_ns)) {
        e->again = true;
        return "the agent of the node is not connected any more";
    }
    if (age_ns >= SESSION_AWAY_NS && is_node_lost(e->session_hub, e->agent->node))
        return "the node is lost";
    if (e->verb == SESSION_SIGNAL && age_ns >= SESSION_SIGNAL_NS)
        return "the agent of the node does not respond; it is unknown whether the signal was sent";
    if (!e->asked && !e->stream && age_ns >= SESSION_AWAY_NS)
        return "no client connected";
    return NULL;
}

void session_hub_tick(struct session_hub *r, int64_t steady_ns)
{
    for (struct session *e = r->sessions, *next; e; e = next) {
        next = e->next;
        if (!e->why)
            e->why = session_overdue(e, steady_ns);
        if (!e->why && e->asked && e->verb == SESSION_LOGS && steady_ns - e->since_ns >= SESSION_FIRST_OUTPUT_NS)
            session_answer(e, 0);
    }
    session_hub_pump(r);
    size_t kept = 0;
    for (size_t i = 0; i < r->agents.len; i++) {
        struct agent_connection *a = r->agents.at[i];
        if (a->stream || a->sessions || !agent_away(a, steady_ns))
            r->agents.at[kept++] = a;
        else
            agent_free(a);
    }
    r->agents.len = kept;
}

void session_hub_stop(struct session_hub *r)
{
    r->stopping = true;
    while (r->sessions) {
        r->sessions->again = true;
        session_close(r->sessions, error_sentence("stopping"));
    }
}

void session_hub_free(struct session_hub *r)
{
    if (!r)
        return;
    while (r->sessions)
        session_free(r->sessions);
    for (size_t i = 0; i < r->agents.len; i++)
        agent_free(r->agents.at[i]);
    vec_done(&r->agents);
    mem_free(r);
}
