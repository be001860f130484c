/* cache.c - dispatch of watched objects by kind, and the update of the cluster from them. */
#include "kube/cache/cache.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "kube/cache/cache_parts.h"

const struct project_source project_sources[PROJECT_GROUP + 1] = {
    [PROJECT_NAMESPACE] = {"/api/v1/namespaces",                           "namespaces"              },
    [PROJECT_NODE] = {"/api/v1/nodes",                                "nodes"                   },
    [PROJECT_STORAGE_CLASS] = {"/apis/storage.k8s.io/v1/storageclasses",       "storage classes"         },
    [PROJECT_CSI_NODE] = {"/apis/storage.k8s.io/v1/csinodes",             "CSI nodes"               },
    [PROJECT_CSI_DRIVER] = {"/apis/storage.k8s.io/v1/csidrivers",           "CSI drivers"             },
    [PROJECT_CAPACITY] = {"/apis/storage.k8s.io/v1/csistoragecapacities", "storage capacities"      },
    [PROJECT_VOLUME] = {"/api/v1/persistentvolumes",                    "persistent volumes"      },
    [PROJECT_CLAIM] = {"/api/v1/persistentvolumeclaims",               "persistent volume claims"},
    [PROJECT_BUDGET] = {"/apis/policy/v1/poddisruptionbudgets",         "disruption budgets"      },
    [PROJECT_ATTACHMENT] = {"/apis/storage.k8s.io/v1/volumeattachments",    "volume attachments"      },
    [PROJECT_LIMIT_RANGE] = {"/api/v1/limitranges",                          "limit ranges",             true},
    [PROJECT_RUNTIME_CLASS] = {"/apis/node.k8s.io/v1/runtimeclasses",                                              "runtime classes",                                    true},
    [PROJECT_POD] = {"/api/v1/pods",                                          "pods"                                },
    [PROJECT_GROUP] = {"/apis/scheduling.k8s.io/v1alpha2/podgroups","pod groups"},
};

struct project *project_new(const struct project_config *config)
{
    struct project *p = mem_zalloc(sizeof *p);
    p->config = *config;
    p->cluster = berth_cluster_new();
    arena_init(&p->arena);
    intern_init(&p->names);
    return p;
}

void project_free(struct project *p)
{
    if (!p)
        return;
    pods_done(p);
    nodes_done(p);
    topics_clear(p);
    gangs_done(p);
    templates_done(p);
    volumes_done(p);
    attached_done(p);
    uses_done(p);
    for (size_t i = 0; i <= PROJECT_GROUP; i++)
        shelf_clear(&p->shelves[i]);
    intern_done(&p->names);
    str_done(&p->stripped);
    arena_done(&p->arena);
    berth_cluster_free(p->cluster);
    mem_free(p);
}

/* ---- keys and callbacks ----------------------------------------------------------------------------------------- */

/* Reports whether the text is valid as an id of the model. */
static bool plain(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == '/' || text[i] == 0x7f)
            return false;
    return len <= BERTH_NAME_MAX && str_utf8_valid(text, len);
}

const char *project_key(struct project *p, const char *kind, const char *a, const char *b)
{
    const char *key = b ? arena_fmt(&p->arena, "%s:%s:%s", kind, a, b) : arena_fmt(&p->arena, "%s:%s", kind, a);
    if (plain(key))
        return key;
    return arena_fmt(&p->arena, "%s:#%016llx%016llx", kind, (unsigned long long)hash_bytes(key, strlen(key), 1),
                     (unsigned long long)hash_bytes(key, strlen(key), 2));
}

void project_changed(struct project *p)
{
    if (p->config.changed)
        p->config.changed(p->config.ctx);
}

void project_trouble(struct project *p, const char *fmt, ...)
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
void project_renew(struct project *p)
{
    struct arena_mark mark = arena_mark(&p->arena);
    berth_cluster_free(p->cluster);
    p->cluster = berth_cluster_new();
    p->forgotten = 0;
    if (p->config.tenants)
        tenants_tell(p->config.tenants, p->cluster, true);
    nodes_tell(p);
    budgets_tell(p);
    pods_tell(p);
    arena_rewind(&p->arena, mark);
}

/* Applies changes of queues and groups: quotas and domains first, then the workloads that are charged to them. */
static bool tenants_follow(struct project *p)
{
    if (!p->config.tenants)
        return false;
    struct tenant_news news = tenants_news(p->config.tenants);
    tenants_tell(p->config.tenants, p->cluster, false);
    if (news.domains)
        nodes_tell(p);
    if (news.claims)
        topic_mark(p, TENANTS_TOPIC);
    return news.quotas || news.claims || news.domains;
}

struct berth_cluster *project_cluster(struct project *p)
{
    enum { FORGOTTEN_MIN = 50000 };
    bool settles = tenants_follow(p) || p->marked.len > 0;
    for (size_t i = 0; i < p->marked.len; i++) {
        uint32_t pod = p->marked.at[i];
        struct arena_mark mark = arena_mark(&p->arena);
        p->pods.at[pod].marked = false;
        if (p->pods.at[pod].id)
            pod_project(p, pod);
        else
            vec_push(&p->pods_free, pod);
        arena_rewind(&p->arena, mark);
    }
    p->marked.len = 0;
    settles = (p->config.tenants && tenants_past(p->config.tenants, p->cluster, project_runs, p)) || settles;
    if (p->forgotten > p->pods.len + FORGOTTEN_MIN)
        project_renew(p);
    settles = attached_settle(p) || settles;
    if (settles) /* updates call tenants_claim, which puts tenants in use; replay does so at the same point */
        input_tell(p, &(struct project_input){.op = PROJECT_SETTLE});
    return p->cluster;
}

const struct berth_cluster *project_seen(const struct project *p)
{
    return p->cluster;
}

/* ---- objects that others depend on -------------------------------------------------------------------------------- */

static bool malformed(struct project *p, enum project_kind kind, struct proto_reader r)
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
    case PROJECT_STORAGE_CLASS: return !kube_class_read(&p->arena, r, &x.class);
    case PROJECT_CSI_NODE: return !kube_csi_node_read(&p->arena, r, &x.csi_node);
    case PROJECT_CSI_DRIVER: return !kube_driver_read(&p->arena, r, &x.driver);
    case PROJECT_CAPACITY: return !kube_capacity_read(&p->arena, r, &x.capacity);
    case PROJECT_ATTACHMENT: return !kube_attachment_read(&p->arena, r, &x.attachment);
    case PROJECT_VOLUME: return !kube_volume_read(&p->arena, r, &x.volume);
    case PROJECT_CLAIM: return !kube_claim_read(&p->arena, r, &x.claim);
    case PROJECT_BUDGET: return !kube_budget_read(&p->arena, r, &x.budget);
    case PROJECT_LIMIT_RANGE: return !kube_limit_range_read(&p->arena, r, &x.amounts);
    case PROJECT_RUNTIME_CLASS: return !kube_runtime_class_read(&p->arena, r, &x.amounts);
    case PROJECT_GROUP: return !kube_group_read(&p->arena, r, &x.group);
    default: return !proto_valid(r);
    }
}

static const struct kube_keep *keep_of(enum project_kind kind)
{
    static const struct kube_inside only_meta_inside[] = {
        {1, &kube_keep_meta}
    };
    static const struct kube_keep only_meta = {KUBE_INSIDE(only_meta_inside)};
    switch (kind) {
    case PROJECT_STORAGE_CLASS: return &kube_keep_class;
    case PROJECT_CSI_NODE: return &kube_keep_csi_node;
    case PROJECT_CSI_DRIVER: return &kube_keep_driver;
    case PROJECT_CAPACITY: return &kube_keep_capacity;
    case PROJECT_ATTACHMENT: return &kube_keep_attachment;
    case PROJECT_VOLUME: return &kube_keep_volume;
    case PROJECT_CLAIM: return &kube_keep_claim;
    case PROJECT_BUDGET: return &kube_keep_budget;
    case PROJECT_LIMIT_RANGE: return &kube_keep_limit_range;
    case PROJECT_RUNTIME_CLASS: return &kube_keep_runtime_class;
    case PROJECT_GROUP: return &kube_keep_group;
    default: return &only_meta;
    }
}

static const char *key_of(struct project *p, const struct kube_object *o)
{
    return *o->namespace ? arena_fmt(&p->arena, "%s:%s", o->namespace, o->name) : arena_strdup(&p->arena, o->name);
}

/* Marks the pods that follow the storage class of a volume (which their claims may get) or of a storage capacity (where
 * volumes can be provisioned). */
static void class_mark(struct project *p, enum project_kind kind, const char *key)
{
    const struct shelf *s = &p->shelves[kind];
    struct kube_volume v;
    struct kube_capacity c;
    uint32_t i = shelf_find(s, key);
    if (i == NONE)
        return;
    if (kind == PROJECT_VOLUME && kube_volume_read(&p->arena, shelf_bytes(s, i), &v))
        topic_mark(p, project_key(p, "class", v.class_name, NULL));
    else if (kind == PROJECT_CAPACITY && kube_capacity_read(&p->arena, shelf_bytes(s, i), &c))
        topic_mark(p, project_key(p, "class", c.class_name, NULL));
}

/* Marks whatever depends on the object, as the cache holds it now. */
static void dependents_mark(struct project *p, enum project_kind kind, const struct kube_object *o)
{
    switch (kind) {
    case PROJECT_NAMESPACE: topic_mark(p, "namespaces"); break;
    case PROJECT_STORAGE_CLASS: topic_mark(p, project_key(p, "class", o->name, NULL)); break;
    case PROJECT_CSI_NODE: node_attach_changed(p, o->name); break;
    case PROJECT_CSI_DRIVER: topic_mark(p, project_key(p, "driver", o->name, NULL)); break;
    case PROJECT_CAPACITY: class_mark(p, kind, key_of(p, o)); break;
    case PROJECT_VOLUME:
        topic_mark(p, project_key(p, "volume", o->name, NULL));
        class_mark(p, kind, o->name);
        attached_volume_changed(p, o->name);
        break;
    case PROJECT_ATTACHMENT: attachment_join(p, o->name); break;
    case PROJECT_CLAIM: topic_mark(p, project_key(p, "claim", o->namespace, o->name)); break;
    case PROJECT_BUDGET: budget_changed(p, o->namespace, o->name); break;
    case PROJECT_GROUP: gang_object(p, o->namespace, o->name); break;
    default: break;
    }
}

static void object_put(struct project *p, enum project_kind kind, const struct kube_object *o)
{
    struct shelf *s = &p->shelves[kind];
    str_clear(&p->stripped);
    if (!kube_strip(o->raw, keep_of(kind), &p->stripped) ||
        malformed(p, kind, proto_reader(str_text(&p->stripped), p->stripped.len))) {
        project_trouble(p, "%s %s%s%s is malformed; keeping its previous version", project_sources[kind].name,
                        o->namespace, *o->namespace ? "/" : "", o->name);
        return;
    }
    if (!shelf_differs(s, key_of(p, o), &p->stripped))
        return;
    input_tell(p, &(struct project_input){.op = PROJECT_PUT,
                                          .kind = kind,
                                          .object = o,
                                          .kept = proto_reader(str_text(&p->stripped), p->stripped.len)});
    class_mark(p, kind, key_of(p, o)); /* the class of the previous version */
    if (kind == PROJECT_ATTACHMENT)
        attachment_leave(p, o->name);
    shelf_put(s, key_of(p, o), &p->stripped);
    dependents_mark(p, kind, o);
}

static void object_drop(struct project *p, enum project_kind kind, const struct kube_object *o)
{
    if (shelf_find(&p->shelves[kind], key_of(p, o)) != NONE)
        input_tell(p, &(struct project_input){.op = PROJECT_DROP, .kind = kind, .object = o});
    class_mark(p, kind, key_of(p, o));
    if (kind == PROJECT_ATTACHMENT)
        attachment_leave(p, o->name);
    if (!shelf_drop(&p->shelves[kind], key_of(p, o)))
        return;
    dependents_mark(p, kind, o);
}

/* ---- watch events ----------------------------------------------------------------------------------------------- */

void project_object_put(struct project *p, enum project_kind kind, const struct kube_object *o)
{
    struct arena_mark mark = arena_mark(&p->arena);
    if (kind == PROJECT_POD)
        pod_put(p, o);
    else if (kind == PROJECT_NODE)
        node_put(p, o);
    else
        object_put(p, kind, o);
    arena_rewind(&p->arena, mark);
}

void project_object_drop(struct project *p, enum project_kind kind, const struct kube_object *o)
{
    struct arena_mark mark = arena_mark(&p->arena);
    if (kind == PROJECT_POD)
        pod_drop(p, o);
    else if (kind == PROJECT_NODE)
        node_drop(p, o->name);
    else
        object_drop(p, kind, o);
    arena_rewind(&p->arena, mark);
}

void project_defaults(const struct project *p, const char *namespace, const char *runtime, struct arena *arena,
                      struct kube_amounts *ret_requests, struct kube_amounts *ret_overhead)
{
    const struct shelf *ranges = &p->shelves[PROJECT_LIMIT_RANGE], *classes = &p->shelves[PROJECT_RUNTIME_CLASS];
    size_t len = strlen(namespace);
    uint32_t class = *runtime ? shelf_find(classes, runtime) : NONE;
    for (uint32_t i = 0; i < ranges->at.len; i++) {
        const char *key = ranges->at.at[i].key;
        if (key && strncmp(key, namespace, len) == 0 && key[len] == ':')
            (void)kube_limit_range_read(arena, shelf_bytes(ranges, i), ret_requests);
    }
    if (class != NONE)
        (void)kube_runtime_class_read(arena, shelf_bytes(classes, class), ret_overhead);
}
