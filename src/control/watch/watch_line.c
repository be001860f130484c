/* watch_line.c - the line that a watcher gets for a change, and whether the watcher may see the change. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/crud.h"
#include "control/watch/watch_parts.h"
#include "wire/text/document.h"

/* ---- visibility ------------------------------------------------------------------------------------------------- */

bool stream_sees(const struct stream *s, enum kind kind, const struct object_owner *who)
{
    struct request *probe = s->hub->probe;
    struct object o = {.kind = kind, .id = "", .owner = who->owner, .group = who->group};

    probe->caller = s->caller;
    return request_may_see(probe, &o);
}

bool stream_manages(const struct stream *s, const struct object_owner *who)
{
    return permit(&s->caller, PERMIT_MANAGE, who->owner, who->group);
}

/* Copies a name. A name that is too long becomes "": only callers with the scope `all` see such an object. */
static void owner_copy(char to[static ID_MAX + 1], const char *text)
{
    size_t len = text ? strlen(text) : 0;

    if (len > ID_MAX)
        len = 0;
    if (len)
        memcpy(to, text, len);
    to[len] = '\0';
}

static struct object_owner owner_make(const char *owner, const char *group)
{
    struct object_owner who = {.there = true};

    owner_copy(who.owner, owner);
    owner_copy(who.group, group);
    return who;
}

struct object_owner owner_now(const struct state *s, enum kind kind, const char *id)
{
    const struct object *o = state_find(s, kind, id);
    return o ? owner_make(o->owner, o->group) : (struct object_owner){0};
}

/* Reads the owner from an instance's document, else from its workload. */
static struct object_owner instance_owner_then(const struct state *s, const json_t *doc)
{
    const char *owner = json_string_value(json_object_get(doc, "owner"));
    const char *group = json_string_value(json_object_get(doc, "group"));
    const char *workload = json_string_value(json_object_get(doc, "workload"));

    if (owner)
        return owner_make(owner, group);
    const struct object *of = workload ? state_find_work(s, workload) : NULL;
    if (!of && workload)
        of = state_spec(s, workload, (uint64_t)json_integer_value(json_object_get(doc, "of")));
    return of ? owner_make(of->owner, of->group) : owner_make(NULL, NULL);
}

struct object_owner owner_then(const struct state *s, enum kind kind, const char *id, const struct bytes *text)
{
    CLEANUP(json) json_t *doc = json_loadb(text->at, text->len, 0, NULL);
    const char *owner = json_string_value(json_object_get(doc, "owner"));
    const char *group = json_string_value(json_object_get(doc, "group"));

    switch (kind) {
    case KIND_USER: return owner_make(id, group);
    case KIND_GROUP: return owner_make(NULL, id);
    case KIND_TOKEN: return owner_make(json_string_value(json_object_get(doc, "user")), NULL);
    case KIND_INSTANCE: return instance_owner_then(s, doc);
    default: return owner_make(owner, group);
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static int text_add(const char *buffer, size_t size, void *to)
{
    str_add_bytes(to, buffer, size);
    return 0;
}

void line_put(struct str *to, const struct stream *s, enum kind kind, const struct object_owner *who, uint64_t revision,
              const struct bytes *doc)
{
    const struct object o = {.kind = kind, .id = "", .owner = who->owner, .group = who->group};
    CLEANUP(json) json_t *object = json_loadb(doc->at, doc->len, 0, NULL);

    assert(json_is_object(object)); /* every stored document has been parsed before */
    crud_redact(&s->caller, &o, object);
    (void)json_object_set_new(object, "revision", json_integer((json_int_t)revision));
    str_addf(to, "{\"type\":\"put\",\"revision\":%llu,\"object\":", (unsigned long long)revision);
    (void)json_dump_callback(object, text_add, to, JSON_COMPACT);
    str_add_char(to, '}');
}

void line_removed(struct str *to, uint64_t revision, const char *id)
{
    str_addf(to, "{\"type\":\"gone\",\"revision\":%llu,\"id\":", (unsigned long long)revision);
    str_add_json(to, id);
    str_add_char(to, '}');
}
