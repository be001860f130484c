#include "control/explain/event.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/api/permit.h"
#include "control/control_parts.h"
#include "wire/doc/api.h"

struct event_log_entry {
    uint64_t seq;
    int64_t first_ns, last_ns;
    uint64_t count;
    enum kind kind;
    char type[24], id[ID_OWNED_MAX + 1], owner[ID_MAX + 1], group[ID_MAX + 1], message[EVENT_TEXT_MAX];
};

struct event_log {
    struct event_log_entry at[EVENTS_MAX];
    uint64_t next; /* sequence number of the next event */
};

struct event_log *events_new(void)
{
    return mem_zalloc(sizeof(struct event_log));
}

void events_free(struct event_log *e)
{
    mem_free(e);
}

/* Copies a text and cuts it to fit, at a UTF-8 character boundary. */
static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from ? from : "");
    for (size_t len = strlen(to); !str_utf8_valid(to, len);)
        to[--len] = '\0';
}

#define COPY(to, from) copy(to, sizeof(to), from)

void events_add(struct event_log *e, int64_t now_ns, const struct object_event *event)
{
    enum { LOOK_BACK = 128 };
    for (uint64_t i = e->next; i-- > 0 && e->next - i <= LOOK_BACK;) {
        struct event_log_entry *k = &e->at[i % EVENTS_MAX];
        if (k->kind != event->kind || strcmp(k->id, event->id) != 0)
            continue;
        if (strcmp(k->type, event->type) != 0 || strncmp(k->message, event->message, EVENT_TEXT_MAX - 1) != 0)
            break;
        k->count++;
        k->last_ns = now_ns;
        return;
    }
    struct event_log_entry *k = &e->at[e->next % EVENTS_MAX];
    *k = (struct event_log_entry){
        .seq = ++e->next, .first_ns = now_ns, .last_ns = now_ns, .count = 1, .kind = event->kind};
    COPY(k->type, event->type);
    COPY(k->id, event->id);
    COPY(k->owner, event->owner);
    COPY(k->group, event->group);
    COPY(k->message, event->message);
}

static bool is_visible_to(const struct event_log_entry *k, const struct request *c)
{
    enum permission need = k->kind == KIND_NODE ? PERMIT_CLUSTER : PERMIT_READ;
    return permit(&c->caller, need, k->owner, k->group);
}

struct request_event {
    struct object_event event;
    struct request_event *before;
};

void events_later(struct request *c, const struct object_event *event)
{
    struct request_event *e = arena_alloc(&c->arena, sizeof *e);
    *e = (struct request_event){
        .event = {.type = event->type,
                  .kind = event->kind,
                  .id = arena_strdup(&c->arena, event->id),
                  .owner = arena_strdup(&c->arena, event->owner),
                  .group = arena_strdup(&c->arena, event->group),
                  .message = arena_strdup(&c->arena, event->message)},
        .before = c->events,
    };
    c->events = e;
}

void events_now(struct request *c)
{
    struct request_event *first = NULL;
    while (c->events) { /* reverses the list: oldest first */
        struct request_event *e = c->events;
        c->events = e->before;
        e->before = first;
        first = e;
    }
    for (; first; first = first->before)
        events_add(c->control->events, c->now_ns, &first->event);
}

json_t *events_list(const struct event_log *e, const struct request *c, const char *id, size_t limit)
{
    json_t *list = json_array();
    size_t len = e->next < EVENTS_MAX ? (size_t)e->next : EVENTS_MAX;
    for (size_t i = 0; i < len && json_array_size(list) < limit; i++) {
        const struct event_log_entry *k = &e->at[(e->next - 1 - i) % EVENTS_MAX];
        char first[TIMESTAMP_MAX], last[TIMESTAMP_MAX];
        if ((id && strcmp(k->id, id) != 0) || !is_visible_to(k, c))
            continue;
        (void)json_array_insert_new(list, 0,
                                    json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s}", "type", k->type, "kind",
                                              kinds[k->kind].name, "id", k->id, "message", k->message, "count",
                                              (json_int_t)k->count, "first", timestamp_text(k->first_ns, first), "last",
                                              timestamp_text(k->last_ns, last)));
    }
    return list;
}
