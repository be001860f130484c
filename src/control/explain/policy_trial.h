/* policy_trial.h - what if: the present queue by another policy, on other nodes, or both. Nothing is changed. */
#pragma once

#include "control/api/request.h"
#include "wire/text/keys.h"

/* POST /v1/policies/test: {"policy": NAME}, or a policy as it would be written. */
int policy_try(struct call *c);
/* POST /v1/what_if: {"policy": NAME or one as it would be written, "nodes": [{"like" or "label", "count"}]}. */
int what_if(struct call *c);
extern const struct key_table what_if_keys;
