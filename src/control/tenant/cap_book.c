/* cap_book.c - counts what each user has: from the objects of the state, and from requests in progress. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "control/tenant/cap.h"
#include "wire/doc/api.h"

/* Overhead of each object beside its text: table entries, its view, its entry in the cluster. */
enum { OBJECT_BYTES = 512 };

struct owner_use {
    char *name;
    struct cap_amounts use;
};

struct cap_book {
    VEC(struct owner_use) owners; /* never shrinks: all owners are users, which administrators create */
    struct map map;
};

struct cap_book *cap_book_new(void)
{
    return mem_zalloc(sizeof(struct cap_book));
}

void cap_book_free(struct cap_book *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->owners.len; i++)
        mem_free(b->owners.at[i].name);
    vec_done(&b->owners);
    map_done(&b->map);
    mem_free(b);
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct cap_book *)ctx)->owners.at[value].name, key) == 0;
}

static struct owner_use *owner_find(const struct cap_book *b, const char *name)
{
    uint32_t ix = map_find(&b->map, hash_bytes(name, strlen(name), 0), same, b, name);
    return ix == MAP_NONE ? NULL : &b->owners.at[ix];
}

void cap_book_hold(struct cap_book *b, const char *name, const struct cap_amounts *amounts, int sign)
{
    if (!*name)
        return;
    struct owner_use *owner = owner_find(b, name);
    if (!owner) {
        map_add(&b->map, hash_bytes(name, strlen(name), 0), (uint32_t)b->owners.len);
        vec_push(&b->owners, ((struct owner_use){.name = mem_strdup(name)}));
        owner = &b->owners.at[b->owners.len - 1];
    }
    for (size_t i = 0; i < CAPS; i++)
        owner->use.of[i] += sign * amounts->of[i];
}

/* `replicas` and `over` are of workloads. Kinds that users do not write count nothing. */
static struct cap_amounts amounts(enum kind kind, size_t bytes, int64_t replicas, bool over)
{
    struct cap_amounts a = {0};
    switch (kind) {
    case KIND_APP:
    case KIND_VM: a.of[CAP_INSTANCES] = replicas; break;
    case KIND_JOB: a.of[CAP_JOBS] = over ? 0 : replicas > 1 ? replicas : 1; break;
    case KIND_TOKEN: a.of[CAP_TOKENS] = 1; break;
    case KIND_VOLUME:
    case KIND_SECRET:
    case KIND_CRON:
    case KIND_SPEC: break;
    default: return a;
    }
    a.of[CAP_STORED] = (int64_t)bytes + OBJECT_BYTES;
    return a;
}

bool cap_counts(enum kind kind)
{
    return amounts(kind, 0, 0, false).of[CAP_STORED] > 0;
}

struct cap_amounts cap_of_object(const struct object *o)
{
    bool work = kind_is_workload(o->kind);
    return amounts(o->kind, o->doc.len, work ? o->work->replicas : 0, work && o->work->finished_ns);
}

/* Most documents have only `replicas`, which needs no parsing. */
static int64_t doc_replicas(const json_t *doc, struct arena *arena)
{
    struct work_doc d;
    const json_t *replicas = json_object_get(doc, "replicas");
    if (!json_object_get(doc, "array") && !json_object_get(doc, "max"))
        return json_is_integer(replicas) ? json_integer_value(replicas) : 1;
    return work_doc_read(doc, arena, &d, NULL) == 0 ? d.workload.replicas : 1;
}

struct cap_amounts cap_of_doc(enum kind kind, const json_t *doc, size_t text_len, struct arena *arena)
{
    if (!cap_counts(kind))
        return (struct cap_amounts){0};
    return amounts(kind, text_len, kind_is_workload(kind) ? doc_replicas(doc, arena) : 0,
                   json_object_get(doc, "finished") != NULL);
}

void cap_book_count(struct cap_book *b, const struct object *o, int sign)
{
    const struct cap_amounts a = cap_of_object(o);
    if (a.of[CAP_STORED])
        cap_book_hold(b, o->owner, &a, sign);
}

struct cap_amounts cap_book_use(const struct cap_book *b, const char *name)
{
    const struct owner_use *owner = owner_find(b, name);
    return owner ? owner->use : (struct cap_amounts){0};
}
