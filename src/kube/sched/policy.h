/* policy.h - the planning policy for a Kubernetes cluster: the requested profiles, preemption as Kubernetes has it, and
 * the settings of queues, policies and domains. Used by berth-kube and by the kubectl plugin, which predicts its
 * decisions.
 */
#pragma once

#include "kube/tenant/tenant.h"

/* The built-in profiles, with scores that fill nodes in other resources too: what is left of one resource may be needed
 * by another pod. */
struct kube_policy {
    struct berth_profile profile;
    struct berth_profile others[BERTH_OTHERS_MAX]; /* for scheduler names with a profile of their own */
    size_t others_len;
};
/* `profiles`: built-in profile of each scheduler name; "": `profile`. */
void kube_policy_init(struct kube_policy *k, const struct berth_profile *profile, const char *const *profiles,
                      size_t profiles_len);
/* Returns the profile of that name; `profile` if it is not among the others. */
const struct berth_profile *kube_policy_profile(const struct kube_policy *k, const char *name);
/* Returns the current policy; tenants may be NULL. Points into `k`; release it as plan_policy.h says. */
void kube_policy_read(const struct kube_policy *k, const struct tenants *tenants, struct plan_policy *ret);
