/* event.c - a queue of requests, and a table of recent events. */
#include "kube/client/event.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/client/proto.h"

enum {
    QUEUE_MAX = 4096,
    UNDER_WAY_MAX = 24, /* fewer cost more: etcd batches concurrent writes */
    NOTE_MAX = 1024,
    NAME_MAX_KEPT = 230, /* of the object's name in the Event's name, which may have 253 bytes with its stamp */
    RECENT_LEN = 8192,   /* a power of two */
};
#define SECOND_NS INT64_C(1000000000)
#define SERIES_NS (30 * SECOND_NS)
#define SERIES_WINDOW_NS (6 * 60 * SECOND_NS) /* window in which a repeat becomes a series, as in client-go */

/* A recent event and the name of its Event. One slot per hash; a later event with the same slot replaces it. */
struct recent_event {
    uint64_t key, stamp;
    int64_t last_ns, written_ns; /* in the loop's clock */
    int64_t count;
};

struct queued_event {
    struct queued_event *next;
    struct str path, body;
    bool series;
};

struct kube_events {
    struct kube_events_config config;
    char *controller, *instance;
    struct recent_event *recent_event;
    struct queued_event *first, **last;
    struct sent_event *sent; /* requests in progress */
    struct kube_events_stats stats;
    uint64_t jitter_seed;
};

struct sent_event {
    struct kube_events *e;
    struct sent_event *prev, *next;
    struct kube_call *call;
};

/* ---- encoding --------------------------------------------------------------------------------------------------- */

static int64_t wall_ns(const struct kube_events *e)
{
    return e->config.wall_ns ? e->config.wall_ns(e->config.ctx) : kube_wall_ns();
}

static const char *place_of(const struct kube_event *v)
{
    return v->namespace && v->namespace[0] ? v->namespace : "default";
}

static void add_name(struct str *to, const struct kube_event *v, uint64_t stamp)
{
    size_t len = strlen(v->name);
    str_add_bytes(to, v->name, len < NAME_MAX_KEPT ? len : NAME_MAX_KEPT);
    str_addf(to, ".%016llx", (unsigned long long)stamp);
}

static void add_moment(struct str *to, uint32_t number, int64_t ns)
{
    size_t begun = proto_begin(to, number);
    proto_add_int(to, 1, ns / SECOND_NS);
    proto_add_int(to, 2, ns % SECOND_NS / 1000 * 1000); /* etcd keeps microseconds */
    proto_end(to, begun);
}

static void add_some(struct str *to, uint32_t number, const char *text)
{
    if (text && text[0])
        proto_add_text(to, number, text);
}

static void add_reference(struct str *to, uint32_t number, const char *const parts[6])
{
    size_t begun = proto_begin(to, number);
    for (uint32_t i = 0; i < 6; i++)
        add_some(to, i + 1, parts[i]);
    proto_end(to, begun);
}

static void add_note(struct str *to, uint32_t number, const char *note)
{
    size_t len = strlen(note);
    if (len > NOTE_MAX)
        for (len = NOTE_MAX - 3; len > 0 && ((unsigned char)note[len] & 0xc0) == 0x80; len--)
            ;
    CLEANUP(str) struct str cut = {0};
    str_add_bytes(&cut, note, len);
    if (note[len])
        str_add(&cut, "...");
    proto_add_text(to, number, cut.at);
}

static void add_event(struct str *to, const struct kube_events *e, const struct kube_event *v, uint64_t stamp)
{
    CLEANUP(str) struct str name = {0};
    add_name(&name, v, stamp);
    size_t object = proto_object_begin(to, "events.k8s.io/v1", "Event"), meta = proto_begin(to, 1);
    proto_add_text(to, 1, name.at);
    proto_add_text(to, 3, place_of(v));
    proto_end(to, meta);
    add_moment(to, 2, wall_ns(e));
    proto_add_text(to, 4, v->controller ? v->controller : e->controller);
    proto_add_text(to, 5, e->instance);
    proto_add_text(to, 6, v->action);
    proto_add_text(to, 7, v->reason);
    add_reference(to, 8, (const char *const[]){v->kind, v->namespace, v->name, v->uid, v->api_version, v->version});
    if (v->related_name)
        add_reference(to, 9,
                      (const char *const[]){v->related_kind, v->related_namespace, v->related_name, v->related_uid,
                                            v->api_version, NULL});
    add_note(to, 10, v->note);
    proto_add_text(to, 11, v->warning ? "Warning" : "Normal");
    proto_object_end(to, object);
}

/* ---- the queue -------------------------------------------------------------------------------------------------- */

static void queued_event_free(struct queued_event *i)
{
    str_done(&i->path);
    str_done(&i->body);
    mem_free(i);
}

static struct queued_event *queued_event_take(struct kube_events *e)
{
    struct queued_event *i = e->first;
    e->first = i->next;
    if (!e->first)
        e->last = &e->first;
    e->stats.waiting--;
    return i;
}

static void pump(struct kube_events *e);

static void sent_event_free(struct sent_event *s)
{
    *(s->prev ? &s->prev->next : &s->e->sent) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    s->e->stats.under_way--;
    mem_free(s);
}

static void on_done(void *ctx, const struct kube_answer *a)
{
    struct sent_event *s = ctx;
    struct kube_events *e = s->e;
    e->stats.written += a->code == 0;
    e->stats.failed += a->code != 0;
    sent_event_free(s);
    pump(e);
}

static void queued_event_send(struct kube_events *e, struct queued_event *i)
{
    struct sent_event *s = mem_zalloc(sizeof *s);
    s->e = e;
    s->next = e->sent;
    if (s->next)
        s->next->prev = s;
    e->sent = s;
    e->stats.under_way++;
    const struct kube_request request = {
        .method = i->series ? "PATCH" : "POST",
        .path = i->path.at,
        .format = i->series ? KUBE_JSON : KUBE_PROTOBUF,
        .patch = i->series ? KUBE_MERGE_PATCH : NULL,
        .body = i->body.at,
        .body_len = i->body.len,
        .rank = KUBE_LATE,
        .tries_max = 3,
        .done = on_done,
        .ctx = s,
    };
    s->call = kube_start(e->config.api, &request);
    queued_event_free(i);
}

static void pump(struct kube_events *e)
{
    while (e->first && e->stats.under_way < e->config.under_way_max)
        queued_event_send(e, queued_event_take(e));
}

static struct queued_event *queued_event_add(struct kube_events *e)
{
    struct queued_event *i = mem_zalloc(sizeof *i);
    if (e->stats.waiting >= e->config.queue_max) {
        queued_event_free(queued_event_take(e));
        e->stats.dropped++;
    }
    *e->last = i;
    e->last = &i->next;
    e->stats.waiting++;
    return i;
}

/* ---- adding ----------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const struct kube_event *v)
{
    const char *const parts[] = {v->uid, v->reason, v->action, v->note, v->related_name};
    uint64_t key = v->warning;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i])
            key = hash_bytes(parts[i], strlen(parts[i]), key + i);
    return key;
}

static void add_first(struct kube_events *e, const struct kube_event *v, struct recent_event *s, uint64_t key)
{
    int64_t now = loop_now_ns(e->config.loop);
    uint64_t stamp = hash_pair((uint64_t)wall_ns(e), ++e->jitter_seed);
    struct queued_event *i = queued_event_add(e);
    *s = (struct recent_event){.key = key, .stamp = stamp, .last_ns = now, .written_ns = now, .count = 1};
    str_addf(&i->path, "/apis/events.k8s.io/v1/namespaces/%s/events", place_of(v));
    add_event(&i->body, e, v, stamp);
}

static void add_again(struct kube_events *e, const struct kube_event *v, struct recent_event *s)
{
    char moment[TIMESTAMP_MAX];
    int64_t now = loop_now_ns(e->config.loop);
    s->count++;
    s->last_ns = now;
    e->stats.repeated++;
    if (now - s->written_ns < e->config.series_ns)
        return;
    s->written_ns = now;
    struct queued_event *i = queued_event_add(e);
    i->series = true;
    str_addf(&i->path, "/apis/events.k8s.io/v1/namespaces/%s/events/", place_of(v));
    add_name(&i->path, v, s->stamp);
    str_addf(&i->body, "{\"series\":{\"count\":%lld,\"lastObservedTime\":\"%s\"}}", (long long)s->count,
             kube_micro_time(wall_ns(e), moment));
}

void kube_events_add(struct kube_events *e, const struct kube_event *event)
{
    uint64_t key = key_of(event);
    struct recent_event *s = &e->recent_event[key & (RECENT_LEN - 1)];
    e->stats.added++;
    if (s->count && s->key == key && loop_now_ns(e->config.loop) - s->last_ns < SERIES_WINDOW_NS)
        add_again(e, event, s);
    else
        add_first(e, event, s, key);
    pump(e);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct kube_events *kube_events_new(const struct kube_events_config *config)
{
    struct kube_events *e = mem_zalloc(sizeof *e);
    e->config = *config;
    e->config.queue_max = config->queue_max ? config->queue_max : QUEUE_MAX;
    e->config.under_way_max = config->under_way_max ? config->under_way_max : UNDER_WAY_MAX;
    e->config.series_ns = config->series_ns ? config->series_ns : SERIES_NS;
    e->controller = mem_strdup(config->controller);
    e->instance = mem_strdup(config->instance);
    e->recent_event = mem_zarray(RECENT_LEN, sizeof *e->recent_event);
    e->last = &e->first;
    e->jitter_seed = (uint64_t)loop_now_ns(config->loop);
    return e;
}

void kube_events_free(struct kube_events *e)
{
    if (!e)
        return;
    while (e->sent) {
        kube_cancel(e->sent->call);
        sent_event_free(e->sent);
    }
    while (e->first)
        queued_event_free(queued_event_take(e));
    mem_free(e->recent_event);
    mem_free(e->controller);
    mem_free(e->instance);
    mem_free(e);
}

struct kube_events_stats kube_events_stats(const struct kube_events *e)
{
    return e->stats;
}
