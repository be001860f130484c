/* rules_topology.c - naive rules about where other pods are: spread, affinity, anti-affinity. */
#include "rules_parts.h"

const char *rule_topology(const struct berth_node *node, const char *topology)
{
    if (text_same(topology, "node"))
        return node->id;
    if (text_same(topology, "zone"))
        return text_given(node->zone) ? node->zone : NULL;
    if (text_same(topology, "rack"))
        return text_given(node->rack) ? node->rack : NULL;
    const struct berth_label *label = label_find(node->labels, node->labels_len, topology);
    return label ? label->value : NULL;
}

/* A removed workload has no labels, so NOT_IN and NOT_EXISTS select it. */
static bool workload_selected(const struct world *world, const struct berth_term *select, size_t workload)
{
    if (workload == NONE)
        return rule_term_holds(select, NULL, 0);
    return rule_term_holds(select, world->workloads[workload].labels, world->workloads[workload].labels_len);
}

bool budget_counts(const struct world *world, size_t budget, size_t workload)
{
    return workload != NONE && workload_selected(world, &world->budgets[budget].select, workload);
}

/* Returns the number of selected pods on nodes with that value of the topology label; NULL: with any value. */
static uint32_t selected_count(const struct placement_query *placement_query, const struct berth_term *select,
                               const char *topology, const char *value)
{
    uint32_t len = 0;
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        const char *at = rule_topology(&placement_query->world->nodes[s->node], topology);
        if (query_counts(placement_query, s) && at && (!value || text_same(at, value)))
            len += workload_selected(placement_query->world, select, s->workload);
    }
    return len;
}

/* Returns true if no static rule of the node refuses the pod. */
static bool node_eligible(const struct placement_query *placement_query, size_t node)
{
    for (int rule = 0; rule < RULE_STATIC_LEN; rule++)
        if (rule_refuses(placement_query, (enum rule)rule, node))
            return false;
    return true;
}

/* Returns true if the node has the topology label of each required spread of the pod, and satisfies the pod's node
 * affinity and taints as far as spread->nodes requires that. */
static bool node_counts(const struct placement_query *placement_query, const struct berth_spread *spread, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    enum berth_spread_nodes nodes = spread->nodes;

    for (size_t i = 0; i < shape->spread_len; i++)
        if (!shape->spread[i].soft && !rule_topology(&placement_query->world->nodes[node], shape->spread[i].topology))
            return false;
    if ((nodes == BERTH_SPREAD_REQUIRED || nodes == BERTH_SPREAD_BOTH) &&
        rule_refuses(placement_query, RULE_LABELS, node))
        return false;
    return (nodes != BERTH_SPREAD_TOLERATED && nodes != BERTH_SPREAD_BOTH) ||
           !rule_refuses(placement_query, RULE_TAINTS, node);
}

static bool spread_node_eligible(const struct placement_query *placement_query, const struct berth_spread *spread,
                                 size_t node)
{
    return spread->nodes == BERTH_SPREAD_POSSIBLE ? node_eligible(placement_query, node)
                                                  : node_counts(placement_query, spread, node);
}

/* Returns the number of pods in a domain that count for a required spread; `after`: once all stops are done. */
static uint32_t spread_count(const struct placement_query *placement_query, const struct berth_spread *spread,
                             const char *value, bool after)
{
    uint32_t len = 0;
    bool possible = spread->nodes == BERTH_SPREAD_POSSIBLE;

    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        const char *at = rule_topology(&placement_query->world->nodes[s->node], spread->topology);
        bool stays = s->is.state != BERTH_STOPPING || (possible && !after);
        if (query_counts(placement_query, s) && stays && at && text_same(at, value) &&
            (possible || node_counts(placement_query, spread, s->node)))
            len += workload_selected(placement_query->world, &spread->select, s->workload);
    }
    return len;
}

/* Returns the lowest count of any domain with an eligible node; 0 if there is none or fewer domains than
 * min_domains. */
static uint32_t spread_least(const struct placement_query *placement_query, const struct berth_spread *spread,
                             bool after)
{
    uint32_t least = UINT32_MAX, domains = 0;
    for (size_t n = 0; n < placement_query->world->nodes_len; n++) {
        const char *value = rule_topology(&placement_query->world->nodes[n], spread->topology);
        bool again = false;
        if (!value || !spread_node_eligible(placement_query, spread, n))
            continue;
        for (size_t m = 0; m < n && !again; m++) {
            const char *other = rule_topology(&placement_query->world->nodes[m], spread->topology);
            again = other && text_same(other, value) && spread_node_eligible(placement_query, spread, m);
        }
        domains += !again;
        uint32_t len = spread_count(placement_query, spread, value, after);
        least = len < least ? len : least;
    }
    return domains == 0 || domains < spread->min_domains ? 0 : least;
}

/* As in Kubernetes, the pod counts itself only if its own term selects it. */
bool spread_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);

    for (size_t i = 0; i < shape->spread_len; i++) {
        const struct berth_spread *spread = &shape->spread[i];
        if (spread->soft)
            continue;
        const char *value = rule_topology(&placement_query->world->nodes[node], spread->topology);
        if (!value)
            return true;
        uint32_t self = workload_selected(placement_query->world, &spread->select, placement_query->workload);
        for (int after = 0; after < 2; after++)
            if (spread_count(placement_query, spread, value, after) + self >
                spread_least(placement_query, spread, after) + spread->max_skew)
                return true;
    }
    return false;
}

/* The first pod of a group with affinity to itself may be placed anywhere. */
bool near_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);

    for (size_t i = 0; i < shape->near_len; i++) {
        const struct berth_affinity *near = &shape->near[i];
        if (near->apart || near->select.weight)
            continue;
        const char *value = rule_topology(&placement_query->world->nodes[node], near->topology);
        if (!value)
            return true;
        if (selected_count(placement_query, &near->select, near->topology, value))
            continue;
        if (selected_count(placement_query, &near->select, near->topology, NULL) ||
            !workload_selected(placement_query->world, &near->select, placement_query->workload))
            return true;
    }
    return false;
}

/* Returns true if the anti-affinity in the present shape of the instance's workload keeps the pod from the node. A
 * removed workload keeps no pod away. */
static bool inst_anti_affinity_refuses(const struct placement_query *placement_query, const struct inst *inst,
                                       size_t node)
{
    if (inst->workload == NONE)
        return false;
    const struct berth_shape *shape = &placement_query->world->workloads[inst->workload].shape;
    for (size_t i = 0; i < shape->near_len; i++) {
        const struct berth_affinity *near = &shape->near[i];
        if (!near->apart || near->select.weight)
            continue;
        const char *here = rule_topology(&placement_query->world->nodes[node], near->topology);
        const char *there = rule_topology(&placement_query->world->nodes[inst->node], near->topology);
        if (here && there && text_same(here, there) &&
            workload_selected(placement_query->world, &near->select, placement_query->workload))
            return true;
    }
    return false;
}

/* A node without the topology label satisfies every anti-affinity. */
bool apart_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);

    for (size_t i = 0; i < shape->near_len; i++) {
        const struct berth_affinity *near = &shape->near[i];
        const char *value = rule_topology(&placement_query->world->nodes[node], near->topology);
        if (near->apart && !near->select.weight && value &&
            selected_count(placement_query, &near->select, near->topology, value))
            return true;
    }
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (query_counts(placement_query, s) && inst_anti_affinity_refuses(placement_query, s, node))
            return true;
    }
    return false;
}
