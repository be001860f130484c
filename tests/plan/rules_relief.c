/* rules_relief.c - naive rules about real usage and about headroom. */
#include "rules_relief.h"

/* ---- usage ------------------------------------------------------------------------------------------------------ */

int64_t inst_used(const struct inst *s, const char *resource)
{
    if (!state_active(s->is.state))
        return -1;
    for (size_t i = 0; i < s->is.usage_len; i++)
        if (text_same(s->is.usage[i].resource, resource))
            return s->is.usage[i].used;
    return -1;
}

int64_t node_uses(const struct world *world, size_t node, const char *resource)
{
    int64_t sum = 0, said = amount_of(world->nodes[node].used, world->nodes[node].used_len, resource);

    for (size_t i = 0; i < world->instances_len; i++) {
        const struct inst *s = &world->instances[i];
        if (s->node == node && state_active(s->is.state) && inst_used(s, resource) > 0)
            sum += inst_used(s, resource);
    }
    return said > sum ? said : sum;
}

bool node_is_reachable(const struct world *world, size_t node)
{
    return world->nodes[node].state == BERTH_NODE_READY || world->nodes[node].state == BERTH_NODE_CORDONED;
}

const struct berth_fact *fact_find(const struct world *world, enum berth_fact_kind kind, uint64_t subject,
                                   const char *key)
{
    for (size_t i = 0; i < world->facts_len; i++)
        if (world->facts[i].kind == kind && world->facts[i].subject == subject &&
            (subject || text_same(world->facts[i].key, key)))
            return &world->facts[i];
    return NULL;
}

bool uses_above(const struct world *world, size_t node, int64_t used, uint32_t percent)
{
    const struct berth_node *n = &world->nodes[node];
    int64_t has = amount_of(n->allocatable, n->allocatable_len, "memory");
    return has > 0 && (__int128)used * 100 > (__int128)has * percent;
}

bool node_pressed(const struct world *world, size_t node)
{
    const struct berth_pressure *policy = &world->policy.pressure;
    bool known = fact_find(world, BERTH_FACT_PRESSURE, 0, world->nodes[node].id) != NULL;
    int64_t used = node_uses(world, node, "memory");

    return policy->high_percent && node_is_reachable(world, node) &&
           uses_above(world, node, used, known ? policy->low_percent : policy->high_percent);
}

bool pressure_refuses(const struct placement_query *placement_query, size_t node)
{
    return node_pressed(placement_query->world, node);
}

/* ---- headroom --------------------------------------------------------------------------------------------------- */

static bool same_zone(const struct world *world, size_t a, size_t b)
{
    return world->nodes[b].state == BERTH_NODE_READY && text_same(world->nodes[a].zone, world->nodes[b].zone);
}

static bool reserve_refuses(const struct placement_query *placement_query, size_t node,
                            const struct berth_headroom_amount *reserve)
{
    const struct world *world = placement_query->world;
    const struct berth_shape *shape =
        placement_query->shape ? placement_query->shape : &world->workloads[placement_query->workload].shape;
    int64_t need = amount_of(shape->requests, shape->requests_len, reserve->resource), free = 0, has = 0;
    struct placement_query all = {.world = world};
    bool known = false;

    for (size_t n = 0; n < world->nodes_len; n++)
        for (size_t i = 0; i < world->nodes[n].allocatable_len; i++)
            known |= text_same(world->nodes[n].allocatable[i].resource, reserve->resource);
    if (!known) /* no node has the resource: there is no headroom to keep */
        return false;
    for (size_t n = 0; n < world->nodes_len; n++) {
        if (!same_zone(world, node, n))
            continue;
        int64_t capacity = rule_capacity(world, n, reserve->resource);
        int64_t now = capacity - rule_active(&all, n, reserve->resource);
        int64_t later = capacity - rule_reserved(&all, n, reserve->resource), least = now < later ? now : later;
        has += capacity;
        free += least > 0 ? least : 0;
    }
    int64_t share = (int64_t)((__int128)has * reserve->permille / 1000);
    int64_t keep = share > reserve->amount ? share : reserve->amount;
    return keep > 0 && need > 0 && free - need < keep;
}

/* Checks ready nodes only; the others refuse every pod anyway. */
bool headroom_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_headroom *h = &placement_query->world->policy.headroom;

    if (placement_query->moves ||
        placement_query->world->workloads[placement_query->workload].priority >= h->priority ||
        placement_query->world->nodes[node].state != BERTH_NODE_READY)
        return false;
    for (size_t i = 0; i < h->reserves_len; i++)
        if (reserve_refuses(placement_query, node, &h->reserves[i]))
            return true;
    return false;
}
