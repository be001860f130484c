/* bodies.h - documents that people write: right ones of every kind, and wrong ones. */
#pragma once

#include <jansson.h>

#include "sim/random.h"

/* New references. A workload has no name yet. */
json_t *body_app(struct chance *luck);
json_t *body_job(struct chance *luck);
json_t *body_vm(struct chance *luck);
/* A merge patch of a workload. */
json_t *body_patch(struct chance *luck);
json_t *body_node(struct chance *luck);
/* Of PUT /v1/nodes/ID/capabilities, and .../settings. */
json_t *body_capabilities(struct chance *luck);
json_t *body_settings(struct chance *luck);

/* The text of a new app or job that cannot be accepted. */
const char *body_wrong(struct chance *luck, size_t *ret_len);
