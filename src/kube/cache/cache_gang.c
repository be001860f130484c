/* cache_gang.c - pods that start together: at least `min` of a group, or none.
 *
 * As many waiting pods as the group still lacks form one gang of the core, which places all of them or none. The other
 * pods wait until the gang is placed and are then placed one by one. A group with too few pods waits for more.
 */
#include "base/hash.h"
#include "base/sort.h"
#include "kube/cache/cache_internal.h"

static bool gang_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct cache *)ctx)->gangs.at[value].key, key) == 0;
}

static uint64_t key_hash(const char *key)
{
    return hash_bytes(key, strlen(key), 0);
}

static uint32_t gang_find(const struct cache *p, const char *key)
{
    return map_find(&p->gangs_by_key, key_hash(key), gang_same, p, key);
}

/* Takes the minimum from the pod's label if there is no group object. */
static void label_minimum_read(struct pod_gang *g, const struct kube_pod *from)
{
    if (g->known || !from->group_by_label)
        return;
    g->known = true;
    g->min = from->group_min;
}

/* Reads the minimum from the group object. */
static void gang_read(struct cache *p, struct pod_gang *g, const char *namespace, const char *name)
{
    const struct object_store *s = &p->shelves[CACHE_POD_GROUP];
    struct kube_group group;
    uint32_t at = object_store_find(s, arena_fmt(&p->arena, "%s:%s", namespace, name));
    g->known = at != NONE && kube_group_read(&p->arena, object_store_bytes(s, at), &group);
    if (g->known)
        g->min = group.min;
}

void gang_join(struct cache *p, uint32_t pod, const struct kube_pod *from)
{
    const char *key = cache_key(p, "group", from->meta.namespace, from->group);
    uint32_t i = gang_find(p, key);
    if (i == NONE) {
        if (p->gangs_free.len) {
            i = p->gangs_free.at[--p->gangs_free.len];
        } else {
            i = (uint32_t)p->gangs.len;
            vec_push(&p->gangs, (struct pod_gang){0});
        }
        p->gangs.at[i] = (struct pod_gang){.key = mem_strdup(key)};
        map_add(&p->gangs_by_key, key_hash(key), i);
        gang_read(p, &p->gangs.at[i], from->meta.namespace, from->group);
    }
    struct pod_gang *g = &p->gangs.at[i];
    label_minimum_read(g, from);
    p->pods.at[pod].gang = i;
    vec_push(&g->pods, pod);
}

void gang_leave(struct cache *p, uint32_t pod)
{
    uint32_t i = p->pods.at[pod].gang;
    if (i == NONE)
        return;
    struct pod_gang *g = &p->gangs.at[i];
    p->pods.at[pod].gang = NONE;
    p->pods.at[pod].role = ROLE_ALONE;
    for (size_t k = 0; k < g->pods.len; k++)
        if (g->pods.at[k] == pod) {
            g->pods.at[k] = g->pods.at[--g->pods.len];
            break;
        }
    if (g->pods.len) {
        gang_changed(p, i);
        return;
    }
    map_drop(&p->gangs_by_key, key_hash(g->key), i);
    mem_free(g->key);
    vec_done(&g->pods);
    *g = (struct pod_gang){0};
    vec_push(&p->gangs_free, i);
}

static int by_age(const void *ctx, uint32_t a, uint32_t b)
{
    const struct cache *p = ctx;
    const struct pod_entry *x = &p->pods.at[a], *y = &p->pods.at[b];
    if (x->created_ns != y->created_ns)
        return x->created_ns < y->created_ns ? -1 : 1;
    return strcmp(x->id, y->id);
}

void gang_changed(struct cache *p, uint32_t gang)
{
    struct pod_gang *g = &p->gangs.at[gang];
    uint32_t placed = 0, len = 0;
    uint32_t *waiting = ARENA_ARRAY(&p->arena, uint32_t, g->pods.len);
    uint32_t *scratch = ARENA_ARRAY(&p->arena, uint32_t, g->pods.len);
    for (size_t i = 0; i < g->pods.len; i++) {
        const struct pod_entry *e = &p->pods.at[g->pods.at[i]];
        placed += e->state >= POD_ASSUMED && !e->stopping;
        if (e->state < POD_ASSUMED && !e->gated)
            waiting[len++] = g->pods.at[i];
    }
    uint32_t need = g->min > placed ? g->min - placed : 0;
    sort_indices(waiting, scratch, len, by_age, p);
    for (uint32_t i = 0; i < len; i++) {
        struct pod_entry *e = &p->pods.at[waiting[i]];
        enum pod_role role = !g->known || len < need ? ROLE_LATER
                             : need == 0             ? ROLE_ALONE
                             : i < need              ? ROLE_TOGETHER
                                                     : ROLE_LATER;
        if (e->role == role)
            continue;
        e->role = role;
        pod_mark(p, waiting[i]);
    }
}

void gang_object(struct cache *p, const char *namespace, const char *name)
{
    uint32_t i = gang_find(p, cache_key(p, "group", namespace, name));
    if (i == NONE)
        return;
    struct pod_gang *g = &p->gangs.at[i];
    gang_read(p, g, namespace, name);
    for (size_t k = 0; k < g->pods.len && !g->known; k++) {
        const struct kube_pod from = pod_read(p, g->pods.at[k]);
        label_minimum_read(g, &from);
    }
    gang_changed(p, i);
    for (size_t k = 0; k < g->pods.len; k++)
        if (p->pods.at[g->pods.at[k]].role == ROLE_LATER)
            pod_mark(p, g->pods.at[k]); /* the reason why it waits has changed */
}

const char *gang_why(struct cache *p, uint32_t pod)
{
    const struct pod_entry *e = &p->pods.at[pod];
    if (e->gang == NONE || e->role != ROLE_LATER)
        return NULL;
    const struct pod_gang *g = &p->gangs.at[e->gang];
    if (!g->known)
        return "waiting for the pod's pod group to appear";
    return g->pods.len < g->min ? "waiting for minCount pods from a gang to appear in scheduling queue"
                                : "waiting until the minimum size of its gang is placed";
}

void gangs_done(struct cache *p)
{
    for (size_t i = 0; i < p->gangs.len; i++) {
        mem_free(p->gangs.at[i].key);
        vec_done(&p->gangs.at[i].pods);
    }
    vec_done(&p->gangs);
    vec_done(&p->gangs_free);
    map_done(&p->gangs_by_key);
}
