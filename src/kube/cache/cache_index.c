/* cache_index.c - the indices of the cache: shelves of objects by key, shared pod templates, and topics that pods
 * follow.
 */
#include <assert.h>

#include "base/hash.h"
#include "kube/cache/cache_internal.h"

static uint64_t key_hash(const char *key)
{
    return hash_bytes(key, strlen(key), 0);
}

/* ---- shelves ---------------------------------------------------------------------------------------------------- */

static bool cache_object_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct object_store *)ctx)->at.at[value].key, key) == 0;
}

uint32_t object_store_find(const struct object_store *s, const char *key)
{
    return map_find(&s->by_key, key_hash(key), cache_object_same, s, key);
}

bool object_store_differs(const struct object_store *s, const char *key, const struct str *bytes)
{
    uint32_t i = object_store_find(s, key);
    return i == NONE || s->at.at[i].len != bytes->len || memcmp(s->at.at[i].bytes, str_text(bytes), bytes->len) != 0;
}

void object_store_put(struct object_store *s, const char *key, const struct str *bytes)
{
    uint32_t i = object_store_find(s, key);
    if (i == NONE) {
        if (s->free.len) {
            i = s->free.at[--s->free.len];
        } else {
            i = (uint32_t)s->at.len;
            vec_push(&s->at, (struct cache_object){0});
        }
        s->at.at[i].key = mem_strdup(key);
        map_add(&s->by_key, key_hash(key), i);
    }
    struct cache_object *k = &s->at.at[i];
    mem_free(k->bytes);
    k->bytes = mem_alloc(bytes->len + 1);
    k->len = bytes->len;
    memcpy(k->bytes, str_text(bytes), bytes->len);
}

bool object_store_remove(struct object_store *s, const char *key)
{
    uint32_t i = object_store_find(s, key);
    if (i == NONE)
        return false;
    map_drop(&s->by_key, key_hash(key), i);
    mem_free(s->at.at[i].key);
    mem_free(s->at.at[i].bytes);
    s->at.at[i] = (struct cache_object){0};
    vec_push(&s->free, i);
    return true;
}

void object_store_clear(struct object_store *s)
{
    for (size_t i = 0; i < s->at.len; i++) {
        mem_free(s->at.at[i].key);
        mem_free(s->at.at[i].bytes);
    }
    vec_done(&s->at);
    vec_done(&s->free);
    map_done(&s->by_key);
}

/* ---- templates -------------------------------------------------------------------------------------------------- */

static bool template_same(const void *ctx, uint32_t value, const void *key)
{
    const struct template *t = &((const struct cache *)ctx)->templates.at[value];
    const struct str *bytes = key;
    return t->len == bytes->len && memcmp(t->bytes, str_text(bytes), t->len) == 0;
}

uint32_t template_take(struct cache *p, const struct str *bytes)
{
    uint64_t hash = hash_bytes(str_text(bytes), bytes->len, 0);
    uint32_t i = map_find(&p->templates_by_bytes, hash, template_same, p, bytes);
    if (i == NONE) {
        if (p->templates_free.len) {
            i = p->templates_free.at[--p->templates_free.len];
        } else {
            i = (uint32_t)p->templates.len;
            vec_push(&p->templates, (struct template){0});
        }
        p->templates.at[i] = (struct template){mem_alloc(bytes->len + 1), (uint32_t)bytes->len, 0};
        memcpy(p->templates.at[i].bytes, str_text(bytes), bytes->len);
        map_add(&p->templates_by_bytes, hash, i);
    }
    p->templates.at[i].pods++;
    return i;
}

void template_leave(struct cache *p, uint32_t template)
{
    struct template *t = &p->templates.at[template];
    if (--t->pods > 0)
        return;
    map_drop(&p->templates_by_bytes, hash_bytes(t->bytes, t->len, 0), template);
    mem_free(t->bytes);
    *t = (struct template){0};
    vec_push(&p->templates_free, template);
}

void templates_done(struct cache *p)
{
    for (size_t i = 0; i < p->templates.len; i++)
        mem_free(p->templates.at[i].bytes);
    vec_done(&p->templates);
    vec_done(&p->templates_free);
    map_done(&p->templates_by_bytes);
}

/* ---- topics ----------------------------------------------------------------------------------------------------- */

static bool topic_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct cache *)ctx)->topics.at[value].key, key) == 0;
}

static uint32_t topic_find(const struct cache *p, const char *key)
{
    return map_find(&p->topics_by_key, key_hash(key), topic_same, p, key);
}

const struct cache_topic *topic_lookup(const struct cache *p, const char *key)
{
    uint32_t t = topic_find(p, key);
    return t == NONE ? NULL : &p->topics.at[t];
}

void topic_follow(struct cache *p, uint32_t pod, const char *key)
{
    struct pod_entry *e = &p->pods.at[pod];
    uint32_t t = topic_find(p, key);
    if (t == NONE) {
        if (p->topics_free.len) {
            t = p->topics_free.at[--p->topics_free.len];
        } else {
            t = (uint32_t)p->topics.len;
            vec_push(&p->topics, (struct cache_topic){0});
        }
        p->topics.at[t].key = mem_strdup(key);
        map_add(&p->topics_by_key, key_hash(key), t);
    }
    for (uint32_t i = 0; i < e->topics_len; i++)
        if (e->topics[i].topic == t)
            return;
    e->topics = mem_resize(e->topics, e->topics_len + 1, sizeof *e->topics);
    e->topics[e->topics_len++] = (struct pod_topic){t, (uint32_t)p->topics.at[t].pods.len};
    vec_push(&p->topics.at[t].pods, pod);
}

/* The last pod of the topic moves into the freed slot. */
static void topic_leave(struct cache *p, struct pod_topic of)
{
    struct cache_topic *t = &p->topics.at[of.topic];
    uint32_t last = t->pods.at[--t->pods.len];
    struct pod_entry *e = &p->pods.at[last];
    t->pods.at[of.place] = last;
    for (uint32_t i = 0; i < e->topics_len; i++)
        if (e->topics[i].topic == of.topic)
            e->topics[i].place = of.place;
}

void topic_leave_all(struct cache *p, uint32_t pod)
{
    struct pod_entry *e = &p->pods.at[pod];
    for (uint32_t i = 0; i < e->topics_len; i++) {
        uint32_t topic = e->topics[i].topic;
        topic_leave(p, e->topics[i]);
        struct cache_topic *t = &p->topics.at[topic];
        if (t->pods.len > 0)
            continue;
        map_drop(&p->topics_by_key, key_hash(t->key), topic);
        mem_free(t->key);
        vec_done(&t->pods);
        t->key = NULL;
        vec_push(&p->topics_free, topic);
    }
    mem_free(e->topics);
    e->topics = NULL;
    e->topics_len = 0;
}

void topic_mark(struct cache *p, const char *key)
{
    topic_mark_others(p, key, NONE);
}

void topic_mark_others(struct cache *p, const char *key, uint32_t but)
{
    uint32_t t = topic_find(p, key);
    for (size_t i = 0; t != NONE && i < p->topics.at[t].pods.len; i++) {
        uint32_t pod = p->topics.at[t].pods.at[i];
        if (pod == but)
            continue;
        if (p->pods.at[pod].wait)
            pod_clear_excluded_nodes(p->pods.at[pod].wait);
        pod_mark(p, pod);
    }
}

void topics_clear(struct cache *p)
{
    for (size_t i = 0; i < p->topics.len; i++) {
        mem_free(p->topics.at[i].key);
        vec_done(&p->topics.at[i].pods);
    }
    vec_done(&p->topics);
    vec_done(&p->topics_free);
    map_done(&p->topics_by_key);
}
