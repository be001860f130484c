/* rules.h - may this node take this pod? The naive answer, rule by rule, from the words of berth.h alone.
 *
 * Nothing is cached, nothing is fast: each rule is one small function that looks at the whole world. Where berth.h is
 * silent, Kubernetes speaks; where both are, the comment at the rule says what was chosen.
 *
 * To add one: a row here, a function and a row in rules.c.
 */
#pragma once

#include "world.h"

enum rule {
    /* Of the node alone. */
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
    /* Of what else is there, or of the volumes. */
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

/* A pod of `workload` at the door. */
struct ask {
    const struct world *world;
    size_t workload;
    const struct berth_shape *shape; /* NULL: the workload's present one */
    const uint64_t *gone;            /* instances that count as gone already */
    size_t gone_len;
    bool moves; /* it takes over from another: no new demand */
};

const char *rule_name(enum rule rule);
bool rule_refuses(const struct ask *ask, enum rule rule, size_t node);
/* The first rule that refuses; RULES_LEN: none, the node takes the pod. */
enum rule rules_first(const struct ask *ask, size_t node);
/* All of them, a bit each. */
uint32_t rules_all(const struct ask *ask, size_t node);

/* ---- parts that the judge needs too ------------------------------------------------------------------------------ */

bool text_same(const char *a, const char *b); /* NULL and "" are the same */
bool state_active(enum berth_state state);    /* assigned, starting, running, stopping */
bool state_seated(enum berth_state state);    /* active or reserved */
/* Seated and not in the list of those gone. */
bool ask_counts(const struct ask *ask, const struct seat *seat);

/* What happens to its pods on a lost node: never DEFAULT. */
enum berth_on_lost lost_policy(const struct berth_workload *w);
/* On a lost node, of a workload that would rather run twice: it counts for nothing but what it holds. Not in an alarm. */
bool seat_given_up(const struct world *world, const struct seat *seat, bool alarm);

int64_t amount_of(const struct berth_amount *list, size_t len, const char *resource);
/* What the shape asks for, one by one: what it lists, and one of `pods` if it does not list that. */
size_t rule_requests_len(const struct berth_shape *shape);
struct berth_amount rule_request(const struct berth_shape *shape, size_t i);
/* Allocatable times over-commit, less what a cumulative resource has consumed in its period. */
int64_t rule_capacity(const struct world *world, size_t node, const char *resource);
/* Requested by active instances; and by those that are neither stopping nor reserved, plus the reserved. */
int64_t rule_active(const struct ask *ask, size_t node, const char *resource);
int64_t rule_promised(const struct ask *ask, size_t node, const char *resource);
bool request_refused(const struct ask *ask, size_t node, struct berth_amount request);

/* How many thousandths one instance of the shape holds of each of its devices; 0: no GPU. */
uint32_t rule_gpu_share(const struct berth_shape *shape);
/* Is the device of a model and size that the shape asks for? */
bool rule_gpu_suits(const struct berth_gpu *gpu, const struct berth_shape *shape);
/* May one pod of the shape take (its share of) this device, as far as the others on it are concerned? */
bool rule_gpu_free(const struct ask *ask, size_t node, size_t device, const struct berth_shape *shape);
/* The lowest devices that will do; 0: not enough of them. */
uint64_t rule_gpu_pick(const struct ask *ask, size_t node);

/* Do pods of the workload count against the budget? */
bool budget_counts(const struct world *world, size_t budget, size_t workload);
bool rule_ports_overlap(const struct berth_port *a, const struct berth_port *b);
bool rule_term_holds(const struct berth_term *term, const struct berth_label *labels, size_t labels_len);
/* The value of a topology label of a node; NULL: has none. */
const char *rule_topology(const struct berth_node *node, const char *topology);
