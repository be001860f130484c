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

struct relay *relay_new(struct control *control)
{
    struct relay *r = mem_zalloc(sizeof *r);
    r->control = control;
    return r;
}

int64_t relay_now_ns(const struct relay *r)
{
    const struct control_env *env = control_env(r->control);
    return env->steady_ns(env->ctx);
}

void relay_wake(struct relay *r)
{
    const struct control_env *env = control_env(r->control);
    env->wake_at(env->ctx, relay_now_ns(r));
}

size_t relay_len(const struct relay *r)
{
    return r->len;
}

/* ---- agents ----------------------------------------------------------------------------------------------------- */

/* Returns the agent's position, or the position where it would be inserted. */
static size_t agent_place(const struct relay *r, const char *node)
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

struct agent *agent_find(const struct relay *r, const char *node)
{
    size_t at = agent_place(r, node);
    return at < r->agents.len && strcmp(r->agents.at[at]->node, node) == 0 ? r->agents.at[at] : NULL;
}

struct agent *agent_of(struct relay *r, const char *node)
{
    struct agent *a = agent_find(r, node);
    if (a)
        return a;
    size_t at = agent_place(r, node);
    a = mem_zalloc(sizeof *a);
    a->relay = r;
    a->node = mem_strdup(node);
    a->away_ns = relay_now_ns(r);
    vec_push(&r->agents, a);
    memmove(r->agents.at + at + 1, r->agents.at + at, (r->agents.len - 1 - at) * sizeof *r->agents.at);
    r->agents.at[at] = a;
    return a;
}

static void agent_free(struct agent *a)
{
    mem_free(a->node);
    mem_free(a);
}

static void agent_ready(void *ctx)
{
    struct agent *a = ctx;
    if (!a->up)
        relay_wake(a->relay); /* some sessions may have ended while the agent was disconnected */
    a->up = true;
    for (struct errand *e = a->relay->errands; e && a->up; e = e->next)
        if (e->agent == a)
            errand_feed(e);
}

static void agent_gone(void *ctx, const char *why, struct str *last)
{
    struct agent *a = ctx;
    a->stream = NULL;
    a->up = false;
    a->away_ns = relay_now_ns(a->relay);
    if (why)
        str_addf(last, "{\"type\":\"end\",\"code\":\"%s\"}\n", why);
    relay_wake(a->relay);
}

const struct stream_feed agent_feed = {
    .content_type = "application/x-ndjson",
    .beat = "\n",
    .backlog_max = AGENT_BACKLOG_MAX,
    .ready = agent_ready,
    .gone = agent_gone,
};

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static const char *sentence(const char *code)
{
    if (strcmp(code, "slow") == 0)
        return "the output was not read for a minute";
    if (strcmp(code, "stopping") == 0)
        return "berthd is stopping; try again soon";
    return "the token is no longer valid, or its rights have changed";
}

static void listener_gone(struct errand *e)
{
    if (!e->stream)
        return;
    e->stream = NULL;
    e->why = "the client has disconnected";
    relay_wake(e->relay);
}

static void listener_ready(void *ctx)
{
    struct errand *e = ctx;
    struct call *brought = take_ptr(&e->brought);
    if (brought)
        call_answer(brought, errand_take(e, brought));
}

/* `again`: the log is interrupted and can be resumed. */
static void error_line(struct str *to, const struct errand *e, const char *text, bool again)
{
    if (e->verb == ERRAND_LOGS && !e->lines) {
        str_addf(to, "berth: end of the log: %s\n", text);
        return;
    }
    str_add(to, "{\"error\":");
    str_add_json(to, text);
    str_add(to, e->lines && again ? ",\"again\":true}\n" : "}\n");
}

static void listener_over(void *ctx, const char *why, struct str *last)
{
    struct errand *e = ctx;
    if (why)
        error_line(last, e, sentence(why), strcmp(why, "slow") == 0 || strcmp(why, "stopping") == 0);
    listener_gone(e);
}

const struct stream_feed lines_feed = {
    .content_type = "application/x-ndjson",
    .beat = "\n",
    .backlog_max = RELAY_BACKLOG_MAX,
    .ready = listener_ready,
    .gone = listener_over,
};

const struct stream_feed text_feed = {
    .content_type = "text/plain; charset=utf-8",
    .backlog_max = RELAY_BACKLOG_MAX,
    .ready = listener_ready,
    .gone = listener_over,
};

/* ---- sessions --------------------------------------------------------------------------------------------------- */

void errand_id_make(const struct control *control, char ret[static ERRAND_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[ERRAND_ID_LEN / 2];
    const struct control_env *env = control_env(control);
    env->random(env->ctx, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        ret[2 * i] = digits[random[i] >> 4];
        ret[2 * i + 1] = digits[random[i] & 15];
    }
    ret[ERRAND_ID_LEN] = '\0';
}

struct errand *errand_find(const struct relay *r, const char *id)
{
    struct errand *e = r->errands;
    while (e && strcmp(e->id, id) != 0)
        e = e->next;
    return e && !e->why ? e : NULL; /* a session whose end is pending counts as ended */
}

int errand_check(struct call *c, const char *user, const char *node)
{
    const struct relay *r = c->control->relay;
    const struct agent *a = agent_find(r, node);
    size_t own = 0;
    for (const struct errand *e = r->errands; e; e = e->next)
        own += strcmp(e->user, user) == 0;
    if (own >= RELAY_USER_MAX)
        return err_set(&c->err, EDQUOT, "you already have %zu open logs, shells and signals; close some", own);
    if (r->len >= RELAY_ERRANDS_MAX)
        return err_set(&c->err, EDQUOT, "%zu logs, shells and signals are already open; try again later", r->len);
    if (!a || !a->up)
        return err_set(&c->err, ENOSPC,
                       "the agent of node %s is not connected; try again, or see 'berth describe node %s'", node, node);
    if (!stream_room(a->stream))
        return err_set(&c->err, ENOSPC, "the agent of node %s is busy; try again", node);
    return 0;
}

int errand_open(struct call *c, enum errand_verb verb, const char *id, const char *user, const char *node,
                const json_t *line, struct errand **ret)
{
    struct relay *r = c->control->relay;
    int rc = errand_check(c, user, node);
    if (rc < 0)
        return rc;
    struct errand *e = mem_zalloc(sizeof *e);
    e->relay = r;
    (void)snprintf(e->id, sizeof e->id, "%s", id);
    e->verb = verb;
    e->user = mem_strdup(user);
    e->agent = agent_find(r, node);
    e->agent->errands++;
    e->since_ns = relay_now_ns(r);
    e->next = r->errands;
    e->link = &r->errands;
    if (r->errands)
        r->errands->link = &e->next;
    r->errands = e;
    r->len++;
    errand_tell(e, json_copy((json_t *)line));
    *ret = e;
    return 0;
}

void errand_free(struct errand *e)
{
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    e->agent->errands--;
    e->relay->len--;
    mem_free(e->user);
    mem_free(e);
}

static int text_add(const char *at, size_t len, void *to)
{
    str_add_bytes(to, at, len);
    return 0;
}

void errand_tell(struct errand *e, json_t *line)
{
    CLEANUP(str) struct str text = {0};
    (void)json_object_set_new(line, "call", json_string(e->id));
    (void)json_dump_callback(line, text_add, &text, JSON_COMPACT);
    json_decref(line);
    str_add_char(&text, '\n');
    stream_write(e->agent->stream, text.at, text.len);
}

static void refuse_waiting(struct call **waiting, int code, const char *text)
{
    struct call *c = take_ptr(waiting);
    if (c)
        call_answer(c, err_set(&c->err, code, "%s", text));
}

void errand_answer(struct errand *e, int rc)
{
    struct call *c = take_ptr(&e->asked);
    if (c)
        call_answer(c, rc);
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

void errand_close(struct errand *e, const char *why)
{
    const char *said = why ? why : "the session was closed";
    if (e->agent->up)
        errand_tell(e, json_pack("{s:b}", "close", 1));
    refuse_waiting(&e->brought, ENOENT, "the client has disconnected");
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
    errand_free(e);
}

/* ---- from the agent to the client ------------------------------------------------------------------------------- */

bool errand_room(const struct errand *e)
{
    return e->asked || (e->stream && stream_room(e->stream));
}

/* Sends a piece of a log with the cursor that follows it. A piece without bytes may contain only a cursor. */
static void log_line_send(struct errand *e, const struct call *brought)
{
    CLEANUP(str) struct str line = {0};
    const char *cursor = call_query(brought, "cursor"), *gap = call_query(brought, "gap");
    bool gapped = gap && strcmp(gap, "true") == 0;
    if (!cursor && !gapped && !brought->request->body_len)
        return;
    str_add(&line, gapped ? "{\"gap\":true,\"out\":\"" : "{\"out\":\"");
    str_add_base64(&line, brought->request->body, brought->request->body_len);
    str_add_char(&line, '"');
    if (cursor && strlen(cursor) <= RELAY_CURSOR_MAX) {
        str_add(&line, ",\"cursor\":");
        str_add_json(&line, cursor);
    }
    str_add(&line, "}\n");
    stream_write(e->stream, line.at, line.len);
}

static void output_send(struct errand *e, const char *stream, const struct call *brought)
{
    CLEANUP(str) struct str line = {0};
    const char *at = brought->request->body;
    size_t len = brought->request->body_len;
    if (e->lines) {
        log_line_send(e, brought);
        return;
    }
    if (len == 0)
        return;
    if (e->verb == ERRAND_LOGS) {
        stream_write(e->stream, at, len);
        return;
    }
    str_addf(&line, "{\"%s\":\"", stream);
    str_add_base64(&line, at, len);
    str_add(&line, "\"}\n");
    stream_write(e->stream, line.at, line.len);
}

/* Ends the session with the agent's last message, which may be an error. */
static void errand_end(struct errand *e, const char *error, int64_t exit_code)
{
    CLEANUP(str) struct str last = {0};
    if (e->asked && error) {
        e->stream = NULL; /* belongs to the answer of `asked` */
        errand_answer(e, err_set(&e->asked->err, EBUSY, "%s", error));
    } else if (e->asked) {
        errand_answer(e, 0);
    }
    if (error)
        error_line(&last, e, error, false);
    else if (e->lines)
        str_add(&last, "{\"end\":true}\n");
    else if (e->verb == ERRAND_EXEC)
        str_addf(&last, "{\"exit\":%lld}\n", (long long)exit_code);
    if (e->stream && last.len)
        stream_write(e->stream, last.at, last.len);
    struct stream *stream = take_ptr(&e->stream);
    if (stream)
        stream_finish(stream);
    refuse_waiting(&e->input, ENOENT, "the session has ended");
    refuse_waiting(&e->brought, ENOENT, "the session has ended");
    errand_free(e);
}

/* Parses the error of {"error": TEXT}; NULL: none. */
static const char *end_error(struct call *c)
{
    CLEANUP(json) json_t *said = NULL;
    if (!c->request->body_len)
        return NULL;
    said = json_loadb(c->request->body, c->request->body_len, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_string_value(json_object_get(said, "error"));
    return text && *text ? arena_strdup(&c->arena, text) : NULL;
}

int errand_take(struct errand *e, struct call *brought)
{
    const char *stream = call_query(brought, "stream"), *end = call_query(brought, "end");
    uint64_t exit_code = 0;
    int rc = call_query_number(brought, "exit", 0, 255, 0, &exit_code);
    if (rc < 0)
        return rc;
    brought->answer.body = json_object();
    if (end && strcmp(end, "true") == 0) {
        errand_end(e, end_error(brought), (int64_t)exit_code);
        return 0;
    }
    if (e->verb == ERRAND_LOGS && e->asked)
        errand_answer(e, 0); /* the first output answers the client's request */
    if (e->stream)
        output_send(e, stream, brought);
    return 0;
}

/* ---- from the client to the agent ------------------------------------------------------------------------------- */

bool errand_input(struct errand *e, struct call *c)
{
    const char *eof = call_query(c, "eof");
    if (!e->agent->up || !stream_room(e->agent->stream))
        return false;
    json_t *line = json_object();
    if (c->request->body_len) {
        CLEANUP(str) struct str text = {0};
        str_add_base64(&text, c->request->body, c->request->body_len);
        (void)json_object_set_new(line, "input", json_stringn(text.at, text.len));
    }
    e->eof = eof && (!*eof || strcmp(eof, "true") == 0);
    if (e->eof)
        (void)json_object_set_new(line, "eof", json_true());
    c->answer.body = json_object();
    errand_tell(e, line);
    return true;
}

void errand_feed(struct errand *e)
{
    struct agent *a = e->agent;
    if (e->resized && a->up && stream_room(a->stream)) {
        e->resized = false;
        errand_tell(e, json_pack("{s:I, s:I}", "rows", (json_int_t)e->rows, "columns", (json_int_t)e->columns));
    }
    if (e->input && errand_input(e, e->input))
        call_answer(take_ptr(&e->input), 0);
}

/* ---- timeouts --------------------------------------------------------------------------------------------------- */

void relay_pump(struct relay *r)
{
    for (struct errand *e = r->errands, *next; e; e = next) {
        next = e->next;
        if (e->why)
            errand_close(e, e->why);
    }
}

/* Tells whether the agent has been disconnected for too long. */
static bool agent_away(const struct agent *a, int64_t steady_ns)
{
    return !a->up && steady_ns - a->away_ns >= RELAY_AWAY_NS;
}

static bool node_lost(const struct relay *r, const char *node)
{
    const struct object *o = state_find(control_state(r->control), KIND_NODE, node);
    return !o || o->node->state == BERTH_NODE_LOST;
}

static const char *errand_overdue(struct errand *e, int64_t steady_ns)
{
    int64_t age_ns = steady_ns - e->since_ns;
    if (agent_away(e->agent, steady_ns)) {
        e->again = true;
        return "the agent of the node is not connected any more";
    }
    if (age_ns >= RELAY_AWAY_NS && node_lost(e->relay, e->agent->node))
        return "the node is lost";
    if (e->verb == ERRAND_SIGNAL && age_ns >= RELAY_SIGNAL_NS)
        return "the agent of the node does not respond; it is unknown whether the signal was sent";
    if (!e->asked && !e->stream && age_ns >= RELAY_AWAY_NS)
        return "no client connected";
    return NULL;
}

void relay_tick(struct relay *r, int64_t steady_ns)
{
    for (struct errand *e = r->errands, *next; e; e = next) {
        next = e->next;
        if (!e->why)
            e->why = errand_overdue(e, steady_ns);
        if (!e->why && e->asked && e->verb == ERRAND_LOGS && steady_ns - e->since_ns >= RELAY_FIRST_NS)
            errand_answer(e, 0);
    }
    relay_pump(r);
    size_t kept = 0;
    for (size_t i = 0; i < r->agents.len; i++) {
        struct agent *a = r->agents.at[i];
        if (a->stream || a->errands || !agent_away(a, steady_ns))
            r->agents.at[kept++] = a;
        else
            agent_free(a);
    }
    r->agents.len = kept;
}

void relay_stop(struct relay *r)
{
    r->stopping = true;
    while (r->errands) {
        r->errands->again = true;
        errand_close(r->errands, sentence("stopping"));
    }
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    while (r->errands)
        errand_free(r->errands);
    for (size_t i = 0; i < r->agents.len; i++)
        agent_free(r->agents.at[i]);
    vec_done(&r->agents);
    mem_free(r);
}
