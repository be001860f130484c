/* cache.c - dispatch of watched objects by kind, and the update of the cluster from them. */
#include "kube/cache/cache.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "kube/cache/cache_internal.h"

const struct cache_source cache_sources[CACHE_POD_GROUP + 1] = {
    [CACHE_NAMESPACE] = {"/api/v1/namespaces",                           "namespaces"              },
    [CACHE_NODE] = {"/api/v1/nodes",                                "nodes"                   },
    [CACHE_STORAGE_CLASS] = {"/apis/storage.k8s.io/v1/storageclasses",       "storage classes"         },
    [CACHE_CSI_NODE] = {"/apis/storage.k8s.io/v1/csinodes",             "CSI nodes"               },
    [CACHE_CSI_DRIVER] = {"/apis/storage.k8s.io/v1/csidrivers",           "CSI drivers"             },
    [CACHE_STORAGE_CAPACITY] = {"/apis/storage.k8s.io/v1/csistoragecapacities", "storage capacities"      },
    [CACHE_VOLUME] = {"/api/v1/persistentvolumes",                    "persistent volumes"      },
    [CACHE_CLAIM] = {"/api/v1/persistentvolumeclaims",               "persistent volume claims"},
    [CACHE_BUDGET] = {"/apis/policy/v1/poddisruptionbudgets",         "disruption budgets"      },
    [CACHE_ATTACHMENT] = {"/apis/storage.k8s.io/v1/volumeattachments",    "volume attachments"      },
    [CACHE_LIMIT_RANGE] = {"/api/v1/limitranges",                          "limit ranges",             true},
    [CACHE_RUNTIME_CLASS] = {"/apis/node.k8s.io/v1/runtimeclasses",                                              "runtime classes",                                    true},
    [CACHE_POD] = {"/api/v1/pods",                                          "pods"                                },
    [CACHE_POD_GROUP] = {"/apis/scheduling.k8s.io/v1alpha2/podgroups","pod groups"},
};

struct cache *cache_new(const struct cache_config *config)
{
    struct cache *p = mem_zalloc(sizeof *p);
    p->config = *config;
    p->cluster = berth_cluster_new();
    arena_init(&p->arena);
    intern_init(&p->names);
    return p;
}

void cache_free(struct cache *p)
{
    if (!p)
        return;
    pods_done(p);
    nodes_done(p);
    topics_clear(p);
    gangs_done(p);
    templates_done(p);
    volumes_done(p);
    node_attachments_done(p);
    usage_done(p);
    for (size_t i = 0; i <= CACHE_POD_GROUP; i++)
        object_store_clear(&p->shelves[i]);
    intern_done(&p->names);
    str_done(&p->stripped);
    arena_done(&p->arena);
    berth_cluster_free(p->cluster);
    mem_free(p);
}

/* ---- keys and callbacks ----------------------------------------------------------------------------------------- */

/* Reports whether the text is valid as an id of the model. */
static bool is_valid_id(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == '/' || text[i] == 0x7f)
            return false;
    return len <= BERTH_NAME_MAX && str_utf8_valid(text, len);
}

const char *cache_key(struct cache *p, const char *kind, const char *a, const char *b)
{
    const char *key = b ? arena_fmt(&p->arena, "%s:%s:%s", kind, a, b) : arena_fmt(&p->arena, "%s:%s", kind, a);
    if (is_valid_id(key))
        return key;
    return arena_fmt(&p->arena, "%s:#%016llx%016llx", kind, (unsigned long long)hash_bytes(key, strlen(key), 1),
                     (unsigned long long)hash_bytes(key, strlen(key), 2));
}

void cache_notify(struct cache *p)
{
    if (p->config.changed)
        p->config.changed(p->config.ctx);
}

void cache_trouble(struct cache *p, const char *fmt, ...)
{
    char text[BERTH_ERR_TEXT_MAX];
    va_list args;
    if (!p->config.trouble)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    p->config.trouble(p->config.ctx, text);
}

/* A cluster keeps every name and pod class it was ever given. After many pods have gone, a new cluster is filled with
 * what remains. */
void cache_refill_cluster(struct cache *p)
{
    struct arena_mark mark = arena_mark(&p->arena);
    berth_cluster_free(p->cluster);
    p->cluster = berth_cluster_new();
    p->forgotten = 0;
    if (p->config.tenants)
        tenants_put_quotas(p->config.tenants, p->cluster, true);
    nodes_refill(p);
    budgets_refill(p);
    pods_refill(p);
    arena_rewind(&p->arena, mark);
}

/* Applies changes of queues and groups: quotas and domains first, then the workloads that are charged to them. */
static bool tenants_apply_changes(struct cache *p)
{
    if (!p->config.tenants)
        return false;
    struct tenant_changes news = tenants_take_changes(p->config.tenants);
    tenants_put_quotas(p->config.tenants, p->cluster, false);
    if (news.domains)
        nodes_refill(p);
    if (news.claims)
        topic_mark(p, TENANTS_TOPIC);
    return news.quotas || news.claims || news.domains;
}

struct berth_cluster *cache_cluster(struct cache *p)
{
    enum { FORGOTTEN_MIN = 50000 };
    bool settles = tenants_apply_changes(p) || p->marked.len > 0;
    for (size_t i = 0; i < p->marked.len; i++) {
        uint32_t pod = p->marked.at[i];
        struct arena_mark mark = arena_mark(&p->arena);
        p->pods.at[pod].marked = false;
        if (p->pods.at[pod].id)
            pod_refresh(p, pod);
        else
            vec_push(&p->pods_free, pod);
        arena_rewind(&p->arena, mark);
    }
    p->marked.len = 0;
    settles =
        (p->config.tenants && tenants_apply_usage(p->config.tenants, p->cluster, cache_running_pods, p)) || settles;
    if (p->forgotten > p->pods.len + FORGOTTEN_MIN)
        cache_refill_cluster(p);
    settles = node_attachments_update(p) || settles;
    if (settles) /* updates call tenants_claim, which puts tenants in use; replay does so at the same point */
        input_record(p, &(struct cache_change){.op = CACHE_OP_SETTLE});
    return p->cluster;
}

const struct berth_cluster *cache_last_cluster(const struct cache *p)
{
    return p->cluster;
}

/* ---- objects that others depend on ------------------------------------------------------------------------------ */

static bool malformed(struct cache *p, enum cache_kind kind, struct proto_reader r)
{
    union {
        struct kube_volume volume;
        struct kube_claim claim;
        struct kube_class class;
        struct kube_csi_node csi_node;
        struct kube_driver driver;
        struct kube_capacity capacity;
        struct kube_attachment attachment;
        struct kube_budget budget;
        struct kube_group group;
        struct kube_amounts amounts;
    } x = {0};
    switch (kind) {
    case CACHE_STORAGE_CLASS: return !kube_class_read(&p->arena, r, &x.class);
    case CACHE_CSI_NODE: return !kube_csi_node_read(&p->arena, r, &x.csi_node);
    case CACHE_CSI_DRIVER: return !kube_driver_read(&p->arena, r, &x.driver);
    case CACHE_STORAGE_CAPACITY: return !kube_capacity_read(&p->arena, r, &x.capacity);
    case CACHE_ATTACHMENT: return !kube_attachment_read(&p->arena, r, &x.attachment);
    case CACHE_VOLUME: return !kube_volume_read(&p->arena, r, &x.volume);
    case CACHE_CLAIM: return !kube_claim_read(&p->arena, r, &x.claim);
    case CACHE_BUDGET: return !kube_budget_read(&p->arena, r, &x.budget);
    case CACHE_LIMIT_RANGE: return !kube_limit_range_read(&p->arena, r, &x.amounts);
    case CACHE_RUNTIME_CLASS: return !kube_runtime_class_read(&p->arena, r, &x.amounts);
    case CACHE_POD_GROUP: return !kube_group_read(&p->arena, r, &x.group);
    default: return !proto_valid(r);
    }
}

static const struct kube_field_filter *field_filter_of(enum cache_kind kind)
{
    static const struct kube_nested_filter only_meta_inside[] = {
        {1, &kube_keep_meta}
    };
    static const struct kube_field_filter only_meta = {KUBE_INSIDE(only_meta_inside)};
    switch (kind) {
    case CACHE_STORAGE_CLASS: return &kube_keep_class;
    case CACHE_CSI_NODE: return &kube_keep_csi_node;
    case CACHE_CSI_DRIVER: return &kube_keep_driver;
    case CACHE_STORAGE_CAPACITY: return &kube_keep_capacity;
    case CACHE_ATTACHMENT: return &kube_keep_attachment;
    case CACHE_VOLUME: return &kube_keep_volume;
    case CACHE_CLAIM: return &kube_keep_claim;
    case CACHE_BUDGET: return &kube_keep_budget;
    case CACHE_LIMIT_RANGE: return &kube_keep_limit_range;
    case CACHE_RUNTIME_CLASS: return &kube_keep_runtime_class;
    case CACHE_POD_GROUP: return &kube_keep_group;
    default: return &only_meta;
    }
}

static const char *key_of(struct cache *p, const struct kube_object *o)
{
    return *o->namespace ? arena_fmt(&p->arena, "%s:%s", o->namespace, o->name) : arena_strdup(&p->arena, o->name);
}

/* Marks the pods that follow the storage class of a volume (which their claims may get) or of a storage capacity (where
 * volumes can be provisioned). */
static void class_mark(struct cache *p, enum cache_kind kind, const char *key)
{
    const struct object_store *s = &p->shelves[kind];
    struct kube_volume v;
    struct kube_capacity c;
    uint32_t i = object_store_find(s, key);
    if (i == NONE)
        return;
    if (kind == CACHE_VOLUME && kube_volume_read(&p->arena, object_store_bytes(s, i), &v))
        topic_mark(p, cache_key(p, "class", v.class_name, NULL));
    else if (kind == CACHE_STORAGE_CAPACITY && kube_capacity_read(&p->arena, object_store_bytes(s, i), &c))
        topic_mark(p, cache_key(p, "class", c.class_name, NULL));
}

/* Marks whatever depends on the object, as the cache holds it now. */
static void dependents_mark(struct cache *p, enum cache_kind kind, const struct kube_object *o)
{
    switch (kind) {
    case CACHE_NAMESPACE: topic_mark(p, "namespaces"); break;
    case CACHE_STORAGE_CLASS: topic_mark(p, cache_key(p, "class", o->name, NULL)); break;
    case CACHE_CSI_NODE: node_attach_changed(p, o->name); break;
    case CACHE_CSI_DRIVER: topic_mark(p, cache_key(p, "driver", o->name, NULL)); break;
    case CACHE_STORAGE_CAPACITY: class_mark(p, kind, key_of(p, o)); break;
    case CACHE_VOLUME:
        topic_mark(p, cache_key(p, "volume", o->name, NULL));
        class_mark(p, kind, o->name);
        node_attachments_volume_changed(p, o->name);
        break;
    case CACHE_ATTACHMENT: attachment_join(p, o->name); break;
    case CACHE_CLAIM: topic_mark(p, cache_key(p, "claim", o->namespace, o->name)); break;
    case CACHE_BUDGET: budget_changed(p, o->namespace, o->name); break;
    case CACHE_POD_GROUP: gang_object(p, o->namespace, o->name); break;
    default: break;
    }
}

static void object_put(struct cache *p, enum cache_kind kind, const struct kube_object *o)
{
    struct object_store *s = &p->shelves[kind];
    str_clear(&p->stripped);
    if (!kube_strip(o->raw, field_filter_of(kind), &p->stripped) ||
        malformed(p, kind, proto_reader(str_text(&p->stripped), p->stripped.len))) {
        cache_trouble(p, "%s %s%s%s is malformed; keeping its previous version", cache_sources[kind].name, o->namespace,
                      *o->namespace ? "/" : "", o->name);
        return;
    }
    if (!object_store_differs(s, key_of(p, o), &p->stripped))
        return;
    input_record(p, &(struct cache_change){.op = CACHE_OP_PUT,
                                           .kind = kind,
                                           .object = o,
                                           .kept = proto_reader(str_text(&p->stripped), p->stripped.len)});
    class_mark(p, kind, key_of(p, o)); /* the class of the previous version */
    if (kind == CACHE_ATTACHMENT)
        attachment_leave(p, o->name);
    object_store_put(s, key_of(p, o), &p->stripped);
    dependents_mark(p, kind, o);
}

static void object_drop(struct cache *p, enum cache_kind kind, const struct kube_object *o)
{
    if (object_store_find(&p->shelves[kind], key_of(p, o)) != NONE)
        input_record(p, &(struct cache_change){.op = CACHE_OP_DROP, .kind = kind, .object = o});
    class_mark(p, kind, key_of(p, o));
    if (kind == CACHE_ATTACHMENT)
        attachment_leave(p, o->name);
    if (!object_store_remove(&p->shelves[kind], key_of(p, o)))
        return;
    dependents_mark(p, kind, o);
}

/* ---- watch events ----------------------------------------------------------------------------------------------- */

void cache_object_put(struct cache *p, enum cache_kind kind, const struct kube_object *o)
{
    struct arena_mark mark = arena_mark(&p->arena);
    if (kind == CACHE_POD)
        pod_put(p, o);
    else if (kind == CACHE_NODE)
        node_put(p, o);
    else
        object_put(p, kind, o);
    arena_rewind(&p->arena, mark);
}

void cache_object_drop(struct cache *p, enum cache_kind kind, const struct kube_object *o)
{
    struct arena_mark mark = arena_mark(&p->arena);
    if (kind == CACHE_POD)
        pod_drop(p, o);
    else if (kind == CACHE_NODE)
        node_drop(p, o->name);
    else
        object_drop(p, kind, o);
    arena_rewind(&p->arena, mark);
}

void cache_defaults(const struct cache *p, const char *namespace, const char *runtime, struct arena *arena,
                    struct kube_amounts *ret_requests, struct kube_amounts *ret_overhead)
{
    const struct object_store *ranges = &p->shelves[CACHE_LIMIT_RANGE], *classes = &p->shelves[CACHE_RUNTIME_CLASS];
    size_t len = strlen(namespace);
    uint32_t class = *runtime ? object_store_find(classes, runtime) : NONE;
    for (uint32_t i = 0; i < ranges->at.len; i++) {
        const char *key = ranges->at.at[i].key;
        if (key && strncmp(key, namespace, len) == 0 && key[len] == ':')
            (void)kube_limit_range_read(arena, object_store_bytes(ranges, i), ret_requests);
    }
    if (class != NONE)
        (void)kube_runtime_class_read(arena, object_store_bytes(classes, class), ret_overhead);
}
