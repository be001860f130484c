/* session_user.c - the routes of users: logs, commands and signals of running instances. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/crud.h"
#include "control/control_parts.h"
#include "control/node/last_end.h"
#include "control/session/session_parts.h"
#include "wire/doc/api.h"
#include "wire/doc/objects.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

/* The target of a session. */
struct session_target {
    uint64_t instance;
    const char *node;   /* in the request's arena */
    const char *optask; /* instead of an instance; NULL: none */
    bool undo;          /* the log of the OpTask's undo script */
};

/* ---- the target ------------------------------------------------------------------------------------------------- */

static int node_check(struct request *c, const char *node)
{
    const struct object *o = state_find(c->state, KIND_NODE, node);
    if (!o)
        return err_set(&c->err, EBUSY, "node %s, where it ran, no longer exists", node);
    if (o->node->state == BERTH_NODE_LOST)
        return err_set(&c->err, EBUSY, "node %s, where it runs, is lost: its agent has stopped reporting", node);
    return 0;
}

static int place_of(struct request *c, const struct object *instance, struct session_target *ret)
{
    int rc = node_check(c, instance->instance->node);
    if (rc == 0)
        *ret = (struct session_target){instance->instance->number, arena_strdup(&c->arena, instance->instance->node)};
    return rc;
}

static bool has_begun(const struct object *instance)
{
    return instance->instance->state != BERTH_RESERVED && instance->instance->state != BERTH_ASSIGNED;
}

/* Requires an instance with processes: running or stopping. */
static int running_place(struct request *c, const struct object *instance, struct session_target *ret)
{
    enum berth_state state = instance->instance->state;
    if (state != BERTH_RUNNING && state != BERTH_STOPPING)
        return err_set(&c->err, EBUSY, "instance %s is not running: it is %s", instance->id, berth_state_name(state));
    return place_of(c, instance, ret);
}

/* Finds the latest deleted instance of a workload whose log may still exist, with this ordinal and this number (-1:
 * any). */
static bool last_instance(struct request *c, const char *workload, int64_t ordinal, int64_t instance,
                          struct session_target *ret)
{
    CLEANUP(json) json_t *ends = last_end_show(c->state, workload);
    size_t i;
    json_t *end;
    json_array_foreach(ends, i, end)
    {
        const char *node = json_string_value(json_object_get(end, "node"));
        int64_t number = json_integer_value(json_object_get(end, "instance"));
        if (!node || (ordinal >= 0 && json_integer_value(json_object_get(end, "ordinal")) != ordinal) ||
            (instance >= 0 && number != instance))
            continue;
        *ret = (struct session_target){(uint64_t)number, arena_strdup(&c->arena, node)};
        return true;
    }
    return false;
}

/* ---- logs ------------------------------------------------------------------------------------------------------- */

static int query_bool(struct request *c, const char *name, bool *ret)
{
    const char *text = request_query(c, name);
    *ret = text && (!*text || strcmp(text, "true") == 0);
    if (!text || *ret || strcmp(text, "false") == 0)
        return 0;
    return err_set(&c->err, EINVAL, "%s: expected true or false", name);
}

/* Parses the number of lines from the end of the log; -1: all. */
static int query_tail(struct request *c, int64_t *ret)
{
    enum { TAIL_MAX = 1000000000 };
    const char *text = request_query(c, "tail");
    uint64_t tail = 0;
    *ret = -1;
    if (!text || strcmp(text, "-1") == 0)
        return 0;
    int rc = request_query_number(c, "tail", 0, TAIL_MAX, 0, &tail);
    if (rc == 0)
        *ret = (int64_t)tail;
    return rc;
}

/* NULL: no cursor. */
static int query_cursor(struct request *c, const char **ret)
{
    const char *text = request_query(c, "cursor");
    bool good = !text || (*text && strlen(text) <= SESSION_CURSOR_MAX);
    for (const char *p = text; p && *p; p++)
        good = good && *p > ' ' && *p < 0x7f;
    if (!good)
        return err_set(&c->err, EINVAL, "cursor: expected a cursor from a log");
    *ret = text;
    return 0;
}

static int logs_open(struct request *c, const struct session_target *place)
{
    bool follow = false, lines = false;
    int64_t tail = -1;
    const char *cursor = NULL;
    struct session *e = NULL;
    struct stream *stream = NULL;
    char id[SESSION_ID_LEN + 1];
    int rc = query_bool(c, "follow", &follow);
    if (rc == 0)
        rc = query_tail(c, &tail);
    if (rc == 0)
        rc = query_bool(c, "lines", &lines);
    if (rc == 0)
        rc = query_cursor(c, &cursor);
    if (rc == 0)
        rc = session_check(c, c->caller.user, place->node);
    if (rc < 0)
        return rc;
    session_id_make(c->control, id);
    CLEANUP(json)
    json_t *line = json_pack("{s:s, s:I, s:b}", "verb", "logs", "tail", (json_int_t)tail, "follow", follow);
    if (place->optask)
        (void)json_object_update_new(line, json_pack("{s:s, s:b}", "optask", place->optask, "undo", place->undo));
    else
        (void)json_object_set_new(line, "instance", json_integer((json_int_t)place->instance));
    if (cursor)
        (void)json_object_set_new(line, "cursor", json_string(cursor));
    rc = session_open(c, SESSION_LOGS, id, c->caller.user, place->node, line, &e);
    if (rc < 0)
        return rc;
    e->lines = lines;
    e->instance = place->optask ? 0 : place->instance;
    rc = stream_feed_open(c, lines ? &lines_feed : &text_feed, e, &stream);
    if (rc < 0) {
        session_close(e, NULL);
        return rc;
    }
    e->stream = stream;
    e->asked = c; /* deferred: the agent may refuse */
    c->later = true;
    return 0;
}

/* Opens the log of a deleted instance, if it was the last one of a workload that the caller may read. */
static int deleted_instance_logs(struct request *c, const char *node)
{
    struct session_target place = {0};
    int64_t number;
    size_t len;
    if (!str_parse_i64(c->args[0], &number) || number <= 0)
        return crud_not_found(c, KIND_INSTANCE, c->args[0]);
    const struct object *const *list = state_list(c->state, KIND_LAST_END, &len);
    for (size_t i = 0; i < len; i++) {
        bool named = memmem(list[i]->doc.at, list[i]->doc.len, c->args[0], strlen(c->args[0]));
        const struct object *work = named ? state_find_work(c->state, list[i]->id) : NULL;
        if (!work || !request_may_see(c, work) || !last_instance(c, work->id, -1, number, &place) ||
            strcmp(place.node, node) != 0)
            continue;
        int rc = node_check(c, place.node);
        return rc < 0 ? rc : logs_open(c, &place);
    }
    return crud_not_found(c, KIND_INSTANCE, c->args[0]);
}

int session_instance_logs(struct request *c)
{
    struct session_target place = {0};
    const char *node = request_query(c, "node");
    const struct object *o = request_object(c, KIND_INSTANCE, c->args[0], PERMIT_READ);
    if (!o && c->err.code == ENOENT && node)
        return deleted_instance_logs(c, node);
    if (!o)
        return -c->err.code;
    if (!has_begun(o))
        return err_set(&c->err, EBUSY, "instance %s has not started yet: it is %s", o->id,
                       berth_state_name(o->instance->state));
    int rc = place_of(c, o, &place);
    return rc < 0 ? rc : logs_open(c, &place);
}

/* Ranks instances for a log without an explicit instance: running, starting, stopping, ended; then the newest. */
static int rank(const struct object *instance)
{
    switch (instance->instance->state) {
    case BERTH_RUNNING: return 4;
    case BERTH_STARTING: return 3;
    case BERTH_STOPPING: return 2;
    case BERTH_ENDED: return 1;
    default: return 0;
    }
}

static bool is_better_log_source(const struct object *a, const struct object *b)
{
    if (!b)
        return true;
    if (a->instance->ordinal != b->instance->ordinal)
        return a->instance->ordinal < b->instance->ordinal; /* prefers the lowest ordinal */
    return rank(a) != rank(b) ? rank(a) > rank(b) : a->instance->number > b->instance->number;
}

/* Returns NULL if no instance has started. */
static const struct object *best_instance(const struct object *work, int64_t ordinal)
{
    const struct object *best = NULL;
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct object *o = work->work->instances[i];
        if ((ordinal < 0 || o->instance->ordinal == ordinal) && has_begun(o) && is_better_log_source(o, best))
            best = o;
    }
    return best;
}

static int work_logs(struct request *c, enum kind kind)
{
    struct session_target place = {0};
    bool previous = false;
    uint64_t wanted = 0;
    const struct object *work = request_object(c, kind, c->args[0], PERMIT_READ);
    if (!work)
        return -c->err.code;
    int rc = query_bool(c, "previous", &previous);
    if (rc == 0)
        rc = request_query_number(c, "ordinal", 0, UINT32_MAX, 0, &wanted);
    if (rc < 0)
        return rc;
    int64_t ordinal = request_query(c, "ordinal") ? (int64_t)wanted : -1;
    const struct object *o = previous ? NULL : best_instance(work, ordinal);
    if (o) {
        rc = place_of(c, o, &place);
    } else if (last_instance(c, work->id, ordinal, -1, &place)) {
        rc = node_check(c, place.node);
    } else {
        rc = err_set(&c->err, EBUSY, "%s %s has %s", kinds[kind].name, work->id,
                     previous ? "no earlier instance with a stored log" : "not run yet; there is no log");
    }
    return rc < 0 ? rc : logs_open(c, &place);
}

int session_app_logs(struct request *c)
{
    return work_logs(c, KIND_APP);
}

int session_job_logs(struct request *c)
{
    return work_logs(c, KIND_JOB);
}

int session_vm_logs(struct request *c)
{
    return work_logs(c, KIND_VM);
}

int session_optask_logs(struct request *c)
{
    struct session_target place = {.node = request_query(c, "node")};
    size_t len;
    const struct object *o = request_object(c, KIND_OPTASK, c->args[0], PERMIT_NODES);
    if (!o)
        return -c->err.code;
    int rc = query_bool(c, "undo", &place.undo);
    if (rc < 0)
        return rc;
    const struct object *const *steps = state_list(c->state, KIND_OPSTEP, &len);
    for (size_t i = 0; i < len; i++) {
        const struct opstep_view *v = steps[i]->opstep;
        if (strcmp(v->optask, o->id) != 0 || v->attempt == 0 || (place.node && strcmp(place.node, v->node) != 0))
            continue;
        place.optask = arena_strdup(&c->arena, o->id);
        place.node = arena_strdup(&c->arena, v->node);
        break;
    }
    if (!place.optask)
        return err_set(&c->err, EBUSY, "optask %s has not run%s%s yet; there is no log", o->id,
                       place.node ? " on node " : "", place.node ? place.node : "");
    rc = node_check(c, place.node);
    return rc < 0 ? rc : logs_open(c, &place);
}

/* ---- actions that are recorded before they run ------------------------------------------------------------------ */

struct session_open {
    enum session_verb verb;
    char id[SESSION_ID_LEN + 1];
    const char *user, *node;
    const char *line; /* JSON text for the agent */
};

/* Tells the agent once the journal's record is durable. */
static void on_session_open_durable(struct request *c, void *ctx)
{
    const struct session_open *o = ctx;
    struct session *e = NULL;
    CLEANUP(json) json_t *line = json_loads(o->line, 0, NULL);
    int rc = session_open(c, o->verb, o->id, o->user, o->node, line, &e);
    if (rc < 0) {
        request_refuse(c, rc);
        return;
    }
    if (o->verb == SESSION_SIGNAL) {
        e->asked = c;
        c->later = true;
    }
}

static char *text_in(struct arena *arena, const json_t *value)
{
    CLEANUP(mem) char *text = json_dumps(value, JSON_COMPACT);
    return arena_strdup(arena, text);
}

/* Writes a journal record of the action before it runs, although no document changes. `line` is for the agent; `audit`
 * is for the record. */
static int record_and_open(struct request *c, const struct object *instance, const struct session_target *place,
                           enum session_verb verb, const json_t *line, json_t *audit)
{
    CLEANUP(json) json_t *note = json_pack("{s:o}", "errand", audit);
    (void)json_object_set_new(audit, "instance", json_integer((json_int_t)place->instance));
    (void)json_object_set_new(audit, "node", json_string(place->node));
    (void)json_object_set_new(audit, "workload", json_string(instance->instance->workload));
    crud_name(c, KIND_INSTANCE, instance->id, verb == SESSION_EXEC ? "exec" : "signal");
    c->change.note = text_in(&c->arena, note);
    struct session_open *o = arena_dup(&c->arena, &(struct session_open){.verb = verb}, sizeof *o);
    session_id_make(c->control, o->id);
    o->user = arena_strdup(&c->arena, c->caller.user);
    o->node = place->node;
    o->line = text_in(&c->arena, line);
    c->durable = on_session_open_durable;
    c->durable_ctx = o;
    c->answer.body = verb == SESSION_EXEC ? json_pack("{s:s}", "call", o->id) : json_pack("{s:s}", "status", "sent");
    return 0;
}

/* ---- exec ------------------------------------------------------------------------------------------------------- */

struct exec_doc {
    const char *const *command;
    size_t command_len;
    const struct berth_label *env;
    size_t env_len;
    bool terminal;
    uint32_t rows, columns;
};

static const struct key exec_rows[] = {
    KEY("command", "list of texts", "program and arguments, passed unchanged; no shell is used", command_read,
        .at = offsetof(struct exec_doc, command), .len_at = offsetof(struct exec_doc, command_len)),
    KEY("env", "{name: text}", "variables added to the environment", labels_read, .at = offsetof(struct exec_doc, env),
        .len_at = offsetof(struct exec_doc, env_len)),
    KEY("terminal", "true or false", "allocate a terminal", bool_read, .at = offsetof(struct exec_doc, terminal)),
    KEY("rows", "whole number", "of the terminal", u32_read, .at = offsetof(struct exec_doc, rows)),
    KEY("columns", "whole number", "of the terminal", u32_read, .at = offsetof(struct exec_doc, columns)),
};
KEY_TABLE(exec_keys, "exec", exec_rows);

static int exec_read(struct request *c, struct exec_doc *d)
{
    struct reader r;
    char quoted[QUOTE_MAX];
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &exec_keys, d);
    if (rc < 0)
        return rc;
    if (d->command_len == 0 || !d->command[0][0])
        return err_set(&c->err, EINVAL, "command: expected a list of words");
    if (d->rows > UINT16_MAX || d->columns > UINT16_MAX)
        return err_set(&c->err, EINVAL, "rows and columns: expected numbers up to %d", UINT16_MAX);
    for (size_t i = 0; i < d->env_len; i++)
        if (!*d->env[i].key || strchr(d->env[i].key, '='))
            return err_set(&c->err, EINVAL, "env: %s is not a valid variable name", quote(d->env[i].key, quoted));
    return 0;
}

/* Returns the line for the agent; `words` is the command. A new reference. */
static json_t *exec_line(const struct exec_doc *d, const struct session_target *place, json_t *words)
{
    json_t *line = json_pack("{s:s, s:I, s:O, s:b}", "verb", "exec", "instance", (json_int_t)place->instance, "command",
                             words, "terminal", d->terminal);
    json_t *env = json_object();
    for (size_t i = 0; i < d->env_len; i++)
        (void)json_object_set_new(env, d->env[i].key, json_string(d->env[i].value ? d->env[i].value : ""));
    (void)json_object_set_new(line, "env", env);
    if (d->rows && d->columns) {
        (void)json_object_set_new(line, "rows", json_integer(d->rows));
        (void)json_object_set_new(line, "columns", json_integer(d->columns));
    }
    return line;
}

int session_exec(struct request *c)
{
    struct exec_doc d = {0};
    struct session_target place = {0};
    const struct object *o = request_object(c, KIND_INSTANCE, c->args[0], PERMIT_MANAGE);
    if (!o)
        return -c->err.code;
    int rc = exec_read(c, &d);
    if (rc == 0)
        rc = running_place(c, o, &place);
    if (rc == 0)
        rc = session_check(c, c->caller.user, place.node);
    if (rc < 0)
        return rc;
    CLEANUP(json) json_t *words = json_array();
    for (size_t i = 0; i < d.command_len; i++)
        (void)json_array_append_new(words, json_string(d.command[i]));
    CLEANUP(json) json_t *line = exec_line(&d, &place, words);
    return record_and_open(c, o, &place, SESSION_EXEC, line, json_pack("{s:s, s:O}", "verb", "exec", "command", words));
}

/* ---- signals ---------------------------------------------------------------------------------------------------- */

struct signal_doc {
    const char *signal;
};

static const struct key signal_rows[] = {
    KEY("signal", "text", "signal name, such as HUP; default: TERM", text_read,
        .at = offsetof(struct signal_doc, signal)),
};
KEY_TABLE(signal_keys, "signal", signal_rows);

int session_signal(struct request *c)
{
    struct signal_doc d = {"TERM"};
    struct session_target place = {0};
    struct reader r;
    char quoted[QUOTE_MAX];
    const struct object *o = request_object(c, KIND_INSTANCE, c->args[0], PERMIT_MANAGE);
    if (!o)
        return -c->err.code;
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &signal_keys, &d);
    const char *name = rc == 0 ? signal_name_find(d.signal) : NULL;
    if (rc == 0 && !name)
        rc = err_set(&c->err, EINVAL, "signal: there is no signal %s; expected a name like HUP, TERM or USR1",
                     quote(d.signal, quoted));
    if (rc == 0)
        rc = running_place(c, o, &place);
    if (rc == 0)
        rc = session_check(c, c->caller.user, place.node);
    if (rc < 0)
        return rc;
    CLEANUP(json)
    json_t *line =
        json_pack("{s:s, s:I, s:s}", "verb", "signal", "instance", (json_int_t)place.instance, "signal", name);
    return record_and_open(c, o, &place, SESSION_SIGNAL, line,
                           json_pack("{s:s, s:s}", "verb", "signal", "signal", name));
}

/* ---- open sessions ---------------------------------------------------------------------------------------------- */

/* NULL with c->err: the same text for a missing session and for a session of another user. */
static struct session *own_session(struct request *c)
{
    char quoted[QUOTE_MAX];
    struct session *e = session_find(c->control->session_hub, c->args[0]);
    if (e && e->verb == SESSION_EXEC && c->caller.user[0] && strcmp(e->user, c->caller.user) == 0)
        return e;
    (void)err_set(&c->err, ENOENT, "you have no call %s; it may have ended", quote(c->args[0], quoted));
    return NULL;
}

int session_output(struct request *c)
{
    struct session *e = own_session(c);
    if (!e)
        return -c->err.code;
    if (e->stream)
        return err_set(&c->err, EBUSY, "a client is already connected to it");
    struct stream *stream = NULL;
    int rc = stream_feed_open(c, &lines_feed, e, &stream);
    e->stream = stream;
    return rc;
}

int session_input(struct request *c)
{
    struct session *e = own_session(c);
    bool eof = false;
    if (!e)
        return -c->err.code;
    int rc = query_bool(c, "eof", &eof);
    if (rc < 0)
        return rc;
    if (e->eof || e->input)
        return err_set(&c->err, EBUSY, e->eof ? "the input has ended" : "send one input at a time, in order");
    if (session_input_forward(e, c))
        return 0;
    e->input = c;
    c->later = true;
    return 0;
}

struct resize_doc {
    uint32_t rows, columns;
};

static const struct key resize_rows[] = {
    KEY("rows", "whole number", "of the terminal", u32_read, .at = offsetof(struct resize_doc, rows)),
    KEY("columns", "whole number", "of the terminal", u32_read, .at = offsetof(struct resize_doc, columns)),
};
KEY_TABLE(resize_keys, "resize", resize_rows);

int session_resize(struct request *c)
{
    struct resize_doc d = {0};
    struct reader r;
    struct session *e = own_session(c);
    if (!e)
        return -c->err.code;
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &resize_keys, &d);
    if (rc == 0 && (d.rows == 0 || d.columns == 0 || d.rows > UINT16_MAX || d.columns > UINT16_MAX))
        rc = err_set(&c->err, EINVAL, "rows and columns: expected numbers from 1 to %d", UINT16_MAX);
    if (rc < 0)
        return rc;
    e->rows = d.rows;
    e->columns = d.columns;
    e->resized = true;
    session_flush(e);
    c->answer.body = json_object();
    return 0;
}

int session_delete(struct request *c)
{
    struct session *e = own_session(c);
    if (!e)
        return -c->err.code;
    session_close(e, NULL);
    c->answer.body = json_object();
    return 0;
}
