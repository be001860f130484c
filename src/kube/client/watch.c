/* watch.c - list, follow, pause: a small state machine around one request at a time. */
#include "kube/client/watch.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/client/known_objects.h"
#include "kube/client/status.h"
#include "kube/client/watch_event.h"

enum {
    PAGE_LEN = 500,
    PAUSES_MAX = 10,         /* longest pause as a multiple of the first */
    STREAM_S = 300,          /* the server ends a stream after this to twice this time */
    RESUME_FAILURES_MAX = 3, /* failed resumptions from a version before everything is listed anew */
    /* denials before an available resource counts as denied: a starting server has no RBAC roles yet */
    DENIALS_MAX = 3,
};
#define PAUSE_NS INT64_C(500000000)
#define REFUSED_NS INT64_C(60000000000)

enum kube_watch_state {
    PAUSING,
    LOADING,   /* a stream that sends the initial state */
    LISTING,   /* a page was requested */
    FOLLOWING, /* a stream from `version` on */
};

struct kube_watch {
    struct kube_watch_config config;
    char *path, *query;
    enum kube_watch_state state;
    bool synced;
    bool pages;       /* a streamed list was rejected; uses pages */
    bool refused;     /* access is denied, and that was reported */
    bool was_there;   /* the resource was available before */
    uint64_t version; /* of the last event or list; 0: list everything anew */
    uint32_t round;   /* number of the present full listing */
    char next[1024];  /* continue token of a list */
    unsigned failures, resume_failures, denials;
    bool got_data; /* this stream has sent data */
    struct known_objects seen;
    struct str in; /* an incomplete frame */
    struct kube_call *call;
    struct loop_source *timer;
    struct kube_watch_stats stats;
    uint64_t jitter_seed;
};

static void step(struct kube_watch *w);

/* ---- reports to the consumer ------------------------------------------------------------------------------------ */

static void notify_removal(struct kube_watch *w, struct known_object *o)
{
    const struct kube_object removed = {.namespace = known_object_namespace(o),
                                        .name = known_object_name(o),
                                        .uid = known_object_uid(o),
                                        .version = o->version};
    known_object_remove(&w->seen, o);
    w->stats.drops++;
    w->config.drop(w->config.ctx, &removed);
    mem_free(o);
}

static void take_put(void *ctx, const struct kube_object *o)
{
    struct kube_watch *w = ctx;
    struct known_object *known = known_object_find(&w->seen, o->namespace, o->name);
    if (known && strcmp(known_object_uid(known), o->uid) != 0) {
        notify_removal(w, known);
        known = NULL;
    }
    bool news = !known || o->version > known->version;
    if (!known)
        known = known_object_add(&w->seen, o->namespace, o->name, o->uid);
    known->round = w->round;
    if (!news)
        return;
    known->version = o->version;
    w->stats.puts++;
    w->config.put(w->config.ctx, o);
}

static void take_drop(struct kube_watch *w, const struct kube_object *o)
{
    struct known_object *known = known_object_find(&w->seen, o->namespace, o->name);
    if (!known || strcmp(known_object_uid(known), o->uid) != 0)
        return;
    known_object_remove(&w->seen, known);
    mem_free(known);
    w->stats.drops++;
    w->config.drop(w->config.ctx, o);
}

static void synced(struct kube_watch *w)
{
    if (w->synced)
        return;
    w->synced = true;
    w->config.synced(w->config.ctx);
}

/* Ends a full listing: objects that were not in it are dropped. */
static void listing_end(struct kube_watch *w, uint64_t version)
{
    for (size_t i = w->seen.objects.len; i-- > 0;)
        if (w->seen.objects.at[i]->round != w->round)
            notify_removal(w, w->seen.objects.at[i]);
    w->version = version;
    w->failures = w->resume_failures = w->denials = 0;
    w->refused = false;
    w->was_there = true;
    synced(w);
}

static void log_trouble(struct kube_watch *w, const char *text)
{
    CLEANUP(str) struct str said = {0};
    if (!w->config.trouble)
        return;
    str_addf(&said, "watching %s: %s", w->path, text);
    w->config.trouble(w->config.ctx, said.at);
}

/* ---- between tries ---------------------------------------------------------------------------------------------- */

static void call_end(struct kube_watch *w)
{
    if (w->call)
        kube_cancel(w->call);
    w->call = NULL;
    str_done(&w->in);
}

static void pause_then_step(struct kube_watch *w)
{
    int64_t first = w->config.pause_ns, ns = first;
    call_end(w);
    w->state = PAUSING;
    for (unsigned i = 0; i < w->failures && ns < first * PAUSES_MAX; i++)
        ns *= 2;
    ns = ns < first * PAUSES_MAX ? ns : first * PAUSES_MAX;
    w->failures++;
    ns += (int64_t)(hash_u64(++w->jitter_seed) % (uint64_t)(ns / 2 + 1));
    loop_timer_set(w->timer, loop_now_ns(w->config.loop) + ns);
}

static void on_pause_over(void *ctx)
{
    step(ctx);
}

/* Handles the denial of an optional resource: pauses and reports it. False: not such a case. */
static bool handle_denial(struct kube_watch *w, const struct kube_answer *a)
{
    if (!w->config.refused || (a->status != 403 && a->status != 404))
        return false;
    if (w->was_there && !w->refused && ++w->denials <= DENIALS_MAX)
        return false;
    call_end(w);
    w->state = PAUSING;
    w->version = 0;
    w->next[0] = '\0';
    loop_timer_set(w->timer, loop_now_ns(w->config.loop) + w->config.refused_ns);
    if (!w->refused)
        w->config.refused(w->config.ctx, a->status, a->text);
    w->refused = true;
    synced(w);
    return true;
}

/* Lists everything anew at once, because the server no longer knows our version. */
static void relist(struct kube_watch *w)
{
    call_end(w);
    w->version = 0;
    w->stats.relists++;
    step(w);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static void on_error(struct kube_watch *w, const struct watch_event *e)
{
    struct berth_err err = {0};
    int code = kube_status_code(0, e->error, e->error_len, &err);
    log_trouble(w, err.text);
    if (code == -ESTALE && w->state == FOLLOWING) {
        relist(w);
        return;
    }
    w->version = 0;
    w->stats.relists += w->state == FOLLOWING;
    pause_then_step(w);
}

/* Processes one frame. False: the stream is over, and another may have begun. */
static bool take_frame(struct kube_watch *w, const char *at, size_t len)
{
    struct watch_room room = {0};
    struct watch_event e = {0};
    struct berth_err err = {0};
    bool goes_on = true;
    int rc = watch_event_read(w->config.format, at, len, &room, &e, &err);
    if (rc == -ENOENT) {
        watch_room_done(&room);
        return true;
    }
    w->stats.last_ns = loop_now_ns(w->config.loop);
    if (rc < 0) { /* unknown what was lost with it */
        log_trouble(w, err.text);
        w->version = 0;
        w->stats.relists++;
        pause_then_step(w);
        goes_on = false;
    } else if (e.kind == WATCH_ERROR) {
        on_error(w, &e);
        goes_on = false;
    } else if (e.kind == WATCH_BOOKMARK) {
        w->stats.bookmarks++;
        if (w->state == LOADING && e.complete) {
            listing_end(w, e.object.version);
            w->state = FOLLOWING;
        } else if (w->state == LOADING) { /* an old server that ignores sendInitialEvents */
            w->pages = true;
            relist(w);
            goes_on = false;
        }
    } else if (e.kind == WATCH_PUT) {
        take_put(w, &e.object);
    } else {
        take_drop(w, &e.object);
    }
    if (goes_on && w->state == FOLLOWING) {
        w->version = e.object.version > w->version ? e.object.version : w->version;
        w->failures = w->resume_failures = w->denials = 0;
    }
    watch_room_done(&room);
    return goes_on;
}

/* Processes the complete frames; returns their length, or -1 if the stream is over. */
static int64_t take_frames(struct kube_watch *w, const char *p, size_t len)
{
    size_t taken = 0;
    const char *at = NULL;
    size_t frame_len = 0;
    for (;;) {
        int64_t n = watch_frame(w->config.format, p + taken, len - taken, &at, &frame_len);
        if (n == 0)
            return (int64_t)taken;
        if (n < 0) {
            log_trouble(w, "an unterminated frame");
            w->version = 0;
            pause_then_step(w);
            return -1;
        }
        taken += (size_t)n;
        if (!take_frame(w, at, frame_len))
            return -1;
    }
}

static void on_piece(void *ctx, const char *at, size_t len)
{
    struct kube_watch *w = ctx;
    struct str held = {0};
    w->got_data = true;
    if (w->in.len) { /* owned here while it is parsed: the end of the stream frees `in` */
        held = w->in;
        w->in = (struct str){0};
        str_add_bytes(&held, at, len);
        at = held.at;
        len = held.len;
    }
    int64_t taken = take_frames(w, at, len);
    if (taken >= 0 && (size_t)taken < len)
        str_add_bytes(&w->in, at + taken, len - (size_t)taken);
    str_done(&held);
}

static void on_stream_end(void *ctx, const struct kube_answer *a)
{
    struct kube_watch *w = ctx;
    w->call = NULL;
    str_done(&w->in);
    if (a->code == 0) {
        w->stats.lost += w->state == LOADING;
        if (w->state == FOLLOWING && w->got_data)
            step(w); /* the normal end of long streams and slow readers */
        else
            pause_then_step(w);
        return;
    }
    if (w->state == LOADING && a->code == -EINVAL && !w->got_data) {
        w->pages = true;
        step(w);
        return;
    }
    w->stats.lost++;
    if (handle_denial(w, a))
        return;
    log_trouble(w, a->text);
    if (w->state == FOLLOWING && a->code == -ESTALE) {
        relist(w);
        return;
    }
    if (w->state == FOLLOWING && a->status && ++w->resume_failures >= RESUME_FAILURES_MAX) {
        w->version = 0;
        w->stats.relists++;
    }
    pause_then_step(w);
}

/* ---- lists in pages --------------------------------------------------------------------------------------------- */

static void on_page(void *ctx, const struct kube_answer *a)
{
    struct kube_watch *w = ctx;
    struct watch_page page = {0};
    struct berth_err err = {0};
    w->call = NULL;
    int rc = a->code;
    if (rc == 0)
        rc = watch_page_read(w->config.format, a->body, a->len, take_put, w, &page, &err);
    if (rc < 0 && handle_denial(w, a))
        return;
    if (rc < 0) {
        log_trouble(w, a->code ? a->text : err.text);
        w->next[0] = '\0'; /* from the start, as a new listing */
        pause_then_step(w);
        return;
    }
    w->stats.last_ns = loop_now_ns(w->config.loop);
    memcpy(w->next, page.next, sizeof w->next);
    if (!w->next[0])
        listing_end(w, page.version);
    step(w);
}

/* ---- the next request ------------------------------------------------------------------------------------------- */

static void add_encoded(struct str *to, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("-_.~", c))
            str_add_char(to, (char)c);
        else
            str_addf(to, "%%%02X", c);
    }
}

static void watch_send(struct kube_watch *w, bool streams, const char *path)
{
    const struct kube_request request = {
        .method = "GET",
        .path = path,
        .format = w->config.format,
        .rank = KUBE_URGENT,
        .harmless = !streams,
        .tries_max = streams ? 1 : 0,
        .piece = streams ? on_piece : NULL,
        .done = streams ? on_stream_end : on_page,
        .ctx = w,
    };
    w->got_data = false;
    w->stats.streams += streams;
    w->stats.lists += !streams;
    w->call = kube_start(w->config.api, &request);
}

static void step(struct kube_watch *w)
{
    CLEANUP(str) struct str path = {0};
    assert(!w->call);
    str_addf(&path, "%s?%s%s", w->path, w->query, w->query[0] ? "&" : "");
    unsigned stream_s = STREAM_S + (unsigned)(hash_u64(++w->jitter_seed) % STREAM_S);
    if (w->version) {
        w->state = FOLLOWING;
        str_addf(&path, "watch=true&allowWatchBookmarks=true&resourceVersion=%llu&timeoutSeconds=%u",
                 (unsigned long long)w->version, stream_s);
    } else if (!w->pages) {
        w->state = LOADING;
        w->round++;
        str_addf(&path,
                 "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                 "&timeoutSeconds=%u",
                 stream_s);
    } else {
        w->state = LISTING;
        w->round += !w->next[0];
        str_addf(&path, "limit=%zu", w->config.page_len);
        if (w->next[0]) {
            str_add(&path, "&continue=");
            add_encoded(&path, w->next);
        }
    }
    watch_send(w, w->state != LISTING, path.at);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct kube_watch *kube_watch_new(const struct kube_watch_config *config)
{
    struct kube_watch *w = mem_zalloc(sizeof *w);
    w->config = *config;
    w->config.page_len = config->page_len ? config->page_len : PAGE_LEN;
    w->config.pause_ns = config->pause_ns ? config->pause_ns : PAUSE_NS;
    w->config.refused_ns = config->refused_ns ? config->refused_ns : REFUSED_NS;
    w->path = mem_strdup(config->path);
    w->query = mem_strdup(config->query ? config->query : "");
    w->pages = config->pages;
    w->jitter_seed = hash_bytes(w->path, strlen(w->path), (uint64_t)loop_now_ns(config->loop));
    w->timer = loop_timer_new(config->loop, on_pause_over, w);
    step(w);
    return w;
}

void kube_watch_free(struct kube_watch *w)
{
    if (!w)
        return;
    call_end(w);
    loop_source_free(w->timer);
    known_objects_free(&w->seen);
    mem_free(w->path);
    mem_free(w->query);
    mem_free(w);
}

bool kube_watch_synced(const struct kube_watch *w)
{
    return w->synced;
}

bool kube_watch_follows(const struct kube_watch *w)
{
    return w->state == FOLLOWING && w->call;
}

size_t kube_watch_len(const struct kube_watch *w)
{
    return w->seen.objects.len;
}

struct kube_watch_stats kube_watch_stats(const struct kube_watch *w)
{
    return w->stats;
}
