/* watch_event.c - parses metav1.WatchEvent and lists, in protobuf and in JSON. */
#include "kube/client/watch_event.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/known_objects.h"
#include "wire/text/document.h"

enum { FRAME_HEAD = 4, EVENT_TYPE = 1, EVENT_OBJECT = 2, EXTENSION_RAW = 1 };
enum { LIST_META = 1, LIST_ITEM = 2, LIST_META_VERSION = 2, LIST_META_CONTINUE = 3, META_ANNOTATION = 12 };
#define COMPLETE "k8s.io/initial-events-end"

void watch_room_done(struct watch_room *room)
{
    json_decref(room->doc);
    mem_free(room->error);
    room->doc = NULL;
    room->error = NULL;
}

int64_t watch_frame(enum kube_format format, const char *p, size_t len, const char **ret_at, size_t *ret_len)
{
    if (format == KUBE_JSON) {
        const char *end = memchr(p, '\n', len);
        if (!end)
            return len > WATCH_FRAME_MAX ? -1 : 0;
        *ret_at = p;
        *ret_len = (size_t)(end - p);
        return end - p + 1;
    }
    if (len < FRAME_HEAD)
        return 0;
    const uint8_t *u = (const uint8_t *)p;
    size_t size = (size_t)u[0] << 24 | (size_t)u[1] << 16 | (size_t)u[2] << 8 | u[3];
    if (size > WATCH_FRAME_MAX)
        return -1;
    if (len - FRAME_HEAD < size)
        return 0;
    *ret_at = p + FRAME_HEAD;
    *ret_len = size;
    return (int64_t)(size + FRAME_HEAD);
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

static bool version_parse(const char *text, size_t len, uint64_t *ret)
{
    uint64_t x = 0;
    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        x = x * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = x;
    return true;
}

struct object_names {
    struct proto_text namespace, name, uid, version;
};

/* Copies the names with their NULs, so that they outlive the frame. */
static int object_of(const struct object_names *n, char *room, struct kube_object *o, struct berth_err *err)
{
    const struct proto_text *const texts[] = {&n->namespace, &n->name, &n->uid};
    const char **const to[] = {&o->namespace, &o->name, &o->uid};
    if (n->name.len == 0 || n->uid.len == 0 || n->namespace.len + n->name.len + n->uid.len > KNOWN_TEXT_MAX)
        return err_set(err, EPROTO, "an object without a name or a uid, or with one that is too long");
    for (size_t i = 0; i < 3; i++) {
        if (texts[i]->len && memchr(texts[i]->at, '\0', texts[i]->len))
            return err_set(err, EPROTO, "an object with a name that is not text");
        *to[i] = room;
        if (texts[i]->len)
            memcpy(room, texts[i]->at, texts[i]->len);
        room[texts[i]->len] = '\0';
        room += texts[i]->len + 1;
    }
    if (!version_parse(n->version.at, n->version.len, &o->version))
        return err_set(err, EPROTO, "the object %s/%s has no resourceVersion that is a number", o->namespace, o->name);
    return 0;
}

static int object_of_proto(struct proto_reader raw, char *room, struct kube_object *o, struct berth_err *err)
{
    struct proto_meta m;
    if (!proto_meta_read(raw, &m))
        return err_set(err, EPROTO, "an object that is not protobuf");
    o->raw = raw;
    o->json = NULL;
    return object_of(&(struct object_names){m.namespace, m.name, m.uid, m.version}, room, o, err);
}

static struct proto_text json_text(const json_t *in, const char *key)
{
    const json_t *text = json_object_get(in, key);
    return (struct proto_text){json_string_value(text), json_string_length(text)};
}

static int object_of_json(const json_t *doc, char *room, struct kube_object *o, struct berth_err *err)
{
    const json_t *m = json_object_get(doc, "metadata");
    const struct object_names names = {json_text(m, "namespace"), json_text(m, "name"), json_text(m, "uid"),
                                       json_text(m, "resourceVersion")};
    o->raw = (struct proto_reader){0};
    o->json = doc;
    return object_of(&names, room, o, err);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static int kind_of(struct proto_text type, enum watch_kind *ret)
{
    static const struct {
        const char *type;
        enum watch_kind kind;
    } rows[] = {
        {"MODIFIED", WATCH_PUT     },
        {"ADDED",    WATCH_PUT     },
        {"DELETED",  WATCH_DROP    },
        {"BOOKMARK", WATCH_BOOKMARK},
        {"ERROR",    WATCH_ERROR   },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (proto_is(type, rows[i].type)) {
            *ret = rows[i].kind;
            return 0;
        }
    return -ENOENT;
}

static bool annotated(struct proto_reader meta)
{
    struct proto_field f, part;
    while (proto_next(&meta, &f)) {
        bool key = false, value = false;
        if (f.number != META_ANNOTATION)
            continue;
        struct proto_reader entry = proto_sub(&f);
        while (proto_next(&entry, &part)) {
            key = key || (part.number == 1 && proto_is(proto_text(&part), COMPLETE));
            value = value || (part.number == 2 && proto_is(proto_text(&part), "true"));
        }
        if (key && value)
            return true;
    }
    return false;
}

static int event_read_proto(const char *p, size_t len, struct watch_room *room, struct watch_event *e,
                            struct berth_err *err)
{
    struct proto_reader r = proto_reader(p, len);
    struct proto_text type = {0}, object = {0};
    struct proto_field f, part;
    struct proto_object o;
    while (proto_next(&r, &f)) {
        if (f.number == EVENT_TYPE)
            type = proto_text(&f);
        struct proto_reader extension = f.number == EVENT_OBJECT ? proto_sub(&f) : (struct proto_reader){0};
        while (proto_next(&extension, &part))
            if (part.number == EXTENSION_RAW)
                object = proto_text(&part);
        if (extension.bad)
            r.bad = true;
    }
    if (r.bad)
        return err_set(err, EPROTO, "a frame that is not an event");
    if (kind_of(type, &e->kind) < 0)
        return -ENOENT;
    e->error = object.at ? object.at : "";
    e->error_len = object.len;
    if (e->kind == WATCH_ERROR)
        return 0;
    if (!proto_object_read(object.at, object.len, &o))
        return err_set(err, EPROTO, "an event without an object");
    if (e->kind != WATCH_BOOKMARK)
        return object_of_proto(o.raw, room->text, &e->object, err);
    struct proto_meta m;
    if (!proto_meta_read(o.raw, &m) || !version_parse(m.version.at, m.version.len, &e->object.version))
        return err_set(err, EPROTO, "a bookmark without a version");
    e->complete = annotated(m.meta);
    return 0;
}

static int event_read_json(const char *p, size_t len, struct watch_room *room, struct watch_event *e,
                           struct berth_err *err)
{
    int rc = document_parse(p, len, "event", &room->doc, err);
    if (rc < 0)
        return err_set(err, EPROTO, "a line that is not an event");
    const json_t *object = json_object_get(room->doc, "object"), *meta = json_object_get(object, "metadata");
    if (kind_of(json_text(room->doc, "type"), &e->kind) < 0)
        return -ENOENT;
    if (e->kind == WATCH_ERROR) {
        room->error = json_dumps(object, JSON_COMPACT);
        e->error = room->error ? room->error : "";
        e->error_len = strlen(e->error);
        return 0;
    }
    if (e->kind != WATCH_BOOKMARK)
        return object_of_json(object, room->text, &e->object, err);
    struct proto_text version = json_text(meta, "resourceVersion");
    if (!version_parse(version.at, version.len, &e->object.version))
        return err_set(err, EPROTO, "a bookmark without a version");
    e->complete = proto_is(json_text(json_object_get(meta, "annotations"), COMPLETE), "true");
    return 0;
}

int watch_event_read(enum kube_format format, const char *p, size_t len, struct watch_room *room,
                     struct watch_event *ret, struct berth_err *err)
{
    struct watch_event e = {0};
    int rc = format == KUBE_JSON ? event_read_json(p, len, room, &e, err) : event_read_proto(p, len, room, &e, err);
    if (rc == 0)
        *ret = e;
    return rc;
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static int page_end(struct proto_text version, struct proto_text next, struct watch_page *page, struct berth_err *err)
{
    if (!version_parse(version.at, version.len, &page->version) || next.len >= sizeof page->next)
        return err_set(err, EPROTO, "a list without a version, or that cannot be continued");
    if (next.len)
        memcpy(page->next, next.at, next.len);
    page->next[next.len] = '\0';
    return 0;
}

static int page_read_proto(const char *p, size_t len, watch_item *item, void *ctx, struct watch_page *page,
                           struct berth_err *err)
{
    struct proto_text version = {0}, next = {0};
    struct proto_object o;
    struct proto_field f, part;
    char room[sizeof((struct watch_room *)0)->text];
    int rc = 0;
    if (!proto_object_read(p, len, &o) || !proto_valid(o.raw))
        return err_set(err, EPROTO, "a list that is not protobuf");
    while (rc == 0 && proto_next(&o.raw, &f)) {
        struct proto_reader sub = proto_sub(&f);
        struct kube_object object = {0};
        if (f.number == LIST_ITEM) {
            rc = object_of_proto(sub, room, &object, err);
            if (rc == 0)
                item(ctx, &object);
        }
        while (f.number == LIST_META && proto_next(&sub, &part)) {
            if (part.number == LIST_META_VERSION)
                version = proto_text(&part);
            else if (part.number == LIST_META_CONTINUE)
                next = proto_text(&part);
        }
    }
    return rc < 0 ? rc : page_end(version, next, page, err);
}

static int page_read_json(const char *p, size_t len, watch_item *item, void *ctx, struct watch_page *page,
                          struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;
    char room[sizeof((struct watch_room *)0)->text];
    const json_t *one;
    size_t i;
    if (document_parse(p, len, "list", &doc, NULL) < 0)
        return err_set(err, EPROTO, "a list that is not JSON");
    json_array_foreach(json_object_get(doc, "items"), i, one)
    {
        struct kube_object object = {0};
        int rc = object_of_json(one, room, &object, err);
        if (rc < 0)
            return rc;
        item(ctx, &object);
    }
    const json_t *meta = json_object_get(doc, "metadata");
    return page_end(json_text(meta, "resourceVersion"), json_text(meta, "continue"), page, err);
}

int watch_page_read(enum kube_format format, const char *p, size_t len, watch_item *item, void *ctx,
                    struct watch_page *ret, struct berth_err *err)
{
    struct watch_page page = {0};
    int rc = format == KUBE_JSON ? page_read_json(p, len, item, ctx, &page, err)
                                 : page_read_proto(p, len, item, ctx, &page, err);
    if (rc == 0)
        *ret = page;
    return rc;
}
