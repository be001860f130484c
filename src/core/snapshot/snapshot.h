/* snapshot.h - the whole cluster state at one moment, in columns; everything a decision may depend on.
 *
 * Immutable. Tables are shared copy-on-write with the cluster; resources held on nodes are gathered into columns in the
 * order of the layout. Two books exist only while some instance is stopping or reserved: `now` is what is free at this
 * moment, `later` what is free once every stopping instance has stopped and every reserved one is assigned.
 */
#pragma once

#include <assert.h>

#include "core/snapshot/layout.h"

struct device_free {
    int32_t now, later; /* milli */
    int64_t mem_now, mem_later;
};

struct berth_snapshot {
    struct arena arena;
    struct layout *layout;
    int64_t now_ns;
    uint64_t seed;
    int64_t recheck_ns;  /* the next end of a period of consumption */
    struct intern names; /* the cluster's strings, read-only */
    struct pages nodes, workloads, instances, ports_and_volumes, holds, usages, waits, label_sets, facts;
    struct pages classes, constraints, preference_sets, topology_constraints, pairs, postings, uses,
        topology_constraint_uses, gangs, claims;
    const struct quota *quotas; /* copies, with their terms and books */
    uint32_t quotas_len;
    const struct disruption_budget *budgets;
    uint32_t budgets_len;
    bool guaranteed;           /* some quota sets a guarantee; without one everything is guaranteed */
    const uint64_t *accounted; /* workloads that count against quotas, a bit each */
    const uint64_t *timed;     /* workloads whose pods have a time limit, a bit each; as many words: */
    uint32_t accounted_len;
    int64_t expires_ns; /* when the first of those pods reaches its limit */
    uint32_t apart_unanchored;
    const struct resource *resources;
    uint32_t resources_len;

    uint8_t *state;  /* [position], enum berth_node_state */
    int64_t *since;  /* [position] */
    uint64_t *over;  /* positions that hold more than their capacity */
    int64_t **now;   /* [resource][position], NULL where no node has any */
    int64_t **later; /* NULL: the same as now */
    struct device_free *devices;
    /* [position]; NULL: no use was reported. used: the sum of what instances report, or what the node reports if that
     * is more; said: the sum of what instances report; asked: the requests of those instances. */
    int64_t *used[USES], *said[USES], *asked[USES];
    const uint32_t *ranks; /* [workload]: rank of its id in the order of ids */
    uint64_t revision;     /* revision of the cluster */
    uint64_t *unsettled, *watched, *leaving;
    uint32_t unsettled_len, watched_len; /* words; leaving has as many as watched */
    uint32_t stopping, reserved, replacing;
    const uint32_t *idle; /* positions of nodes that are not ready */
    uint32_t idle_len;
};

/* Returns another snapshot over the same records and columns: records may be changed through pages_edit, columns
 * replaced. Must be freed before its original. */
struct berth_snapshot *snapshot_share(const struct berth_snapshot *s);

static inline const struct workload *snapshot_workload(const struct berth_snapshot *s, uint32_t i)
{
    return pages_at(&s->workloads, i);
}
/* Returns the workload's claim (its quotas, queue and times); NULL: it has none. */
static inline const struct claim *snapshot_claim(const struct berth_snapshot *s, uint32_t workload)
{
    const struct workload *w = snapshot_workload(s, workload);
    return w->claim == NONE ? NULL : pages_at(&s->claims, w->claim);
}
static inline const struct instance *snapshot_instance(const struct berth_snapshot *s, uint32_t i)
{
    return pages_at(&s->instances, i);
}
/* Returns the slot of the instance that `i` takes over from, unless that has ended; else NONE. O(instances of the
 * workload). */
uint32_t snapshot_replaced(const struct berth_snapshot *s, const struct instance *i);
static inline const struct class *snapshot_class(const struct berth_snapshot *s, struct class_ix k)
{
    return ((const struct pool_entry *)pages_at(&s->classes, k.v))->object;
}
static inline const struct constraints *snapshot_constraints(const struct berth_snapshot *s, struct constraints_ix r)
{
    return ((const struct pool_entry *)pages_at(&s->constraints, r.v))->object;
}
static inline const struct preferences *snapshot_preferences(const struct berth_snapshot *s, struct preferences_ix t)
{
    return ((const struct pool_entry *)pages_at(&s->preference_sets, t.v))->object;
}
static inline const struct topology_constraint *snapshot_topology_constraint(const struct berth_snapshot *s,
                                                                             struct topology_constraint_ix t)
{
    return ((const struct pool_entry *)pages_at(&s->topology_constraints, t.v))->object;
}
static inline const struct port_or_volume *snapshot_port_or_volume(const struct berth_snapshot *s, uint32_t t)
{
    return pages_at(&s->ports_and_volumes, t);
}
static inline const char *snapshot_text(const struct berth_snapshot *s, sym x)
{
    return intern_text(&s->names, x);
}
/* Returns the position of an instance's node. The instance must not have ended. */
static inline uint32_t snapshot_position(const struct berth_snapshot *s, const struct instance *i)
{
    assert(i->node.v != NONE);
    return s->layout->position[i->node.v];
}
/* Returns the capacity of a resource on a node; 0 where there is none. */
static inline int64_t snapshot_capacity(const struct berth_snapshot *s, uint32_t resource, uint32_t position)
{
    bool known = resource < s->layout->resources && s->layout->capacity[resource];
    return known ? s->layout->capacity[resource][position] : 0;
}
