/* bodies.h - random documents that users submit: valid ones of every kind, and invalid ones. */
#pragma once

#include <jansson.h>

#include "sim/random.h"

/* Return new references. A workload has no name yet. */
json_t *body_app(struct chance *luck);
json_t *body_job(struct chance *luck);
json_t *body_vm(struct chance *luck);
/* Returns a merge patch for a workload. */
json_t *body_patch(struct chance *luck);
json_t *body_node(struct chance *luck);
/* Return bodies for PUT /v1/nodes/ID/capabilities and .../settings. */
json_t *body_capabilities(struct chance *luck);
json_t *body_settings(struct chance *luck);

/* Returns the text of an app or job that must be rejected. */
const char *body_wrong(struct chance *luck, size_t *ret_len);
