/* profile.h - the names by which pods select this scheduler (spec.schedulerName), and the profile of each name.
 *
 * Written as "berth,berth-pack=pack": a name alone uses the profile of --profile. All names share one queue, one plan
 * and one leader. A profile decides which nodes are better, never the order of pods nor where a pod may run.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "berth.h"

/* Parallel lists in the order in which they were given; never empty. */
struct kube_profiles {
    const struct berth_profile *own; /* the profile of --profile */
    const char *const *names;        /* scheduler names */
    const char *const *profiles;     /* profile of each name; "": own */
    size_t len;
};
/* Parses both options into the arena. -EINVAL with what is wrong and how to fix it. */
int kube_profiles_read(const char *names, const char *profile, struct arena *arena, struct kube_profiles *ret,
                       struct berth_err *err);
