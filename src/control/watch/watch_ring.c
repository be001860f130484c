/* watch_ring.c - changes in order: recent ones from the ring, older ones from the store's history. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "control/watch/watch_parts.h"
#include "wire/text/document.h"

/* ---- the ring --------------------------------------------------------------------------------------------------- */

static struct ring_entry *ring_at(const struct watch_hub *h, size_t i)
{
    return &h->ring[(h->ring_first + i) % RING_ENTRIES_MAX];
}

static void entry_clear(struct ring_entry *e)
{
    mem_free(e->id);
    mem_free((void *)e->doc.at);
    str_done(&e->line[0]);
    str_done(&e->line[1]);
    *e = (struct ring_entry){0};
}

static void ring_drop_first(struct watch_hub *h)
{
    struct ring_entry *e = ring_at(h, 0);

    h->ring_from = e->revision;
    h->ring_bytes -= e->bytes;
    entry_clear(e);
    h->ring_first = (h->ring_first + 1) % RING_ENTRIES_MAX;
    h->ring_len--;
}

void ring_done(struct watch_hub *h)
{
    while (h->ring_len)
        ring_drop_first(h);
    mem_free(h->ring);
}

/* Counts bytes of the entry, including those of lines that are made later. */
static void ring_grow(struct watch_hub *h, struct ring_entry *e, size_t bytes)
{
    e->bytes += bytes;
    h->ring_bytes += bytes;
}

void ring_add(struct watch_hub *h, const struct store_event *event, enum kind kind, const char *id,
              const struct object_owner *before)
{
    if (h->ring_len == RING_ENTRIES_MAX)
        ring_drop_first(h);
    struct ring_entry *e = ring_at(h, h->ring_len++);
    if (h->nth_revision != event->revision)
        memset(h->nth, 0, sizeof h->nth);
    h->nth_revision = event->revision;
    *e = (struct ring_entry){
        .revision = event->revision, .kind = kind, .nth = h->nth[kind]++, .id = mem_strdup(id), .before = *before};
    if (!event->gone) {
        char *text = mem_alloc(event->value.len + 1);
        memcpy(text, event->value.at, event->value.len);
        text[event->value.len] = '\0';
        e->doc = (struct bytes){text, event->value.len};
        e->after = owner_now(control_state(h->control), kind, id);
        e->after.there = true;
    }
    ring_grow(h, e, sizeof *e + e->doc.len);
    /* A stream that has processed the last change of the kind has missed nothing since, so it advances without reading
     * history. */
    for (struct stream *s = h->stale[kind] ? NULL : h->watching[kind]; s; s = s->peer_next)
        if (!s->part && s->after >= h->changed[kind])
            s->after = event->revision - 1;
    h->stale[kind] = true;
    h->changed[kind] = event->revision;
    while (h->ring_bytes > RING_BYTES_MAX && h->ring_len > 1)
        ring_drop_first(h);
}

/* Returns the first entry of a later revision. */
static size_t ring_after(const struct watch_hub *h, uint64_t revision)
{
    size_t low = 0, high = h->ring_len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ring_at(h, mid)->revision <= revision)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* ---- one change ------------------------------------------------------------------------------------------------- */

/* Advances the stream's position to the nth change of its kind in this revision. Returns false if the change was
 * processed before. The store reports the changes of a transaction in the same order live and from history, so the
 * count is valid for both. */
static bool position_advance(struct stream *s, uint64_t revision, size_t nth)
{
    if (s->part != revision) {
        s->part = revision;
        s->part_len = 0;
        s->after = revision - 1;
    }
    if (nth < s->part_len)
        return false;
    s->part_len = nth + 1;
    return true;
}

static void position_done(struct stream *s, uint64_t revision)
{
    s->after = revision;
    s->part = 0;
    s->part_len = 0;
}

static void change_send(struct stream *s, uint64_t revision, const char *line, size_t len)
{
    char id[24];
    stream_send(s, str_u64(revision, id), line, len);
}

static void send_removal(struct stream *s, uint64_t revision, const char *id)
{
    struct str *line = &s->hub->line;

    str_clear(line);
    line_removed(line, revision, id);
    change_send(s, revision, line->at, line->len);
}

static void entry_send(struct stream *s, struct ring_entry *e)
{
    if (e->after.there && stream_sees(s, e->kind, &e->after)) {
        struct str *line = &e->line[stream_manages(s, &e->after)];
        if (!line->len) {
            line_put(line, s, e->kind, &e->after, e->revision, &e->doc);
            ring_grow(s->hub, e, line->len);
        }
        change_send(s, e->revision, line->at, line->len);
    } else if (e->before.there && stream_sees(s, e->kind, &e->before)) {
        send_removal(s, e->revision, e->id); /* deleted, or no longer visible, which looks the same */
    }
}

/* Processes about RING_STEP entries, in whole revisions. */
static bool ring_read(struct stream *s)
{
    struct watch_hub *h = s->hub;
    size_t first = ring_after(h, s->after);

    for (size_t i = first; i < h->ring_len; i++) {
        struct ring_entry *e = ring_at(h, i);
        if (!stream_open(s))
            return false;
        if (i - first >= RING_STEP && e->revision != ring_at(h, i - 1)->revision) {
            position_done(s, e->revision - 1);
            return true;
        }
        if (e->kind == s->kind && position_advance(s, e->revision, e->nth))
            entry_send(s, e);
    }
    if (!s->stopped)
        position_done(s, h->revision);
    return false;
}

/* ---- history ---------------------------------------------------------------------------------------------------- */

struct history_event {
    uint64_t revision;
    size_t nth; /* number of the change within its revision */
    bool gone;
    char *key;
    struct bytes doc; /* owned */
    struct bytes was; /* previous document; owned; empty: none, or not needed */
};

/* The owner of a deleted workload, cached. */
struct history_workload {
    char *id;
    uint64_t generation;
    struct object_owner who;
};

struct history_batch {
    VEC(struct history_event) events;
    VEC(struct history_workload) workloads;
    bool compares; /* needs the previous documents */
    size_t bytes;
    uint64_t part; /* the first `skip` changes of this revision were processed before */
    size_t skip;
    uint64_t revision; /* revision of the last event */
    size_t nth;        /* number of events in `revision` */
};

static void history_done(struct history_batch *p)
{
    for (size_t i = 0; i < p->events.len; i++) {
        mem_free(p->events.at[i].key);
        mem_free((void *)p->events.at[i].doc.at);
        mem_free((void *)p->events.at[i].was.at);
    }
    vec_done(&p->events);
    for (size_t i = 0; i < p->workloads.len; i++)
        mem_free(p->workloads.at[i].id);
    vec_done(&p->workloads);
}

static struct bytes bytes_copy(const struct bytes *from)
{
    char *text = mem_alloc(from->len + 1);
    memcpy(text, from->at, from->len);
    return (struct bytes){text, from->len};
}

static int history_event_add(void *ctx, const struct store_event *event)
{
    struct history_batch *p = ctx;

    p->nth = p->revision == event->revision ? p->nth + 1 : 0;
    p->revision = event->revision;
    if (event->revision == p->part && p->nth < p->skip)
        return 0;
    struct history_event copy = {
        .revision = event->revision, .nth = p->nth, .gone = event->gone, .key = mem_strdup(event->key)};

    if (!event->gone)
        copy.doc = bytes_copy(&event->value);
    if (p->compares && event->replaced.at)
        copy.was = bytes_copy(&event->replaced);
    vec_push(&p->events, copy);
    p->bytes += copy.doc.len + copy.was.len;
    return p->events.len >= HISTORY_EVENTS || p->bytes >= HISTORY_BYTES;
}

struct owner_search {
    const struct state *state;
    const char *key;
    struct object_owner found;
    char *workload; /* workload of an instance whose owner is unknown; owned */
    uint64_t generation;
};

/* Records the workload of an instance. The workload determines the owner, and may be deleted by now. */
static void workload_note(struct owner_search *f, const struct bytes *text)
{
    CLEANUP(json) json_t *doc = json_loadb(text->at, text->len, 0, NULL);
    const char *workload = json_string_value(json_object_get(doc, "workload"));

    mem_free(f->workload);
    f->workload = workload ? mem_strdup(workload) : NULL;
    f->generation = (uint64_t)json_integer_value(json_object_get(doc, "of"));
}

static void find_owner(struct owner_search *f, enum kind kind, const char *id, const struct bytes *doc)
{
    f->found = owner_then(f->state, kind, id, doc);
    if (kind == KIND_INSTANCE && !f->found.owner[0])
        workload_note(f, doc);
}

static int key_found(void *ctx, const struct store_entry *entry)
{
    struct owner_search *f = ctx;
    const char *id;

    if (strcmp(entry->key, f->key) != 0)
        return 0;
    enum kind kind = object_key_split(entry->key, &id);
    find_owner(f, kind, id, &entry->value);
    return 1;
}

/* Searches the history for the workload at this revision. The search reads the whole history, so its result is cached
 * for all instances of the workload, whose owner never changes. */
static struct object_owner find_workload_owner(struct owner_search *f, struct history_batch *past, struct store *store,
                                               uint64_t revision)
{
    static const enum kind order[] = {KIND_JOB, KIND_APP, KIND_VM, KIND_SPEC};
    char key[OBJECT_KEY_MAX], id[OBJECT_KEY_MAX - 32];

    for (size_t i = 0; f->workload && i < past->workloads.len; i++) {
        const struct history_workload *known = &past->workloads.at[i];
        if (known->generation == f->generation && strcmp(known->id, f->workload) == 0) {
            mem_free(f->workload);
            return known->who;
        }
    }
    for (size_t i = 0; f->workload && i < sizeof order / sizeof *order && !f->found.owner[0]; i++) {
        if (order[i] == KIND_SPEC)
            (void)snprintf(id, sizeof id, "%s/%llu", f->workload, (unsigned long long)f->generation);
        else
            (void)snprintf(id, sizeof id, "%s", f->workload);
        f->key = object_key(order[i], id, key);
        (void)store_range(store, key, revision, key_found, f, NULL);
    }
    if (f->workload)
        vec_push(&past->workloads, ((struct history_workload){f->workload, f->generation, f->found}));
    return f->found;
}

/* Returns the owner before this change. */
static struct object_owner owner_before(const struct watch_hub *h, struct history_batch *past,
                                        const struct history_event *e, enum kind kind, const char *id)
{
    struct owner_search f = {.state = control_state(h->control), .key = e->key};

    if (e->was.at)
        find_owner(&f, kind, id, &e->was);
    return find_workload_owner(&f, past, control_store(h->control), e->revision - 1);
}

/* Returns the owner after this change. */
static struct object_owner owner_after(const struct watch_hub *h, struct history_batch *past,
                                       const struct history_event *e, enum kind kind, const char *id)
{
    struct owner_search f = {.state = control_state(h->control), .key = e->key};

    find_owner(&f, kind, id, &e->doc);
    return find_workload_owner(&f, past, control_store(h->control), e->revision);
}

/* Tells whether the caller sees every object of the kind, so that owners need not be looked up. */
static bool sees_all(const struct stream *s)
{
    return stream_sees(s, s->kind, &(struct object_owner){.there = true});
}

static void history_event_send(struct stream *s, struct history_batch *past, const struct history_event *e)
{
    const char *id;
    enum kind kind = object_key_split(e->key, &id);
    struct object_owner after = {0};

    assert(kind == s->kind);
    if (!e->gone)
        after = owner_after(s->hub, past, e, kind, id);
    if (after.there && stream_sees(s, kind, &after)) {
        struct str *line = &s->hub->line;
        str_clear(line);
        line_put(line, s, kind, &after, e->revision, &e->doc);
        change_send(s, e->revision, line->at, line->len);
        return;
    }
    struct object_owner before = {.there = true};
    if (past->compares)
        before = owner_before(s->hub, past, e, kind, id);
    if (before.there && stream_sees(s, kind, &before))
        send_removal(s, e->revision, id);
}

/* Processes one read of the history. */
static void history_read(struct stream *s)
{
    struct watch_hub *h = s->hub;
    struct history_batch past = {.part = s->part, .skip = s->part_len, .compares = !sees_all(s)};
    char prefix[OBJECT_KEY_MAX];
    uint64_t to = h->ring_from;
    size_t i = 0;

    int rc = store_history(control_store(h->control), object_key(s->kind, "", prefix), s->after, to, history_event_add,
                           &past, NULL);
    for (; rc >= 0 && i < past.events.len && stream_open(s); i++)
        if (position_advance(s, past.events.at[i].revision, past.events.at[i].nth))
            history_event_send(s, &past, &past.events.at[i]);
    bool all = rc == 0 && i == past.events.len;
    history_done(&past);
    if (all && !s->stopped)
        position_done(s, to);
    if (rc < 0)
        s->end_code = "compacted"; /* unreadable history counts as compacted: the reader must list again */
}

bool ring_is_far_behind(const struct stream *s)
{
    const struct watch_hub *h = s->hub;
    return s->after < h->ring_from || h->ring_len - ring_after(h, s->after) > RING_STEP;
}

bool ring_step(struct stream *s)
{
    if (!stream_open(s))
        return false;
    if (s->after >= s->hub->ring_from)
        return ring_read(s);
    history_read(s);
    return true;
}
