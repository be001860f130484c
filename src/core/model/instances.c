/* instances.c - adds, changes and removes instances and what they hold. */
#include <assert.h>
#include <errno.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/plant.h"
#include "core/model/cluster.h"

static bool instance_same(const void *ctx, uint32_t value, const void *key)
{
    return cluster_instance(ctx, value)->id == *(const uint64_t *)key;
}

uint32_t cluster_instance_find(const struct berth_cluster *c, uint64_t id)
{
    return map_find(&c->instances_by_id, hash_u64(id), instance_same, c, &id);
}

/* ---- accounting ------------------------------------------------------------------------------------------------- */

static void book_add(struct amount_book *b, enum berth_state state, int64_t amount)
{
    if (state_active(state))
        b->active += amount;
    if (state == BERTH_STOPPING)
        b->stopping += amount;
    if (state == BERTH_RESERVED)
        b->reserved += amount;
}

static void device_add(struct device_book *d, enum berth_state state, int32_t milli, int64_t mem)
{
    if (state_active(state)) {
        d->active += milli;
        d->mem_active += mem;
    }
    if (state == BERTH_STOPPING) {
        d->stopping += milli;
        d->mem_stopping += mem;
    }
    if (state == BERTH_RESERVED) {
        d->reserved += milli;
        d->mem_reserved += mem;
    }
}

/* Adds what the instance holds to the books of its node (sign 1), or subtracts it (sign -1). */
static void books_change(struct berth_cluster *c, const struct instance *i, int sign)
{
    if (i->state == BERTH_ENDED)
        return;
    const struct class *k = cluster_class(c, i->class);
    const struct node *n = cluster_node(c, i->node.v);

    for (uint32_t r = 0; r < k->needs_len; r++)
        book_add(cluster_book(c, k->needs[r].resource, i->node.v), i->state, sign * k->needs[r].amount);
    BITS_EACH (d, i->gpus)
        device_add(&n->devices[d], i->state, sign * (int32_t)k->gpu.milli, sign * gpu_memory_booked(&k->gpu));
    c->stopping += (i->state == BERTH_STOPPING ? 1u : 0u) * (unsigned)sign;
    c->reserved += (i->state == BERTH_RESERVED ? 1u : 0u) * (unsigned)sign;
    c->replacing += (i->replaces ? 1u : 0u) * (unsigned)sign;
}

/* Updates the node's sums of the cpu and memory use that instances report. */
static void anti_affinity_use_change(struct berth_cluster *c, const struct instance *i, int sign)
{
    static const uint32_t resources[USES] = {[USE_CPU] = RESOURCE_CPU, [USE_MEMORY] = RESOURCE_MEMORY};
    const struct usage *u;
    bool said = false;

    if (!state_active(i->state) || i->usage == NONE)
        return;
    for (uint32_t at = i->usage; at != NONE; at = u->more) {
        u = pages_at(&c->usages, at);
        for (uint32_t k = 0; k < USES; k++) {
            if (u->resource != resources[k])
                continue;
            if (i->node.v >= c->use_books.len)
                vec_resize(&c->use_books, c->nodes.len);
            c->use_books.at[i->node.v].used[k] += sign * u->used;
            c->use_books.at[i->node.v].asked[k] += sign * class_need(cluster_class(c, i->class), u->resource);
            said = true;
        }
    }
    c->said += (said ? 1u : 0u) * (unsigned)sign;
}

static void counts_change(struct berth_cluster *c, const struct instance *i, int sign)
{
    bool ends = i->state == BERTH_ENDED; /* a finished task is no longer requested */
    if (ends)
        quota_count_requests(c, i->workload.v, -1);
    workload_count(pages_edit(&c->workloads, i->workload.v), i, sign);
    if (ends)
        quota_count_requests(c, i->workload.v, 1);
    quota_count(c, i, sign);
}

/* Updates volume attachments. A volume is attached to a node once, however many instances use it there: only the first
 * instance to come and the last to go count. The instance's own holds must be in place. */
static void attach_change(struct berth_cluster *c, uint32_t slot, int sign)
{
    const struct instance *i = cluster_instance(c, slot);
    const struct port_or_volume_hold *h;
    for (uint32_t at = i->holds; at != NONE; at = h->more) {
        h = pages_at(&c->holds, at);
        const struct port_or_volume *t = pages_at(&c->ports_and_volumes, h->port_or_volume);
        if (t->driver != NONE && !cluster_holds(c, h->port_or_volume, i->node.v, slot))
            cluster_book(c, t->driver, i->node.v)->active += sign;
    }
}

/* ---- chains ----------------------------------------------------------------------------------------------------- */

static void chains_join(struct berth_cluster *c, uint32_t slot)
{
    struct instance *i = pages_edit(&c->instances, slot);
    struct workload *w = pages_edit(&c->workloads, i->workload.v);

    i->prev_of_workload = i->prev_of_node = i->next_of_node = NONE;
    i->next_of_workload = w->first;
    if (w->first != NONE)
        ((struct instance *)pages_edit(&c->instances, w->first))->prev_of_workload = slot;
    w->first = slot;
    if (i->node.v == NONE)
        return;
    struct node *n = pages_edit(&c->nodes, i->node.v);
    ((struct instance *)pages_edit(&c->instances, slot))->next_of_node = n->first;
    if (n->first != NONE)
        ((struct instance *)pages_edit(&c->instances, n->first))->prev_of_node = slot;
    n->first = slot;
    n->instances++;
}

static void chains_leave(struct berth_cluster *c, uint32_t slot)
{
    struct instance i = *cluster_instance(c, slot);

    if (i.prev_of_workload != NONE)
        ((struct instance *)pages_edit(&c->instances, i.prev_of_workload))->next_of_workload = i.next_of_workload;
    else
        ((struct workload *)pages_edit(&c->workloads, i.workload.v))->first = i.next_of_workload;
    if (i.next_of_workload != NONE)
        ((struct instance *)pages_edit(&c->instances, i.next_of_workload))->prev_of_workload = i.prev_of_workload;
    if (i.node.v == NONE)
        return;
    struct node *n = pages_edit(&c->nodes, i.node.v);
    if (i.prev_of_node != NONE)
        ((struct instance *)pages_edit(&c->instances, i.prev_of_node))->next_of_node = i.next_of_node;
    else
        n->first = i.next_of_node;
    if (i.next_of_node != NONE)
        ((struct instance *)pages_edit(&c->instances, i.next_of_node))->prev_of_node = i.prev_of_node;
    n->instances--;
}

static void lists_fill(struct berth_cluster *c, struct instance *i, const struct instance_change *from)
{
    i->waits = i->usage = i->holds = NONE;
    for (size_t n = from->waits_len; n-- > 0;) {
        uint32_t at = slot_take(&c->waits, &c->waits_free);
        *(struct instance_wait *)pages_edit(&c->waits, at) = (struct instance_wait){from->waits[n], i->waits};
        i->waits = at;
    }
    for (size_t n = from->usage_len; n-- > 0;) {
        const struct berth_usage *u = &from->usage[n];
        uint32_t resource = cluster_resource_put(c, u->resource);
        uint32_t at = slot_take(&c->usages, &c->usages_free);
        *(struct usage *)pages_edit(&c->usages, at) =
            (struct usage){resource, i->usage, u->used, u->used_since_ns, u->limit, u->limit_since_ns};
        i->usage = at;
    }
}

static void lists_free(struct berth_cluster *c, const struct instance *i)
{
    for (uint32_t at = i->waits; at != NONE; at = ((const struct instance_wait *)pages_at(&c->waits, at))->more)
        vec_push(&c->waits_free, at);
    for (uint32_t at = i->usage; at != NONE; at = ((const struct usage *)pages_at(&c->usages, at))->more)
        vec_push(&c->usages_free, at);
    for (uint32_t at = i->holds, more; at != NONE; at = more) {
        more = ((const struct port_or_volume_hold *)pages_at(&c->holds, at))->more;
        cluster_unhold(c, at);
    }
}

/* ---- add, drop, change ------------------------------------------------------------------------------------------ */

static void hold_ports_and_volumes(struct berth_cluster *c, uint32_t slot)
{
    struct instance i = *cluster_instance(c, slot);
    const struct class *k = cluster_class(c, i.class);
    uint32_t chain = NONE;

    if (i.state == BERTH_ENDED)
        return;
    for (uint32_t p = 0; p < k->ports_len; p++)
        chain = cluster_hold(c, k->ports[p], i.node.v, slot, chain);
    for (uint32_t v = 0; v < k->volumes_len; v++)
        chain = cluster_hold(c, k->volumes[v], i.node.v, slot, chain);
    ((struct instance *)pages_edit(&c->instances, slot))->holds = chain;
}

struct class_ix instance_class(const struct berth_cluster *c, uint32_t slot, uint32_t workload)
{
    if (slot != NONE && cluster_instance(c, slot)->workload.v == workload)
        return cluster_instance(c, slot)->class;
    return cluster_workload(c, workload)->class;
}

uint32_t instance_add(struct berth_cluster *c, const struct instance_change *change)
{
    uint32_t slot = slot_take(&c->instances, &c->instances_free);
    struct instance *i = pages_edit(&c->instances, slot);
    *i = change->record;
    lists_fill(c, i, change);
    chains_join(c, slot);
    i = pages_edit(&c->instances, slot);
    map_add(&c->instances_by_id, hash_u64(i->id), slot);
    if (i->replaces)
        map_add(&c->replacements_by_old, hash_u64(i->replaces), slot);
    books_change(c, i, 1);
    anti_affinity_use_change(c, i, 1);
    counts_change(c, i, 1);
    hold_ports_and_volumes(c, slot);
    attach_change(c, slot, 1);
    if (slot / 64 >= c->watched.len) {
        vec_resize(&c->watched, slot / 64 + 1);
        vec_resize(&c->leaving, slot / 64 + 1);
    }
    if (change->record.state == BERTH_STOPPING)
        bits_add(c->leaving.at, slot);
    if (change->usage_len && cluster_class(c, change->record.class)->adjustable)
        bits_add(c->watched.at, slot);
    claim_note_expiry(c, cluster_instance(c, slot));
    cluster_settle(c, change->record.workload.v);
    return slot;
}

void instance_drop(struct berth_cluster *c, uint32_t slot)
{
    struct instance i = *cluster_instance(c, slot);
    claim_forget_expiry(c, &i);
    attach_change(c, slot, -1);
    anti_affinity_use_change(c, &i, -1);
    lists_free(c, &i);
    if (!PLANTED(COUNT_FORGOTTEN))
        books_change(c, &i, -1);
    counts_change(c, &i, -1);
    chains_leave(c, slot);
    map_drop(&c->instances_by_id, hash_u64(i.id), slot);
    if (i.replaces)
        map_drop(&c->replacements_by_old, hash_u64(i.replaces), slot);
    *(struct instance *)pages_edit(&c->instances, slot) = (struct instance){0};
    bits_drop(c->watched.at, slot);
    bits_drop(c->leaving.at, slot);
    vec_push(&c->instances_free, slot);
    cluster_settle(c, i.workload.v);
    workload_drop_if_empty(c, i.workload.v);
}

void instance_set_state(struct berth_cluster *c, uint32_t slot, enum berth_state state, int64_t since_ns)
{
    struct instance *i = pages_edit(&c->instances, slot);
    assert(i->state != BERTH_ENDED && state != BERTH_ENDED);
    claim_forget_expiry(c, i);
    books_change(c, i, -1);
    anti_affinity_use_change(c, i, -1);
    counts_change(c, i, -1);
    i->state = state;
    i->since_ns = since_ns;
    if (state == BERTH_STOPPING)
        bits_add(c->leaving.at, slot);
    else
        bits_drop(c->leaving.at, slot);
    books_change(c, i, 1);
    anti_affinity_use_change(c, i, 1);
    counts_change(c, i, 1);
    claim_note_expiry(c, i);
    cluster_settle(c, i->workload.v);
}

/* Checks that the node's books cannot overflow, however far over its capacity the node is. */
static int check_sums(const struct berth_cluster *c, const struct instance *i, struct berth_err *err)
{
    const struct class *k = cluster_class(c, i->class);
    for (uint32_t r = 0; r < k->needs_len; r++) {
        uint32_t resource = k->needs[r].resource;
        const struct amount_book *b =
            i->node.v < c->books.at[resource].len ? &c->books.at[resource].at[i->node.v] : NULL;
        if (b && b->active + b->reserved > INT64_MAX / 4 - k->needs[r].amount)
            return err_set(err, EOVERFLOW, "instance %llu: the sum of %s on its node is too large",
                           (unsigned long long)i->id, intern_text(&c->names, cluster_resource(c, resource)->name));
    }
    return 0;
}

static int check_uses(const struct berth_cluster *c, const struct berth_instance *i, uint32_t node,
                      struct berth_err *err)
{
    for (size_t n = 0; node < c->use_books.len && n < i->usage_len; n++)
        for (uint32_t k = 0; k < USES; k++)
            if (c->use_books.at[node].used[k] > INT64_MAX / 4 - i->usage[n].used)
                return err_set(err, EOVERFLOW, "instance %llu: the sum of what is used on its node is too large",
                               (unsigned long long)i->id);
    return 0;
}

/* Returns whether instances in these states hold a port or GPU at the same time. A reserved instance starts after the
 * stopping ones are gone. */
static bool states_conflict(enum berth_state a, enum berth_state b)
{
    if (a == BERTH_ENDED || b == BERTH_ENDED)
        return false;
    bool sequential = (a == BERTH_RESERVED && b == BERTH_STOPPING) || (a == BERTH_STOPPING && b == BERTH_RESERVED);
    return !sequential;
}

/* Returns a hold that conflicts with the port; NULL: none. */
static const struct port_or_volume_hold *port_conflict(const struct berth_cluster *c, uint32_t port,
                                                       const struct instance *i)
{
    const struct port_or_volume_hold *h;
    PORT_RIVALS_EACH (port_or_volume, &c->ports_and_volumes, port)
        for (uint32_t at = ((const struct port_or_volume *)pages_at(&c->ports_and_volumes, port_or_volume))->first;
             at != NONE; at = h->next) {
            h = pages_at(&c->holds, at);
            const struct instance *other = h->instance == NONE ? NULL : cluster_instance(c, h->instance);
            if (h->node == i->node.v && (!other || (other->id != i->id && states_conflict(other->state, i->state))))
                return h;
        }
    return NULL;
}

static int check_ports(const struct berth_cluster *c, const struct instance *i, struct berth_err *err)
{
    const struct class *k = cluster_class(c, i->class);
    for (uint32_t n = 0; n < k->ports_len; n++) {
        const struct port_or_volume_hold *h = port_conflict(c, k->ports[n], i);
        if (!h)
            continue;
        const struct port_or_volume *t = pages_at(&c->ports_and_volumes, h->port_or_volume);
        return err_set(err, EBUSY, "instance %llu: port %s of its node is in use by %s%llu", (unsigned long long)i->id,
                       intern_text(&c->names, t->name), h->instance != NONE ? "instance " : "the node itself, ",
                       h->instance != NONE ? (unsigned long long)cluster_instance(c, h->instance)->id : 0);
    }
    return 0;
}

static int check_gpus(const struct berth_cluster *c, const struct instance *i, struct berth_err *err)
{
    int32_t milli = (int32_t)cluster_class(c, i->class)->gpu.milli;
    uint32_t old_slot = cluster_instance_find(c, i->id);
    const struct instance *old = old_slot == NONE ? NULL : cluster_instance(c, old_slot);
    BITS_EACH (d, i->gpus) {
        struct device_book b = cluster_node(c, i->node.v)->devices[d];
        if (old && old->node.v == i->node.v && (old->gpus >> d & 1))
            device_add(&b, old->state, -(int32_t)cluster_class(c, old->class)->gpu.milli, 0);
        device_add(&b, i->state, milli, 0);
        if (b.active > BERTH_GPU_MILLI || b.active - b.stopping + b.reserved > BERTH_GPU_MILLI)
            return err_set(err, EBUSY, "instance %llu: GPU %u of its node is allocated to another instance",
                           (unsigned long long)i->id, (unsigned)d);
    }
    return 0;
}

int berth_instance_put(struct berth_cluster *c, const struct berth_instance *from, struct berth_err *err)
{
    int rc = describe_instance(c, from, err);
    if (rc)
        return rc;
    uint32_t workload = cluster_workload_find(c, from->workload);
    if (workload == NONE)
        workload = workload_placeholder(c, from->workload);
    uint32_t old = cluster_instance_find(c, from->id);
    struct class_ix class = from->shape ? class_put(c, from->shape) : instance_class(c, old, workload);
    struct instance_change change = {
        .record = {.id = from->id,
                   .workload = {workload},
                   .ordinal = from->ordinal,
                   .class = class,
                   .node = {from->state == BERTH_ENDED ? NONE : cluster_node_find(c, from->node)},
                   .node_id = intern_put(&c->names, from->node),
                   .state = from->state,
                   .ready = from->ready,
                   .outdated = from->outdated,
                   .found = from->found,
                   .since_ns = from->since_ns,
                   .counted_ns = from->counted_ns               ? from->counted_ns
                                 : from->state == BERTH_RUNNING ? from->since_ns
                                                                : 0,
                   .fence_ns = from->fence_ns,
                   .gpus = from->gpus,
                   .replaces = from->replaces},
        .waits = from->waits,
        .waits_len = from->waits_len,
        .usage = from->usage,
        .usage_len = from->usage_len
    };
    rc = check_sums(c, &change.record, err);
    if (!rc)
        rc = check_uses(c, from, change.record.node.v, err);
    if (!rc && from->state != BERTH_ENDED && !from->found)
        rc = check_ports(c, &change.record, err);
    if (!rc && from->state != BERTH_ENDED && !from->found)
        rc = check_gpus(c, &change.record, err);
    if (rc) {
        workload_drop_if_empty(c, workload);
        return rc;
    }
    if (old != NONE)
        instance_drop(c, old);
    /* The drop may have freed the slot of a removed workload with no other instances. */
    if (!cluster_workload(c, workload)->live)
        change.record.workload.v = workload_placeholder(c, from->workload);
    (void)instance_add(c, &change);
    c->revision++;
    return 0;
}

int berth_instance_remove(struct berth_cluster *c, uint64_t id, struct berth_err *err)
{
    uint32_t slot = cluster_instance_find(c, id);
    if (slot == NONE)
        return err_set(err, ENOENT, "instance %llu does not exist", (unsigned long long)id);
    instance_drop(c, slot);
    c->revision++;
    return 0;
}
