/* rules.h - naive placement rules: may this node take this pod? Written rule by rule from the words of berth.h alone.
 *
 * There are no caches and no optimisations: each rule is one small function that scans the whole world. Where berth.h
 * does not define a case, the rule follows Kubernetes; where both are silent, the comment at the rule says what was
 * chosen.
 *
 * To add a rule: a row here, a function and a row in rules.c.
 */
#pragma once

#include "world.h"

enum rule {
    /* Rules about the node alone. */
    RULE_STATE,
    RULE_NAME,
    RULE_DOMAIN,
    RULE_ARCH,
    RULE_RUNTIME,
    RULE_LABELS,
    RULE_TAINTS,
    RULE_PAGES,
    RULE_GPU_KIND,
    RULE_STATIC_LEN,
    /* Rules about other pods or about volumes. */
    RULE_OVER = RULE_STATIC_LEN,
    RULE_PRESSURE,
    RULE_RESOURCES,
    RULE_VOLUME_REACH,
    RULE_GPU,
    RULE_PORTS,
    RULE_VOLUME_BUSY,
    RULE_ATTACH,
    RULE_MAX_PER_NODE,
    RULE_SPREAD,
    RULE_NEAR,
    RULE_APART,
    RULE_HEADROOM,
    RULES_LEN,
};

/* One question to the rules: may a pod of `workload` be placed? */
struct placement_query {
    const struct world *world;
    size_t workload;
    const struct berth_shape *shape; /* NULL: the workload's present shape */
    const uint64_t *gone;            /* instances that are treated as already gone */
    size_t gone_len;
    bool moves; /* the pod replaces another instance: it adds no demand */
};

const char *rule_name(enum rule rule);
bool rule_refuses(const struct placement_query *placement_query, enum rule rule, size_t node);
/* Returns the first rule that refuses the node, or RULES_LEN if the node may take the pod. */
enum rule rules_first(const struct placement_query *placement_query, size_t node);
/* Returns all rules that refuse the node, one bit per rule. */
uint32_t rules_all(const struct placement_query *placement_query, size_t node);

/* ---- helpers that the plan checks use, too ---------------------------------------------------------------------- */

bool text_same(const char *a, const char *b);   /* NULL equals "" */
bool state_active(enum berth_state state);      /* assigned, starting, running, stopping */
bool state_holds_place(enum berth_state state); /* active or reserved */
/* Returns true if the instance is active or reserved and not in ask->gone. */
bool query_counts(const struct placement_query *placement_query, const struct inst *inst);

/* Returns how the workload's pods on a lost node are handled; never BERTH_LOST_DEFAULT. */
enum berth_on_lost lost_policy(const struct berth_workload *w);
/* True for an active instance on a lost node whose workload has BERTH_LOST_REPLACE: it still holds resources but no
 * longer counts as a running pod. Never true during an alarm. */
bool inst_given_up(const struct world *world, const struct inst *inst, bool alarm);

int64_t amount_of(const struct berth_amount *list, size_t len, const char *resource);
/* The requests of the shape by index: the listed ones, then 1 of `pods` if the shape does not list `pods`. */
size_t rule_requests_len(const struct berth_shape *shape);
struct berth_amount rule_request(const struct berth_shape *shape, size_t i);
/* Returns allocatable times over-commit, less the consumption of a cumulative resource in its present period. */
int64_t rule_capacity(const struct world *world, size_t node, const char *resource);
/* rule_active: the sum requested by active instances. rule_reserved: the sum requested by instances that are not
 * stopping, with the reserved ones. */
int64_t rule_active(const struct placement_query *placement_query, size_t node, const char *resource);
int64_t rule_reserved(const struct placement_query *placement_query, size_t node, const char *resource);
bool request_refused(const struct placement_query *placement_query, size_t node, struct berth_amount request);

/* Returns the thousandths that one instance of the shape holds of each of its devices; 0: the shape has no GPU. */
uint32_t rule_gpu_share(const struct berth_shape *shape);
/* Returns true if the device is healthy and has the model and the memory that the shape asks for. */
bool rule_gpu_suits(const struct berth_gpu *gpu, const struct berth_shape *shape);
/* Returns true if the device suits the shape and the instances on it leave enough for one pod. */
bool rule_gpu_free(const struct placement_query *placement_query, size_t node, size_t device,
                   const struct berth_shape *shape);
/* Returns the lowest-numbered devices that one pod can take, one bit each; 0: there are too few. */
uint64_t rule_gpu_pick(const struct placement_query *placement_query, size_t node);

/* Returns true if pods of the workload count against the budget. */
bool budget_counts(const struct world *world, size_t budget, size_t workload);
bool rule_ports_overlap(const struct berth_port *a, const struct berth_port *b);
bool rule_term_holds(const struct berth_term *term, const struct berth_label *labels, size_t labels_len);
/* Returns the node's value of a topology label, or NULL. */
const char *rule_topology(const struct berth_node *node, const char *topology);
