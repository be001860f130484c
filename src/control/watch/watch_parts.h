/* watch_parts.h - the inside of a hub and its streams; for watch*.c only.
 *
 * watch.c: streams come, go, and are kept alive. watch_ring.c: changes of a collection, from the ring or the store's history.
 * watch_topic.c: derived documents. watch_line.c: what a line says and who may read it.
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
    BACKLOG_MAX = 256 * 1024,  /* a reader with more than this waiting gets nothing new until it has read it */
    RING_STEP = 1024,          /* entries of the ring that one step considers; who is further behind waits for turns */
    HISTORY_EVENTS = 32,       /* of the store's history that one step reads, */
    HISTORY_BYTES = 64 * 1024, /* unless they are large */
};
#define HEARTBEAT_NS (INT64_C(15) * 1000000000)
#define STALLED_NS (INT64_C(60) * 1000000000)

/* To whom an object belongs. */
struct who {
    char owner[ID_MAX + 1], group[ID_MAX + 1];
    bool there; /* false: no such object */
};

struct ring_entry {
    uint64_t revision;
    enum kind kind;
    size_t nth; /* change of this kind in its revision */
    char *id;
    struct bytes doc; /* owned; empty: gone */
    struct who before, after;
    struct str line[2]; /* as those see it who do not manage it, and who do; made when first wanted */
    size_t bytes;
};

enum topic_kind { TOPIC_NODE, TOPIC_GATEWAY, TOPIC_SERVICE, TOPIC_SERVICES, TOPIC_RBAC, TOPIC_OTHER };

typedef int derived_write(const struct state *s, const char *id, struct str *to);

/* A derived document that somebody watches. */
struct topic {
    enum topic_kind kind;
    derived_write *write;
    char *id;
    struct stream *streams;
    bool dirty;      /* is in hub.dirty */
    int64_t rest_ns; /* steady: not sent again before */
    uint32_t slot;
};

struct stream {
    struct watch_hub *hub;
    struct stream *next, **link; /* of the hub's list */
    struct caller caller;
    char *texts; /* of the caller */
    int64_t expires_ns;
    bool sse, started;
    bool sending, stopped;    /* the peer went while something was being sent to it */
    bool full;                /* waits for stream_drained */
    int64_t full_ns, sent_ns; /* steady: since when; last */
    const char *beat;         /* what keeps it alive; NULL: nothing */
    size_t backlog_max;       /* waiting for the reader before nothing new is added */
    const char *end_code;     /* why it must end, or will as soon as it is started; NULL: it goes on */
    struct sink sink;

    struct stream *peer_next, **peer_link; /* of all that watch the same kind, or the same document */

    /* Of a collection. */
    enum kind kind;
    bool refused; /* its turn, as too much of its user waits: it asks again later */
    bool waits;   /* for its turn, by `turn` */
    struct fair_entry turn;
    struct fair_account *account; /* that pays for what it reads of the past */
    uint64_t after;               /* everything up to this revision has been considered */
    uint64_t part;                /* the revision being considered; 0: none */
    size_t part_len;              /* how many changes of the kind in it were */

    /* Of a derived document. */
    struct topic *topic;          /* NULL: of a collection */
    char known[DERIVED_HASH_MAX]; /* hash of what was sent last */

    /* Of what somebody else writes. Such a stream is not counted: who opens it has bounds of their own. */
    bool fed;
    const struct stream_feed *feed; /* NULL: nobody is to be told of its end */
    void *feed_ctx;
    const char *content_type;
};

struct watch_hub {
    struct control *control;
    size_t watchers_max, watchers;
    struct stream *streams;
    struct call *probe; /* carries a caller to call_sees */

    struct ring_entry *ring; /* a circle of RING_ENTRIES_MAX */
    size_t ring_first, ring_len, ring_bytes;
    uint64_t ring_from;    /* every change after this revision is in the ring */
    uint64_t revision;     /* of the last change */
    uint64_t nth_revision; /* which `nth` counts the changes of */
    size_t nth[KINDS];
    struct stream *watching[KINDS]; /* collections */
    bool stale[KINDS];              /* changed since the last flush */
    uint64_t changed[KINDS];        /* the last revision that changed one */
    bool refused;                   /* some stream was */
    char *before_key;               /* of the change that watch_hub_before told of */
    struct who before;

    VEC(struct topic *) topics; /* by slot; NULL: free */
    VEC(uint32_t) free_topics;
    VEC(struct topic *) dirty;
    struct map map; /* (kind, id) to a topic */
    struct gateway *gateway;
    size_t topics_len[TOPIC_OTHER + 1];
    bool gateway_stale, callers_stale, stopping;

    struct str scratch, line;
};

/* ---- watch_line.c ---- */

/* May the stream's caller see objects of this kind that belong to this one? */
bool stream_sees(const struct stream *s, enum kind kind, const struct who *who);
bool stream_manages(const struct stream *s, const struct who *who);
/* As the state has it. */
struct who who_now(const struct state *s, enum kind kind, const char *id);
/* As a document of the past has it. */
struct who who_then(const struct state *s, enum kind kind, const char *id, const struct bytes *doc);
/* {"type": "put", "revision", "object"}, without what the stream's caller may not see of it. */
void line_put(struct str *to, const struct stream *s, enum kind kind, const struct who *who, uint64_t revision,
              const struct bytes *doc);
void line_gone(struct str *to, uint64_t revision, const char *id);

/* ---- watch.c ---- */

/* One line. `id` is the event's id in server-sent events; NULL: none. */
void stream_send(struct stream *s, const char *id, const char *line, size_t len);
/* False: nothing more can go out now, or ever. */
bool stream_open(struct stream *s);
/* Ends it if it must; it must not be touched afterwards. */
void stream_settle(struct stream *s);
/* Into and out of the list of its peers. */
void peers_join(struct stream **list, struct stream *s);
void peers_leave(struct stream *s);

/* ---- watch_ring.c ---- */

void ring_add(struct watch_hub *h, const struct store_event *event, enum kind kind, const char *id,
              const struct who *before);
void ring_done(struct watch_hub *h);
/* More than one step of reading lies before the stream. */
bool ring_is_far(const struct stream *s);
/* One step: sends what it finds, or notes why the stream must end. False: there is nothing more to read, or the stream's
 * reader must take something first. */
bool ring_step(struct stream *s);

/* ---- watch_topic.c ---- */

void topic_join(struct watch_hub *h, struct stream *s, derived_write *write, const char *id);
void topic_leave(struct stream *s);
/* A change may alter what is derived from this object, as the state has it now. */
void topics_touch(struct watch_hub *h, enum kind kind, const char *id);
/* Sends its document if it differs from what the stream has. */
void topic_serve(struct stream *s);
/* Makes the documents that may differ and sends those that do. */
void topics_flush(struct watch_hub *h);
void topics_done(struct watch_hub *h);
