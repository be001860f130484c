/* mirror.c - parsed documents of the store. */
#include "sim/judge/mirror.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"

struct mirror_key {
    enum kind kind;
    const char *id;
};

static uint64_t key_hash(enum kind kind, const char *id)
{
    return hash_bytes(id, strlen(id), kind + 1u);
}

static bool same_key(const void *ctx, uint32_t slot, const void *key)
{
    const struct mirror_doc *s = ((const struct mirror *)ctx)->slots.at[slot];
    const struct mirror_key *k = key;
    return s->kind == k->kind && strcmp(s->id, k->id) == 0;
}

static struct mirror_doc *find(const struct mirror *m, enum kind kind, const char *id)
{
    struct mirror_key key = {kind, id};
    uint32_t slot = map_find(&m->map, key_hash(kind, id), same_key, m, &key);
    return slot == MAP_NONE ? NULL : m->slots.at[slot];
}

const struct mirror_doc *mirror_find(const struct mirror *m, enum kind kind, const char *id)
{
    return find(m, kind, id);
}

const struct mirror_doc *mirror_work(const struct mirror *m, const char *id)
{
    static const enum kind order[] = {KIND_JOB, KIND_APP, KIND_VM};
    const struct mirror_doc *s = NULL;
    for (size_t i = 0; i < sizeof order / sizeof *order && !s; i++)
        s = find(m, order[i], id);
    return s;
}

const struct mirror_doc *mirror_instance(const struct mirror *m, uint64_t id)
{
    char text[24];
    return find(m, KIND_INSTANCE, str_u64(id, text));
}

const struct mirror_doc *mirror_placed_from(const struct mirror *m, const struct mirror_doc *instance)
{
    char id[OBJECT_KEY_MAX];
    const struct instance_doc *d = &instance->instance;
    const struct mirror_doc *work = mirror_work(m, d->instance.workload);
    if (work && work->work.meta.generation == d->generation)
        return work;
    (void)snprintf(id, sizeof id, "%s/%" PRIu64, d->instance.workload, d->generation);
    return find(m, KIND_SPEC, id);
}

void mirror_doc_free(struct mirror_doc *s)
{
    if (!s)
        return;
    json_decref(s->doc);
    arena_done(&s->arena);
    mem_free(s->text);
    mem_free(s->id);
    mem_free(s);
}

void mirror_done(struct mirror *m)
{
    for (size_t i = 0; i < m->slots.len; i++)
        mirror_doc_free(m->slots.at[i]);
    for (unsigned k = 0; k < KINDS; k++)
        vec_done(&m->of[k]);
    vec_done(&m->slots);
    vec_done(&m->unused);
    map_done(&m->map);
    *m = (struct mirror){0};
}

static int parse(struct mirror_doc *s, struct berth_err *err)
{
    switch (s->kind) {
    case KIND_NODE: return node_doc_read(s->doc, &s->arena, &s->node, err);
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM:
    case KIND_SPEC: return work_doc_read(s->doc, &s->arena, &s->work, err);
    case KIND_INSTANCE: return instance_doc_read(s->doc, &s->arena, &s->instance, err);
    case KIND_GROUP: return group_doc_read(s->doc, &s->arena, &s->group, err);
    case KIND_QUEUE: return queue_doc_read(s->doc, &s->arena, &s->queue, err);
    case KIND_USER: return user_doc_read(s->doc, &s->arena, &s->user, err);
    default: return 0;
    }
}

static struct mirror_doc *mirror_doc_new(enum kind kind, const char *id, const struct store_event *event,
                                         struct berth_err *err)
{
    struct mirror_doc *s = mem_zalloc(sizeof *s);
    s->kind = kind;
    s->id = mem_strdup(id);
    s->created = event->created;
    s->revision = event->revision;
    s->len = event->value.len;
    s->text = mem_alloc(s->len + 1);
    memcpy(s->text, event->value.at, s->len);
    s->text[s->len] = 0;
    arena_init(&s->arena);
    s->doc = json_loadb(s->text, s->len, 0, NULL);
    int rc = json_is_object(s->doc) ? parse(s, err) : err_set(err, EBADMSG, "not a JSON object");
    if (rc == 0)
        return s;
    (void)err_prefix(err, "%s", event->key);
    mirror_doc_free(s);
    return NULL;
}

static void drop(struct mirror *m, struct mirror_doc *s)
{
    struct mirror_doc *last = m->of[s->kind].at[m->of[s->kind].len - 1];
    map_drop(&m->map, key_hash(s->kind, s->id), s->slot);
    m->slots.at[s->slot] = NULL;
    vec_push(&m->unused, s->slot);
    m->of[s->kind].at[s->place] = last;
    last->place = s->place;
    m->of[s->kind].len--;
}

static void add(struct mirror *m, struct mirror_doc *s)
{
    if (m->unused.len) {
        s->slot = m->unused.at[--m->unused.len];
    } else {
        s->slot = (uint32_t)m->slots.len;
        vec_push(&m->slots, NULL);
    }
    m->slots.at[s->slot] = s;
    map_add(&m->map, key_hash(s->kind, s->id), s->slot);
    s->place = m->of[s->kind].len;
    vec_push(&m->of[s->kind], s);
}

int mirror_apply(struct mirror *m, const struct store_event *event, struct mirror_doc **ret_old,
                 const struct mirror_doc **ret_now, struct berth_err *err)
{
    const char *id;
    enum kind kind = object_key_split(event->key, &id);
    if (kind == KINDS)
        return err_set(err, EBADMSG, "%s: a key of no kind", event->key);
    struct mirror_doc *now = NULL;
    if (!event->gone) {
        now = mirror_doc_new(kind, id, event, err);
        if (!now)
            return -EBADMSG;
    }
    struct mirror_doc *old = find(m, kind, id);
    if (old)
        drop(m, old);
    if (now)
        add(m, now);
    m->revision = event->revision;
    *ret_old = old;
    *ret_now = now;
    return 0;
}
