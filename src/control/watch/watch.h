/* watch.h - streaming answers: the changes of a collection, or each new version of a derived document.
 *
 * One hub per control keeps the recent changes once for all watchers. A watcher is a position in these changes, so an
 * idle watcher costs a few hundred bytes. A watcher that has fallen behind continues from the store's history, or gets
 * the error "compacted". Each watcher sees the changes that its caller may see, in order, without gap or repeat.
 * Streams end when their token is revoked or expires.
 */
#pragma once

#include "base/str.h"
#include "control/api/request.h"

struct watch_hub;
struct stream;

/* The output of a stream. `send` returns false if the reader is too slow; the stream then ends itself. */
struct stream_sink {
    void *ctx;
    bool (*send)(void *ctx, const char *at, size_t len);
    void (*end)(void *ctx); /* called at the end of the output; the stream is freed */
    /* Returns the bytes that wait for the reader. A stream stops sending while many bytes wait, and continues after
     * stream_drained. NULL: no byte ever waits. */
    size_t (*backlog)(void *ctx);
};

struct watch_hub *watch_hub_new(struct control *control, size_t watchers_max, uint64_t history_max);
void watch_hub_free(struct watch_hub *h);

/* Reports every committed change, in order, before the request that made the change is answered. Called twice per
 * change: `before` while the state is still the old one (so that readers who could see the object learn of its
 * removal), `event` when the state has the change. */
void watch_hub_change_begin(struct watch_hub *h, const struct store_event *event);
void watch_hub_change_end(struct watch_hub *h, const struct store_event *event);
/* Wakes the watchers after a batch of events. */
void watch_hub_flush(struct watch_hub *h);
/* Sends heartbeats (every 15 s) and ends streams with expired or revoked tokens. */
void watch_hub_tick(struct watch_hub *h, int64_t now_ns, int64_t steady_ns);
/* Ends every stream with {"type": "end", "code": "stopping"}. */
void watch_hub_stop(struct watch_hub *h);
size_t watch_hub_len(const struct watch_hub *h);

/* For verbs: makes the answer of this request a stream of the collection's changes after `from`. -ESTALE: compacted;
 * -EDQUOT: too many watchers; -EINVAL: a future revision. */
int watch_open(struct request *c, enum kind kind, uint64_t from);
/* The same for a derived document: sent at once unless its hash is `known`, and again after each change. */
int watch_open_derived(struct request *c, int (*write)(const struct state *s, const char *id, struct str *to),
                       const char *id, const char *known);

/* A stream whose bytes come from another module (session.h). The hub ends the stream when its reader is slow, when the
 * permissions of its caller change, and when the daemon stops. */
struct stream_feed {
    const char *content_type;
    const char *beat;   /* sent after 15 s without output; NULL: nothing */
    size_t backlog_max; /* stream_room returns false while more bytes wait */
    /* Called when the stream has started or has room again. May write to and finish this stream, but no other. */
    void (*ready)(void *ctx);
    /* Called when the stream ends, except by stream_finish. `why` is NULL when the peer disconnected, else a code
     * ("slow", "stopping", "unauthenticated", "compacted"); text added to *last is still sent. Must not use any
     * stream. */
    void (*gone)(void *ctx, const char *why, struct str *last);
};
/* Makes the answer of this request a fed stream. The stream starts, or ends, after the request is answered. */
int stream_feed_open(struct request *c, const struct stream_feed *feed, void *ctx, struct stream **ret);
/* Returns false if the stream has not started, has ended, or has too many waiting bytes; `ready` is called later. */
bool stream_room(struct stream *s);
/* Writes to a started stream. The stream may end, and `gone` be called, before this function returns. */
void stream_write(struct stream *s, const char *at, size_t len);
/* Ends a started stream after its last byte. */
void stream_finish(struct stream *s);

/* For the HTTP server that sends the answer: sets the output, and reports that the peer disconnected. A stream that is
 * never started must be stopped. */
const char *stream_content_type(const struct stream *s);
void stream_start(struct stream *s, const struct stream_sink *sink);
void stream_drained(struct stream *s); /* the waiting bytes were sent */
void stream_stop(struct stream *s);
