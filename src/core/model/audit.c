/* audit.c - recomputes everything that is maintained from the instances and compares. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "core/model/cluster.h"

static int inconsistency(struct berth_err *err, const char *what, const char *kind, const char *name, int64_t is,
                         int64_t should)
{
    return err_set(err, EBADMSG, "audit: %s of %s \"%s\" is %lld and should be %lld", what, kind, name, (long long)is,
                   (long long)should);
}

static const char *node_name(const struct berth_cluster *c, uint32_t slot)
{
    return intern_text(&c->names, cluster_node(c, slot)->body->id);
}

static bool first_here(const struct berth_cluster *c, uint32_t port_or_volume, uint32_t node, uint32_t instance)
{
    const struct port_or_volume_hold *h;
    for (uint32_t at = ((const struct port_or_volume *)pages_at(&c->ports_and_volumes, port_or_volume))->first;
         at != NONE; at = h->next) {
        h = pages_at(&c->holds, at);
        if (h->node == node && h->instance != NONE && h->instance < instance)
            return false;
    }
    return true;
}

static void book_expect(struct amount_book *b, enum berth_state state, int64_t amount)
{
    b->active += state_active(state) ? amount : 0;
    b->stopping += state == BERTH_STOPPING ? amount : 0;
    b->reserved += state == BERTH_RESERVED ? amount : 0;
}

static int audit_books(const struct berth_cluster *c, struct berth_err *err)
{
    size_t nodes = c->nodes.len, resources = c->resources.len;
    CLEANUP(mem) struct amount_book *want = mem_zarray(nodes * resources + 1, sizeof *want);

    for (uint32_t s = 0; s < c->instances.len; s++) {
        const struct instance *i = cluster_instance(c, s);
        if (!i->id || i->state == BERTH_ENDED)
            continue;
        const struct class *k = cluster_class(c, i->class);
        for (uint32_t n = 0; n < k->needs_len; n++)
            book_expect(&want[i->node.v * resources + k->needs[n].resource], i->state, k->needs[n].amount);
        for (uint32_t n = 0; n < k->volumes_len; n++) {
            const struct port_or_volume *t = pages_at(&c->ports_and_volumes, k->volumes[n]);
            if (t->driver != NONE && first_here(c, k->volumes[n], i->node.v, s))
                want[i->node.v * resources + t->driver].active++;
        }
    }
    for (uint32_t n = 0; n < nodes; n++)
        for (uint32_t r = 0; r < resources && cluster_node(c, n)->body; r++) {
            struct amount_book zero = {0}, w = want[n * resources + r];
            const struct amount_book *b = n < c->books.at[r].len ? &c->books.at[r].at[n] : &zero;
            const char *name = intern_text(&c->names, c->resources.at[r].name);
            if (b->active != w.active)
                return inconsistency(err, name, "node", node_name(c, n), b->active, w.active);
            if (b->stopping != w.stopping || b->reserved != w.reserved)
                return inconsistency(err, "the stopping or reserved amount", "node", node_name(c, n), b->stopping,
                                     w.stopping);
        }
    return 0;
}

static int audit_uses(const struct berth_cluster *c, struct berth_err *err)
{
    CLEANUP(mem) struct node_use_sums *want = mem_zarray(c->nodes.len + 1, sizeof *want);
    uint32_t said = 0, consuming = 0;

    for (uint32_t s = 0; s < c->instances.len; s++) {
        const struct instance *i = cluster_instance(c, s);
        const struct usage *u;
        bool says = false;
        for (uint32_t at = i->id && state_active(i->state) ? i->usage : NONE; at != NONE; at = u->more) {
            u = pages_at(&c->usages, at);
            if (u->resource != RESOURCE_CPU && u->resource != RESOURCE_MEMORY)
                continue;
            uint32_t k = u->resource == RESOURCE_CPU ? USE_CPU : USE_MEMORY;
            want[i->node.v].used[k] += u->used;
            want[i->node.v].asked[k] += class_need(cluster_class(c, i->class), u->resource);
            says = true;
        }
        said += says;
    }
    for (uint32_t n = 0; n < c->nodes.len; n++) {
        const struct node *node = cluster_node(c, n);
        struct node_use_sums is = n < c->use_books.len ? c->use_books.at[n] : (struct node_use_sums){0};
        if (!node->body)
            continue;
        if (memcmp(&is, &want[n], sizeof is) != 0)
            return inconsistency(err, "the used amount", "node", node_name(c, n), is.used[USE_MEMORY],
                                 want[n].used[USE_MEMORY]);
        said += node->use && node->use->used_len;
        consuming += node->use && node->use->consumed_len;
    }
    if (said != c->said)
        return inconsistency(err, "the number of instances that report usage", "the", "cluster", c->said, said);
    return consuming == c->consuming
               ? 0
               : inconsistency(err, "the number of nodes with consumption", "the", "cluster", c->consuming, consuming);
}

static int audit_devices(const struct berth_cluster *c, struct berth_err *err)
{
    for (uint32_t n = 0; n < c->nodes.len; n++) {
        const struct node *node = cluster_node(c, n);
        for (uint32_t d = 0; node->body && d < node->body->devices_len; d++) {
            struct amount_book milli = {0};
            bool found = false;
            for (uint32_t s = node->first; s != NONE; s = cluster_instance(c, s)->next_of_node) {
                const struct instance *i = cluster_instance(c, s);
                if (i->gpus >> d & 1 && i->state != BERTH_ENDED) {
                    book_expect(&milli, i->state, cluster_class(c, i->class)->gpu.milli);
                    found |= i->found;
                }
            }
            const struct device_book *b = &node->devices[d];
            if (b->active != milli.active || b->stopping != milli.stopping || b->reserved != milli.reserved)
                return inconsistency(err, "the allocation of a GPU", "node", node_name(c, n), b->active, milli.active);
            if (!found &&
                (milli.active > BERTH_GPU_MILLI || milli.active - milli.stopping + milli.reserved > BERTH_GPU_MILLI))
                return inconsistency(err, "the allocation of an oversubscribed GPU", "node", node_name(c, n),
                                     milli.active, BERTH_GPU_MILLI);
        }
    }
    return 0;
}

/* Chains visit each instance once and have the right owner; counts and settled bits follow from them. */
static int audit_workloads(const struct berth_cluster *c, struct berth_err *err)
{
    uint32_t seen = 0, live = 0;
    for (uint32_t s = 0; s < c->instances.len; s++)
        live += cluster_instance(c, s)->id != 0;
    for (uint32_t n = 0; n < c->workloads.len; n++) {
        const struct workload *w = cluster_workload(c, n);
        struct workload again = *w;
        again.plain = again.ended = again.other = 0;
        again.ordinals = 0;
        if (!w->live)
            continue;
        const char *name = intern_text(&c->names, w->id);
        for (uint32_t s = w->first; s != NONE; s = cluster_instance(c, s)->next_of_workload, seen++) {
            const struct instance *i = cluster_instance(c, s);
            workload_count(&again, i, 1);
            if (i->workload.v != n)
                return inconsistency(err, "the owner of an instance", "workload", name, i->workload.v, n);
        }
        if (w->plain != again.plain || w->ended != again.ended || w->other != again.other ||
            w->ordinals != again.ordinals)
            return inconsistency(err, "the number of counted instances", "workload", name, w->plain, again.plain);
        bool settled = workload_settled(&again);
        if (settled == bits_has(c->unsettled.at, n))
            return inconsistency(err, "the settled flag", "workload", name, !settled, settled);
    }
    return seen == live ? 0 : inconsistency(err, "the number of instances", "the", "cluster", seen, live);
}

static int audit_nodes(const struct berth_cluster *c, struct berth_err *err)
{
    uint32_t nodes = 0;
    uint64_t devices = 0, counted = 0;
    for (size_t i = 0; i < c->gpu_counts.len; i++)
        counted += c->gpu_counts.at[i].devices;
    for (uint32_t n = 0; n < c->nodes.len; n++) {
        const struct node *node = cluster_node(c, n);
        uint32_t count = 0;
        if (!node->body)
            continue;
        nodes++;
        devices += node->body->devices_len;
        for (uint32_t s = node->first; s != NONE; s = cluster_instance(c, s)->next_of_node, count++)
            if (cluster_instance(c, s)->node.v != n)
                return inconsistency(err, "the list position of an instance", "node", node_name(c, n),
                                     cluster_instance(c, s)->node.v, n);
        if (count != node->instances)
            return inconsistency(err, "the number of instances", "node", node_name(c, n), node->instances, count);
    }
    if (devices != counted)
        return inconsistency(err, "the number of GPUs", "the", "cluster", (int64_t)counted, (int64_t)devices);
    return nodes == c->nodes_len ? 0 : inconsistency(err, "the number of nodes", "the", "cluster", c->nodes_len, nodes);
}

/* Returns whether a hold excludes others and would itself have been refused. */
static bool excludes_others(const struct berth_cluster *c, const struct port_or_volume_hold *h)
{
    const struct instance *i = h->instance == NONE ? NULL : cluster_instance(c, h->instance);
    return !i || (i->state != BERTH_STOPPING && !i->found);
}

/* A port has one holder on a node, besides one that waits for the other to stop. */
static int audit_port(const struct berth_cluster *c, uint32_t port, struct berth_err *err)
{
    const struct port_or_volume *port_or_volume = pages_at(&c->ports_and_volumes, port);
    const struct port_or_volume_hold *a, *b;
    for (uint32_t x = port_or_volume->first; x != NONE; x = a->next) {
        a = pages_at(&c->holds, x);
        if (!excludes_others(c, a))
            continue;
        PORT_RIVALS_EACH (rival, &c->ports_and_volumes, port)
            for (uint32_t y = ((const struct port_or_volume *)pages_at(&c->ports_and_volumes, rival))->first; y != NONE;
                 y = b->next) {
                b = pages_at(&c->holds, y);
                if (y != x && a->node == b->node && (a->instance != b->instance || rival == port) &&
                    excludes_others(c, b))
                    return err_set(err, EBADMSG, "audit: port %s is allocated twice on node \"%s\"",
                                   intern_text(&c->names, port_or_volume->name), node_name(c, a->node));
            }
    }
    return 0;
}

static int audit_ports(const struct berth_cluster *c, struct berth_err *err)
{
    for (uint32_t t = 0; t < c->ports_and_volumes.len; t++) {
        int rc = ((const struct port_or_volume *)pages_at(&c->ports_and_volumes, t))->kind == HELD_PORT
                     ? audit_port(c, t, err)
                     : 0;
        if (rc)
            return rc;
    }
    return 0;
}

int berth_audit(const struct berth_cluster *c, struct berth_err *err)
{
    int (*const checks[])(const struct berth_cluster *, struct berth_err *) = {
        audit_nodes, audit_workloads, audit_books, audit_uses, audit_devices, audit_ports, quota_audit};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int rc = checks[i](c, err);
        if (rc)
            return rc;
    }
    return 0;
}

static bool node_over_capacity(const struct berth_cluster *c, uint32_t n)
{
    const struct node_body *body = cluster_node(c, n)->body;
    for (uint32_t r = 0; r < c->resources.len; r++) {
        int64_t capacity = c->resources.at[r].optional ? BERTH_AMOUNT_MAX : 0;
        for (uint32_t i = 0; i < body->capacities_len; i++)
            capacity = body->capacities[i].resource == r ? body->capacities[i].capacity : capacity;
        const struct amount_book *b = n < c->books.at[r].len ? &c->books.at[r].at[n] : NULL;
        if (b && (b->active > capacity || b->active - b->stopping + b->reserved > capacity))
            return true;
    }
    return false;
}

size_t berth_nodes_over_capacity(const struct berth_cluster *c)
{
    size_t over = 0;
    for (uint32_t n = 0; n < c->nodes.len; n++)
        over += cluster_node(c, n)->body && node_over_capacity(c, n);
    return over;
}
