/* rules.c - the naive rules of placement. */
#include "rules_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool text_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool text_given(const char *s)
{
    return s && *s;
}

bool text_in(const char *s, const char *const *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text_same(s, list[i]))
            return true;
    return false;
}

bool state_active(enum berth_state state)
{
    return state == BERTH_ASSIGNED || state == BERTH_STARTING || state == BERTH_RUNNING || state == BERTH_STOPPING;
}

bool state_holds_place(enum berth_state state)
{
    return state_active(state) || state == BERTH_RESERVED;
}

bool query_counts(const struct placement_query *placement_query, const struct inst *inst)
{
    for (size_t i = 0; i < placement_query->gone_len; i++)
        if (placement_query->gone[i] == inst->is.id)
            return false;
    return state_holds_place(inst->is.state);
}

enum berth_on_lost lost_policy(const struct berth_workload *w)
{
    if (w->on_lost != BERTH_LOST_DEFAULT)
        return w->on_lost;
    return w->kind == BERTH_SERVICE && w->replicas > 1 ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
}

bool inst_given_up(const struct world *world, const struct inst *inst, bool alarm)
{
    bool lost = world->nodes[inst->node].state == BERTH_NODE_LOST && state_active(inst->is.state);
    return lost && !alarm && inst->workload != NONE &&
           lost_policy(&world->workloads[inst->workload]) == BERTH_LOST_REPLACE;
}

const struct berth_shape *query_shape(const struct placement_query *placement_query)
{
    return placement_query->shape ? placement_query->shape
                                  : &placement_query->world->workloads[placement_query->workload].shape;
}

/* ---- rules about the node alone --------------------------------------------------------------------------------- */

static bool state_refuses(const struct placement_query *placement_query, size_t node)
{
    return placement_query->world->nodes[node].state != BERTH_NODE_READY;
}

static bool name_refuses(const struct placement_query *placement_query, size_t node)
{
    const char *name = query_shape(placement_query)->node;
    return text_given(name) && !text_same(name, placement_query->world->nodes[node].id);
}

static bool domain_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    return shape->domains_len &&
           !text_in(placement_query->world->nodes[node].domain, shape->domains, shape->domains_len);
}

/* A node without an architecture matches no requested architecture. */
static bool arch_refuses(const struct placement_query *placement_query, size_t node)
{
    const char *arch = query_shape(placement_query)->arch;
    return text_given(arch) && !text_same(arch, placement_query->world->nodes[node].arch);
}

static bool runtime_refuses(const struct placement_query *placement_query, size_t node)
{
    const char *runtime = query_shape(placement_query)->runtime;
    const struct berth_node *n = &placement_query->world->nodes[node];
    return text_given(runtime) && n->runtimes_len && !text_in(runtime, n->runtimes, n->runtimes_len);
}

const struct berth_label *label_find(const struct berth_label *labels, size_t len, const char *key)
{
    for (size_t i = 0; i < len; i++)
        if (text_same(labels[i].key, key))
            return &labels[i];
    return NULL;
}

static bool text_integer(const char *s, long long *ret_value)
{
    char *end = NULL;
    errno = 0;
    if (!text_given(s) || strspn(s, "+-0123456789") != strlen(s))
        return false;
    *ret_value = strtoll(s, &end, 10);
    return !errno && !*end;
}

static bool expr_compares(const struct berth_expr *e, const struct berth_label *label)
{
    long long has, bound;
    if (!label || !text_integer(label->value, &has) || !text_integer(e->values[0], &bound))
        return false;
    return e->match == BERTH_GT ? has > bound : has < bound;
}

static bool expr_holds(const struct berth_expr *e, const struct berth_label *labels, size_t len)
{
    const struct berth_label *label = label_find(labels, len, e->key);

    switch (e->match) {
    case BERTH_IN: return label && text_in(label->value, e->values, e->values_len);
    case BERTH_NOT_IN: return !label || !text_in(label->value, e->values, e->values_len);
    case BERTH_EXISTS: return label != NULL;
    case BERTH_NOT_EXISTS: return label == NULL;
    case BERTH_GT:
    case BERTH_LT: return expr_compares(e, label);
    }
    return false;
}

bool rule_term_holds(const struct berth_term *term, const struct berth_label *labels, size_t labels_len)
{
    for (size_t i = 0; i < term->exprs_len; i++)
        if (!expr_holds(&term->exprs[i], labels, labels_len))
            return false;
    return term->exprs_len > 0;
}

static bool labels_refuse(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    const struct berth_node *n = &placement_query->world->nodes[node];

    for (size_t i = 0; i < shape->require_len; i++)
        if (rule_term_holds(&shape->require[i], n->labels, n->labels_len))
            return false;
    return shape->require_len > 0;
}

static bool tolerates(const struct berth_toleration *t, const struct berth_taint *taint)
{
    if (t->effect != BERTH_EFFECT_ANY && t->effect != taint->effect)
        return false;
    if (!text_given(t->key))
        return t->exists;
    return text_same(t->key, taint->key) && (t->exists || text_same(t->value, taint->value));
}

static bool taints_refuse(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    const struct berth_node *n = &placement_query->world->nodes[node];

    for (size_t i = 0; i < n->taints_len; i++) {
        bool tolerated = n->taints[i].effect == BERTH_PREFER_NO_SCHEDULE;
        for (size_t k = 0; k < shape->tolerations_len; k++)
            tolerated |= tolerates(&shape->tolerations[k], &n->taints[i]);
        if (!tolerated)
            return true;
    }
    return false;
}

/* Returns the page size of a resource of huge pages; 0: another resource. */
static int64_t page_size_of(const char *resource)
{
    if (strcmp(resource, "hugepages-2Mi") == 0)
        return 2 * MIB;
    if (strcmp(resource, "hugepages-1Gi") == 0)
        return GIB;
    return 0;
}

static bool pages_refuse(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    int64_t held_to = placement_query->world->nodes[node].page_size_bytes;

    for (size_t i = 0; i < shape->requests_len; i++) {
        int64_t size = page_size_of(shape->requests[i].resource);
        if (size && held_to && size != held_to && shape->requests[i].amount > 0)
            return true;
    }
    return false;
}

static bool volume_reach_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    const struct berth_node *n = &placement_query->world->nodes[node];

    for (size_t i = 0; i < shape->volumes_len; i++) {
        const struct berth_volume *v = world_find_volume(placement_query->world, shape->volumes[i]);
        if (text_given(v->zone) && !text_same(v->zone, n->zone))
            return true;
        if (text_given(v->node) && !text_same(v->node, n->id))
            return true;
    }
    return false;
}

/* ---- table of all rules ----------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*refuses)(const struct placement_query *placement_query, size_t node);
} rules[RULES_LEN] = {
    [RULE_STATE] = {"state",        state_refuses       },
    [RULE_NAME] = {"name",         name_refuses        },
    [RULE_DOMAIN] = {"domain",       domain_refuses      },
    [RULE_ARCH] = {"arch",         arch_refuses        },
    [RULE_RUNTIME] = {"runtime",      runtime_refuses     },
    [RULE_LABELS] = {"labels",       labels_refuse       },
    [RULE_TAINTS] = {"taints",       taints_refuse       },
    [RULE_PAGES] = {"pages",        pages_refuse        },
    [RULE_GPU_KIND] = {"gpu-kind",     gpu_kind_refuses    },
    [RULE_OVER] = {"over",         over_refuses        },
    [RULE_PRESSURE] = {"pressure",     pressure_refuses    },
    [RULE_RESOURCES] = {"resources",    resources_refuse    },
    [RULE_VOLUME_REACH] = {"volume-reach", volume_reach_refuses},
    [RULE_GPU] = {"gpu",          gpu_refuses         },
    [RULE_PORTS] = {"ports",        ports_refuse        },
    [RULE_VOLUME_BUSY] = {"volume-busy",  volume_busy_refuses },
    [RULE_ATTACH] = {"attach",       attach_refuses      },
    [RULE_MAX_PER_NODE] = {"max-per-node", max_per_node_refuses},
    [RULE_SPREAD] = {"spread",       spread_refuses      },
    [RULE_NEAR] = {"near",         near_refuses        },
    [RULE_APART] = {"apart",        apart_refuses       },
    [RULE_HEADROOM] = {"headroom",     headroom_refuses    },
};

const char *rule_name(enum rule rule)
{
    return rule < RULES_LEN ? rules[rule].name : "none";
}

bool rule_refuses(const struct placement_query *placement_query, enum rule rule, size_t node)
{
    return rules[rule].refuses(placement_query, node);
}

enum rule rules_first(const struct placement_query *placement_query, size_t node)
{
    for (int rule = 0; rule < RULES_LEN; rule++)
        if (rule_refuses(placement_query, (enum rule)rule, node))
            return (enum rule)rule;
    return RULES_LEN;
}

uint32_t rules_all(const struct placement_query *placement_query, size_t node)
{
    uint32_t bits = 0;
    for (int rule = 0; rule < RULES_LEN; rule++)
        bits |= rule_refuses(placement_query, (enum rule)rule, node) ? UINT32_C(1) << rule : 0;
    return bits;
}
