/* random_docs.h - random documents that users submit: valid ones of every kind, and invalid ones. */
#pragma once

#include <jansson.h>

#include "sim/random.h"

/* Return new references. A workload has no name yet. */
json_t *body_app(struct random_stream *rng);
json_t *body_job(struct random_stream *rng);
json_t *body_vm(struct random_stream *rng);
/* Returns a merge patch for a workload. */
json_t *body_patch(struct random_stream *rng);
json_t *body_node(struct random_stream *rng);
/* Return bodies for PUT /v1/nodes/ID/capabilities and .../settings. */
json_t *body_capabilities(struct random_stream *rng);
json_t *body_settings(struct random_stream *rng);

/* Returns the text of an app or job that must be rejected. */
const char *body_invalid(struct random_stream *rng, size_t *ret_len);
