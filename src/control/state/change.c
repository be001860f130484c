#include "control/state/change.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

void change_init(struct change *c, struct state *state, struct arena *arena)
{
    *c = (struct change){.state = state, .arena = arena, .verb = "", .subject = "", .note = ""};
}

void change_done(struct change *c)
{
    for (size_t i = 0; i < c->items.len; i++)
        json_decref(c->items.at[i].doc);
    vec_done(&c->items);
    map_done(&c->map);
}

struct item_key {
    enum kind kind;
    const char *id;
};

static uint64_t item_hash(enum kind kind, const char *id)
{
    return hash_bytes(id, strlen(id), kind + 1u);
}

static bool same_item(const void *ctx, uint32_t at, const void *key)
{
    const struct change_item *item = &((const struct change *)ctx)->items.at[at];
    const struct item_key *k = key;
    return item->kind == k->kind && strcmp(item->id, k->id) == 0;
}

static struct change_item *find(struct change *c, enum kind kind, const char *id)
{
    struct item_key key = {kind, id};
    uint32_t at = map_find(&c->map, item_hash(kind, id), same_item, c, &key);
    return at == MAP_NONE ? NULL : &c->items.at[at];
}

/* Returns the item of this key; adds one with the object's revision, and without its document, if the key is new. */
static struct change_item *item_get(struct change *c, enum kind kind, const char *id)
{
    struct change_item *item = find(c, kind, id);
    if (item)
        return item;
    const struct object *o = state_find(c->state, kind, id);
    struct change_item fresh = {
        .kind = kind,
        .id = arena_strdup(c->arena, id),
        .unread = o != NULL,
        .guarded = true,
        .revision = o ? o->revision : 0,
    };
    map_add(&c->map, item_hash(kind, id), (uint32_t)c->items.len);
    vec_push(&c->items, fresh);
    return &c->items.at[c->items.len - 1];
}

static struct change_item *item_read(struct change *c, enum kind kind, const char *id)
{
    struct change_item *item = item_get(c, kind, id);
    if (item->unread) {
        const struct object *o = state_find(c->state, kind, id);
        item->doc = object_doc(o);
        c->bytes += o->doc.len;
    }
    item->unread = false;
    return item;
}

bool change_guard(struct change *c, enum kind kind, const char *id)
{
    const struct change_item *item = item_get(c, kind, id);
    return item->unread || item->doc;
}

const json_t *change_read(struct change *c, enum kind kind, const char *id)
{
    return item_read(c, kind, id)->doc;
}

json_t *change_edit(struct change *c, enum kind kind, const char *id)
{
    struct change_item *item = item_read(c, kind, id);
    item->text = NULL;
    if (item->doc)
        item->write = true;
    return item->doc;
}

static void put(struct change_item *item, json_t *doc)
{
    assert(json_is_object(doc));
    (void)json_object_set_new(doc, "v", json_integer(SCHEMA_VERSION));
    json_decref(item->doc);
    item->doc = doc;
    item->text = NULL;
    item->unread = false;
    item->write = true;
}

void change_put(struct change *c, enum kind kind, const char *id, json_t *doc)
{
    put(item_get(c, kind, id), doc);
}

void change_put_unguarded(struct change *c, enum kind kind, const char *id, json_t *doc)
{
    bool known = find(c, kind, id) != NULL;
    struct change_item *item = item_get(c, kind, id);
    if (!known)
        item->guarded = false;
    put(item, doc);
}

void change_delete(struct change *c, enum kind kind, const char *id)
{
    struct change_item *item = item_get(c, kind, id);
    json_decref(item->doc);
    item->doc = NULL;
    item->text = NULL;
    item->unread = false;
    item->write = true;
}

/* A growing text in an arena. */
struct arena_text {
    struct arena *arena;
    char *at;
    size_t len, room;
};

static int text_append(const char *piece, size_t len, void *ctx)
{
    struct arena_text *t = ctx;
    if (t->len + len > t->room) {
        size_t room = 2 * t->room > t->len + len ? 2 * t->room : t->len + len;
        char *at = arena_alloc(t->arena, room);
        memcpy(at, t->at, t->len);
        t->at = at;
        t->room = room;
    }
    memcpy(t->at + t->len, piece, len);
    t->len += len;
    return 0;
}

const char *change_item_text(struct change *c, struct change_item *item, size_t *ret_len)
{
    enum { ROOM = 1024 }; /* most documents are smaller */
    if (!item->text && item->doc) {
        struct arena_text t = {.arena = c->arena, .at = arena_alloc(c->arena, ROOM), .room = ROOM};
        (void)json_dump_callback(item->doc, text_append, &t, JSON_COMPACT);
        item->text = t.at;
        item->text_len = t.len;
    }
    *ret_len = item->text ? item->text_len : 0;
    return item->text;
}

int change_expect(struct change *c, enum kind kind, const char *id, uint64_t revision, struct berth_err *err)
{
    const struct change_item *item = item_get(c, kind, id);
    if (item->revision == revision)
        return 0;
    if (item->revision == 0)
        return err_set(err, EAGAIN, "%s %s does not exist, but was expected at revision %" PRIu64, kinds[kind].name, id,
                       revision);
    return err_set(err, EAGAIN, "%s %s is at revision %" PRIu64 ", not %" PRIu64 "; read it again", kinds[kind].name,
                   id, item->revision, revision);
}

bool change_empty(const struct change *c)
{
    for (size_t i = 0; i < c->items.len; i++)
        if (c->items.at[i].write)
            return false;
    return true;
}

/* Removes secrets from a shown document. */
static void hide_secrets(enum kind kind, json_t *doc)
{
    if (kind == KIND_TOKEN && doc)
        (void)json_object_del(doc, "hash");
    if (kind == KIND_SECRET && doc)
        (void)json_object_del(doc, "sealed");
}

json_t *change_show(const struct change *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->items.len; i++) {
        const struct change_item *item = &c->items.at[i];
        if (!item->write || (!kinds[item->kind].shown && item->kind != KIND_SETTING))
            continue;
        const struct object *o = state_find(c->state, item->kind, item->id);
        json_t *before = o ? object_doc(o) : json_null(), *after = item->doc ? json_deep_copy(item->doc) : json_null();
        hide_secrets(item->kind, before);
        hide_secrets(item->kind, after);
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "kind", kinds[item->kind].name, "id",
                                                    item->id, "before", before, "after", after));
    }
    return list;
}
