/* shape.h - what a pod requires of a node, in the form that filters and scores read.
 *
 * Equal descriptions become one `struct class`; pods of a class are planned together. Three parts of a class are pooled
 * separately, because far fewer of them differ than classes do: `rules` (constraints on fixed node properties: one mask
 * per plan), `taste` (preferences among them: one column per plan) and `tie` (topology constraints between pods).
 * Everything here is immutable and lives as long as its cluster.
 *
 * To add a field: here, in shape.c (key and object), and in describe.c (its validation).
 */
#pragma once

#include <string.h>

#include "base/intern.h"
#include "berth.h"

struct class_ix {
    uint32_t v;
};
struct constraints_ix {
    uint32_t v;
};
struct preferences_ix {
    uint32_t v;
};
struct topology_constraint_ix {
    uint32_t v;
};

struct syms {
    const sym *at;
    uint32_t len;
};

struct resource_need {
    uint32_t resource;
    int64_t amount; /* above 0 */
};

struct expr {
    sym key;
    enum berth_match match;
    struct syms values;
    int64_t number; /* of GT and LT */
};

struct term {
    const struct expr *exprs;
    uint32_t exprs_len;
    int32_t weight;
};

struct terms {
    const struct term *at;
    uint32_t len;
};

struct toleration {
    sym key, value;
    bool exists;
    enum berth_effect effect;
};

struct tolerations {
    const struct toleration *at;
    uint32_t len;
};

struct gpu_need {
    uint32_t count, milli; /* of each device; milli is BERTH_GPU_MILLI for whole ones */
    int64_t memory_bytes;
    struct syms models, kinds; /* as written; in upper case, for matching devices */
};

/* Returns the device memory to book. A device that is held wholly needs no booking. */
static inline int64_t gpu_memory_booked(const struct gpu_need *need)
{
    return need->milli < BERTH_GPU_MILLI ? need->memory_bytes : 0;
}

struct constraints {
    sym node, arch, runtime;
    struct syms domains;
    struct terms require;
    struct tolerations tolerations;
    struct gpu_need gpu;
    int64_t page_size_bytes; /* page size of the huge pages requested; 0: none, -1: several sizes */
};

struct preferences {
    struct terms prefer;
    struct tolerations tolerations;
    struct syms images;
    sym near_zone;
    sym profile; /* 0: the policy's own profile */
};

enum topology_constraint_kind { TOPOLOGY_SPREAD, TOPOLOGY_AFFINITY, TOPOLOGY_ANTI_AFFINITY, TOPOLOGY_BUDGET };

struct topology_constraint {
    enum topology_constraint_kind kind;
    sym topology;
    struct term select;
    int32_t weight;                 /* 0: required */
    uint32_t max_skew, min_domains; /* of a spread */
    enum berth_spread_nodes nodes;
    /* Label pairs of which every selected workload has at least one. Empty: there are no such pairs, and all label sets
     * are searched. */
    const uint32_t *anchors;
    uint32_t anchors_len;
    uint32_t next_apart; /* next required `apart` constraint with the same first anchor */
};

struct limit {
    uint32_t resource;
    enum berth_limit_kind kind;
    int64_t amount, max;
};

struct class {
    struct constraints_ix constraints;
    struct preferences_ix preferences;
    const struct resource_need *needs;
    uint32_t needs_len;
    struct gpu_need gpu;
    const uint32_t *ports, *volumes; /* indices of things */
    uint32_t ports_len, volumes_len;
    const struct topology_constraint_ix *topology_constraints;
    uint32_t topology_constraints_len;
    uint32_t max_per_node;
    const struct limit *limits;
    uint32_t limits_len;
    bool adjustable; /* some limit may be raised */
};

/* Returns how much of a resource one pod requests. */
static inline int64_t class_need(const struct class *k, uint32_t resource)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        if (k->needs[i].resource == resource)
            return k->needs[i].amount;
    return 0;
}

/* The same, faster if `at` is the index of the resource in the list of needs, as in most classes. */
static inline int64_t class_need_at(const struct class *k, uint32_t at, uint32_t resource)
{
    return at < k->needs_len && k->needs[at].resource == resource ? k->needs[at].amount : class_need(k, resource);
}

/* Pools of equal objects: the key, a byte string that identifies the object, and the object. */
struct pool_entry {
    const void *key;
    size_t key_len;
    const void *object;
};

struct pool {
    struct map map;
    struct pages items; /* of struct pool_entry */
};

void pool_init(struct pool *p);
void pool_done(struct pool *p);

struct cluster_shapes {
    struct arena arena;
    struct pool classes, constraints, preference_sets, topology_constraints;
};

struct berth_cluster;

/* Returns whether the port is at all addresses of the node. */
static inline bool port_everywhere(const struct berth_port *p)
{
    return !p->address || !*p->address || strcmp(p->address, "0.0.0.0") == 0;
}

void shapes_init(struct cluster_shapes *s);
void shapes_done(struct cluster_shapes *s);

/* Returns the class of a valid description. Adds new resources, ports and strings to the cluster. */
struct class_ix class_put(struct berth_cluster *c, const struct berth_shape *shape);
/* The same for a budget's term. */
struct topology_constraint_ix budget_selector_put(struct berth_cluster *c, const struct berth_term *select);

/* Labels, sorted by key. term_holds returns whether the term holds for them. */
struct label {
    sym key, value;
};
struct labels {
    const struct label *at;
    uint32_t len;
};
bool term_holds(const struct intern *names, const struct term *term, struct labels labels);
bool expr_holds(const struct intern *names, const struct expr *expr, sym value, bool present);
/* Returns the value of a key, or MAP_NONE. */
sym labels_find(struct labels labels, sym key);
/* Copies the labels of a valid description to `to`, sorted by key. */
void labels_fill(struct intern *names, const struct berth_label *from, size_t len, struct label *to);
