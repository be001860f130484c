/* yaml.h - parses a YAML document into a tree of JSON values, or a stream into one tree for each document.
 *
 * Plain scalars follow the core schema of YAML 1.2 (null, true, false, integers and decimal numbers; `yes`, `on` and
 * dates are strings), with one exception: a number with a leading zero, such as 007, is a string. Merge keys (<<) are
 * not supported. Values repeated by an alias are shared, not copied, and must not be changed.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* The limits of document.h apply. On success *ret is a new reference. */
int yaml_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err);

/* Parses every document of a stream in order. `take` gets the reference and the document's first line, from 1. Empty
 * documents between two `---` are skipped. The limits apply to all documents together. */
typedef void yaml_take(void *ctx, json_t *root, size_t line);
int yaml_parse_each(const char *text, size_t len, const char *name, yaml_take *take, void *ctx, struct berth_err *err);

/* Converts a plain (unquoted) scalar. Returns -ERANGE or -EDOM, and leaves *ret untouched, for a number that is not
 * exact as a 64-bit integer, or not a number at all (.inf, .nan). */
int yaml_scalar(const char *text, size_t len, json_t **ret);
