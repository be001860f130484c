/* policy.h - validation of a policy. profile.h validates its profile. */
#pragma once

#include "berth.h"

enum { WINDOWS_MAX = 64 }; /* windows in one policy */

/* Returns 0, or -EINVAL with the name of the field that is out of range. */
int policy_check(const struct berth_policy *p, struct berth_err *err);
