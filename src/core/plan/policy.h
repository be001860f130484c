/* policy.h - is a policy one that can be planned by? Its profile is profile.h's. */
#pragma once

#include "berth.h"

enum { WINDOWS_MAX = 64 }; /* at once */

/* 0, or -EINVAL and what is out of range. */
int policy_check(const struct berth_policy *p, struct berth_err *err);
