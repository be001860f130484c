/* intern.c - string interning. */
#include "base/intern.h"

#include <string.h>

#include "base/hash.h"

static bool same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(intern_text(ctx, value), key) == 0;
}

void intern_init(struct intern *in)
{
    *in = (struct intern){0};
    arena_init(&in->arena);
    pages_init(&in->strings, sizeof(const char *));
    (void)intern_put(in, "");
}

void intern_done(struct intern *in)
{
    pages_done(&in->strings);
    map_done(&in->map);
    arena_done(&in->arena);
}

sym intern_find(const struct intern *in, const char *s)
{
    return map_find(&in->map, hash_bytes(s, strlen(s), 0), same, in, s);
}

sym intern_put(struct intern *in, const char *s)
{
    if (!s)
        s = "";
    uint64_t hash = hash_bytes(s, strlen(s), 0);
    sym found = map_find(&in->map, hash, same, in, s);
    if (found != MAP_NONE)
        return found;
    sym fresh = pages_push(&in->strings);
    *(const char **)pages_edit(&in->strings, fresh) = arena_strdup(&in->arena, s);
    map_add(&in->map, hash, fresh);
    return fresh;
}
