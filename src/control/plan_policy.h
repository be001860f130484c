/* plan_policy.h - what the system's settings say of how to plan, beside the profile. */
#pragma once

#include "control/state.h"

enum { PLAN_RESERVES = 2 };

struct plan_policy {
    struct berth_policy policy; /* without a profile; points into this struct */
    struct berth_reserve reserves[PLAN_RESERVES];
};

/* The same for the daemon and for a replay of its decisions: the settings are in the journal. */
void plan_policy_read(const struct state *s, struct plan_policy *ret);
