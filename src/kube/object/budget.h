/* budget.h - what limits how pods are stopped and started together: disruption budgets and pod groups.
 *
 * Read from policy/v1 PodDisruptionBudget and scheduling.k8s.io/v1alpha2 PodGroup.
 */
#pragma once

#include "kube/object/selector.h"

extern const struct kube_keep kube_keep_budget, kube_keep_group;

struct kube_budget {
    struct kube_meta meta;
    struct kube_selector select; /* of pods in its namespace */
    int32_t allowed;             /* that may be stopped now, as its controller says */
};

struct kube_group {
    struct kube_meta meta;
    uint32_t min; /* pods that start together; 0: no gang */
};

/* Objects without their envelope. False where they are malformed. */
bool kube_budget_read(struct arena *arena, struct proto_reader object, struct kube_budget *ret);
bool kube_group_read(struct arena *arena, struct proto_reader object, struct kube_group *ret);
