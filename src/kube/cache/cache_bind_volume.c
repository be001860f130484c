/* cache_bind_volume.c - which volume a claim gets, once its pod has a node.
 *
 * A chosen volume is taken until its pod is bound or given back. Assumed and reserved pods that share a claim share the
 * chosen volume: one of them, the owner, has it provisioned or bound, the others have joined. When the owner goes, one
 * of the joined pods becomes the owner.
 */
#include "base/hash.h"
#include "kube/cache/cache_internal.h"

static bool volume_reservation_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct cache *)ctx)->taken.at[value].volume, key) == 0;
}

static uint32_t volume_reservation_find(const struct cache *p, const char *volume)
{
    return map_find(&p->taken_by_volume, hash_bytes(volume, strlen(volume), 0), volume_reservation_same, p, volume);
}

bool is_volume_reserved(const struct cache *p, const char *volume, uint32_t but)
{
    uint32_t t = volume_reservation_find(p, volume);
    return t != NONE && p->taken.at[t].pod != but;
}

static void volume_take(struct cache *p, uint32_t pod, const char *volume)
{
    uint32_t i;
    if (volume_reservation_find(p, volume) != NONE)
        return; /* taken by another pod with the same claim */
    if (p->taken_free.len) {
        i = p->taken_free.at[--p->taken_free.len];
    } else {
        i = (uint32_t)p->taken.len;
        vec_push(&p->taken, (struct volume_reservation){0});
    }
    p->taken.at[i] = (struct volume_reservation){mem_strdup(volume), pod};
    map_add(&p->taken_by_volume, hash_bytes(volume, strlen(volume), 0), i);
}

static void volume_release(struct cache *p, uint32_t pod, const char *volume)
{
    uint32_t i = volume_reservation_find(p, volume);
    if (i == NONE || p->taken.at[i].pod != pod)
        return;
    map_drop(&p->taken_by_volume, hash_bytes(volume, strlen(volume), 0), i);
    mem_free(p->taken.at[i].volume);
    p->taken.at[i] = (struct volume_reservation){0};
    vec_push(&p->taken_free, i);
}

/* Returns the volume reserved for the claim (claimRef), else the smallest one that suits it; ties go to the first name.
 * NULL: none. */
static const char *choose_one(struct cache *p, const struct kube_claim *claim, const struct kube_labels *node)
{
    const struct object_store *s = &p->shelves[CACHE_VOLUME];
    struct kube_volume v, best = {0};
    bool found = false;
    for (uint32_t i = 0; i < s->at.len; i++) {
        if (!s->at.at[i].key || !kube_volume_read(&p->arena, object_store_bytes(s, i), &v) ||
            !kube_volume_suits(&v, claim))
            continue;
        if (volume_reservation_find(p, v.meta.name) != NONE)
            continue;
        if (!kube_terms_match(&v.affinity, node))
            continue;
        if (kube_volume_is_for(&v, claim))
            return v.meta.name;
        if (!found || v.size_bytes < best.size_bytes ||
            (v.size_bytes == best.size_bytes && strcmp(v.meta.name, best.meta.name) < 0)) {
            best = v;
            found = true;
        }
    }
    return found ? best.meta.name : NULL;
}

static bool node_labels(struct cache *p, const char *name, struct kube_labels *ret)
{
    uint32_t i = node_find(p, name);
    struct kube_node node;
    if (i == NONE || !p->nodes.at[i].bytes ||
        !kube_node_read(&p->arena, proto_reader(p->nodes.at[i].bytes, p->nodes.at[i].len), &node))
        return false;
    kube_push(&p->arena, &node.meta.labels, ((struct berth_label){KUBE_NAME_LABEL, node.meta.name}));
    *ret = node.meta.labels;
    return true;
}

static void chosen_add(struct cache *p, uint32_t pod, const struct kube_claim *claim, const char *volume, bool joined)
{
    struct pod_wait *wait = p->pods.at[pod].wait;
    wait->volumes = mem_resize(wait->volumes, wait->volumes_len + 1, sizeof *wait->volumes);
    wait->volumes[wait->volumes_len++] =
        (struct cache_claim_volume){mem_strdup(claim->meta.namespace), mem_strdup(claim->meta.name),
                                    mem_strdup(claim->meta.uid), mem_strdup(volume), joined};
}

/* Returns the volume chosen for this claim of the pod, or NULL. */
static struct cache_claim_volume *chosen_find(const struct cache *p, uint32_t pod, const char *claim_uid)
{
    const struct pod_wait *wait = p->pods.at[pod].wait;
    for (size_t i = 0; wait && i < wait->volumes_len; i++)
        if (strcmp(wait->volumes[i].claim_uid, claim_uid) == 0)
            return &wait->volumes[i];
    return NULL;
}

/* Returns the pod, other than `pod`, that has the claim's volume provisioned or bound; NONE if there is none. */
static uint32_t owner_of(struct cache *p, uint32_t pod, const struct kube_claim *claim)
{
    const struct cache_topic *t = topic_lookup(p, cache_key(p, "claim", claim->meta.namespace, claim->meta.name));
    for (size_t i = 0; t && i < t->pods.len; i++) {
        uint32_t one = t->pods.at[i];
        const struct cache_claim_volume *v =
            one == pod || p->pods.at[one].node == NONE ? NULL : chosen_find(p, one, claim->meta.uid);
        if (v && !v->joined)
            return one;
    }
    return NONE;
}

const char *claim_provisioned_on(struct cache *p, uint32_t pod, const struct kube_claim *claim)
{
    uint32_t owner = owner_of(p, pod, claim);
    return owner == NONE || *chosen_find(p, owner, claim->meta.uid)->volume ? ""
                                                                            : p->nodes.at[p->pods.at[owner].node].name;
}

/* Orders candidates for the owner of a volume: reserved pods last, because they cannot have it provisioned yet; then by
 * age of the instance. */
static bool owner_has_priority(const struct pod_entry *a, const struct pod_entry *b)
{
    bool waits = a->state == POD_RESERVED;
    return waits != (b->state == POD_RESERVED) ? !waits : a->instance < b->instance;
}

/* Returns the joined pod that becomes the owner of the volume after `pod`; NONE if no pod has joined. */
static uint32_t next_owner_of(struct cache *p, uint32_t pod, const struct cache_claim_volume *volume)
{
    const struct cache_topic *t = topic_lookup(p, cache_key(p, "claim", volume->claim_namespace, volume->claim));
    uint32_t heir = NONE;
    for (size_t i = 0; t && i < t->pods.len; i++) {
        uint32_t one = t->pods.at[i];
        const struct cache_claim_volume *v =
            one == pod || p->pods.at[one].node == NONE ? NULL : chosen_find(p, one, volume->claim_uid);
        if (v && v->joined && (heir == NONE || owner_has_priority(&p->pods.at[one], &p->pods.at[heir])))
            heir = one;
    }
    return heir;
}

/* Makes joined pods the owners of the volumes of a pod that goes; otherwise these volumes would never be provisioned or
 * bound. */
static void chosen_transfer(struct cache *p, uint32_t pod)
{
    const struct pod_wait *wait = p->pods.at[pod].wait;
    for (size_t i = 0; i < wait->volumes_len; i++) {
        const struct cache_claim_volume *v = &wait->volumes[i];
        uint32_t heir = v->joined ? NONE : next_owner_of(p, pod, v);
        uint32_t taken = heir == NONE || !*v->volume ? NONE : volume_reservation_find(p, v->volume);
        if (heir != NONE)
            chosen_find(p, heir, v->claim_uid)->joined = false;
        if (taken != NONE)
            p->taken.at[taken].pod = heir;
    }
}

/* The nodes that can reach a volume are known only after it is provisioned. Plain pods therefore join only on the same
 * node; tasks of a job are placed together with the owner. */
static bool claim_join(struct cache *p, uint32_t pod, const struct kube_claim *claim, uint32_t owner,
                       const struct kube_labels *node)
{
    const struct cache_claim_volume *before = chosen_find(p, owner, claim->meta.uid);
    struct kube_volume volume;
    const char *here = kube_labels_find(node, KUBE_NAME_LABEL);
    if (*before->volume && (!volume_find(p, before->volume, &volume) || !kube_terms_match(&volume.affinity, node)))
        return false;
    if (!*before->volume && !p->pods.at[pod].task && strcmp(here, claim_provisioned_on(p, pod, claim)) != 0)
        return false;
    chosen_add(p, pod, claim, before->volume, true);
    return true;
}

static bool claim_choose(struct cache *p, uint32_t pod, const struct kube_claim *claim, const struct kube_class *class,
                         const struct kube_labels *node)
{
    if (chosen_find(p, pod, claim->meta.uid))
        return true; /* the pod mounts the claim twice */
    uint32_t owner = owner_of(p, pod, claim);
    if (owner != NONE)
        return claim_join(p, pod, claim, owner, node);
    const char *volume = *claim->selected ? NULL : choose_one(p, claim, node);
    if (!volume && (!kube_class_provisions(class) || !kube_terms_match(&class->topologies, node) ||
                    !capacity_on(p, claim, class, node)))
        return false;
    chosen_add(p, pod, claim, volume ? volume : "", false);
    if (volume)
        volume_take(p, pod, volume);
    return true;
}

void volumes_restore(struct cache *p, const char *workload, const struct cache_claim_volume *volumes, size_t len)
{
    uint32_t pod = pod_find(p, workload);
    struct pod_wait *wait = pod == NONE ? NULL : p->pods.at[pod].wait;
    if (!wait)
        return;
    volumes_forget(p, pod);
    wait->volumes = mem_array(len, sizeof *volumes);
    wait->volumes_len = len;
    for (size_t i = 0; i < len; i++) {
        wait->volumes[i] = (struct cache_claim_volume){mem_strdup(volumes[i].claim_namespace),
                                                       mem_strdup(volumes[i].claim), mem_strdup(volumes[i].claim_uid),
                                                       mem_strdup(volumes[i].volume), volumes[i].joined};
        if (*volumes[i].volume && !volumes[i].joined)
            volume_take(p, pod, volumes[i].volume);
    }
}

/* Marks the other pods affected by a choice or release: those that wait for a volume of the same class, or, for a
 * volume to be provisioned, those with the same claim. */
static void others_mark(struct cache *p, uint32_t pod)
{
    const struct pod_wait *wait = p->pods.at[pod].wait;
    struct kube_volume volume;
    for (size_t i = 0; i < wait->volumes_len; i++) {
        const struct cache_claim_volume *v = &wait->volumes[i];
        if (!*v->volume)
            topic_mark_others(p, cache_key(p, "claim", v->claim_namespace, v->claim), pod);
        else if (volume_find(p, v->volume, &volume))
            topic_mark_others(p, cache_key(p, "class", volume.class_name, NULL), pod);
    }
}

static void chosen_drop(struct cache *p, uint32_t pod)
{
    struct pod_wait *wait = p->pods.at[pod].wait;
    for (size_t i = 0; i < wait->volumes_len; i++) {
        struct cache_claim_volume *v = &wait->volumes[i];
        if (*v->volume)
            volume_release(p, pod, v->volume);
        mem_free((char *)(uintptr_t)v->claim_namespace);
        mem_free((char *)(uintptr_t)v->claim);
        mem_free((char *)(uintptr_t)v->claim_uid);
        mem_free((char *)(uintptr_t)v->volume);
    }
    mem_free(wait->volumes);
    wait->volumes = NULL;
    wait->volumes_len = 0;
}

void volumes_forget(struct cache *p, uint32_t pod)
{
    others_mark(p, pod);
    chosen_transfer(p, pod);
    chosen_drop(p, pod);
}

bool volumes_choose(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node)
{
    struct kube_labels labels = {0};
    if (from->mounts.len == 0)
        return true;
    if (!node_labels(p, node, &labels))
        return false;
    for (size_t i = 0; i < from->mounts.len; i++) {
        struct kube_claim claim;
        struct kube_class class;
        if (!claim_find(p, from->meta.namespace, mount_claim(p, from, &from->mounts.at[i]), &claim) || claim.bound)
            continue;
        if (!class_find(p, claim.class_name, &class) || !claim_choose(p, pod, &claim, &class, &labels)) {
            chosen_drop(p, pod); /* other pods were not marked yet */
            return false;
        }
    }
    others_mark(p, pod);
    return true;
}

bool volumes_are_bound(struct cache *p, const struct pod_wait *wait)
{
    for (size_t i = 0; i < wait->volumes_len; i++) {
        struct kube_claim claim;
        if (!claim_find(p, wait->volumes[i].claim_namespace, wait->volumes[i].claim, &claim) || !claim.bound)
            return false;
    }
    return true;
}

bool volumes_are_reachable(struct cache *p, const struct pod_entry *e)
{
    struct kube_labels labels = {0};
    if (!e->wait || e->node == NONE || !node_labels(p, p->nodes.at[e->node].name, &labels))
        return false;
    for (size_t i = 0; i < e->wait->volumes_len; i++) {
        struct kube_claim claim;
        struct kube_volume volume;
        if (!claim_find(p, e->wait->volumes[i].claim_namespace, e->wait->volumes[i].claim, &claim) ||
            !volume_find(p, claim.volume, &volume))
            return false;
        const struct kube_terms zones = kube_volume_zones(&p->arena, &volume);
        if (!kube_terms_match(&volume.affinity, &labels) || !kube_terms_match(&zones, &labels))
            return false;
    }
    return true;
}

size_t ephemeral_claims_visit(struct cache *p, uint32_t pod, cache_claim_visitor *tell, void *ctx)
{
    const struct kube_pod from = pod_read(p, pod);
    size_t open = 0;
    for (size_t i = 0; i < from.mounts.len; i++) {
        struct kube_claim claim;
        if (*from.mounts.at[i].claim)
            continue;
        bool there = claim_find(p, from.meta.namespace, mount_claim(p, &from, &from.mounts.at[i]), &claim) &&
                     strcmp(claim.meta.controller, from.meta.uid) == 0;
        open += !there || !claim.bound;
        if (there && !*claim.volume)
            tell(ctx, &(struct cache_claim_volume){claim.meta.namespace, claim.meta.name, claim.meta.uid, "", false},
                 *claim.selected);
    }
    return open;
}

void pod_exclude_node(struct cache *p, uint32_t pod, const char *node)
{
    vec_push(&p->pods.at[pod].wait->excluded_nodes, mem_strdup(node));
    pod_mark(p, pod);
}

void pod_clear_excluded_nodes(struct pod_wait *wait)
{
    for (size_t i = 0; i < wait->excluded_nodes.len; i++)
        mem_free(wait->excluded_nodes.at[i]);
    vec_done(&wait->excluded_nodes);
}

void volumes_done(struct cache *p)
{
    for (size_t i = 0; i < p->taken.len; i++)
        mem_free(p->taken.at[i].volume);
    vec_done(&p->taken);
    vec_done(&p->taken_free);
    map_done(&p->taken_by_volume);
}
