/* request.c - requests to the daemon, and delivery of their answers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster/request.h"

static const char *keep(struct arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static struct sim_pending_request *pending_request_new(struct sim_world *w, const struct sim_request *ask)
{
    struct sim_pending_request *a = mem_zalloc(sizeof *a);
    arena_init(&a->arena);
    a->world = w;
    a->number = w->asked.len + 1;
    a->life = w->daemon.life;
    a->ask = *ask;
    a->ask.who = keep(&a->arena, ask->who ? ask->who : "nobody");
    a->ask.method = keep(&a->arena, ask->method);
    a->ask.path = keep(&a->arena, ask->path);
    a->ask.token = keep(&a->arena, ask->token);
    a->ask.key = keep(&a->arena, ask->key);
    a->ask.if_match = keep(&a->arena, ask->if_match);
    for (size_t i = 0; i < sizeof ask->query / sizeof *ask->query; i++)
        a->ask.query[i] = keep(&a->arena, ask->query[i]);
    if (ask->body) {
        a->ask.body_len = ask->body_len ? ask->body_len : strlen(ask->body);
        a->ask.body = arena_strndup(&a->arena, ask->body, a->ask.body_len);
    }
    return a;
}

static void pending_request_free(struct sim_pending_request *a)
{
    if (!a)
        return;
    if (a->ask.drop)
        a->ask.drop(a->ask.ctx);
    json_decref(a->body);
    if (a->stream)
        stream_stop(a->stream);
    str_done(&a->text);
    arena_done(&a->arena);
    mem_free(a);
}

static const char *query_of(const void *from, const char *name)
{
    const struct sim_request *ask = from;
    for (size_t i = 0; i + 1 < sizeof ask->query / sizeof *ask->query && ask->query[i]; i += 2)
        if (strcmp(ask->query[i], name) == 0)
            return ask->query[i + 1];
    return NULL;
}

static void answer_arrived(void *ctx, struct answer *answer)
{
    struct sim_pending_request *a = ctx;
    struct sim_world *w = a->world;
    if (a->answered)
        world_breach(w, 9, "request %" PRIu64 " (%s %s) is answered twice", a->number, a->ask.method, a->ask.path);
    a->answered = true;
    w->waiting--;
    if (!w->daemon.dying) { /* output of a daemon that is being shut down is ignored */
        a->status = answer->status;
        a->revision = answer->revision;
        a->body = take_ptr(&answer->body);
        a->stream = take_ptr(&answer->stream);
        str_add_bytes(&a->text, answer->text.at, answer->text.len);
    }
    vec_push(&w->answered, a);
}

uint64_t world_request(struct sim_world *w, const struct sim_request *ask)
{
    struct sim_pending_request *a = pending_request_new(w, ask);
    char remote[32];
    vec_push(&w->asked, a);
    struct past_request past = {0};
    vec_push(&w->past, past);
    w->counts.requests++;
    w->waiting++;
    if (!w->daemon.control) {
        struct answer none = {.status = 0};
        answer_arrived(a, &none);
        return a->number;
    }
    (void)snprintf(remote, sizeof remote, "r%" PRIu64, a->number);
    struct request_input request = {
        .method = a->ask.method,
        .path = a->ask.path,
        .token = a->ask.token,
        .idempotency_key = a->ask.key,
        .if_match = a->ask.if_match,
        .remote = remote,
        .body = a->ask.body,
        .body_len = a->ask.body_len,
        .query = query_of,
        .query_from = &a->ask,
    };
    uint64_t number = a->number;
    control_handle(w->daemon.control, &request, answer_arrived, a);
    daemon_schedule_pump(w);
    return number;
}

static bool is_refusal(int status)
{
    return status == 400 || status == 401 || status == 403 || status == 404 || status == 405 || status == 413;
}

static void check(struct sim_world *w, const struct sim_pending_request *a, const struct request_outcome *o)
{
    const struct sim_request *ask = &a->ask;
    if (is_refusal(o->status) && o->changed)
        world_breach(w, 20, "request %" PRIu64 " (%s %s by %s) was refused with %d, and is in the journal", a->number,
                     ask->method, ask->path, ask->who, o->status);
    if (ask->refuse && o->status >= 200 && o->status < 300)
        world_breach(w, ask->invariant, "request %" PRIu64 " (%s %s by %s) was to be refused, and got %d", a->number,
                     ask->method, ask->path, ask->who, o->status);
    if (ask->harmless && o->changed)
        world_breach(w, ask->invariant, "request %" PRIu64 " (%s %s by %s) was to change nothing, and did", a->number,
                     ask->method, ask->path, ask->who);
    if (o->status == 201 && !o->changed && !ask->key && !ask->query[0])
        world_breach(w, 7, "request %" PRIu64 " (%s %s by %s) was told that it is done, and nothing is in the journal",
                     a->number, ask->method, ask->path, ask->who);
    if (o->status >= 500 && o->status != 503)
        world_breach(w, 27, "request %" PRIu64 " (%s %s) got %d", a->number, ask->method, ask->path, o->status);
}

/* Delivers an answer. The journal was read before, so it has the change of every successful request. */
static void deliver(struct sim_world *w, struct sim_pending_request *a)
{
    struct past_request *past = &w->past.at[a->number - 1];
    struct request_outcome o = {
        .status = a->status,
        .body = a->body,
        .text = str_text(&a->text),
        .stream = a->stream ? &a->stream : NULL,
        .changed = past->changed != 0,
        .revision = a->revision,
    };
    past->status = (int16_t)a->status;
    past->over = true;
    w->counts.refused += is_refusal(a->status);
    world_mix(w, a->number * 1000 + (uint64_t)a->status);
    check(w, a, &o);
    if (a->ask.key && !w->calm && random_per_mille(&w->rng, 30))
        o = (struct request_outcome){.text = "",
                                     .changed = o.changed}; /* the answer is lost, so the effect is unknown */
    guarantees_answered(w, a->number, &a->ask, &o);
    if (w->options->trace && a->ask.who[0] != '.') {
        CLEANUP(str) struct str line = {0};
        CLEANUP(json_text) char *text = a->body ? json_dumps(a->body, JSON_COMPACT) : NULL;
        str_addf(&line, "                      r%" PRIu64 " %s: %s %s %.200s -> %d %.300s", a->number, a->ask.who,
                 a->ask.method, a->ask.path, a->ask.body ? a->ask.body : "", a->status, text ? text : "");
        w->options->trace(w->options->ctx, line.at);
    }
    if (a->ask.then)
        a->ask.then(w, a->ask.ctx, &o);
}

bool requests_settle(struct sim_world *w)
{
    bool some = w->answered.len > 0;
    for (size_t i = 0; i < w->answered.len; i++) { /* `then` may send requests, which may be answered at once */
        struct sim_pending_request *a = w->answered.at[i];
        deliver(w, a);
        w->asked.at[a->number - 1] = NULL;
        pending_request_free(a);
    }
    w->answered.len = 0;
    return some;
}

void requests_record(struct sim_world *w, uint64_t number, uint64_t revision)
{
    if (number == 0 || number > w->past.len) {
        world_breach(w, 26, "revision %" PRIu64 " was made by request %" PRIu64 ", which nobody made", revision,
                     number);
        return;
    }
    struct past_request *past = &w->past.at[number - 1];
    if (past->changed)
        world_breach(w, 9, "request %" PRIu64 " was carried out twice: revisions %" PRIu64 " and %" PRIu64, number,
                     past->changed, revision);
    if (past->over && past->status && (past->status < 200 || past->status > 299))
        world_breach(w, 20, "request %" PRIu64 " was answered with %d, and changed something later", number,
                     past->status);
    past->changed = revision;
}

void requests_done(struct sim_world *w)
{
    for (size_t i = 0; i < w->asked.len; i++)
        pending_request_free(w->asked.at[i]);
    vec_done(&w->asked);
    vec_done(&w->answered);
    vec_done(&w->past);
}
