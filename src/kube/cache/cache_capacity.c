/* cache_capacity.c - where storage is left, as reported by CSI drivers.
 *
 * A driver with CSIDriver.spec.storageCapacity provisions volumes only on nodes that are in the topology of one of the
 * class's CSIStorageCapacity objects with room for a volume of the claim's size.
 */
#include "kube/cache/cache_internal.h"

bool driver_find(struct cache *p, const char *name, struct kube_driver *ret)
{
    const struct object_store *s = &p->shelves[CACHE_CSI_DRIVER];
    uint32_t i = *name ? object_store_find(s, name) : NONE;
    return i != NONE && kube_driver_read(&p->arena, object_store_bytes(s, i), ret);
}

static bool capacity_is_tracked(struct cache *p, const struct kube_class *class)
{
    struct kube_driver driver;
    return driver_find(p, class->provisioner, &driver) && driver.capacity;
}

/* Reads a storage capacity; reports whether it is of the class and has room for the claim's volume. */
static bool capacity_suits(struct cache *p, uint32_t i, const struct kube_claim *claim, const struct kube_class *class,
                           struct kube_capacity *ret)
{
    const struct object_store *s = &p->shelves[CACHE_STORAGE_CAPACITY];
    return s->at.at[i].key && kube_capacity_read(&p->arena, object_store_bytes(s, i), ret) &&
           strcmp(ret->class_name, class->meta.name) == 0 && ret->most_bytes >= claim->size_bytes &&
           ret->nodes.present && !ret->nodes.never;
}

bool capacity_where(struct cache *p, const struct kube_claim *claim, const struct kube_class *class,
                    struct kube_terms *to)
{
    struct kube_capacity c;
    if (!capacity_is_tracked(p, class))
        return false;
    for (uint32_t i = 0; i < p->shelves[CACHE_STORAGE_CAPACITY].at.len; i++) {
        if (!capacity_suits(p, i, claim, class, &c))
            continue;
        if (c.nodes.exprs.len == 0)
            return false; /* an empty selector matches every node */
        kube_push(&p->arena, to, ((struct berth_term){c.nodes.exprs.at, c.nodes.exprs.len, 0}));
    }
    kube_terms_merge(&p->arena, to);
    return true;
}

bool capacity_on(struct cache *p, const struct kube_claim *claim, const struct kube_class *class,
                 const struct kube_labels *node)
{
    struct kube_capacity c;
    bool found = !capacity_is_tracked(p, class);
    for (uint32_t i = 0; !found && i < p->shelves[CACHE_STORAGE_CAPACITY].at.len; i++)
        found = capacity_suits(p, i, claim, class, &c) && kube_selector_matches(&c.nodes, node);
    return found;
}
