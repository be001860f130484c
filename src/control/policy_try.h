/* policy_try.h - how the present queue would be ordered by another policy. Nothing is changed. */
#pragma once

#include "control/call.h"

/* POST /v1/policies/test: {"policy": NAME}, or a policy as it would be written. */
int policy_try(struct call *c);
