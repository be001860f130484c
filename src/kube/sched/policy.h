/* policy.h - what plans of a Kubernetes cluster are made by: the profiles that were asked for, preemption as Kubernetes has it, and what queues, policies and
 * domains say. For all that plan: berth-kube, and whoever tells people what it will do.
 */
#pragma once

#include "kube/tenant/tenant.h"

/* Profiles are as they are built in, but others fill nodes, too: what is over in one thing may have another. */
struct kube_policy {
    struct berth_profile profile;
    struct berth_profile others[BERTH_OTHERS_MAX]; /* of pods whose scheduler's name has a profile of its own */
    size_t others_len;
};
/* `profiles`: of names of schedulers, built in; "": `profile`. */
void kube_policy_init(struct kube_policy *k, const struct berth_profile *profile, const char *const *profiles,
                      size_t profiles_len);
/* The one of that name; `profile` where it is not among the others. */
const struct berth_profile *kube_policy_profile(const struct kube_policy *k, const char *name);
/* As things are now; tenants may be NULL. Points into `k`; to be given back as plan_policy.h says. */
void kube_policy_read(const struct kube_policy *k, const struct tenants *tenants, struct plan_policy *ret);
