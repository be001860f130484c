/* profile.h - the names by which pods ask for this scheduler (spec.schedulerName), and by which profile those of each name are placed.
 *
 * Written as "berth,berth-pack=pack": a name alone is placed by the profile of --profile. All of them share one queue, one plan and one leader;
 * a profile says which nodes are better, never who comes first or where a pod may be.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "berth.h"

/* Lists are parallel, in the order in which they were written, and never empty. */
struct kube_profiles {
    const struct berth_profile *own; /* of --profile */
    const char *const *names;        /* of schedulers */
    const char *const *profiles;     /* of each, by name; "": own */
    size_t len;
};
/* In the arena. -EINVAL with what is wrong, and what to write instead. */
int kube_profiles_read(const char *names, const char *profile, struct arena *arena, struct kube_profiles *ret,
                       struct berth_err *err);
