/* cache_node.c - nodes, including placeholders for bound pods whose node does not exist.
 *
 * A node that pods are bound to but that does not exist (not yet seen, or deleted before them) is in the cluster
 * without labels and resources and gets no new pods. Its pods count in no topology domain. A cordon is a taint, as in
 * kube-scheduler: pods that tolerate the taint may be placed there.
 */
#include <assert.h>

#include "base/hash.h"
#include "kube/cache/cache_internal.h"
#include "kube/object/gpu.h"

#define TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"

static bool node_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct cache *)ctx)->nodes.at[value].name, key) == 0;
}

static uint64_t name_hash(const char *name)
{
    return hash_bytes(name, strlen(name), 0);
}

uint32_t node_find(const struct cache *p, const char *name)
{
    return map_find(&p->nodes_by_name, name_hash(name), node_same, p, name);
}

static uint32_t node_new(struct cache *p, const char *name)
{
    uint32_t i;
    if (p->nodes_free.len) {
        i = p->nodes_free.at[--p->nodes_free.len];
    } else {
        i = (uint32_t)p->nodes.len;
        vec_push(&p->nodes, (struct cache_node){0});
    }
    p->nodes.at[i] = (struct cache_node){.name = mem_strdup(name)};
    map_add(&p->nodes_by_name, name_hash(name), i);
    return i;
}

/* ---- from node to cluster --------------------------------------------------------------------------------------- */

static const char *label_of(const struct kube_node *node, const char *key)
{
    const char *value = kube_labels_find(&node->meta.labels, key);
    return value ? value : "";
}

/* Adds labels: the node's name, its GPU properties, and copies of labels whose names clash with built-in topologies. */
static void labels_add(struct cache *p, struct kube_node *node)
{
    static const char *const words[] = {"node", "zone", "rack"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *value = kube_labels_find(&node->meta.labels, words[i]);
        if (value)
            kube_push(&p->arena, &node->meta.labels,
                      ((struct berth_label){arena_fmt(&p->arena, "@%s", words[i]), value}));
    }
    kube_push(&p->arena, &node->meta.labels, ((struct berth_label){KUBE_NAME_LABEL, node->meta.name}));
    kube_gpu_labels_add(&p->arena, &node->meta.labels);
}

static void volume_limits_add(struct cache *p, struct kube_node *node)
{
    const struct object_store *shelf = &p->shelves[CACHE_CSI_NODE];
    struct kube_csi_node csi;
    uint32_t at = object_store_find(shelf, node->meta.name);
    node_attachments_rehash(p, node->meta.name);
    if (at == NONE || !kube_csi_node_read(&p->arena, object_store_bytes(shelf, at), &csi))
        return;
    for (size_t i = 0; i < csi.drivers.len; i++) {
        const char *driver = csi.drivers.at[i].driver;
        int64_t alone = csi.drivers.at[i].count > 0 ? node_attachments_unused_count(p, node->meta.name, driver) : 0;
        int64_t left = csi.drivers.at[i].count - alone;
        if (csi.drivers.at[i].count >= 0)
            kube_push(&p->arena, &node->allocatable,
                      ((struct berth_amount){arena_fmt(&p->arena, "attach-%s", driver), left > 0 ? left : 0}));
    }
}

/* Removes resources that the model handles otherwise (attachable-volumes-*). */
static void allocatable_trim(struct kube_node *node)
{
    size_t to = 0;
    for (size_t i = 0; i < node->allocatable.len; i++)
        if (strncmp(node->allocatable.at[i].resource, "attachable-volumes-", 19) != 0)
            node->allocatable.at[to++] = node->allocatable.at[i];
    node->allocatable.len = to;
}

static void taint_add(struct cache *p, struct kube_node *node)
{
    for (size_t i = 0; i < node->taints.len; i++)
        if (strcmp(node->taints.at[i].key, TAINT_UNSCHEDULABLE) == 0 && node->taints.at[i].effect == BERTH_NO_SCHEDULE)
            return;
    if (node->unschedulable)
        kube_push(&p->arena, &node->taints, ((struct berth_taint){TAINT_UNSCHEDULABLE, "", BERTH_NO_SCHEDULE}));
}

static struct berth_node describe(struct cache *p, const struct cache_node *e, struct kube_node *node)
{
    struct berth_image *images = ARENA_ARRAY(&p->arena, struct berth_image, e->images_len);
    for (size_t i = 0; i < e->images_len; i++)
        images[i] =
            (struct berth_image){intern_text(&p->names, e->images[i].name), (int64_t)e->images[i].size_kib << 10};
    const char *zone = label_of(node, "topology.kubernetes.io/zone");
    allocatable_trim(node);
    volume_limits_add(p, node);
    taint_add(p, node);
    const char *arch = label_of(node, "kubernetes.io/arch");
    labels_add(p, node);
    return (struct berth_node){
        .id = e->name,
        .zone = zone,
        .arch = arch,
        .allocatable = node->allocatable.at,
        .allocatable_len = node->allocatable.len,
        .labels = node->meta.labels.at,
        .labels_len = node->meta.labels.len,
        .taints = node->taints.at,
        .taints_len = node->taints.len,
        .images = images,
        .images_len = e->images_len < BERTH_LIST_MAX ? e->images_len : BERTH_LIST_MAX,
    };
}

static void node_put_to_cluster(struct cache *p, uint32_t i)
{
    struct cache_node *e = &p->nodes.at[i];
    struct berth_node node = {.id = e->name, .state = BERTH_NODE_JOINING};
    struct kube_node from;
    struct berth_err err = {0};
    if (e->bytes) {
        bool ok = kube_node_read(&p->arena, proto_reader(e->bytes, e->len), &from);
        assert(ok); /* it was parsed when the node came */
        (void)ok;
        node = describe(p, e, &from);
        if (p->config.tenants)
            node.domain = tenants_domain(p->config.tenants, e->name, &node);
        e->domain = intern_put(&p->names, node.domain ? node.domain : "");
    }
    if (berth_node_put(p->cluster, &node, &err) == 0)
        return;
    cache_trouble(p, "node %s accepts no new pods: %s", e->name, err.text);
    node = (struct berth_node){.id = e->name, .state = BERTH_NODE_JOINING};
    (void)berth_node_put(p->cluster, &node, NULL);
}

/* ---- pod counts ------------------------------------------------------------------------------------------------- */

uint32_t node_enter(struct cache *p, const char *name)
{
    uint32_t i = node_find(p, name);
    if (i == NONE) {
        i = node_new(p, name);
        node_put_to_cluster(p, i);
    }
    p->nodes.at[i].pods++;
    return i;
}

static void node_forget(struct cache *p, uint32_t i)
{
    struct cache_node *e = &p->nodes.at[i];
    if (e->bytes || e->pods)
        return;
    (void)berth_node_remove(p->cluster, e->name, NULL);
    map_drop(&p->nodes_by_name, name_hash(e->name), i);
    mem_free(e->name);
    *e = (struct cache_node){0};
    vec_push(&p->nodes_free, i);
}

void node_leave(struct cache *p, uint32_t node)
{
    assert(p->nodes.at[node].pods > 0);
    p->nodes.at[node].pods--;
    node_forget(p, node);
}

/* ---- watch events ----------------------------------------------------------------------------------------------- */

static void images_store(struct cache *p, struct cache_node *e, const struct kube_node *node)
{
    mem_free(e->images);
    e->images_len = node->images.len;
    e->images = mem_array(node->images.len, sizeof *e->images);
    for (size_t i = 0; i < node->images.len; i++) {
        int64_t kib = node->images.at[i].size_bytes >> 10;
        e->images[i] = (struct node_image){intern_put(&p->names, node->images.at[i].name),
                                           kib < UINT32_MAX ? (uint32_t)kib : UINT32_MAX};
    }
}

void node_put(struct cache *p, const struct kube_object *o)
{
    struct kube_node node;
    str_clear(&p->stripped);
    if (!kube_strip(o->raw, &kube_keep_node, &p->stripped)) {
        cache_trouble(p, "node %s is malformed; keeping its previous version", o->name);
        return;
    }
    uint64_t hash = hash_bytes(str_text(&p->stripped), p->stripped.len, 0);
    uint32_t i = node_find(p, o->name);
    if (i != NONE && p->nodes.at[i].bytes && p->nodes.at[i].hash == hash)
        return;
    if (!kube_node_read(&p->arena, proto_reader(str_text(&p->stripped), p->stripped.len), &node)) {
        cache_trouble(p, "node %s is malformed; keeping its previous version", o->name);
        return;
    }
    input_record(p, &(struct cache_change){.op = CACHE_OP_PUT,
                                           .kind = CACHE_NODE,
                                           .object = o,
                                           .kept = proto_reader(str_text(&p->stripped), p->stripped.len)});
    if (i == NONE)
        i = node_new(p, o->name);
    struct cache_node *e = &p->nodes.at[i];
    images_store(p, e, &node);
    str_clear(&p->stripped);
    (void)kube_strip(o->raw, &kube_keep_node_bare, &p->stripped);
    p->nodes_there += e->bytes == NULL;
    mem_free(e->bytes);
    e->bytes = mem_alloc(p->stripped.len + 1);
    e->len = p->stripped.len;
    memcpy(e->bytes, str_text(&p->stripped), e->len);
    e->hash = hash;
    e->unschedulable = node.unschedulable;
    node_put_to_cluster(p, i);
    cache_notify(p);
}

void node_drop(struct cache *p, const char *name)
{
    uint32_t i = node_find(p, name);
    if (i == NONE || !p->nodes.at[i].bytes)
        return;
    const struct kube_object removed = {.namespace = "", .name = name, .uid = ""};
    input_record(p, &(struct cache_change){.op = CACHE_OP_DROP, .kind = CACHE_NODE, .object = &removed});
    struct cache_node *e = &p->nodes.at[i];
    mem_free(e->bytes);
    mem_free(e->images);
    e->bytes = NULL;
    e->images = NULL;
    e->images_len = 0;
    e->unschedulable = false;
    p->nodes_there--;
    if (e->pods)
        node_put_to_cluster(p, i);
    node_forget(p, i);
    cache_notify(p);
}

bool node_refresh(struct cache *p, const char *name)
{
    uint32_t i = node_find(p, name);
    if (i == NONE || !p->nodes.at[i].bytes)
        return false;
    node_put_to_cluster(p, i);
    return true;
}

void node_attach_changed(struct cache *p, const char *name)
{
    if (node_refresh(p, name))
        cache_notify(p);
}

void nodes_refill(struct cache *p)
{
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        struct arena_mark mark = arena_mark(&p->arena);
        if (p->nodes.at[i].name)
            node_put_to_cluster(p, i);
        arena_rewind(&p->arena, mark);
    }
}

size_t cache_domain_nodes(const struct cache *p, const char *domain)
{
    sym name = intern_find(&p->names, domain);
    size_t found = 0;
    for (size_t i = 0; i < p->nodes.len; i++)
        found += p->nodes.at[i].bytes && p->nodes.at[i].domain == name;
    return found;
}

void nodes_done(struct cache *p)
{
    for (size_t i = 0; i < p->nodes.len; i++) {
        mem_free(p->nodes.at[i].name);
        mem_free(p->nodes.at[i].bytes);
        mem_free(p->nodes.at[i].images);
    }
    vec_done(&p->nodes);
    vec_done(&p->nodes_free);
    map_done(&p->nodes_by_name);
}
