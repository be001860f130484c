/* watch.c - streams: opened by a verb, started by the HTTP server, kept alive by heartbeats, ended with a reason. */
#include "control/watch/watch.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/request_turn.h"
#include "control/control_parts.h"
#include "control/tenant/cap.h"
#include "control/watch/watch_parts.h"

enum { WATCHERS_MAX = 12000 };
#define REFUSED_NS (INT64_C(100) * 1000000)

struct watch_hub *watch_hub_new(struct control *control, size_t watchers_max, uint64_t history_max)
{
    struct watch_hub *h = mem_zalloc(sizeof *h);

    (void)history_max; /* unused: the control configures how much history the store keeps */
    h->control = control;
    h->watchers_max = watchers_max ? watchers_max : WATCHERS_MAX;
    h->ring = mem_zarray(RING_ENTRIES_MAX, sizeof *h->ring);
    h->revision = h->ring_from = state_revision(control_state(control));
    for (unsigned k = 0; k < KINDS; k++)
        h->changed[k] = h->revision;
    h->probe = mem_zalloc(sizeof *h->probe);
    return h;
}

void peers_join(struct stream **list, struct stream *s)
{
    s->peer_next = *list;
    s->peer_link = list;
    if (*list)
        (*list)->peer_link = &s->peer_next;
    *list = s;
}

void peers_leave(struct stream *s)
{
    if (!s->peer_link)
        return;
    *s->peer_link = s->peer_next;
    if (s->peer_next)
        s->peer_next->peer_link = s->peer_link;
    s->peer_link = NULL;
}

/* Counts the watch in the user's caps. */
static void stream_count(const struct stream *s, int sign)
{
    static const struct cap_amounts one = {.of[CAP_WATCHES] = 1};
    if (!s->fed)
        cap_book_hold(state_caps(control_state(s->hub->control)), s->caller.user, &one, sign);
}

static void stream_free(struct stream *s)
{
    const struct stream_feed *feed = take_ptr(&s->feed);

    if (feed)
        feed->gone(s->feed_ctx, NULL, NULL);
    if (s->topic)
        topic_leave(s);
    else
        peers_leave(s);
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    if (s->waits)
        fair_queue_remove(s->hub->control->requests, &s->turn);
    fair_account_unref(s->hub->control->requests, s->account);
    s->hub->watchers -= !s->fed;
    stream_count(s, -1);
    mem_free(s->texts);
    mem_free(s);
}

void watch_hub_free(struct watch_hub *h)
{
    if (!h)
        return;
    while (h->streams)
        stream_free(h->streams);
    topics_done(h);
    ring_done(h);
    mem_free(h->before_key);
    mem_free(h->probe);
    str_done(&h->scratch);
    str_done(&h->line);
    mem_free(h);
}

size_t watch_hub_len(const struct watch_hub *h)
{
    return h->watchers;
}

static int64_t steady_ns(const struct watch_hub *h)
{
    const struct control_env *env = control_env(h->control);
    return env->steady_ns(env->ctx);
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

static void bytes_send(struct stream *s, const char *at, size_t len)
{
    s->sending = true;
    bool taken = s->sink.send(s->sink.ctx, at, len);
    s->sending = false;
    s->sent_ns = steady_ns(s->hub);
    if (!taken)
        s->end_code = "slow";
}

void stream_send(struct stream *s, const char *id, const char *line, size_t len)
{
    struct str *text = &s->hub->scratch;

    str_clear(text);
    if (s->sse && id)
        str_addf(text, "id: %s\n", id);
    if (s->sse)
        str_add(text, "data: ");
    str_add_bytes(text, line, len);
    str_add(text, s->sse ? "\n\n" : "\n");
    bytes_send(s, text->at, text->len);
}

bool stream_open(struct stream *s)
{
    if (!s->started || s->stopped || s->end_code)
        return false;
    if (!s->full && s->sink.backlog && s->sink.backlog(s->sink.ctx) > s->backlog_max) {
        s->full = true;
        s->full_ns = steady_ns(s->hub);
    }
    return !s->full;
}

/* Ends a fed stream: the feed may add a last text. */
static void feed_closed(struct stream *s, const char *code)
{
    const struct stream_feed *feed = take_ptr(&s->feed);
    CLEANUP(str) struct str last = {0};

    if (feed)
        feed->gone(s->feed_ctx, code, &last);
    if (last.len)
        bytes_send(s, last.at, last.len);
}

/* Sends the reason and frees the stream, which must not be used afterwards. */
static void stream_end(struct stream *s, const char *code)
{
    char line[64];
    int len = snprintf(line, sizeof line, "{\"type\":\"end\",\"code\":\"%s\"}", code);

    s->end_code = code;
    if (!s->started)
        return; /* the reason is sent when the stream starts */
    if (!s->stopped && s->fed)
        feed_closed(s, code);
    else if (!s->stopped)
        stream_send(s, NULL, line, (size_t)len);
    if (!s->stopped)
        s->sink.end(s->sink.ctx);
    stream_free(s);
}

void stream_settle(struct stream *s)
{
    if (s->stopped)
        stream_free(s);
    else if (s->end_code)
        stream_end(s, s->end_code);
}

static void history_turn_enqueue(struct stream *s);

/* Runs the stream's turn in the fair queue: reads history. May free the stream. */
static void history_turn_run(struct fair_entry *turn)
{
    struct stream *s = (struct stream *)((char *)turn - offsetof(struct stream, turn));

    s->waits = false;
    if (s->hub->control->stopping)
        return;
    bool more = ring_step(s);
    if (more && ring_is_far_behind(s) && !s->stopped && !s->end_code) {
        history_turn_enqueue(s);
        return;
    }
    while (more)
        more = ring_step(s);
    stream_settle(s);
}

static void history_turn_enqueue(struct stream *s)
{
    struct control *c = s->hub->control;

    s->turn.run = history_turn_run;
    s->refused = !request_turn_enqueue(c, s->account, &s->turn);
    s->waits = !s->refused;
    if (s->refused) {
        s->hub->refused = true;
        c->env.wake_at(c->env.ctx, steady_ns(s->hub) + REFUSED_NS);
    }
}

/* Sends new changes. In an environment with a fair queue, older changes are read in the turns of the stream's
 * account. */
static void collection_serve(struct stream *s)
{
    bool turns = s->hub->control->env.serve_soon;

    if (s->waits || !stream_open(s))
        return;
    s->refused = false;
    if (turns && ring_is_far_behind(s))
        history_turn_enqueue(s);
    else
        while (ring_step(s))
            ;
}

/* Sends what is available; may free the stream. */
static void stream_serve(struct stream *s)
{
    if (s->fed) {
        if (stream_open(s))
            s->feed->ready(s->feed_ctx);
        else
            stream_settle(s);
        return;
    }
    if (!s->topic)
        collection_serve(s);
    else if (stream_open(s))
        topic_serve(s);
    stream_settle(s);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

/* Copies the caller with all its texts in one allocation. */
static void caller_copy(struct stream *s, const struct caller *from)
{
    const char *texts[] = {from->user, from->group, from->role, from->node, from->token};
    const char **to[] = {&s->caller.user, &s->caller.group, &s->caller.role, &s->caller.node, &s->caller.token};
    size_t bytes = 0, at = 0;

    s->caller = *from;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bytes += strlen(texts[i]) + 1;
    s->texts = mem_alloc(bytes);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t len = strlen(texts[i]) + 1;
        memcpy(s->texts + at, texts[i], len);
        *to[i] = s->texts + at;
        at += len;
    }
}

/* Checks the limits on open streams. */
static int check_watch_limits(struct request *c)
{
    const struct watch_hub *h = control_hub(c->control);

    if (h->stopping)
        return err_set(&c->err, ENOSPC, "berthd is stopping; try again soon");
    if (h->watchers >= h->watchers_max)
        return err_set(&c->err, EDQUOT, "%zu watches are already open; close some, or try again later", h->watchers);
    return cap_watch_check(c);
}

static struct stream *stream_new(struct request *c, bool fed)
{
    struct watch_hub *h = control_hub(c->control);
    struct stream *s = mem_zalloc(sizeof *s);
    const struct object *token = state_find(c->state, KIND_TOKEN, c->caller.token);

    s->hub = h;
    s->expires_ns = token ? token->token->expires_ns : BERTH_NEVER_NS;
    s->sse = c->input->accept && strstr(c->input->accept, "text/event-stream");
    s->sent_ns = steady_ns(h);
    s->backlog_max = BACKLOG_MAX;
    s->beat = s->sse ? ":\n\n" : "\n";
    caller_copy(s, &c->caller);
    s->account = request_account(c);
    fair_account_ref_again(s->account);
    s->next = h->streams;
    s->link = &h->streams;
    if (h->streams)
        h->streams->link = &s->next;
    h->streams = s;
    h->watchers += !fed;
    s->fed = fed;
    stream_count(s, 1);
    return s;
}

int watch_open(struct request *c, enum kind kind, uint64_t from)
{
    struct watch_hub *h = control_hub(c->control);

    if (from > h->revision)
        return err_set(&c->err, EINVAL, "watch: revision %llu is in the future; the last one is %llu",
                       (unsigned long long)from, (unsigned long long)h->revision);
    if (from < store_compacted(control_store(c->control)))
        return err_set(&c->err, ESTALE,
                       "changes after revision %llu are no longer available; list again and watch from that revision",
                       (unsigned long long)from);
    int rc = check_watch_limits(c);
    if (rc < 0)
        return rc;
    struct stream *s = stream_new(c, false);
    s->kind = kind;
    s->after = from;
    peers_join(&h->watching[kind], s);
    c->answer.stream = s;
    return 0;
}

int watch_open_derived(struct request *c, derived_write *write, const char *id, const char *known)
{
    int rc = check_watch_limits(c);

    if (rc < 0)
        return rc;
    struct stream *s = stream_new(c, false);
    topic_join(s->hub, s, write, id);
    if (known)
        (void)snprintf(s->known, sizeof s->known, "%s", known);
    c->answer.stream = s;
    return 0;
}

int stream_feed_open(struct request *c, const struct stream_feed *feed, void *ctx, struct stream **ret)
{
    if (control_hub(c->control)->stopping)
        return err_set(&c->err, ENOSPC, "berthd is stopping; try again soon");
    struct stream *s = stream_new(c, true);
    s->feed = feed;
    s->feed_ctx = ctx;
    s->content_type = feed->content_type;
    s->beat = feed->beat;
    s->backlog_max = feed->backlog_max;
    *ret = c->answer.stream = s;
    return 0;
}

bool stream_room(struct stream *s)
{
    return stream_open(s);
}

void stream_write(struct stream *s, const char *at, size_t len)
{
    assert(s->fed && s->started);
    bytes_send(s, at, len);
    stream_settle(s);
}

void stream_finish(struct stream *s)
{
    assert(s->fed && s->started && !s->sending);
    s->feed = NULL;
    if (!s->stopped)
        s->sink.end(s->sink.ctx);
    stream_free(s);
}

const char *stream_content_type(const struct stream *s)
{
    if (s->fed)
        return s->content_type;
    return s->sse ? "text/event-stream" : "application/x-ndjson";
}

void stream_start(struct stream *s, const struct stream_sink *sink)
{
    assert(!s->started);
    s->sink = *sink;
    s->started = true;
    if (s->end_code)
        stream_end(s, s->end_code);
    else
        stream_serve(s);
}

void stream_drained(struct stream *s)
{
    if (s->stopped || s->sending)
        return;
    s->full = false;
    stream_serve(s);
}

void stream_stop(struct stream *s)
{
    s->stopped = true;
    if (!s->sending)
        stream_free(s);
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

void watch_hub_change_begin(struct watch_hub *h, const struct store_event *event)
{
    const char *id;
    enum kind kind = object_key_split(event->key, &id);

    mem_free(h->before_key);
    h->before_key = mem_strdup(event->key);
    h->before = kind == KINDS ? (struct object_owner){0} : owner_now(control_state(h->control), kind, id);
    if (kind != KINDS)
        topics_touch(h, kind, id);
}

void watch_hub_change_end(struct watch_hub *h, const struct store_event *event)
{
    const struct object_owner nobody = {0};
    const char *id;
    enum kind kind = object_key_split(event->key, &id);
    bool told = h->before_key && strcmp(h->before_key, event->key) == 0;

    h->revision = event->revision;
    if (kind == KINDS)
        return;
    topics_touch(h, kind, id);
    if (kinds[kind].shown)
        ring_add(h, event, kind, id, told ? &h->before : &nobody);
    if (kind == KIND_USER || kind == KIND_TOKEN || kind == KIND_ROLE || kind == KIND_NODE)
        h->callers_stale = true;
}

/* Ends the streams of callers whose token, user, role or scopes changed. */
static void callers_check(struct watch_hub *h)
{
    const struct control_env *env = control_env(h->control);
    const struct state *state = control_state(h->control);
    int64_t now_ns = env->clock_ns(env->ctx);

    h->callers_stale = false;
    for (struct stream *s = h->streams, *next; s; s = next) {
        next = s->next;
        const struct object *token = state_find(state, KIND_TOKEN, s->caller.token);
        if (token)
            s->expires_ns = token->token->expires_ns;
        if (caller_unchanged(state, &s->caller, now_ns))
            continue;
        /* A valid token with other permissions: the reader must list again, because the visible objects differ. */
        bool alive = s->caller.token[0] && token_is_valid(state, s->caller.token, now_ns);
        stream_end(s, alive ? "compacted" : "unauthenticated");
    }
}

void watch_hub_flush(struct watch_hub *h)
{
    bool refused = h->refused;

    if (h->callers_stale)
        callers_check(h);
    topics_flush(h);
    h->refused = false;
    for (unsigned k = 0; k < KINDS; k++) {
        bool stale = h->stale[k];
        h->stale[k] = false;
        for (struct stream *s = stale || refused ? h->watching[k] : NULL, *next; s; s = next) {
            next = s->peer_next;
            if (stale || s->refused)
                stream_serve(s);
        }
    }
}

void watch_hub_tick(struct watch_hub *h, int64_t now_ns, int64_t steady)
{
    watch_hub_flush(h);
    for (struct stream *s = h->streams, *next; s; s = next) {
        next = s->next;
        if (s->expires_ns <= now_ns)
            stream_end(s, "unauthenticated");
        else if (s->full && steady - s->full_ns > STALLED_NS)
            stream_end(s, "slow");
        else if (s->started && s->beat && !s->full && steady - s->sent_ns >= HEARTBEAT_NS) {
            bytes_send(s, s->beat, strlen(s->beat));
            stream_settle(s);
        }
    }
}

void watch_hub_stop(struct watch_hub *h)
{
    h->stopping = true;
    for (struct stream *s = h->streams, *next; s; s = next) {
        next = s->next;
        stream_end(s, "stopping");
    }
}
