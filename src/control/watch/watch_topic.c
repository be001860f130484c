/* watch_topic.c - derived documents with watchers: each is derived once for all its watchers, after a change of its
 * inputs.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "control/watch/watch_parts.h"

/* Pause after a document was sent, by its size: about 4 MB a second. */
#define REST_BYTES_MIN ((size_t)16 << 10)
#define REST_NS_BYTE 250
#define REST_NS_MAX 250000000

/* topics_touch defines the inputs of each kind. */
static enum topic_kind topic_kind_of(derived_write *write)
{
    static const struct {
        derived_write *write;
        enum topic_kind kind;
    } rows[] = {
        {node_config_write,    TOPIC_NODE    },
        {gateway_config_write, TOPIC_GATEWAY },
        {service_info_write,   TOPIC_SERVICE },
        {services_write,       TOPIC_SERVICES},
        {rbac_write,           TOPIC_RBAC    },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].write == write)
            return rows[i].kind;
    return TOPIC_OTHER; /* derived again after every change */
}

struct topic_key {
    enum topic_kind kind;
    derived_write *write; /* NULL: any */
    const char *id;
};

static uint64_t topic_hash(enum topic_kind kind, const char *id)
{
    return hash_bytes(id, strlen(id), kind + 1u);
}

static bool topic_same(const void *ctx, uint32_t slot, const void *key)
{
    const struct watch_hub *h = ctx;
    const struct topic_key *k = key;
    const struct topic *t = h->topics.at[slot];
    return t->kind == k->kind && (!k->write || t->write == k->write) && strcmp(t->id, k->id) == 0;
}

static struct topic *topic_find(const struct watch_hub *h, const struct topic_key *key)
{
    uint32_t slot = map_find(&h->map, topic_hash(key->kind, key->id), topic_same, h, key);
    return slot == MAP_NONE ? NULL : h->topics.at[slot];
}

static struct topic *topic_add(struct watch_hub *h, const struct topic_key *key)
{
    struct topic *t = mem_zalloc(sizeof *t);

    t->kind = key->kind;
    t->write = key->write;
    t->id = mem_strdup(key->id);
    if (h->free_topics.len) {
        t->slot = h->free_topics.at[--h->free_topics.len];
    } else {
        t->slot = (uint32_t)h->topics.len;
        vec_push(&h->topics, NULL);
    }
    h->topics.at[t->slot] = t;
    map_add(&h->map, topic_hash(t->kind, t->id), t->slot);
    h->topics_len[t->kind]++;
    return t;
}

static void topic_free(struct watch_hub *h, struct topic *t)
{
    for (size_t i = 0; t->dirty && i < h->dirty.len; i++)
        if (h->dirty.at[i] == t)
            h->dirty.at[i] = NULL;
    map_drop(&h->map, topic_hash(t->kind, t->id), t->slot);
    h->topics.at[t->slot] = NULL;
    vec_push(&h->free_topics, t->slot);
    if (--h->topics_len[t->kind] == 0 && t->kind == TOPIC_GATEWAY) {
        gateway_free(h->gateway); /* no topic updates the gateway any more */
        h->gateway = NULL;
    }
    mem_free(t->id);
    mem_free(t);
}

void topic_join(struct watch_hub *h, struct stream *s, derived_write *write, const char *id)
{
    struct topic_key key = {topic_kind_of(write), write, id};
    struct topic *t = topic_find(h, &key);

    if (!t)
        t = topic_add(h, &key);
    s->topic = t;
    peers_join(&t->streams, s);
}

void topic_leave(struct stream *s)
{
    struct topic *t = s->topic;

    if (!t)
        return;
    peers_leave(s);
    s->topic = NULL;
    if (!t->streams)
        topic_free(s->hub, t);
}

void topics_done(struct watch_hub *h)
{
    gateway_free(h->gateway);
    vec_done(&h->topics);
    vec_done(&h->free_topics);
    vec_done(&h->dirty);
    map_done(&h->map);
}

/* ---- dependencies ----------------------------------------------------------------------------------------------- */

static void topic_stale(struct watch_hub *h, struct topic *t)
{
    if (!t || t->dirty)
        return;
    t->dirty = true;
    vec_push(&h->dirty, t);
}

static void mark_topic_stale(struct watch_hub *h, enum topic_kind kind, const char *id)
{
    if (h->topics_len[kind])
        topic_stale(h, topic_find(h, &(struct topic_key){kind, NULL, id}));
}

/* Marks all topics of a kind; only for kinds with few topics, or when all of them change. */
static void stale_all(struct watch_hub *h, enum topic_kind kind)
{
    if (!h->topics_len[kind])
        return;
    for (size_t i = 0; i < h->topics.len; i++)
        if (h->topics.at[i] && h->topics.at[i]->kind == kind)
            topic_stale(h, h->topics.at[i]);
}

static void service_stale(struct watch_hub *h, const char *app)
{
    mark_topic_stale(h, TOPIC_SERVICE, app);
    stale_all(h, TOPIC_SERVICES);
    h->gateway_stale = true;
}

static void work_stale(struct watch_hub *h, const struct object *work, const char *id)
{
    for (size_t i = 0; work && i < work->work->instances_len; i++)
        mark_topic_stale(h, TOPIC_NODE, work->work->instances[i]->instance->node);
    if (!work || work->kind == KIND_APP) {
        service_stale(h, id);
        stale_all(h, TOPIC_RBAC);
    }
}

static void node_stale(struct watch_hub *h, const struct object *node, const char *id)
{
    mark_topic_stale(h, TOPIC_NODE, id);
    mark_topic_stale(h, TOPIC_GATEWAY, id); /* the node's zone determines the order of targets */
    if (!node)
        stale_all(h, TOPIC_RBAC); /* the node was removed */
    for (size_t i = 0; node && i < node->node->instances_len; i++) {
        const struct instance_view *on = node->node->instances[i]->instance;
        if (state_find(control_state(h->control), KIND_APP, on->workload))
            service_stale(h, on->workload); /* the node's address may have changed */
    }
}

static void instance_stale(struct watch_hub *h, const struct object *instance)
{
    if (!instance)
        return;
    mark_topic_stale(h, TOPIC_NODE, instance->instance->node);
    mark_topic_stale(h, TOPIC_RBAC, instance->instance->node);
    if (state_find(control_state(h->control), KIND_APP, instance->instance->workload))
        service_stale(h, instance->instance->workload);
}

void topics_touch(struct watch_hub *h, enum kind kind, const char *id)
{
    const struct state *state = control_state(h->control);
    const struct object *o = state_find(state, kind, id);
    char work[OBJECT_KEY_MAX];

    if (h->topics.len == h->free_topics.len)
        return; /* no watchers */
    stale_all(h, TOPIC_OTHER);
    switch (kind) {
    case KIND_INSTANCE: instance_stale(h, o); break;
    case KIND_APP: work_stale(h, o, id); break;
    case KIND_JOB:
    case KIND_VM:
        if (o)
            work_stale(h, o, id);
        break;
    case KIND_SPEC: /* WORKLOAD/GENERATION */
        (void)snprintf(work, sizeof work, "%.*s", (int)strcspn(id, "/"), id);
        o = state_find_work(state, work);
        if (o)
            work_stale(h, o, work);
        break;
    case KIND_NODE: node_stale(h, o, id); break;
    case KIND_OPSTEP: /* NODE/OPTASK */
        (void)snprintf(work, sizeof work, "%.*s", (int)strcspn(id, "/"), id);
        mark_topic_stale(h, TOPIC_NODE, work);
        break;
    case KIND_USER:
    case KIND_GROUP:
    case KIND_ROLE: stale_all(h, TOPIC_RBAC); break;
    default: break;
    }
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Updates the services after a change; if they differ, marks every gateway. */
static void gateway_update(struct watch_hub *h)
{
    if (h->gateway && !h->gateway_stale)
        return;
    if (!h->gateway)
        h->gateway = gateway_new();
    if (gateway_refresh(h->gateway, control_state(h->control)))
        stale_all(h, TOPIC_GATEWAY);
    h->gateway_stale = false;
}

static int topic_make(struct watch_hub *h, const struct topic *t, struct str *text)
{
    const struct state *state = control_state(h->control);

    if (t->kind != TOPIC_GATEWAY)
        return t->write(state, t->id, text);
    gateway_update(h);
    return gateway_write(h->gateway, state, t->id, text);
}

/* Returns the present document and its hash; NULL and "gone" if it does not exist. The text may be in `made`. */
static const struct str *topic_text(struct watch_hub *h, const struct topic *t, struct str *made,
                                    char hash[static DERIVED_HASH_MAX])
{
    const struct node_config *kept = t->kind == TOPIC_NODE ? control_node_config(h->control, t->id) : NULL;

    if (kept) {
        memcpy(hash, kept->hash, sizeof kept->hash);
        return &kept->text;
    }
    if (t->kind == TOPIC_NODE || topic_make(h, t, made) < 0) {
        (void)snprintf(hash, DERIVED_HASH_MAX, "gone");
        return NULL;
    }
    (void)derived_hash(made, hash);
    return made;
}

static void line_make(struct str *line, const struct topic *t, const struct str *text, const char *hash)
{
    if (text) {
        str_addf(line, "{\"type\":\"put\",\"hash\":\"%s\",\"object\":", hash);
        str_add_bytes(line, text->at, text->len);
    } else {
        str_add(line, "{\"type\":\"gone\",\"id\":");
        str_add_json(line, t->id);
    }
    str_add_char(line, '}');
}

/* A service has the owner of its app. A reader who may not see the app gets "gone". */
static bool topic_visible(const struct stream *s)
{
    if (s->topic->kind != TOPIC_SERVICE)
        return true;
    struct object_owner who = owner_now(control_state(s->hub->control), KIND_APP, s->topic->id);
    return !who.there || stream_sees(s, KIND_APP, &who);
}

/* Sends the line, which is made for the first stream that needs it. */
static void line_send(struct stream *s, const char *hash, const struct str *text, struct str *line)
{
    if (strcmp(s->known, hash) == 0 || !s->started || !topic_visible(s) || !stream_open(s))
        return;
    if (!line->len)
        line_make(line, s->topic, text, hash);
    (void)snprintf(s->known, sizeof s->known, "%s", hash);
    stream_send(s, hash, line->at, line->len);
}

/* Tells whether the document pauses. A large document that changes often is not sent at every change: the cost of
 * deriving, sending and reading would grow with the square of its size. */
static bool topic_is_paused(const struct watch_hub *h, const struct topic *t)
{
    const struct control_env *env = control_env(h->control);

    return t->dirty && t->rest_ns > env->steady_ns(env->ctx);
}

static void topic_pause(const struct watch_hub *h, struct topic *t, const struct str *text)
{
    const struct control_env *env = control_env(h->control);

    if (text && text->len > REST_BYTES_MIN && text->len < REST_NS_MAX / REST_NS_BYTE)
        t->rest_ns = env->steady_ns(env->ctx) + (int64_t)text->len * REST_NS_BYTE;
    else if (text && text->len > REST_BYTES_MIN)
        t->rest_ns = env->steady_ns(env->ctx) + REST_NS_MAX;
}

void topic_serve(struct stream *s)
{
    CLEANUP(str) struct str made = {0}, line = {0};
    char hash[DERIVED_HASH_MAX];

    if (topic_is_paused(s->hub, s->topic))
        return; /* topics_flush sends the document later */
    const struct str *text = topic_text(s->hub, s->topic, &made, hash);
    line_send(s, hash, text, &line);
}

static void topic_flush(struct watch_hub *h, struct topic *t)
{
    CLEANUP(str) struct str made = {0}, line = {0};
    char hash[DERIVED_HASH_MAX];
    const struct str *text = topic_text(h, t, &made, hash);

    t->dirty = false;
    topic_pause(h, t, text);
    for (struct stream *s = t->streams, *next; s; s = next) {
        next = s->peer_next; /* the topic is freed with its last stream */
        line_send(s, hash, text, &line);
        stream_settle(s);
    }
}

void topics_flush(struct watch_hub *h)
{
    const struct control_env *env = control_env(h->control);
    size_t resting = 0;

    if (h->topics_len[TOPIC_GATEWAY])
        gateway_update(h);
    for (size_t i = 0; i < h->dirty.len; i++) {
        struct topic *t = h->dirty.at[i];
        h->dirty.at[i] = NULL;
        if (t && topic_is_paused(h, t)) {
            env->wake_at(env->ctx, t->rest_ns);
            h->dirty.at[resting++] = t;
        } else if (t) {
            topic_flush(h, t);
        }
    }
    h->dirty.len = resting;
}
