/* cache_dump.c - writes a cache as a list of inputs that rebuild it.
 *
 * Objects come first, then roles of jobs and pods, each bound pod with the number of its instance. After
 * CACHE_OP_SETTLE come the decisions that the API server does not show yet.
 */
#include "kube/cache/cache_internal.h"

#define SECOND_NS INT64_C(1000000000)

enum { NODE_STATUS = 3, STATUS_IMAGES = 8, IMAGE_NAMES = 1, IMAGE_BYTES = 2 };

struct dump_visitor {
    struct cache *p;
    void (*tell)(void *ctx, const struct cache_change *in);
    void *ctx;
};

static void tell(const struct dump_visitor *m, const struct cache_change *in)
{
    m->tell(m->ctx, in);
}

static void object_store_dump(const struct dump_visitor *m, enum cache_kind kind)
{
    const struct object_store *s = &m->p->shelves[kind];
    for (uint32_t i = 0; i < s->at.len; i++) {
        const char *key = s->at.at[i].key;
        if (!key)
            continue;
        struct arena_mark mark = arena_mark(&m->p->arena);
        const char *colon = strchr(key, ':');
        const struct kube_object o = {.namespace = colon ? arena_strndup(&m->p->arena, key, (size_t)(colon - key)) : "",
                                      .name = colon ? colon + 1 : key,
                                      .uid = ""};
        tell(m,
             &(struct cache_change){.op = CACHE_OP_PUT, .kind = kind, .object = &o, .kept = object_store_bytes(s, i)});
        arena_rewind(&m->p->arena, mark);
    }
}

static void node_dump(const struct dump_visitor *m, const struct cache_node *e)
{
    CLEANUP(str) struct str whole = {0};
    const struct kube_object o = {.namespace = "", .name = e->name, .uid = ""};
    str_add_bytes(&whole, e->bytes, e->len);
    size_t status = e->images_len ? proto_begin(&whole, NODE_STATUS) : 0;
    for (size_t i = 0; i < e->images_len; i++) {
        size_t begun = proto_begin(&whole, STATUS_IMAGES);
        proto_add_text(&whole, IMAGE_NAMES, intern_text(&m->p->names, e->images[i].name));
        proto_add_int(&whole, IMAGE_BYTES, (int64_t)e->images[i].size_kib << 10);
        proto_end(&whole, begun);
    }
    if (e->images_len)
        proto_end(&whole, status);
    tell(m,
         &(struct cache_change){
             .op = CACHE_OP_PUT, .kind = CACHE_NODE, .object = &o, .kept = proto_reader(str_text(&whole), whole.len)});
}

static struct proto_reader template_of(const struct cache *p, const struct pod_entry *e)
{
    return proto_reader(p->templates.at[e->template].bytes, p->templates.at[e->template].len);
}

static void role_dump(const struct dump_visitor *m, const struct pod_entry *e)
{
    tell(m, &(struct cache_change){.op = CACHE_OP_ROLE_PUT,
                                   .id = e->id,
                                   .namespace = pod_namespace(m->p, e),
                                   .owner = e->job->owner,
                                   .kept = template_of(m->p, e)});
    for (uint32_t i = 0; i < e->job->ended.len; i++)
        if (e->job->ended.at[i])
            tell(m, &(struct cache_change){
                        .op = CACHE_OP_TASK_SUCCEEDED, .id = e->id, .ordinal = i, .instance = e->job->ended.at[i]});
}

static void pod_dump(const struct dump_visitor *m, const struct pod_entry *e)
{
    bool bound = e->state == POD_BOUND && e->node != NONE;
    const char *node = bound ? m->p->nodes.at[e->node].name : "";
    const struct kube_object o = {.namespace = pod_namespace(m->p, e),
                                  .name = e->name,
                                  .uid = e->uid,
                                  .version = (uint64_t)(e->created_ns % SECOND_NS)};
    tell(m, &(struct cache_change){
                .op = CACHE_OP_PUT,
                .kind = CACHE_POD,
                .object = &o,
                .kept = template_of(m->p, e),
                .created_ns = e->created_ns - e->created_ns % SECOND_NS,
                .deleted_ns = e->deleted_ns,
                .bound_ns = e->bound_ns,
                .owner = e->task ? e->task->owner : "",
                .node = {node, strlen(node)},
                .instance = bound ? e->instance : 0
    });
}

static void volumes_dump(const struct dump_visitor *m, const struct pod_entry *e)
{
    if (e->wait->volumes_len)
        tell(m, &(struct cache_change){.op = CACHE_OP_VOLUMES,
                                       .id = e->id,
                                       .volumes = e->wait->volumes,
                                       .volumes_len = e->wait->volumes_len});
}

/* Emits what is remembered of a pod that is not bound. The pod of an assumed task does not exist before
 * CACHE_OP_TASK_ASSUME. */
static void pod_dump_unbound(const struct dump_visitor *m, const struct pod_entry *e)
{
    const struct pod_wait *w = e->wait;
    bool task = e->task && !*e->uid;
    if (!task && (w->failures || w->begin_ns || w->excluded_nodes.len))
        tell(m, &(struct cache_change){.op = CACHE_OP_BACKOFF,
                                       .id = e->id,
                                       .failures = w->failures,
                                       .moment_ns = w->begin_ns,
                                       .nodes = (const char *const *)w->excluded_nodes.at,
                                       .nodes_len = w->excluded_nodes.len});
    if (!task)
        volumes_dump(m, e);
    if (e->state != POD_ASSUMED && e->state != POD_RESERVED)
        return;
    const char *node = m->p->nodes.at[e->node].name;
    bool reserved = e->state == POD_RESERVED;
    tell(m, &(struct cache_change){
                .op = task ? CACHE_OP_TASK_ASSUME : CACHE_OP_ASSUME,
                .id = task ? e->task->role : e->id,
                .name = e->name,
                .ordinal = task ? e->task->ordinal : 0,
                .attempt = task ? e->task->attempt : 0,
                .node = {node, strlen(node)},
                .instance = e->instance,
                .waits = reserved ? w->waits : NULL,
                .waits_len = reserved ? w->waits_len : 0
    });
    if (task)
        volumes_dump(m, e);
}

static void pods_dump(const struct dump_visitor *m)
{
    const struct cache *p = m->p;
    for (size_t i = 0; i < p->pods.len; i++)
        if (p->pods.at[i].id && p->pods.at[i].job)
            role_dump(m, &p->pods.at[i]);
    for (size_t i = 0; i < p->pods.len; i++) {
        const struct pod_entry *e = &p->pods.at[i];
        if (e->id && !e->job && *e->uid)
            pod_dump(m, e);
    }
}

/* Reports whether the entry is an assumed task, not seen yet, of a job that is gone: no role is left to describe it
 * by. */
static bool is_orphan(const struct cache *p, const struct pod_entry *e)
{
    if (!e->id || !e->task || *e->uid)
        return false;
    uint32_t role = pod_find(p, e->task->role);
    return role == NONE || strcmp(p->pods.at[role].job->owner, e->task->owner) != 0;
}

bool cache_has_orphans(const struct cache *p)
{
    for (size_t i = 0; i < p->pods.len; i++)
        if (is_orphan(p, &p->pods.at[i]))
            return true;
    return false;
}

/* Their pods will be added when the API server reports them. */
static void orphans_forget(struct cache *p)
{
    for (uint32_t i = 0; i < p->pods.len; i++)
        if (is_orphan(p, &p->pods.at[i]))
            pod_forget(p, i);
}

void cache_dump_changes(struct cache *p, void (*to)(void *ctx, const struct cache_change *in), void *ctx)
{
    const struct dump_visitor m = {p, to, ctx};
    orphans_forget(p);
    for (unsigned k = 0; k <= CACHE_POD_GROUP; k++)
        object_store_dump(&m, (enum cache_kind)k);
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.at[i].name && p->nodes.at[i].bytes)
            node_dump(&m, &p->nodes.at[i]);
    pods_dump(&m);
    tell(&m, &(struct cache_change){.op = CACHE_OP_SETTLE});
    for (size_t i = 0; i < p->pods.len; i++)
        if (p->pods.at[i].id && p->pods.at[i].wait)
            pod_dump_unbound(&m, &p->pods.at[i]);
    for (size_t i = 0; i < p->pods.len; i++)
        if (p->pods.at[i].id && p->pods.at[i].instance && p->pods.at[i].stopping)
            tell(&m,
                 &(struct cache_change){.op = CACHE_OP_STOPPING, .instance = p->pods.at[i].instance, .stopping = true});
    size_t places = p->pods.len;
    cache_refill_cluster(p);
    tell(&m, &(struct cache_change){.op = CACHE_OP_IMAGE_END, .instance = p->instances, .places = places});
}
