/* profile_view.h - one cycle seen through several profiles: the profile that a workload names decides which nodes are
 * better.
 *
 * State that follows from a profile (keys and their bounds, GPU cost, the largest capacities) exists once per profile.
 * The cycle normally shows the policy's own profile, and another one during the placement attempts of workloads that
 * name it. Entering a view replays the changes made since it was left. So each view behaves as a cycle of its own, and
 * a plan with one profile has no overhead.
 */
#pragma once

#include "core/plan/cycle.h"

struct profile_view {
    const char *name; /* of the profile; NULL: the policy's own */
    struct profile profile;
    int32_t *key;
    int32_t *bounds[LEVELS_MAX + 1];
    const struct gpu_prices *gpu_prices;
    struct gpu_cost_rows *gpu_cost;
    int64_t largest[1 + PROFILE_RESOURCES_MAX];
    size_t as_of; /* number of changes applied, of cycle.changed */
};

/* Creates views for those other profiles of the policy that workloads name. The cycle must be new; it is left in its
 * first view. */
void views_begin(struct cycle *c, const struct berth_profile *others, const struct profile *resolved, size_t len);
/* Returns the view that the class names; 0, the policy's own, if it names none. */
uint32_t view_of(const struct cycle *c, const struct class *k);
void view_enter(struct cycle *c, uint32_t view);
