/* handle.c - handles a request from its arrival to its answer. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plant.h"
#include "base/vec.h"
#include "control/api/idempotency.h"
#include "control/api/request_turn.h"
#include "control/control_parts.h"
#include "control/state/commit.h"
#include "control/tenant/cap.h"
#include "wire/text/words.h"

#define LATE_NS (INT64_C(30) * 86400 * 1000000000)
enum {
    ATTEMPTS_MAX = 8,
    ANONYMOUS_PER_S = 50,
    BURST_S = 10,
    NESTING_MAX = 32,
    BODY_PIECE = 4096,   /* each piece of this many bytes of a body counts as one more request */
    HEAVY_USER_MAX = 16, /* concurrent heavy requests of one user; a browser has 6 connections */
    HEAVY_ADDRESS_MAX = 128,
};

struct query_param {
    const char *name, *value;
};

/* A request with the data that it needs until the store has committed. */
struct pending_request {
    struct request request;     /* must be the first member: see request_answer */
    struct request_input input; /* its texts are in the arena of `request` */
    VEC(struct query_param) query;
    json_t *body;
    control_answered *answered;
    void *ctx;
    unsigned attempts;
    int worker_rc; /* return value of a verb that ran on a worker thread */
    int64_t start_ns, submitted_ns;
    struct fair_entry entry; /* in the fair queue while the request waits */
    struct fair_account *user, *address;
    size_t committing; /* uncommitted bytes in the store, counted in the user's account */
    bool heavy;        /* counted as heavy in both accounts */
};

/* ---- statuses and errors ---------------------------------------------------------------------------------------- */

static const struct {
    int code, status;
    const char *word;
} statuses[] = {
    {EINVAL,    400, "invalid"        },
    {EPERM,     401, "unauthenticated"},
    {EACCES,    403, "forbidden"      },
    {ENOENT,    404, "not-found"      },
    {ENOSYS,    405, "method"         },
    {EEXIST,    409, "conflict"       },
    {EBUSY,     409, "conflict"       },
    {EAGAIN,    409, "conflict"       },
    {EALREADY,  409, "superseded"     },
    {ESTALE,    410, "compacted"      },
    {ECANCELED, 412, "changed"        },
    {E2BIG,     413, "too-large"      },
    {EDQUOT,    429, "rate"           },
    {ENOSPC,    503, "unavailable"    },
    {EIO,       503, "unavailable"    },
};

static size_t status_row(int code)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].code == code)
            return i;
    return 0; /* all other errors of parsers (ERANGE, ENOTSUP, EOVERFLOW, ...) mean an invalid request */
}

/* Extracts the field path from an error text: "endpoints[1]: name: expected text" is about endpoints[1].name. The
 * message itself keeps the whole text. */
static void field_of(const char *text, char *ret, size_t size)
{
    size_t len = 0;
    ret[0] = 0;
    for (const char *at = text;;) {
        size_t word = strcspn(at, ": ");
        if (at[word] != ':' || at[word + 1] != ' ' || word == 0 || len + word + 2 > size)
            return;
        len += (size_t)snprintf(ret + len, size - len, "%s%.*s", len ? "." : "", (int)word, at);
        at += word + 2;
    }
}

static void answer_error(struct answer *a, int rc, const struct berth_err *err)
{
    size_t row = status_row(-rc);
    char field[128];
    CLEANUP(str) struct str message = {0};
    json_decref(a->body);
    str_clear(&a->text);
    if (a->stream)
        stream_stop(take_ptr(&a->stream));
    a->status = statuses[row].status;
    str_add_json(&message, err->text); /* err->text may be cut within a UTF-8 character, which jansson would reject */
    a->body = json_pack("{s:{s:s, s:o}}", "error", "code", statuses[row].word, "message",
                        json_loadb(message.at, message.len, JSON_DECODE_ANY, NULL));
    if (a->status == 400) {
        field_of(err->text, field, sizeof field);
        if (field[0])
            (void)json_object_set_new(json_object_get(a->body, "error"), "field", json_string(field));
    }
    if ((a->status == 503 || a->status == 429) && !a->retry_after_s)
        a->retry_after_s = 1;
}

/* ---- memory of requests ----------------------------------------------------------------------------------------- */

/* Requests share one spare arena: allocating and freeing an arena for each request would fragment the heap. */
static struct arena arena_borrow(struct control *c)
{
    struct arena lent = c->spare;
    arena_init(&c->spare);
    return lent;
}

static void arena_return(struct control *c, struct arena *arena)
{
    arena_rewind(arena, (struct arena_mark){0});
    if (c->spare.chunk)
        arena_done(arena);
    else
        c->spare = *arena;
}

/* ---- end of a request ------------------------------------------------------------------------------------------- */

static void answer_done(struct answer *a)
{
    json_decref(a->body);
    json_decref(a->warnings);
    str_done(&a->text);
    if (a->stream)
        stream_stop(a->stream);
    if (a->file)
        (void)remove(a->file);
    *a = (struct answer){0};
}

static void accounts_release(struct pending_request *h)
{
    struct fair_account *accounts[] = {h->user, h->address};
    for (size_t i = 0; i < sizeof accounts / sizeof *accounts; i++) {
        if (h->heavy)
            fair_account_end_heavy(accounts[i]);
        fair_account_unref(h->request.control->requests, accounts[i]);
    }
}

static void pending_request_free(struct pending_request *h)
{
    accounts_release(h);
    cap_release(&h->request);
    if (h->request.progress)
        h->request.progress_free(h->request.progress);
    answer_done(&h->request.answer);
    change_done(&h->request.change);
    json_decref(h->body);
    vec_done(&h->query);
    arena_return(h->request.control, &h->request.arena);
    mem_free(h);
}

static void finish(struct pending_request *h)
{
    struct control *c = h->request.control;
    struct answer *a = &h->request.answer;
    metric_add(c->metrics, METRIC_REQUESTS, (unsigned)a->status / 100, 1);
    metric_observe(c->metrics, METRIC_REQUEST_SECONDS, c->env.steady_ns(c->env.ctx) - h->start_ns);
    c->calls--;
    const char *user = h->request.caller.user, *method = h->input.method;
    if (a->status == 200 && user && *user && method && strcmp(method, "GET") == 0)
        read_list_note(c->reads, user, h->input.path, c->now_ns);
    refusals_note(c->refusals, &h->request);
    h->answered(h->ctx, a);
    pending_request_free(h);
}

static void fail(struct pending_request *h, int rc)
{
    answer_error(&h->request.answer, rc, &h->request.err);
    finish(h);
}

void request_answer(struct request *c, int rc)
{
    struct pending_request *h = (struct pending_request *)c; /* `request` is the first member */
    assert(c->later);
    if (rc < 0)
        fail(h, rc);
    else
        finish(h);
}

struct fair_account *request_account(struct request *c)
{
    return ((struct pending_request *)c)->user; /* `request` is the first member */
}

void request_refuse(struct request *c, int rc)
{
    answer_error(&c->answer, rc, &c->err);
}

/* ---- copying the request ---------------------------------------------------------------------------------------- */

static const char *copied_query(const void *from, const char *name)
{
    const struct pending_request *h = from;
    for (size_t i = 0; i < h->query.len; i++)
        if (strcmp(h->query.at[i].name, name) == 0)
            return h->query.at[i].value;
    return NULL;
}

static void copy_query(struct pending_request *h, const struct request_input *from, const char *names)
{
    while (from->query && names && *names) {
        size_t len = strcspn(names, ",");
        char *name = arena_strndup(&h->request.arena, names, len);
        const char *value = from->query(from->query_from, name);
        if (value) {
            struct query_param pair = {name, arena_strdup(&h->request.arena, value)};
            vec_push(&h->query, pair);
        }
        names += len + (names[len] == ',');
    }
}

static const char *copy_text(struct arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static void copy_request(struct pending_request *h, const struct request_input *from)
{
    struct arena *arena = &h->request.arena;
    h->input = (struct request_input){
        .method = copy_text(arena, from->method),
        .path = copy_text(arena, from->path),
        .token = copy_text(arena, from->token),
        .peer = copy_text(arena, from->peer),
        .peer_serial = copy_text(arena, from->peer_serial),
        .peer_until_ns = from->peer_until_ns,
        .idempotency_key = copy_text(arena, from->idempotency_key),
        .if_match = copy_text(arena, from->if_match),
        .accept = copy_text(arena, from->accept),
        .remote = copy_text(arena, from->remote),
        .body = from->body_len ? arena_strndup(arena, from->body, from->body_len) : "",
        .body_len = from->body_len,
        .query = copied_query,
        .query_from = h,
    };
}

/* ---- authentication, authorization and rate limit --------------------------------------------------------------- */

/* Finds the route and the caller, and checks the permission. Every verb is behind this check. */
static int authorize(struct control *c, const struct request_input *r, struct arena *arena,
                     const struct route **ret_route, const char *args[static ROUTE_ARGS_MAX], struct caller *ret_caller,
                     struct berth_err *err)
{
    static const struct caller nobody = {.user = "", .group = "", .role = "", .node = "", .token = ""};
    bool known;
    char shown[QUOTE_MAX];
    *ret_caller = nobody;
    const struct route *route = route_find(r->method, r->path, arena, args, &known);
    if (route && route->need == PERMIT_PUBLIC) {
        *ret_route = route;
        return 0;
    }
    /* An unauthenticated caller gets 401 for every path, so the caller learns nothing about the paths. */
    int64_t now_ns = control_wall_ns(c), late_ns = route && route->flags & ROUTE_EXPIRED_OK ? LATE_NS : 0;
    bool current = r->peer && certificate_valid(c->state, r->peer, r->peer_serial, r->peer_until_ns, now_ns - late_ns);
    int rc = caller_find(c->state, r->token, current ? r->peer : NULL, now_ns, ret_caller, err);
    if (rc < 0) {
        metric_add(c->metrics, METRIC_AUTH_FAILURES, 0, 1);
        return rc;
    }
    if (!route && known)
        return err_set(err, ENOSYS, "%s does not support %s; see /openapi.json", quote(r->path, shown), r->method);
    if (!route)
        return err_set(err, ENOENT, "no route %s; see /openapi.json", quote(r->path, shown));
    *ret_route = route;
    if (ret_caller->scope[route->need] == SCOPE_NONE && route->need != PERMIT_SELF)
        return err_set(err, EACCES, "role %s may not do this (it lacks the permission '%s')", ret_caller->role,
                       permission_name(route->need));
    return 0;
}

/* A request costs 1 and 1 more for each BODY_PIECE bytes of its body, which bounds the rate of large documents.
 * Unauthenticated callers share a small bucket per address, which also slows token guessing. Each user has one bucket
 * for all tokens. Exempt are agents (authenticated by certificate), health probes and the data of sessions;
 * administrators too, unless berthd was started with a limit. */
static int rate_limit(struct pending_request *h)
{
    struct request *request = &h->request;
    struct control *c = request->control;
    const struct caller *who = &request->caller;
    bool anonymous = !who->user[0] && !who->node[0];
    double per_s = anonymous ? ANONYMOUS_PER_S : c->in_force.requests_per_s;
    bool exempt = who->node[0] || (request->route && request->route->flags & ROUTE_PROBE) ||
                  (!anonymous && request->route && request->route->flags & ROUTE_RAW) ||
                  (who->scope[PERMIT_SYSTEM] != SCOPE_NONE && c->options.requests_per_s <= 0);
    size_t pieces = anonymous ? 0 : h->input.body_len / BODY_PIECE;
    int64_t retry_ns = 0;
    if (exempt || c->in_force.requests_per_s <= 0 || (anonymous && !h->input.remote) ||
        limit_take(c->limits, anonymous ? h->input.remote : arena_fmt(&request->arena, "user:%s", who->user), per_s,
                   per_s * BURST_S, 1 + (double)pieces, c->env.steady_ns(c->env.ctx), &retry_ns))
        return 0;
    metric_add(c->metrics, METRIC_RATE_LIMITED, 0, 1);
    request->answer.retry_after_s = retry_ns / 1000000000 + 1;
    return err_set(&request->err, EDQUOT, "too many requests; %.0f a second are allowed%s", per_s,
                   pieces ? ", and a body counts as one for each 4 KiB" : "");
}

int control_admit(struct control *c, const struct request_input *r, struct control_admitted *ret)
{
    struct arena arena = arena_borrow(c);
    const struct route *route = NULL;
    const char *args[ROUTE_ARGS_MAX];
    struct caller caller;
    struct berth_err err;
    int rc = authorize(c, r, &arena, &route, args, &caller, &err);
    *ret = (struct control_admitted){0};
    if (rc == 0 && caller.scope[PERMIT_SYSTEM] == SCOPE_NONE)
        (void)snprintf(ret->user, sizeof ret->user, "%s", caller.user);
    arena_return(c, &arena);
    if (rc < 0)
        return statuses[status_row(-rc)].status;
    assert(route);
    ret->body_max = route->body_max;
    return 0;
}

/* ---- the body --------------------------------------------------------------------------------------------------- */

/* Returns the deepest nesting of brackets outside strings, so that the recursion of parsers is bounded. */
static size_t nesting(const char *text, size_t len)
{
    size_t depth = 0, deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        char at = text[i];
        if (quoted) {
            i += at == '\\';
            quoted = at != '"';
        } else if (at == '"') {
            quoted = true;
        } else if (at == '{' || at == '[') {
            deepest = ++depth > deepest ? depth : deepest;
        } else if ((at == '}' || at == ']') && depth) {
            depth--;
        }
    }
    return deepest;
}

static int parse_body(struct pending_request *h)
{
    const struct request_input *r = &h->input;
    struct berth_err *err = &h->request.err;
    json_error_t where = {0};
    if (r->body_len > h->request.route->body_max)
        return err_set(err, E2BIG, "the body has %zu bytes, more than %" PRIu32, r->body_len,
                       h->request.route->body_max);
    if (h->request.route->flags & ROUTE_RAW)
        return 0;
    if (nesting(r->body, r->body_len) > NESTING_MAX)
        return err_set(err, EINVAL, "body: nested deeper than %d", NESTING_MAX);
    h->body = r->body_len ? json_loadb(r->body, r->body_len, JSON_REJECT_DUPLICATES, &where) : json_object();
    if (!h->body)
        return err_set(err, EINVAL, "body: line %d, column %d: %s", where.line, where.column, where.text);
    if (!json_is_object(h->body))
        return err_set(err, EINVAL, "body: expected a JSON object");
    h->request.body = h->body;
    return 0;
}

/* ---- running the verb ------------------------------------------------------------------------------------------- */

static void attempt(struct pending_request *h);
static void enqueue_or_run(struct pending_request *h);

static void show_dry_run(struct pending_request *h)
{
    struct answer *a = &h->request.answer;
    json_t *body = a->body ? a->body : json_null();
    a->body = json_pack("{s:b, s:o, s:o}", "dry_run", 1, "changes", change_show(&h->request.change), "answer", body);
    a->status = 200;
}

static void committed(void *ctx, const struct store_result *result)
{
    struct pending_request *h = ctx;
    struct request *c = &h->request;
    struct metrics *m = c->control->metrics;
    metric_add(m, METRIC_COMMITS, result->rc == 0 ? 0 : result->rc == -EAGAIN ? 1 : 2, 1);
    metric_observe(m, METRIC_COMMIT_SECONDS, c->control->env.steady_ns(c->control->env.ctx) - h->submitted_ns);
    fair_account_commit_end(c->control->requests, h->user, h->committing);
    h->committing = 0;
    request_turns_schedule(c->control);
    if (result->rc == -EAGAIN) {
        if (h->attempts < ATTEMPTS_MAX) {
            attempt(h); /* runs the verb again on the newer state */
            return;
        }
        (void)err_set(&c->err, EAGAIN, "the same objects are being changed by other requests; try again");
        fail(h, -EAGAIN);
        return;
    }
    if (result->rc < 0) {
        (void)err_set(&c->err, -result->rc, "%s: %s",
                      result->rc == -EIO ? "it is unknown whether the change was made" : "nothing was changed",
                      result->text ? result->text : "the store failed");
        fail(h, result->rc == -EIO ? -EIO : -ENOSPC);
        return;
    }
    events_now(c);
    if (c->durable)
        c->durable(c, c->durable_ctx);
    if (c->later)
        return;
    c->answer.revision = result->revision;
    if (json_is_object(c->answer.body))
        (void)json_object_set_new(c->answer.body, "revision", json_integer((json_int_t)result->revision));
    finish(h);
}

static void submit(struct pending_request *h)
{
    struct request *c = &h->request;
    const struct caller *who = &c->caller;
    struct commit_note note = {
        .who = who->user[0]   ? who->user
               : who->node[0] ? arena_fmt(&c->arena, "node:%s", who->node)
                              : "nobody",
        .verb = arena_fmt(&c->arena, "%s %s", c->route->method, c->route->path),
        .subject = c->change.subject[0] ? c->change.subject : c->input->path,
        .token = who->token,
        .remote = c->input->remote,
        .extra = {c->change.note, strlen(c->change.note)},
    };
    h->submitted_ns = c->control->env.steady_ns(c->control->env.ctx);
    cap_hold(c);
    int rc = commit_submit(c->control, &c->change, &note, committed, h, &c->err);
    if (rc > 0) {
        h->committing = who->node[0] ? 0 : c->change.submitted;
        fair_account_commit_begin(c->control->requests, h->user, h->committing);
        return;
    }
    if (rc == 0) {
        c->answer.revision = state_revision(c->state);
        finish(h);
    } else {
        fail(h, rc == -ENOBUFS ? -ENOSPC : rc); /* a full queue of the store is 503, not a conflict */
    }
}

/* Parses the revision of If-Match, which applies to the first object that the path names. */
static int expect_match(struct request *c)
{
    int64_t revision;
    const char *text = c->input->if_match;
    if (!text || !(c->route->flags & ROUTE_CHANGES))
        return 0;
    if (!str_parse_i64(text, &revision) || revision < 0)
        return err_set(&c->err, EINVAL, "If-Match: expected a revision");
    for (size_t i = 0; i < c->change.items.len; i++) {
        const struct change_item *item = &c->change.items.at[i];
        if (!kinds[item->kind].shown || !item->guarded)
            continue;
        if (item->revision == (uint64_t)revision)
            return 0;
        return err_set(&c->err, ECANCELED, "%s %s is at revision %" PRIu64 ", not %" PRId64 "; read it again",
                       kinds[item->kind].name, item->id, item->revision, revision);
    }
    return 0;
}

/* Warnings depend on the time of the request, so the answer that an idempotency key keeps includes them. */
static void show_warnings(struct request *c)
{
    if (c->answer.warnings && json_is_object(c->answer.body))
        (void)json_object_set(c->answer.body, "warnings", c->answer.warnings);
}

static int run_verb(struct pending_request *h)
{
    struct request *c = &h->request;
    struct reply reply = {0};
    bool changes = c->route->flags & ROUTE_CHANGES;
    int rc = changes && !c->dry_run ? reply_find(c, &reply) : 0;
    if (rc == 1) {
        c->answer.status = reply.status;
        c->answer.body = reply.body;
        c->answer.revision = reply.revision;
        if (json_is_object(reply.body))
            (void)json_object_set_new(reply.body, "revision", json_integer((json_int_t)reply.revision));
        return 1;
    }
    if (rc == 0)
        rc = c->route->run(c);
    if (c->later) /* a forecast has the request; the verb runs again when the forecast is ready */
        return rc;
    if (rc == 0)
        rc = expect_match(c);
    if (rc == 0 && changes)
        rc = cap_check(c);
    if (rc == 0)
        show_warnings(c);
    if (rc == 0 && changes && !c->dry_run) /* also for an empty change: a later retry might find something to change */
        reply_put(c);
    return rc;
}

/* Resets the request and runs the verb on the present state. */
static void attempt(struct pending_request *h)
{
    struct request *c = &h->request;
    h->attempts++;
    cap_release(c);
    c->durable = NULL;
    c->events = NULL;
    c->later = c->unfinished = false;
    answer_done(&c->answer);
    c->answer.status = 200;
    change_done(&c->change);
    change_init(&c->change, c->state, &c->arena);
    c->now_ns = control_now_ns(c->control);
    /* The caller may have lost permissions since the previous attempt. */
    int rc = authorize(c->control, c->input, &c->arena, &c->route, c->args, &c->caller, &c->err);
    if (rc == 0)
        rc = run_verb(h);
    if (rc < 0)
        fail(h, rc);
    else if (c->later)
        return;
    else if (c->unfinished)
        enqueue_or_run(h);
    else if (rc == 1 || c->answer.stream || !(c->route->flags & ROUTE_CHANGES))
        finish(h);
    else if (c->dry_run && !PLANTED(DRY_RUN_WRITES)) {
        show_dry_run(h);
        finish(h);
    } else {
        submit(h);
    }
}

void request_rerun(struct request *c)
{
    struct pending_request *h = (struct pending_request *)c; /* `request` is the first member */
    assert(c->later);
    h->attempts = 0;
    attempt(h);
}

/* ---- verbs on a worker thread ----------------------------------------------------------------------------------- */

static void worker_run(void *ctx)
{
    struct pending_request *h = ctx;
    h->worker_rc = h->request.route->run(&h->request);
}

static void worker_done(void *ctx)
{
    struct pending_request *h = ctx;
    if (h->worker_rc < 0)
        fail(h, h->worker_rc);
    else
        finish(h);
}

static void worker_start(struct pending_request *h)
{
    const struct control_env *env = &h->request.control->env;
    (env->run_slow ? env->run_slow : env->run)(env->ctx, worker_run, worker_done, h);
}

static void on_plan_done(void *ctx)
{
    struct pending_request *h = ctx;
    if (!h->request.control->stopping) {
        attempt(h);
        return;
    }
    (void)err_set(&h->request.err, ENOSPC, "berthd is stopping; try again soon");
    fail(h, -ENOSPC);
}

static int read_flags(struct pending_request *h)
{
    const char *dry_run = request_query(&h->request, "dry_run");
    if (!dry_run || strcmp(dry_run, "false") == 0)
        return 0;
    if (*dry_run && strcmp(dry_run, "true") != 0 && strcmp(dry_run, "1") != 0)
        return err_set(&h->request.err, EINVAL, "dry_run: expected true or false");
    h->request.dry_run = true;
    return 0;
}

/* ---- fair queue ------------------------------------------------------------------------------------------------- */

/* Lists and dry runs are heavy on every route. */
static bool is_heavy(const struct request *c)
{
    bool lists = c->route->flags & ROUTE_STREAMS && !request_query(c, "watch");
    return c->dry_run || lists || c->route->flags & ROUTE_HEAVY;
}

/* Limits the concurrent heavy requests of one user and of one address. Agents and administrators are exempt. */
static int heavy_begin(struct pending_request *h)
{
    struct request *c = &h->request;
    if (c->caller.node[0] || c->caller.scope[PERMIT_SYSTEM] != SCOPE_NONE || !is_heavy(c))
        return 0;
    if (fair_account_begin_heavy(h->user, HEAVY_USER_MAX)) {
        h->heavy = fair_account_begin_heavy(h->address, HEAVY_ADDRESS_MAX);
        if (h->heavy)
            return 0;
        fair_account_end_heavy(h->user);
    }
    metric_add(c->control->metrics, METRIC_RATE_LIMITED, 0, 1);
    return err_set(&c->err, EDQUOT, "too many lists, dry runs or forecasts at a time; at most %d are allowed",
                   HEAVY_USER_MAX);
}

static void dispatch(struct pending_request *h)
{
    struct request *request = &h->request;
    struct control *c = request->control;
    int rc = c->stopping   ? err_set(&request->err, ENOSPC, "berthd is stopping; try again soon")
             : h->attempts ? 0
                           : parse_body(h);
    if (rc < 0)
        fail(h, rc);
    else if (h->attempts) /* a partial verb continues from its progress */
        attempt(h);
    else if (request->route->flags & ROUTE_SCHEDULES)
        scheduler_force(c->scheduler, on_plan_done, h);
    else if (request->route->flags & ROUTE_WORKER)
        worker_start(h);
    else
        attempt(h);
}

static void entry_run(struct fair_entry *e)
{
    dispatch((struct pending_request *)((char *)e - offsetof(struct pending_request, entry)));
}

/* Runs the request at once if no request waits, else queues the request. */
static void enqueue_or_run(struct pending_request *h)
{
    struct control *c = h->request.control;
    h->entry.bytes = sizeof *h + h->input.body_len;
    h->entry.run = entry_run;
    if (h->request.unfinished) {
        request_turn_resume(c, h->user, &h->entry);
    } else if (!request_turn_run(c, h->user, &h->entry)) {
        metric_add(c->metrics, METRIC_RATE_LIMITED, 0, 1);
        fail(h, err_set(&h->request.err, EDQUOT, "too many of your requests are waiting; try again"));
    }
}

/* Takes references to the accounts that are charged for the request: one of the user or node, one of the address. */
static void accounts_join(struct pending_request *h)
{
    struct request *request = &h->request;
    const struct caller *who = &request->caller;
    const char *remote = arena_fmt(&request->arena, "@%s", h->input.remote ? h->input.remote : "");
    const char *name = who->node[0]   ? arena_fmt(&request->arena, "node:%s", who->node)
                       : who->user[0] ? arena_fmt(&request->arena, "user:%s", who->user)
                                      : remote;
    h->user = fair_account_ref(request->control->requests, name);
    h->address = fair_account_ref(request->control->requests, remote);
}

void control_handle(struct control *c, const struct request_input *input, control_answered *answered, void *ctx)
{
    struct pending_request *h = mem_zalloc(sizeof *h);
    struct request *request = &h->request;
    h->answered = answered;
    h->ctx = ctx;
    h->start_ns = c->env.steady_ns(c->env.ctx);
    request->arena = arena_borrow(c);
    request->control = c;
    request->state = c->state;
    request->answer.status = 200;
    change_init(&request->change, c->state, &request->arena);
    copy_request(h, input);
    request->input = &h->input;
    c->calls++;

    int rc = authorize(c, &h->input, &request->arena, &request->route, request->args, &request->caller, &request->err);
    accounts_join(h);
    int limited = rate_limit(h); /* charged even if `gate` failed */
    rc = limited < 0 ? limited : rc;
    if (rc == 0 && c->stopping)
        rc = err_set(&request->err, ENOSPC, "berthd is stopping; try again soon");
    if (rc == 0) {
        copy_query(h, input, request->route->query);
        copy_query(h, input, "dry_run,watch,limit,after");
        rc = read_flags(h);
    }
    if (rc == 0)
        rc = heavy_begin(h);
    if (rc < 0)
        fail(h, rc);
    else
        enqueue_or_run(h);
}
