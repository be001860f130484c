/* cache_volume.c - the node requirements of a pod's claims.
 *
 * A bound claim restricts the pod to nodes that can reach its volume. A WaitForFirstConsumer claim allows every node
 * that can reach one of the volumes it may get, or where one can be provisioned; the volume is chosen when the pod has
 * a node (cache_bind_volume.c). Any other unbound claim keeps the pod waiting.
 */
#include "kube/cache/cache_internal.h"

struct volume_claims {
    struct cache *p;
    uint32_t pod;
    const struct kube_pod *from;
    bool settled;
    struct volumes_shape *to;
    bool full; /* no node has storage left for one of the claims */
};

bool claim_find(struct cache *p, const char *namespace, const char *name, struct kube_claim *ret)
{
    const struct object_store *s = &p->shelves[CACHE_CLAIM];
    uint32_t i = object_store_find(s, arena_fmt(&p->arena, "%s:%s", namespace, name));
    return i != NONE && kube_claim_read(&p->arena, object_store_bytes(s, i), ret);
}

bool volume_find(struct cache *p, const char *name, struct kube_volume *ret)
{
    const struct object_store *s = &p->shelves[CACHE_VOLUME];
    uint32_t i = object_store_find(s, name);
    return i != NONE && kube_volume_read(&p->arena, object_store_bytes(s, i), ret);
}

bool class_find(struct cache *p, const char *name, struct kube_class *ret)
{
    const struct object_store *s = &p->shelves[CACHE_STORAGE_CLASS];
    uint32_t i = *name ? object_store_find(s, name) : NONE;
    return i != NONE && kube_class_read(&p->arena, object_store_bytes(s, i), ret);
}

static bool of_job(const struct cache *p, uint32_t pod)
{
    return p->pods.at[pod].job || p->pods.at[pod].task;
}

/* ---- volumes in the cluster ------------------------------------------------------------------------------------- */

/* Adds a volume to the shape. The driver limits how many volumes a node has; `alone`: the volume may be on one node
 * only. */
static void id_add(struct volume_claims *c, const char *id, const char *driver, bool alone)
{
    struct berth_volume volume = {.id = id, .driver = driver, .shared = !alone};
    struct berth_err err = {0};
    for (size_t i = 0; i < c->to->ids.len; i++)
        if (strcmp(c->to->ids.at[i], id) == 0)
            return;
    if (berth_volume_put(c->p->cluster, &volume, &err) == 0)
        kube_push(&c->p->arena, &c->to->ids, id);
    else
        cache_trouble(c->p, "pod %s/%s: %s", c->from->meta.namespace, c->from->meta.name, err.text);
}

/* Tasks of a job that share a ReadWriteOnce claim are kept on one node if the driver attaches volumes: on other nodes
 * they would wait forever. */
static void rwo_claim_add(struct volume_claims *c, const struct kube_claim *claim, const char *name)
{
    struct kube_driver driver;
    if (!of_job(c->p, c->pod) || claim->modes != KUBE_RWO || !*name)
        return;
    topic_follow(c->p, c->pod, cache_key(c->p, "driver", name, NULL));
    if (driver_find(c->p, name, &driver) && driver.attaches)
        id_add(c, cache_key(c->p, "once", claim->meta.namespace, claim->meta.name), "", true);
}

static void claim_volume_add(struct volume_claims *c, const struct kube_claim *claim, const struct kube_volume *volume,
                             const struct kube_class *class)
{
    struct cache *p = c->p;
    bool alone = claim->modes & KUBE_RWOP;
    if (volume || class)
        rwo_claim_add(c, claim, volume ? volume->driver : kube_provisioner_driver(class->provisioner));
    if (alone)
        kube_push(&p->arena, &c->to->alone, claim->meta.name);
    if (volume && *volume->driver)
        id_add(c, cache_key(p, "volume", volume->driver, volume->handle), volume->driver, alone);
    else if (!volume && class && kube_class_provisions(class))
        id_add(c, cache_key(p, "claim", claim->meta.namespace, claim->meta.name),
               kube_provisioner_driver(class->provisioner), alone);
    else if (alone)
        id_add(c, cache_key(p, "claim", claim->meta.namespace, claim->meta.name), "", true);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

#define TOO_MANY "its volumes have too many different node affinity terms; use fewer terms"

static void require_both(struct volume_claims *c, const struct kube_terms *terms)
{
    struct kube_terms both;
    if (kube_terms_both(&c->p->arena, &c->to->require, terms, &both))
        c->to->require = both;
    else
        c->to->why = TOO_MANY;
}

static void bound_claim_add(struct volume_claims *c, const struct kube_claim *claim)
{
    struct kube_volume volume;
    topic_follow(c->p, c->pod, cache_key(c->p, "volume", claim->volume, NULL));
    if (!volume_find(c->p, claim->volume, &volume)) {
        c->to->why = "pod has a PersistentVolumeClaim that is bound to a PersistentVolume that does not exist";
        claim_volume_add(c, claim, NULL, NULL);
        return;
    }
    claim_volume_add(c, claim, &volume, NULL);
    if (c->settled)
        return;
    struct kube_terms zones = kube_volume_zones(&c->p->arena, &volume);
    require_both(c, &volume.affinity);
    require_both(c, &zones);
}

/* Adds every node where the class can provision a volume for the claim. False: all nodes. */
static bool provisionable_nodes(struct volume_claims *c, const struct kube_claim *claim, const struct kube_class *class,
                                struct kube_terms *to)
{
    struct kube_terms left = {0}, where = class->topologies;
    if (!kube_class_provisions(class))
        return true;
    topic_follow(c->p, c->pod, cache_key(c->p, "driver", class->provisioner, NULL));
    bool limited = capacity_where(c->p, claim, class, &left);
    if (limited && left.len == 0) {
        c->full = true;
        return true;
    }
    if (limited && !kube_terms_both(&c->p->arena, &class->topologies, &left, &where))
        c->to->why = TOO_MANY;
    for (size_t t = 0; t < where.len; t++)
        kube_push(&c->p->arena, to, where.at[t]);
    return where.len > 0;
}

/* Adds every node that could have the claim's volume. False: all nodes. */
static bool candidate_nodes(struct volume_claims *c, const struct kube_claim *claim, const struct kube_class *class,
                            struct kube_terms *to)
{
    const struct object_store *s = &c->p->shelves[CACHE_VOLUME];
    struct kube_volume v;
    for (uint32_t i = 0; i < s->at.len; i++) {
        if (!s->at.at[i].key || !kube_volume_read(&c->p->arena, object_store_bytes(s, i), &v))
            continue;
        if (!kube_volume_suits(&v, claim) || is_volume_reserved(c->p, v.meta.name, c->pod))
            continue;
        if (v.affinity.len == 0)
            return false;
        for (size_t t = 0; t < v.affinity.len; t++)
            kube_push(&c->p->arena, to, v.affinity.at[t]);
    }
    return provisionable_nodes(c, claim, class, to);
}

/* Handles a WaitForFirstConsumer claim. Tasks of jobs are placed together with the pod that has the volume provisioned;
 * afterwards the volume shows which nodes reach it. */
static void unbound_claim_add(struct volume_claims *c, const struct kube_claim *claim, const struct kube_class *class)
{
    struct kube_terms any = {0};
    claim_volume_add(c, claim, NULL, class);
    if (c->settled)
        return;
    const char *selected =
        *claim->selected || of_job(c->p, c->pod) ? claim->selected : claim_provisioned_on(c->p, c->pod, claim);
    if (*selected) { /* being provisioned for a node chosen before */
        const char **name = arena_alloc(&c->p->arena, sizeof *name);
        struct berth_expr *e = ARENA_NEW(&c->p->arena, struct berth_expr);
        name[0] = selected;
        *e = (struct berth_expr){KUBE_NAME_LABEL, BERTH_IN, name, 1};
        kube_push(&c->p->arena, &any, ((struct berth_term){e, 1, 0}));
        require_both(c, &any);
        return;
    }
    if (!candidate_nodes(c, claim, class, &any))
        return;
    kube_terms_merge(&c->p->arena, &any);
    if (any.len == 0)
        c->to->why = c->full ? "node(s) did not have enough free storage"
                             : "node(s) didn't find available persistent volumes to bind";
    else
        require_both(c, &any);
}

/* Handles an ephemeral claim, created with its pod. A job's pod is created with its node set, so the volume must be
 * provisioned on that node. */
static void ephemeral_claim_add(struct volume_claims *c, const struct kube_mount *mount, const char *name)
{
    struct cache *p = c->p;
    struct kube_claim claim = *mount->made;
    struct kube_class class;
    struct kube_terms any = {0};
    claim.meta.namespace = c->from->meta.namespace;
    claim.meta.name = name;
    if (*claim.class_name)
        topic_follow(p, c->pod, cache_key(p, "class", claim.class_name, NULL));
    if (!class_find(p, claim.class_name, &class) || !class.waits || !kube_class_provisions(&class)) {
        c->to->why =
            arena_fmt(&p->arena,
                      "volume %s is created for each pod of the job: its claim must name a storage class with a "
                      "provisioner and volumeBindingMode WaitForFirstConsumer",
                      mount->volume);
        return;
    }
    /* Each pod has its own volume, so the access mode keeps pods neither together nor apart. */
    id_add(c, cache_key(p, "claim", claim.meta.namespace, name), kube_provisioner_driver(class.provisioner), false);
    if (c->settled || !provisionable_nodes(c, &claim, &class, &any))
        return;
    if (any.len == 0)
        c->to->why = "node(s) did not have enough free storage";
    else
        require_both(c, &any);
}

const char *mount_claim(struct cache *p, const struct kube_pod *from, const struct kube_mount *mount)
{
    return *mount->claim ? mount->claim : arena_fmt(&p->arena, "%s-%s", from->meta.name, mount->volume);
}

static void claim_add(struct volume_claims *c, const struct kube_mount *mount)
{
    struct cache *p = c->p;
    struct kube_claim claim;
    struct kube_class class;
    const bool ephemeral = !*mount->claim;
    const char *name = mount_claim(p, c->from, mount);
    topic_follow(p, c->pod, cache_key(p, "claim", c->from->meta.namespace, name));
    if (ephemeral && of_job(p, c->pod) && !claim_find(p, c->from->meta.namespace, name, &claim)) {
        ephemeral_claim_add(c, mount, name);
        return;
    }
    if (!claim_find(p, c->from->meta.namespace, name, &claim)) {
        c->to->why =
            ephemeral
                ? arena_fmt(&p->arena,
                            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"%s\"", name)
                : arena_fmt(&p->arena, "persistentvolumeclaim \"%s\" not found", name);
        return;
    }
    if (ephemeral && strcmp(claim.meta.controller, c->from->meta.uid) != 0) {
        c->to->why = arena_fmt(&p->arena, "PVC %s/%s was not created for pod %s/%s (pod is not owner)",
                               claim.meta.namespace, claim.meta.name, c->from->meta.namespace, c->from->meta.name);
        return;
    }
    if (claim.meta.deleted_ns)
        c->to->why = arena_fmt(&p->arena, "persistentvolumeclaim \"%s\" is being deleted", name);
    if (claim.bound) {
        bound_claim_add(c, &claim);
        return;
    }
    bool known = class_find(p, claim.class_name, &class);
    if (*claim.class_name)
        topic_follow(p, c->pod, cache_key(p, "class", claim.class_name, NULL));
    if (known && class.waits && !*claim.volume) {
        unbound_claim_add(c, &claim, &class);
        return;
    }
    claim_volume_add(c, &claim, NULL, NULL);
    c->to->why = "pod has unbound immediate PersistentVolumeClaims";
}

void shape_volumes(struct cache *p, uint32_t pod, const struct kube_pod *from, bool settled, struct volumes_shape *ret)
{
    struct volume_claims c = {p, pod, from, settled, ret, false};
    for (size_t i = 0; i < from->mounts.len; i++)
        claim_add(&c, &from->mounts.at[i]);
    for (size_t i = 0; i < from->attached.len; i++) {
        const struct kube_attached *a = &from->attached.at[i];
        id_add(&c, cache_key(p, "volume", a->driver, a->handle), a->driver, false);
    }
    p->pods.at[pod].holds = ret->ids.len > 0;
    const struct pod_wait *wait = p->pods.at[pod].wait;
    if (!settled && wait && wait->excluded_nodes.len) {
        struct kube_terms elsewhere = {0};
        struct berth_expr *e = ARENA_NEW(&p->arena, struct berth_expr);
        *e = (struct berth_expr){KUBE_NAME_LABEL, BERTH_NOT_IN, (const char *const *)wait->excluded_nodes.at,
                                 wait->excluded_nodes.len};
        kube_push(&p->arena, &elsewhere, ((struct berth_term){e, 1, 0}));
        require_both(&c, &elsewhere);
    }
}
