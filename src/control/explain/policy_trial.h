/* policy_trial.h - hypothetical schedules: the present queue with another policy, with other nodes, or both. Nothing is
 * changed.
 */
#pragma once

#include "control/api/request.h"
#include "wire/text/keys.h"

/* POST /v1/policies/test: {"policy": NAME}, or a policy document. */
int policy_test(struct request *c);
/* POST /v1/what_if: {"policy": NAME or a policy document, "nodes": [{"like" or "label", "count"}]}. */
int what_if(struct request *c);
extern const struct key_table what_if_keys;
