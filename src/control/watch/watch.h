/* watch.h - answers without an end: changes of a collection, or a derived document whenever it differs.
 *
 * One hub per control. It keeps the recent changes once for all watchers; a watcher is a place in them, so an idle one
 * costs a few hundred bytes, and one that has fallen behind reads on from the store's history, or is told that it is
 * compacted. Each watcher sees what its caller may see, in order, without gap or repeat; the streams of a token that is
 * revoked or has expired are ended.
 */
#pragma once

#include "base/str.h"
#include "control/api/request.h"

struct watch_hub;
struct stream;

/* Where a stream goes. `send` returns false when the reader is too slow; the stream then ends itself. */
struct sink {
    void *ctx;
    bool (*send)(void *ctx, const char *at, size_t len);
    void (*end)(void *ctx); /* nothing follows; the stream is gone */
    /* Bytes that wait to be taken. A stream stops sending while many do, and goes on after stream_drained. NULL: never
     * any. */
    size_t (*backlog)(void *ctx);
};

struct watch_hub *watch_hub_new(struct control *control, size_t watchers_max, uint64_t history_max);
void watch_hub_free(struct watch_hub *h);

/* Every committed change, in order, before the request that made it is answered. Told twice: `before` while the state does
 * not have it yet (so that those who could see the object learn that it is gone), `event` when it has. */
void watch_hub_before(struct watch_hub *h, const struct store_event *event);
void watch_hub_event(struct watch_hub *h, const struct store_event *event);
/* After a batch of events: wakes the watchers. */
void watch_hub_flush(struct watch_hub *h);
/* Heartbeats (every 15 s) and tokens that expired or were revoked. */
void watch_hub_tick(struct watch_hub *h, int64_t now_ns, int64_t steady_ns);
/* Ends every stream with {"type": "end", "code": "stopping"}. */
void watch_hub_stop(struct watch_hub *h);
size_t watch_hub_len(const struct watch_hub *h);

/* For verbs: makes the answer of this call a stream of the collection's changes after `from`. -ESTALE: compacted; -EDQUOT:
 * too many watchers; -EINVAL: a revision that is yet to come. */
int watch_open(struct call *c, enum kind kind, uint64_t from);
/* The same of a derived document: sent now unless its hash is `known`, and then whenever it differs. */
int watch_open_derived(struct call *c, int (*write)(const struct state *s, const char *id, struct str *to),
                       const char *id, const char *known);

/* A stream that somebody else fills, with whatever bytes (session.h). The hub ends it when its reader is slow, when its
 * caller is no longer who it was, and when the daemon stops. */
struct stream_feed {
    const char *content_type;
    const char *beat;   /* sent after 15 s of silence; NULL: nothing */
    size_t backlog_max; /* bytes that may wait before stream_room says no */
    /* It has begun, or has room again. May write and finish this stream, but no other. */
    void (*ready)(void *ctx);
    /* It is no more, unless by stream_finish. `why` is NULL when the peer left, else a code ("slow", "stopping",
     * "unauthenticated", "compacted") and what is added to *last is still sent. Must not touch any stream. */
    void (*gone)(void *ctx, const char *why, struct str *last);
};
/* Makes the answer of this call such a stream. It begins, or is gone, once the call is answered. */
int stream_feed_open(struct call *c, const struct stream_feed *feed, void *ctx, struct stream **ret);
/* False: not begun, over, or too much waits; `ready` will tell. */
bool stream_room(struct stream *s);
/* Of one that has begun. It may be gone, and `gone` called, before this returns. */
void stream_write(struct stream *s, const char *at, size_t len);
/* Of one that has begun: all was written. */
void stream_finish(struct stream *s);

/* For whoever carries the answer: where it goes, and that the peer is gone. A stream that is never started must be
 * stopped. */
const char *stream_content_type(const struct stream *s);
void stream_start(struct stream *s, const struct sink *sink);
void stream_drained(struct stream *s); /* the backlog has gone out */
void stream_stop(struct stream *s);
