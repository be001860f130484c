/* watcher.c - clients that list a collection and then watch it (28).
 *
 * One client sees everything, one is a user without a role. Each maintains a copy of the collection only from the
 * events that it receives. The expected events are computed from the transactions. Events must arrive in that order,
 * without duplicates and gaps, despite disconnections, slow readers and crashes, and the copy must equal the
 * collection.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster/world.h"

enum { CLIENTS = 2, COMPARE_EVERY = 40 };
#define RETRY_NS (2 * SECOND)
#define LAG_NS (20 * SECOND)

/* An expected event. */
struct expected_event {
    uint64_t revision;
    char id[24];
    json_t *doc; /* NULL: deleted */
};

struct watched_copy {
    char id[24];
    uint64_t revision;
};

struct watch_client {
    struct sim_world *w;
    bool everything;
    char user[ID_MAX + 1], token[TOKEN_TEXT_MAX]; /* of the user without a role */
    struct stream *stream;                        /* NULL: not connected */
    bool asking, listed, paused;
    uint64_t revision; /* of the last event or list */
    uint64_t whole;    /* all events up to this revision have arrived */
    VEC(struct expected_event) due;
    size_t next;       /* index of the next expected event in `due` */
    int64_t behind_ns; /* since when an event is overdue; 0: none */
    int64_t retry_ns;
    VEC(struct watched_copy) copy;
    struct str text; /* received, not parsed yet */
    uint64_t looks;
};

struct watchers {
    struct watch_client at[CLIENTS];
};

/* ---- visibility ------------------------------------------------------------------------------------------------- */

static const char *owner_of(const struct mirror *m, const struct mirror_doc *instance)
{
    const char *workload = instance->instance.instance.workload, *dot = strchr(workload, '.');
    if (dot)
        return dot + 1;
    const struct mirror_doc *job = mirror_find(m, KIND_JOB, workload);
    if (!job)
        job = mirror_placed_from(m, instance);
    return job && job->work.owner ? job->work.owner : "";
}

static bool is_visible_to(const struct watch_client *c, const struct mirror_doc *instance)
{
    return c->everything || strcmp(owner_of(&c->w->mirror, instance), c->user) == 0;
}

static struct watched_copy *copy_find(struct watch_client *c, const char *id)
{
    for (size_t i = 0; i < c->copy.len; i++)
        if (strcmp(c->copy.at[i].id, id) == 0)
            return &c->copy.at[i];
    return NULL;
}

/* Compares the copy with the collection. Only called when no event is expected. */
static void compare(struct watch_client *c)
{
    size_t visible = 0;
    for (size_t i = 0; i < c->w->mirror.of[KIND_INSTANCE].len; i++) {
        const struct mirror_doc *s = c->w->mirror.of[KIND_INSTANCE].at[i];
        const struct watched_copy *has = copy_find(c, s->id);
        if (!is_visible_to(c, s) && !has) /* the job of the instance may have been deleted first */
            continue;
        visible++;
        if (!has || has->revision != s->revision)
            world_breach(c->w, 28, "%s has instance %s at revision %" PRIu64 ", it is at %" PRIu64, c->user, s->id,
                         has ? has->revision : 0, s->revision);
    }
    if (visible != c->copy.len)
        world_breach(c->w, 28, "%s has %zu instances in its copy, and %zu are there", c->user, c->copy.len, visible);
    c->w->counts.checks++;
}

/* ---- expected events -------------------------------------------------------------------------------------------- */

static void due_drop(struct watch_client *c, size_t n)
{
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        json_decref(c->due.at[i].doc);
    memmove(c->due.at, c->due.at + n, (c->due.len - n) * sizeof *c->due.at);
    c->due.len -= n;
    c->next -= n;
}

/* Returns whether the client knows the instance, or is about to. The job may be deleted before its instance: when the
 * clock jumps by weeks, jobs expire while a lost node still has an instance. */
static bool is_known_to(struct watch_client *c, const char *id)
{
    bool is_due = false;
    for (size_t i = 0; i < c->due.len; i++)
        is_due = strcmp(c->due.at[i].id, id) == 0 ? c->due.at[i].doc != NULL : is_due;
    return is_due || copy_find(c, id);
}

static void due_add(struct watch_client *c, const struct transaction *t, const struct mirror_change *change)
{
    const struct mirror_doc *s = change->now ? change->now : change->old;
    if (!s || !c->listed || !(is_visible_to(c, s) || (!change->now && is_known_to(c, s->id))))
        return;
    struct expected_event expected_event = {.revision = t->revision,
                                            .doc = change->now ? json_incref(change->now->doc) : NULL};
    (void)snprintf(expected_event.id, sizeof expected_event.id, "%s", s->id);
    vec_push(&c->due, expected_event);
}

void watchers_expect(struct sim_world *w, const struct transaction *t)
{
    for (size_t i = 0; i < CLIENTS; i++)
        for (size_t k = 0; k < t->len; k++)
            if (t->changes[k].kind == KIND_INSTANCE)
                due_add(&w->watchers->at[i], t, &t->changes[k]);
}

/* ---- received events -------------------------------------------------------------------------------------------- */

static void copy_apply(struct watch_client *c, const struct expected_event *expected_event)
{
    struct watched_copy *has = copy_find(c, expected_event->id);
    if (!expected_event->doc) {
        if (has)
            *has = c->copy.at[--c->copy.len];
        return;
    }
    if (!has) {
        struct watched_copy fresh = {0};
        memcpy(fresh.id, expected_event->id, sizeof fresh.id);
        vec_push(&c->copy, fresh);
        has = &c->copy.at[c->copy.len - 1];
    }
    has->revision = expected_event->revision;
}

static void same_object(struct watch_client *c, const struct expected_event *expected_event, const json_t *line)
{
    json_t *object = json_copy(json_object_get(line, "object"));
    (void)json_object_del(object, "revision");
    if (!json_equal(object, expected_event->doc))
        world_breach(c->w, 28, "%s is told another instance %s than is stored, at revision %" PRIu64, c->user,
                     expected_event->id, expected_event->revision);
    json_decref(object);
}

static void ended(struct watch_client *c, const char *code)
{
    if (strcmp(code, "slow") != 0 && strcmp(code, "stopping") != 0)
        c->listed = false; /* the visible collection has changed, or the past was compacted */
}

static void line_read(struct watch_client *c, const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, 0, NULL);
    const char *type = json_string_value(json_object_get(line, "type"));
    const json_t *object = json_object_get(line, "object");
    uint64_t revision = (uint64_t)json_integer_value(json_object_get(line, "revision"));
    const char *gone = json_string_value(json_object_get(line, "id"));
    char id[24];
    (void)snprintf(id, sizeof id, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(object, "id")));
    if (gone)
        (void)snprintf(id, sizeof id, "%s", gone);
    const struct expected_event *expected_event = c->next < c->due.len ? &c->due.at[c->next] : NULL;
    if (!type)
        world_breach(c->w, 28, "%s is told what is no line: %.200s", c->user, text);
    else if (strcmp(type, "end") == 0)
        ended(c, json_string_value(json_object_get(line, "code")));
    else if (!expected_event)
        world_breach(c->w, 28, "%s is told of instance %s at revision %" PRIu64 ", and nothing was to come", c->user,
                     id, revision);
    else if (expected_event->revision != revision || strcmp(expected_event->id, id) != 0 ||
             !expected_event->doc != (strcmp(type, "gone") == 0))
        world_breach(c->w, 28, "%s is told %s %s at revision %" PRIu64 ", but %s %s at %" PRIu64 " was to come",
                     c->user, type, id, revision, expected_event->doc ? "put" : "gone", expected_event->id,
                     expected_event->revision);
    else {
        if (expected_event->doc)
            same_object(c, expected_event, line);
        copy_apply(c, expected_event);
        if (revision > c->revision)
            c->whole = revision - 1;
        c->revision = revision;
        c->next++;
        c->w->counts.watched++;
    }
    json_decref(line);
}

static void lines_read(struct watch_client *c)
{
    size_t at = 0;
    for (const char *end; at < c->text.len && (end = memchr(c->text.at + at, '\n', c->text.len - at));) {
        size_t len = (size_t)(end - c->text.at) - at;
        if (len) /* an empty line keeps the connection alive */
            line_read(c, c->text.at + at, len);
        at += len + 1;
    }
    CLEANUP(str) struct str rest = {0};
    str_add_bytes(&rest, c->text.at + at, c->text.len - at);
    str_clear(&c->text);
    str_add_bytes(&c->text, rest.at, rest.len);
    /* A partially received revision is requested again, so its events stay expected. */
    size_t old = 0;
    while (old < c->next && c->due.at[old].revision <= c->whole)
        old++;
    if (old)
        due_drop(c, old);
}

static bool sink_send(void *ctx, const char *at, size_t len)
{
    struct watch_client *c = ctx;
    const struct sim_sabotage *s = c->w->options->sabotage;
    if (c->everything && s && s->watched && !s->watched(s->ctx, at, len))
        return true;
    str_add_bytes(&c->text, at, len);
    return true;
}

static void sink_end(void *ctx)
{
    struct watch_client *c = ctx;
    c->stream = NULL;
    c->paused = false;
    c->retry_ns = c->w->now_ns + RETRY_NS;
}

static size_t sink_backlog(void *ctx)
{
    return ((struct watch_client *)ctx)->paused ? SIZE_MAX / 2 : 0;
}

/* ---- connecting ------------------------------------------------------------------------------------------------- */

static void connected(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    struct watch_client *c = ctx;
    c->asking = false;
    c->retry_ns = w->now_ns + RETRY_NS;
    if (o->status == 410 || o->status == 401)
        c->listed = false;
    if (!o->stream)
        return;
    c->stream = take_ptr(o->stream);
    struct stream_sink sink = {.ctx = c, .send = sink_send, .end = sink_end, .backlog = sink_backlog};
    stream_start(c->stream, &sink);
}

static void listed(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    struct watch_client *c = ctx;
    size_t i;
    json_t *item;
    c->asking = false;
    c->retry_ns = w->now_ns + RETRY_NS;
    if (o->status != 200)
        return;
    due_drop(c, c->due.len);
    c->next = 0;
    c->copy.len = 0;
    str_clear(&c->text);
    c->listed = true;
    c->retry_ns = w->now_ns;
    c->revision = c->whole = (uint64_t)json_integer_value(json_object_get(o->body, "revision"));
    json_array_foreach(json_object_get(o->body, "items"), i, item)
    {
        struct watched_copy copy = {.revision = (uint64_t)json_integer_value(json_object_get(item, "revision"))};
        (void)snprintf(copy.id, sizeof copy.id, "%" JSON_INTEGER_FORMAT,
                       json_integer_value(json_object_get(item, "id")));
        vec_push(&c->copy, copy);
    }
    compare(c);
}

static void connect(struct sim_world *w, struct watch_client *c)
{
    char from[24];
    const char *user, *token = sim_users_admin_token(w);
    if (!c->everything) {
        if (!sim_users_watcher(w, &user, &token))
            return;
        (void)snprintf(c->user, sizeof c->user, "%s", user);
    }
    struct sim_request ask = {.who = ".watcher", .method = "GET", .path = "/v1/instances", .token = token, .ctx = c};
    if (c->listed) {
        while (c->next > 0 && c->due.at[c->next - 1].revision > c->whole) /* the last revision may be incomplete */
            c->next--;
        ask.query[0] = "watch";
        ask.query[1] = str_u64(c->whole, from);
        ask.then = connected;
    } else {
        ask.query[0] = "limit";
        ask.query[1] = "10000";
        ask.then = listed;
    }
    c->asking = true;
    (void)world_request(w, &ask);
}

/* ---- periodic actions ------------------------------------------------------------------------------------------- */

/* Disconnects, reads slowly, or reads normally. */
static void change_behaviour(struct sim_world *w, struct watch_client *c)
{
    struct random_stream *rng = &w->rng;
    if (random_per_mille(rng, 2)) {
        stream_stop(take_ptr(&c->stream));
        c->paused = false;
        c->retry_ns = w->now_ns + random_range(rng, MILLISECOND, 20 * SECOND);
        str_clear(&c->text);
    } else if (!c->paused && random_per_mille(rng, 3)) {
        c->paused = true;
    } else if (c->paused && random_per_mille(rng, 20)) {
        c->paused = false;
        stream_drained(c->stream);
    }
}

static void client_check(struct sim_world *w, struct watch_client *c)
{
    if (c->text.len)
        lines_read(c);
    if (!c->stream && !c->asking && w->daemon.control && w->now_ns >= c->retry_ns)
        connect(w, c);
    if (c->stream && !w->calm)
        change_behaviour(w, c);
    bool behind = c->stream && !c->paused && c->next < c->due.len;
    if (!behind)
        c->behind_ns = 0;
    else if (c->behind_ns == 0)
        c->behind_ns = w->now_ns;
    else if (w->now_ns - c->behind_ns > LAG_NS)
        world_breach(w, 28, "%s is not told of instance %s at revision %" PRIu64, c->user, c->due.at[c->next].id,
                     c->due.at[c->next].revision);
    if (c->stream && c->next == c->due.len && c->text.len == 0 && ++c->looks % COMPARE_EVERY == 0)
        compare(c);
}

void watchers_check(struct sim_world *w)
{
    for (size_t i = 0; i < CLIENTS && w->people; i++)
        client_check(w, &w->watchers->at[i]);
}

void watchers_down(struct sim_world *w)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        struct watch_client *c = &w->watchers->at[i];
        if (c->stream)
            stream_stop(take_ptr(&c->stream));
        c->paused = false;
        str_clear(&c->text);
    }
}

struct watchers *watchers_new(struct sim_world *w)
{
    struct watchers *x = mem_zalloc(sizeof *x);
    for (size_t i = 0; i < CLIENTS; i++)
        x->at[i].w = w;
    x->at[0].everything = true;
    (void)snprintf(x->at[0].user, sizeof x->at[0].user, "the administrator's watcher");
    return x;
}

void watchers_free(struct watchers *x)
{
    for (size_t i = 0; x && i < CLIENTS; i++) {
        struct watch_client *c = &x->at[i];
        due_drop(c, c->due.len);
        vec_done(&c->due);
        vec_done(&c->copy);
        str_done(&c->text);
    }
    mem_free(x);
}
