/* snapshot.h - the whole state at one moment, in columns; all that a decision may depend on.
 *
 * Immutable. Tables are shared copy-on-write with the cluster; what is held on nodes is gathered into columns in the
 * order of the layout. Two books exist only while some instance is stopping or reserved: `now` is what is free at
 * this moment, `later` what is free once every stopping instance has stopped and every reserved one has come.
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
    int64_t recheck_ns;  /* when a period of consumption ends */
    struct intern names; /* for reading */
    struct pages nodes, workloads, instances, things, holds, usages, waits, label_sets, facts;
    struct pages classes, rules, tastes, ties, pairs, postings, uses, tie_uses, gangs, claims;
    const struct quota *quotas; /* copies; their terms and books too */
    uint32_t quotas_len;
    const struct budget *budgets;
    uint32_t budgets_len;
    bool guaranteed;           /* some quota guarantees less than everything */
    const uint64_t *accounted; /* workloads that count against quotas */
    const uint64_t *timed;     /* workloads whose pods may run for a limited time; as many words: */
    uint32_t accounted_len;
    int64_t expires_ns; /* when the first of those pods runs out of it */
    uint32_t apart_loose;
    const struct resource *resources;
    uint32_t resources_len;

    uint8_t *state;  /* [position], enum berth_node_state */
    int64_t *since;  /* [position] */
    uint64_t *over;  /* positions where more is held than there is */
    int64_t **now;   /* [resource][position], NULL where no node has any */
    int64_t **later; /* NULL: the same as now */
    struct device_free *devices;
    /* [position]; NULL: nobody says. In use: the sum of what instances say, or what the node does if that is more; the sum
     * alone; and what those who say so had asked for. */
    int64_t *used[USES], *said[USES], *asked[USES];
    const uint32_t *ranks; /* [workload]: order of ids */
    uint64_t revision;     /* of the cluster */
    uint64_t *unsettled, *watched, *leaving;
    uint32_t unsettled_len, watched_len; /* words; leaving has as many as watched */
    uint32_t stopping, reserved, replacing;
    const uint32_t *idle; /* positions of nodes that are not ready */
    uint32_t idle_len;
};

/* Another snapshot over the same records and columns: records may be changed through pages_edit, columns replaced.
 * Freed before its original. */
struct berth_snapshot *snapshot_share(const struct berth_snapshot *s);

static inline const struct workload *snapshot_workload(const struct berth_snapshot *s, uint32_t i)
{
    return pages_at(&s->workloads, i);
}
/* What it says of its turn; NULL: nothing. */
static inline const struct claim *snapshot_claim(const struct berth_snapshot *s, uint32_t workload)
{
    const struct workload *w = snapshot_workload(s, workload);
    return w->claim == NONE ? NULL : pages_at(&s->claims, w->claim);
}
static inline const struct instance *snapshot_instance(const struct berth_snapshot *s, uint32_t i)
{
    return pages_at(&s->instances, i);
}
/* The slot of the instance that it takes over from, if that has not ended; else NONE. O(instances of the workload). */
uint32_t snapshot_replaced(const struct berth_snapshot *s, const struct instance *i);
static inline const struct class *snapshot_class(const struct berth_snapshot *s, struct class_ix k)
{
    return ((const struct pooled *)pages_at(&s->classes, k.v))->object;
}
static inline const struct rules *snapshot_rules(const struct berth_snapshot *s, struct rules_ix r)
{
    return ((const struct pooled *)pages_at(&s->rules, r.v))->object;
}
static inline const struct taste *snapshot_taste(const struct berth_snapshot *s, struct taste_ix t)
{
    return ((const struct pooled *)pages_at(&s->tastes, t.v))->object;
}
static inline const struct tie *snapshot_tie(const struct berth_snapshot *s, struct tie_ix t)
{
    return ((const struct pooled *)pages_at(&s->ties, t.v))->object;
}
static inline const struct thing *snapshot_thing(const struct berth_snapshot *s, uint32_t t)
{
    return pages_at(&s->things, t);
}
static inline const char *snapshot_text(const struct berth_snapshot *s, sym x)
{
    return intern_text(&s->names, x);
}
/* The position of an instance's node; not of one that has ended. */
static inline uint32_t snapshot_position(const struct berth_snapshot *s, const struct instance *i)
{
    assert(i->node.v != NONE);
    return s->layout->position[i->node.v];
}
/* The capacity of a resource on a node; 0 where there is none. */
static inline int64_t snapshot_capacity(const struct berth_snapshot *s, uint32_t resource, uint32_t position)
{
    bool known = resource < s->layout->resources && s->layout->capacity[resource];
    return known ? s->layout->capacity[resource][position] : 0;
}
