/* yaml.h - a YAML document becomes a tree of JSON values; a stream of them, one tree each.
 *
 * Plain scalars follow the core schema of YAML 1.2 (null, true, false, whole and decimal numbers; `yes`, `on` and dates
 * are strings), with one exception: a number with a leading zero, like 007, stays text. Merge keys (<<) are not part of
 * it. Values that an alias repeats are shared, not copied, and must not be changed.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* The limits are those of document.h. On success *ret is a new reference. */
int yaml_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err);

/* Every document of a stream, in order; `take` is given the reference and the line it starts at, from 1. What is empty
 * between two `---` is left out. The limits are those of one document, for all of them together. */
typedef void yaml_take(void *ctx, json_t *root, size_t line);
int yaml_parse_each(const char *text, size_t len, const char *name, yaml_take *take, void *ctx, struct berth_err *err);

/* What a plain (unquoted) scalar means; NULL and -ERANGE or -EDOM for a number that cannot be kept exactly as a
 * 64-bit whole number, or not at all (.inf, .nan). */
int yaml_scalar(const char *text, size_t len, json_t **ret);
