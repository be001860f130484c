/* watch_parts.h - internals of a hub and its streams; only for watch*.c.
 *
 * watch.c: begin, end and heartbeats of streams. watch_ring.c: changes of a collection, from the ring or the store's
 * history. watch_topic.c: derived documents. watch_line.c: content of a line, and its visibility.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/api/fair_queue.h"
#include "control/control.h"
#include "control/watch/derived_parts.h"
#include "control/watch/watch.h"

enum {
    RING_ENTRIES_MAX = 16384,
    RING_BYTES_MAX = 32 * 1024 * 1024,
    BACKLOG_MAX = 256 * 1024,  /* a reader with more waiting bytes gets no new lines until it has read them */
    RING_STEP = 1024,          /* ring entries per step; a stream that is further behind reads in turns */
    HISTORY_EVENTS = 32,       /* history events per step, */
    HISTORY_BYTES = 64 * 1024, /* or bytes, whichever is reached first */
};
#define HEARTBEAT_NS (INT64_C(15) * 1000000000)
#define STALLED_NS (INT64_C(60) * 1000000000)

/* The owner of an object. */
struct object_owner {
    char owner[ID_MAX + 1], group[ID_MAX + 1];
    bool there; /* false: the object does not exist */
};

struct ring_entry {
    uint64_t revision;
    enum kind kind;
    size_t nth; /* number of this change among the changes of its kind in its revision */
    char *id;
    struct bytes doc; /* owned; empty: deleted */
    struct object_owner before, after;
    struct str line[2]; /* for readers without and with PERMIT_MANAGE; made when first needed */
    size_t bytes;
};

enum topic_kind { TOPIC_NODE, TOPIC_GATEWAY, TOPIC_SERVICE, TOPIC_SERVICES, TOPIC_RBAC, TOPIC_OTHER };

typedef int derived_write(const struct state *s, const char *id, struct str *to);

/* A derived document that has watchers. */
struct topic {
    enum topic_kind kind;
    derived_write *write;
    char *id;
    struct stream *streams;
    bool dirty;      /* in hub.dirty */
    int64_t rest_ns; /* steady clock: earliest time of the next version */
    uint32_t slot;
};

struct stream {
    struct watch_hub *hub;
    struct stream *next, **link; /* in the hub's list */
    struct caller caller;
    char *texts; /* owns the texts of `caller` */
    int64_t expires_ns;
    bool sse, started;
    bool sending, stopped;    /* `stopped`: the peer disconnected during a send */
    bool full;                /* waits for stream_drained */
    int64_t full_ns, sent_ns; /* steady clock: begin of `full`; last send */
    const char *beat;         /* heartbeat; NULL: none */
    size_t backlog_max;       /* no new lines while more bytes wait */
    const char *end_code;     /* reason of a pending end; NULL: none */
    struct stream_sink sink;

    struct stream *peer_next, **peer_link; /* streams of the same kind, or of the same document */

    /* Streams of a collection. */
    enum kind kind;
    bool refused; /* the fair queue refused the turn; the stream asks again later */
    bool waits;   /* `turn` is in the fair queue */
    struct fair_entry turn;
    struct fair_account *account; /* charged for reading history */
    uint64_t after;               /* all changes up to this revision have been processed */
    uint64_t part;                /* partly processed revision; 0: none */
    size_t part_len;              /* processed changes of the kind in `part` */

    /* Streams of a derived document. */
    struct topic *topic;          /* NULL: a collection */
    char known[DERIVED_HASH_MAX]; /* hash of the version that was sent last */

    /* Fed streams. They do not count as watches: the module that opens one has limits of its own. */
    bool fed;
    const struct stream_feed *feed; /* NULL: no callback at the end */
    void *feed_ctx;
    const char *content_type;
};

struct watch_hub {
    struct control *control;
    size_t watchers_max, watchers;
    struct stream *streams;
    struct request *probe; /* passes a caller to request_may_see */

    struct ring_entry *ring; /* circular buffer of RING_ENTRIES_MAX */
    size_t ring_first, ring_len, ring_bytes;
    uint64_t ring_from;    /* the ring has every change after this revision */
    uint64_t revision;     /* of the last change */
    uint64_t nth_revision; /* revision that `nth` counts in */
    size_t nth[KINDS];
    struct stream *watching[KINDS]; /* streams of collections */
    bool stale[KINDS];              /* changed since the last flush */
    uint64_t changed[KINDS];        /* last revision with a change of the kind */
    bool refused;                   /* some stream has `refused` set */
    char *before_key;               /* key of the change in watch_hub_change_begin */
    struct object_owner before;

    VEC(struct topic *) topics; /* by slot; NULL: unused */
    VEC(uint32_t) free_topics;
    VEC(struct topic *) dirty;
    struct map map; /* (kind, id) to topic */
    struct gateway_config *gateway;
    size_t topics_len[TOPIC_OTHER + 1];
    bool gateway_stale, callers_stale, stopping;

    struct str scratch, line;
};

/* ---- watch_line.c ---- */

/* Tells whether the stream's caller may see (or manage) objects of this owner. */
bool stream_sees(const struct stream *s, enum kind kind, const struct object_owner *who);
bool stream_manages(const struct stream *s, const struct object_owner *who);
/* Returns the owner according to the state. */
struct object_owner owner_now(const struct state *s, enum kind kind, const char *id);
/* Returns the owner according to a document of the past. */
struct object_owner owner_then(const struct state *s, enum kind kind, const char *id, const struct bytes *doc);
/* Writes {"type": "put", "revision", "object"} without the keys that the stream's caller may not see. */
void line_put(struct str *to, const struct stream *s, enum kind kind, const struct object_owner *who, uint64_t revision,
              const struct bytes *doc);
void line_removed(struct str *to, uint64_t revision, const char *id);

/* ---- watch.c ---- */

/* Sends one line. `id` is the event id of server-sent events; NULL: none. */
void stream_send(struct stream *s, const char *id, const char *line, size_t len);
/* Returns false if the stream cannot send now, or ever again. */
bool stream_open(struct stream *s);
/* Ends the stream if an end is pending; the stream must not be used afterwards. */
void stream_settle(struct stream *s);
/* Adds the stream to a list of peers, or removes it. */
void peers_join(struct stream **list, struct stream *s);
void peers_leave(struct stream *s);

/* ---- watch_ring.c ---- */

void ring_add(struct watch_hub *h, const struct store_event *event, enum kind kind, const char *id,
              const struct object_owner *before);
void ring_done(struct watch_hub *h);
/* Tells whether the stream needs more than one step to catch up. */
bool ring_is_far_behind(const struct stream *s);
/* Runs one step: sends changes, or records why the stream must end. Returns false if nothing is left to read, or if the
 * reader must first take bytes. */
bool ring_step(struct stream *s);

/* ---- watch_topic.c ---- */

void topic_join(struct watch_hub *h, struct stream *s, derived_write *write, const char *id);
void topic_leave(struct stream *s);
/* Marks the documents that depend on this object; called after the state has the change. */
void topics_touch(struct watch_hub *h, enum kind kind, const char *id);
/* Sends the stream's document if it differs from the version that the stream has. */
void topic_serve(struct stream *s);
/* Derives the marked documents and sends those that differ. */
void topics_flush(struct watch_hub *h);
void topics_done(struct watch_hub *h);
