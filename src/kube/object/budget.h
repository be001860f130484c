/* budget.h - disruption budgets and pod groups: limits on stopping and starting pods together.
 *
 * Parsed from policy/v1 PodDisruptionBudget and scheduling.k8s.io/v1alpha2 PodGroup.
 */
#pragma once

#include "kube/object/selector.h"

extern const struct kube_field_filter kube_keep_budget, kube_keep_group;

struct kube_budget {
    struct kube_meta meta;
    struct kube_selector select; /* selects pods in its namespace */
    int32_t allowed;             /* how many may be stopped now, from its status */
};

struct kube_group {
    struct kube_meta meta;
    uint32_t min; /* minCount of the gang policy; 0: no gang */
};

/* Parse objects without their envelope; false: malformed. */
bool kube_budget_read(struct arena *arena, struct proto_reader object, struct kube_budget *ret);
bool kube_group_read(struct arena *arena, struct proto_reader object, struct kube_group *ret);
