/* view.h - a cycle as several profiles see it: which nodes are better is up to the profile that a workload names.
 *
 * What follows from a profile (keys and their bounds, worth, the largest capacities) is there once for each. The cycle is seen by the
 * policy's own, and by another during the turns of workloads that name it. What was taken and given back meanwhile is caught up with as a
 * view is entered; so each view is, at its turns, what it were in a cycle of its own, and a plan by one profile knows nothing of this.
 */
#pragma once

#include "core/plan/cycle.h"

struct view {
    const char *name; /* of the profile; NULL: the policy's own */
    struct profile profile;
    int32_t *key;
    int32_t *bounds[LEVELS_MAX + 1];
    const struct market *market;
    struct worth_book *worth;
    int64_t largest[1 + PROFILE_RESOURCES_MAX];
    size_t as_of; /* changes that it knows, of cycle.changed */
};

/* The policy's other profiles, as far as workloads name them; the cycle is new, and is left in its first view. */
void views_begin(struct cycle *c, const struct berth_profile *others, const struct profile *resolved, size_t len);
/* The one that the class asks for. */
uint32_t view_of(const struct cycle *c, const struct class *k);
void view_enter(struct cycle *c, uint32_t view);
