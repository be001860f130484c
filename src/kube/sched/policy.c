#include "kube/sched/policy.h"

#include <string.h>

#include "berth.h"

static void other_add(struct kube_policy *k, const char *name)
{
    const struct berth_profile *from = berth_profile_find(name);
    if (!from || k->others_len == BERTH_OTHERS_MAX || kube_policy_profile(k, name) != &k->profile)
        return;
    k->others[k->others_len] = *from;
    k->others[k->others_len++].allow_over = true;
}

void kube_policy_init(struct kube_policy *k, const struct berth_profile *profile, const char *const *profiles,
                      size_t profiles_len)
{
    *k = (struct kube_policy){.profile = *profile};
    k->profile.allow_over = true;
    for (size_t i = 0; i < profiles_len; i++)
        if (profiles[i][0])
            other_add(k, profiles[i]);
}

const struct berth_profile *kube_policy_profile(const struct kube_policy *k, const char *name)
{
    for (size_t i = 0; name && i < k->others_len; i++)
        if (strcmp(k->others[i].name, name) == 0)
            return &k->others[i];
    return &k->profile;
}

void kube_policy_read(const struct kube_policy *k, const struct tenants *tenants, struct plan_policy *ret)
{
    *ret = (struct plan_policy){0};
    if (tenants && tenants_in_use(tenants))
        tenants_policy(tenants, ret);
    ret->policy.profile = &k->profile;
    ret->policy.others = k->others;
    ret->policy.others_len = k->others_len;
    ret->policy.preemption =
        (struct berth_preemption){.on = true, .services = true, .clears = true, .break_budgets = true};
}
