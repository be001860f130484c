/* known_objects.c - a vector of small blocks, and a map from keys to indices in it. */
#include "kube/client/known_objects.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

struct known_object_key {
    const char *namespace, *name;
};

static uint64_t hash_of(const char *namespace, const char *name)
{
    return hash_bytes(name, strlen(name), hash_bytes(namespace, strlen(namespace), 0));
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    const struct known_objects *s = ctx;
    const struct known_object_key *k = key;
    const struct known_object *o = s->objects.at[value];
    return strcmp(known_object_name(o), k->name) == 0 && strcmp(known_object_namespace(o), k->namespace) == 0;
}

static uint32_t place_of(const struct known_objects *s, const char *namespace, const char *name)
{
    const struct known_object_key key = {namespace, name};
    return map_find(&s->map, hash_of(namespace, name), same, s, &key);
}

void known_objects_free(struct known_objects *s)
{
    for (size_t i = 0; i < s->objects.len; i++)
        mem_free(s->objects.at[i]);
    vec_done(&s->objects);
    map_done(&s->map);
}

struct known_object *known_object_find(const struct known_objects *s, const char *namespace, const char *name)
{
    uint32_t place = place_of(s, namespace, name);
    return place == MAP_NONE ? NULL : s->objects.at[place];
}

struct known_object *known_object_add(struct known_objects *s, const char *namespace, const char *name, const char *uid)
{
    size_t a = strlen(namespace) + 1, b = strlen(name) + 1, c = strlen(uid) + 1;
    struct known_object *o = mem_zalloc(sizeof *o + a + b + c);
    assert(a + b + c <= KNOWN_TEXT_MAX + 3);
    memcpy(o->text, namespace, a);
    memcpy(o->text + a, name, b);
    memcpy(o->text + a + b, uid, c);
    o->name = (uint16_t)a;
    o->uid = (uint16_t)(a + b);
    map_add(&s->map, hash_of(namespace, name), (uint32_t)s->objects.len);
    vec_push(&s->objects, o);
    return o;
}

void known_object_remove(struct known_objects *s, struct known_object *o)
{
    uint64_t hash = hash_of(known_object_namespace(o), known_object_name(o));
    uint32_t place = place_of(s, known_object_namespace(o), known_object_name(o)), last = (uint32_t)s->objects.len - 1;
    assert(place != MAP_NONE && s->objects.at[place] == o);
    map_drop(&s->map, hash, place);
    if (place != last) {
        struct known_object *moved = s->objects.at[last];
        uint64_t moved_hash = hash_of(known_object_namespace(moved), known_object_name(moved));
        map_drop(&s->map, moved_hash, last);
        map_add(&s->map, moved_hash, place);
        s->objects.at[place] = moved;
    }
    s->objects.len--;
}
