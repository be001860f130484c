/* cache_attach.c - volumes that are attached to nodes but used by no pod there.
 *
 * A volume stays attached for a while after its pod has gone, or was attached manually. Such volumes count against the
 * driver's volume limit of the node (CSINode). The cluster knows which volumes pods use, so nodes with changed
 * attachments are examined only after the pods are up to date.
 */
#include "base/hash.h"
#include "kube/cache/cache_internal.h"

static uint64_t name_hash(const char *name)
{
    return hash_bytes(name, strlen(name), 0);
}

static bool node_attachments_same(const void *ctx, uint32_t value, const void *node)
{
    return strcmp(((const struct cache *)ctx)->attached.at[value].node, node) == 0;
}

static uint32_t node_attachments_find(const struct cache *p, const char *node)
{
    return p->attached.len ? map_find(&p->attached_by_node, name_hash(node), node_attachments_same, p, node) : NONE;
}

static uint32_t node_attachments_new(struct cache *p, const char *node)
{
    uint32_t i = (uint32_t)p->attached.len;
    if (p->node_attachments_free.len)
        i = p->node_attachments_free.at[--p->node_attachments_free.len];
    else
        vec_push(&p->attached, (struct node_attachments){0});
    p->attached.at[i].node = mem_strdup(node);
    map_add(&p->attached_by_node, name_hash(node), i);
    return i;
}

static void node_attachments_free(struct cache *p, uint32_t i)
{
    struct node_attachments *a = &p->attached.at[i];
    map_drop(&p->attached_by_node, name_hash(a->node), i);
    mem_free(a->node);
    vec_done(&a->at);
    *a = (struct node_attachments){0};
    vec_push(&p->node_attachments_free, i);
}

void node_attachments_mark(struct cache *p, const char *node)
{
    uint32_t i = node_attachments_find(p, node);
    if (i == NONE || p->attached.at[i].old)
        return;
    p->attached.at[i].old = true;
    vec_push(&p->attached_old, i);
}

/* ---- watch events ----------------------------------------------------------------------------------------------- */

static struct kube_attachment attachment_read(struct cache *p, uint32_t at)
{
    struct kube_attachment a = {.driver = "", .node = "", .volume = ""};
    (void)kube_attachment_read(&p->arena, object_store_bytes(&p->shelves[CACHE_ATTACHMENT], at), &a);
    return a;
}

void attachment_join(struct cache *p, const char *name)
{
    uint32_t at = object_store_find(&p->shelves[CACHE_ATTACHMENT], name);
    if (at == NONE)
        return; /* it was deleted */
    const struct kube_attachment a = attachment_read(p, at);
    if (!*a.driver || !*a.node || !*a.volume)
        return;
    if (at >= p->attached_volumes.len)
        vec_resize(&p->attached_volumes, at + 1);
    p->attached_volumes.at[at] = intern_put(&p->names, a.volume);
    uint32_t i = node_attachments_find(p, a.node);
    if (i == NONE)
        i = node_attachments_new(p, a.node);
    vec_push(&p->attached.at[i].at, at);
    node_attachments_mark(p, a.node);
    cache_notify(p);
}

void attachment_leave(struct cache *p, const char *name)
{
    uint32_t at = object_store_find(&p->shelves[CACHE_ATTACHMENT], name);
    if (at == NONE || at >= p->attached_volumes.len || !p->attached_volumes.at[at])
        return;
    p->attached_volumes.at[at] = 0;
    const char *node = attachment_read(p, at).node;
    struct node_attachments *a = &p->attached.at[node_attachments_find(p, node)];
    for (size_t i = 0; i < a->at.len; i++)
        if (a->at.at[i] == at) {
            a->at.at[i] = a->at.at[--a->at.len];
            break;
        }
    node_attachments_mark(p, node);
    cache_notify(p);
}

void node_attachments_volume_changed(struct cache *p, const char *volume)
{
    sym name = p->attached_volumes.len ? intern_find(&p->names, volume) : 0;
    for (uint32_t at = 0; name && at < p->attached_volumes.len; at++)
        if (p->attached_volumes.at[at] == name) {
            node_attachments_mark(p, attachment_read(p, at).node);
            cache_notify(p);
        }
}

/* ---- unused attachments ----------------------------------------------------------------------------------------- */

/* Reports whether the volume is attached and used by no pod on the node. Like kube-scheduler, counts only native CSI
 * volumes. */
static bool is_unused(struct cache *p, const struct kube_attachment *a)
{
    struct kube_volume volume;
    return volume_find(p, a->volume, &volume) && *volume.driver && !volume.in_tree &&
           !berth_volume_used(p->cluster, cache_key(p, "volume", a->driver, volume.handle), a->node);
}

/* A sum of hashes, so the order of the attachments does not matter. */
static uint64_t unused_hash(struct cache *p, const struct node_attachments *a)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint64_t sum = 0;
    for (size_t i = 0; i < a->at.len; i++) {
        const struct kube_attachment one = attachment_read(p, a->at.at[i]);
        sum += is_unused(p, &one) ? name_hash(one.driver) : 0;
    }
    arena_rewind(&p->arena, mark);
    return sum;
}

void node_attachments_rehash(struct cache *p, const char *node)
{
    uint32_t i = node_attachments_find(p, node);
    if (i != NONE)
        p->attached.at[i].alone = unused_hash(p, &p->attached.at[i]);
}

int64_t node_attachments_unused_count(struct cache *p, const char *node, const char *driver)
{
    uint32_t at = node_attachments_find(p, node);
    int64_t count = 0;
    for (size_t i = 0; at != NONE && i < p->attached.at[at].at.len; i++) {
        const struct kube_attachment one = attachment_read(p, p->attached.at[at].at.at[i]);
        count += strcmp(one.driver, driver) == 0 && is_unused(p, &one);
    }
    return count;
}

bool node_attachments_update(struct cache *p)
{
    bool told = false;
    for (size_t i = 0; i < p->attached_old.len; i++) {
        uint32_t at = p->attached_old.at[i];
        struct node_attachments *a = &p->attached.at[at];
        struct arena_mark mark = arena_mark(&p->arena);
        a->old = false;
        if (unused_hash(p, a) != a->alone) {
            (void)node_refresh(p, a->node);
            node_attachments_rehash(p, a->node);
            told = true;
        }
        if (!p->attached.at[at].at.len)
            node_attachments_free(p, at);
        arena_rewind(&p->arena, mark);
    }
    p->attached_old.len = 0;
    return told;
}

void node_attachments_done(struct cache *p)
{
    for (size_t i = 0; i < p->attached.len; i++) {
        mem_free(p->attached.at[i].node);
        vec_done(&p->attached.at[i].at);
    }
    vec_done(&p->attached);
    vec_done(&p->node_attachments_free);
    vec_done(&p->attached_old);
    vec_done(&p->attached_volumes);
    map_done(&p->attached_by_node);
}
