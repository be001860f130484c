/* nodes.c - adds, changes and removes nodes. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "core/model/cluster.h"
#include "core/snapshot/layout.h"

static bool node_same(const void *ctx, uint32_t value, const void *key)
{
    const struct node *n = cluster_node(ctx, value);
    return n->body->id == *(const sym *)key;
}

uint32_t cluster_node_find(const struct berth_cluster *c, const char *id)
{
    sym s = id ? intern_find(&c->names, id) : MAP_NONE;
    return s == MAP_NONE ? NONE : map_find(&c->nodes_by_id, hash_u64(s), node_same, c, &s);
}

void node_body_unref(struct node_body *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        mem_free(b);
}

/* ---- the node body, one block of memory ------------------------------------------------------------------------- */

static size_t body_size(const struct berth_node *n, size_t ports)
{
    return sizeof(struct node_body) + n->labels_len * sizeof(struct label) + n->taints_len * sizeof(struct taint) +
           n->gpus_len * sizeof(struct device) + n->images_len * sizeof(struct image) +
           n->allocatable_len * sizeof(struct capacity) + n->runtimes_len * sizeof(sym) + ports * sizeof(uint32_t) + 64;
}

struct bump_allocator {
    unsigned char *at;
};

static void *bump_take(struct bump_allocator *b, size_t size, size_t align)
{
    b->at = (unsigned char *)(((uintptr_t)b->at + align - 1) & ~(uintptr_t)(align - 1));
    void *p = b->at;
    b->at += size;
    return p;
}
#define BUMP(b, type, len) ((type *)bump_take((b), (len) * sizeof(type), _Alignof(type)))

static int64_t ratio_of(const struct berth_node *n, const char *resource)
{
    for (size_t i = 0; i < n->overcommit_len; i++)
        if (strcmp(n->overcommit[i].resource, resource) == 0)
            return n->overcommit[i].amount;
    return BERTH_RATIO_ONE;
}

static void fill_capacities(struct berth_cluster *c, const struct berth_node *n, struct node_body *b,
                            struct bump_allocator *to)
{
    struct capacity *caps = BUMP(to, struct capacity, n->allocatable_len);
    for (size_t i = 0; i < n->allocatable_len; i++) {
        const struct berth_amount *a = &n->allocatable[i];
        caps[i].resource = cluster_resource_put(c, a->resource);
        caps[i].capacity = (int64_t)((__int128)a->amount * ratio_of(n, a->resource) / BERTH_RATIO_ONE);
        caps[i].allocatable = a->amount;
    }
    b->capacities = caps;
    b->capacities_len = (uint32_t)n->allocatable_len;
}

static void fill_lists(struct berth_cluster *c, const struct berth_node *n, struct node_body *b,
                       struct bump_allocator *to)
{
    struct label *labels = BUMP(to, struct label, n->labels_len);
    labels_fill(&c->names, n->labels, n->labels_len, labels);
    b->labels = (struct labels){labels, (uint32_t)n->labels_len};

    struct taint *taints = BUMP(to, struct taint, n->taints_len);
    for (size_t i = 0; i < n->taints_len; i++) {
        taints[i].key = intern_put(&c->names, n->taints[i].key);
        taints[i].value = intern_put(&c->names, n->taints[i].value);
        taints[i].effect = n->taints[i].effect;
    }
    b->taints = taints;
    b->taints_len = (uint32_t)n->taints_len;

    struct device *devices = BUMP(to, struct device, n->gpus_len);
    for (size_t i = 0; i < n->gpus_len; i++) {
        devices[i].model = intern_put(&c->names, n->gpus[i].model);
        devices[i].kind = cluster_gpu_kind_put(c, n->gpus[i].model);
        devices[i].memory_bytes = n->gpus[i].memory_bytes;
        devices[i].unhealthy = n->gpus[i].unhealthy;
    }
    b->devices = devices;
    b->devices_len = (uint32_t)n->gpus_len;

    struct image *images = BUMP(to, struct image, n->images_len);
    for (size_t i = 0; i < n->images_len; i++) {
        const struct image image = {.name = intern_put(&c->names, n->images[i].name),
                                    .size_bytes = n->images[i].size_bytes};
        size_t at = i;
        for (; at > 0 && images[at - 1].name > image.name; at--) /* sorted for image_locality.c */
            images[at] = images[at - 1];
        images[at] = image;
    }
    b->images = images;
    b->images_len = (uint32_t)n->images_len;

    sym *runtimes = BUMP(to, sym, n->runtimes_len);
    for (size_t i = 0; i < n->runtimes_len; i++)
        runtimes[i] = intern_put(&c->names, n->runtimes[i]);
    b->runtimes = (struct syms){runtimes, (uint32_t)n->runtimes_len};
}

static struct node_body *body_new(struct berth_cluster *c, const struct berth_node *n)
{
    size_t ports = 0;
    for (size_t i = 0; i < n->ports_len; i++)
        ports += n->ports[i].count ? n->ports[i].count : 1;
    size_t size = body_size(n, ports);
    struct node_body *b = mem_zalloc(size);
    struct bump_allocator to = {(unsigned char *)(b + 1)};

    fill_capacities(c, n, b, &to);
    fill_lists(c, n, b, &to);
    uint32_t *ports_and_volumes = BUMP(&to, uint32_t, ports);
    for (size_t i = 0; i < n->ports_len; i++)
        for (uint32_t p = 0; p < (n->ports[i].count ? n->ports[i].count : 1u); p++)
            ports_and_volumes[b->ports_len++] = cluster_port_put(c, &n->ports[i], p);
    b->ports = ports_and_volumes;
    b->id = intern_put(&c->names, n->id);
    b->zone = intern_put(&c->names, n->zone);
    b->rack = intern_put(&c->names, n->rack);
    b->domain = intern_put(&c->names, n->domain);
    b->arch = intern_put(&c->names, n->arch);
    b->rank = n->rank;
    b->page_size_bytes = n->page_size_bytes;
    /* The lists contain only numbers and are hashed as bytes; lengths and scalars are listed here, pointers are left
     * out. */
    uint64_t scalars[] = {b->id,         b->zone,          b->rank,       (uint64_t)b->page_size_bytes,
                          b->rack,       b->domain,        b->arch,       b->labels.len,
                          b->taints_len, b->runtimes.len,  b->images_len, b->devices_len,
                          b->ports_len,  b->capacities_len};
    b->fingerprint = hash_bytes(b + 1, size - sizeof *b, hash_bytes(scalars, sizeof scalars, 0));
    atomic_init(&b->refs, 1);
    assert(to.at <= (unsigned char *)b + size);
    return b;
}

/* ---- GPU models -------------------------------------------------------------------------------------------------- */

sym cluster_gpu_kind_put(struct berth_cluster *c, const char *model)
{
    char folded[BERTH_NAME_MAX + 1];
    size_t len = 0;
    for (; model && model[len] && len < BERTH_NAME_MAX; len++)
        folded[len] = (char)(model[len] >= 'a' && model[len] <= 'z' ? model[len] - 'a' + 'A' : model[len]);
    folded[len] = '\0';
    return intern_put(&c->names, folded);
}

/* Adds the GPUs of a node to the counts (sign 1), or subtracts them (sign -1). There are few models. */
static void gpus_count(struct berth_cluster *c, const struct node_body *b, int sign)
{
    for (uint32_t d = 0; d < b->devices_len; d++) {
        size_t at = 0;
        while (at < c->gpu_counts.len && c->gpu_counts.at[at].kind != b->devices[d].kind)
            at++;
        if (at == c->gpu_counts.len)
            vec_push(&c->gpu_counts, ((struct gpu_count){b->devices[d].kind, b->devices[d].model, 0}));
        c->gpu_counts.at[at].devices += (uint64_t)(int64_t)sign;
    }
}

const char *berth_gpu_model_at(const struct berth_cluster *c, size_t i)
{
    for (size_t at = 0; at < c->gpu_counts.len; at++)
        if (c->gpu_counts.at[at].devices && i-- == 0)
            return intern_text(&c->names, c->gpu_counts.at[at].model);
    return NULL;
}

/* ---- reported use ----------------------------------------------------------------------------------------------- */

/* Returns when the consumption period of the resource began. */
static int64_t consumed_since_ns(const struct berth_node *n, const char *resource)
{
    for (size_t i = 0; i < n->consumed_begun_len; i++)
        if (strcmp(n->consumed_begun[i].resource, resource) == 0)
            return n->consumed_begun[i].amount;
    return n->consumed_ns;
}

static struct node_usage *anti_affinity_use_new(struct berth_cluster *c, const struct berth_node *n)
{
    size_t len = n->consumed_len + n->used_len;
    if (len == 0)
        return NULL;
    struct node_usage *use = mem_zalloc(sizeof *use + len * sizeof *use->at);
    for (size_t i = 0; i < n->consumed_len; i++)
        use->at[use->consumed_len++] =
            (struct node_amount){cluster_resource_put(c, n->consumed[i].resource), n->consumed[i].amount,
                                 consumed_since_ns(n, n->consumed[i].resource)};
    for (size_t i = 0; i < n->used_len; i++) { /* agents report only built-in resources */
        bool cpu = strcmp(n->used[i].resource, "cpu") == 0, memory = strcmp(n->used[i].resource, "memory") == 0;
        if (cpu || memory)
            use->at[use->consumed_len + use->used_len++] =
                (struct node_amount){cpu ? RESOURCE_CPU : RESOURCE_MEMORY, n->used[i].amount, 0};
    }
    return use;
}

static void anti_affinity_use_replace(struct berth_cluster *c, uint32_t slot, struct node_usage *fresh)
{
    struct node *n = pages_edit(&c->nodes, slot);
    c->consuming += (fresh && fresh->consumed_len ? 1u : 0u) - (n->use && n->use->consumed_len ? 1u : 0u);
    c->said += (fresh && fresh->used_len ? 1u : 0u) - (n->use && n->use->used_len ? 1u : 0u);
    mem_free(n->use);
    n->use = fresh;
}

/* ---- put and remove --------------------------------------------------------------------------------------------- */

static void own_ports(struct berth_cluster *c, uint32_t slot, const struct node_body *b)
{
    uint32_t chain = NONE;
    for (uint32_t i = 0; i < b->ports_len; i++)
        chain = cluster_hold(c, b->ports[i], slot, NONE, chain);
    ((struct node *)pages_edit(&c->nodes, slot))->ports = chain;
}

static void disown_ports(struct berth_cluster *c, uint32_t slot)
{
    for (uint32_t at = cluster_node(c, slot)->ports, more; at != NONE; at = more) {
        more = ((const struct port_or_volume_hold *)pages_at(&c->holds, at))->more;
        cluster_unhold(c, at);
    }
}

static void node_forget_layout(struct berth_cluster *c)
{
    layout_unref(c->layout);
    c->layout = NULL;
}

static uint64_t booked_devices(const struct berth_cluster *c, const struct node *n)
{
    uint64_t held = 0;
    for (uint32_t i = n->first; i != NONE; i = cluster_instance(c, i)->next_of_node)
        held |= cluster_instance(c, i)->gpus;
    return held;
}

/* Returns the id of the instance that holds a port on the node; 0: none, except instances put as found. */
static uint64_t port_holder(const struct berth_cluster *c, uint32_t port, uint32_t node)
{
    const struct port_or_volume_hold *h;
    PORT_RIVALS_EACH (port_or_volume, &c->ports_and_volumes, port)
        for (uint32_t at = ((const struct port_or_volume *)pages_at(&c->ports_and_volumes, port_or_volume))->first;
             at != NONE; at = h->next) {
            h = pages_at(&c->holds, at);
            if (h->node == node && h->instance != NONE && !cluster_instance(c, h->instance)->found)
                return cluster_instance(c, h->instance)->id;
        }
    return 0;
}

/* Replaces the body of a node. Device books keep their index; devices may be added, and devices that are not held may
 * be removed. */
static int node_replace(struct berth_cluster *c, uint32_t slot, const struct berth_node *from, struct berth_err *err)
{
    const struct node *old = cluster_node(c, slot);
    uint64_t held = booked_devices(c, old);
    if (held && (from->gpus_len == 0 || held >> (from->gpus_len - 1) >> 1))
        return err_set(err, EBUSY, "node \"%s\": allocated GPUs cannot be removed (%zu left)", from->id,
                       from->gpus_len);
    struct node_body *body = body_new(c, from);
    for (uint32_t i = 0; i < body->ports_len; i++) {
        uint64_t holder = port_holder(c, body->ports[i], slot);
        if (!holder)
            continue;
        const struct port_or_volume *t = pages_at(&c->ports_and_volumes, body->ports[i]);
        node_body_unref(body);
        return err_set(err, EBUSY, "node \"%s\": port %s is in use by instance %llu", from->id,
                       intern_text(&c->names, t->name), (unsigned long long)holder);
    }
    struct node *n = pages_edit(&c->nodes, slot);
    c->revision++;
    n->state = from->state;
    n->since_ns = from->since_ns;
    anti_affinity_use_replace(c, slot, anti_affinity_use_new(c, from));
    if (body->fingerprint == n->body->fingerprint) {
        node_body_unref(body);
        return 0;
    }
    disown_ports(c, slot);
    if (body->devices_len > n->body->devices_len) {
        n->devices = mem_resize(n->devices, body->devices_len, sizeof *n->devices);
        memset(n->devices + n->body->devices_len, 0, (body->devices_len - n->body->devices_len) * sizeof *n->devices);
    }
    gpus_count(c, n->body, -1);
    gpus_count(c, body, 1);
    node_body_unref(n->body);
    n->body = body;
    own_ports(c, slot, body);
    node_forget_layout(c);
    return 0;
}

int berth_node_put(struct berth_cluster *c, const struct berth_node *from, struct berth_err *err)
{
    int rc = describe_node(c, from, err);
    if (rc)
        return rc;
    uint32_t slot = cluster_node_find(c, from->id);
    if (slot != NONE)
        return node_replace(c, slot, from, err);

    struct node_body *body = body_new(c, from);
    slot = slot_take(&c->nodes, &c->nodes_free);
    struct node *n = pages_edit(&c->nodes, slot);
    *n = (struct node){.body = body, .state = from->state, .since_ns = from->since_ns, .first = NONE, .ports = NONE};
    n->devices = body->devices_len ? mem_zarray(body->devices_len, sizeof *n->devices) : NULL;
    for (size_t r = 0; r < c->books.len; r++)
        if (slot < c->books.at[r].len)
            c->books.at[r].at[slot] = (struct amount_book){0};
    anti_affinity_use_replace(c, slot, anti_affinity_use_new(c, from));
    map_add(&c->nodes_by_id, hash_u64(body->id), slot);
    gpus_count(c, body, 1);
    c->nodes_len++;
    c->revision++;
    own_ports(c, slot, body);
    node_forget_layout(c);
    return 0;
}

int berth_node_remove(struct berth_cluster *c, const char *id, struct berth_err *err)
{
    uint32_t slot = cluster_node_find(c, id);
    if (slot == NONE)
        return err_set(err, ENOENT, "node \"%s\" does not exist", id ? id : "");
    struct node *n = pages_edit(&c->nodes, slot);
    if (n->instances)
        return err_set(err, EBUSY, "node \"%s\": %u instances still run on it; drain it first", id, n->instances);
    disown_ports(c, slot);
    map_drop(&c->nodes_by_id, hash_u64(n->body->id), slot);
    gpus_count(c, n->body, -1);
    node_body_unref(n->body);
    mem_free(n->devices);
    anti_affinity_use_replace(c, slot, NULL);
    *n = (struct node){.first = NONE, .ports = NONE};
    vec_push(&c->nodes_free, slot);
    c->nodes_len--;
    c->revision++;
    node_forget_layout(c);
    return 0;
}
