/* moment.h - parses durations and times, in nanoseconds. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

/* Parse "30s", "10m", "2h", "30d", "250ms", "1h30m", or a number of seconds. The result is never negative. */
int duration_parse(const json_t *value, int64_t *ret_ns, struct berth_err *err);
int duration_parse_text(const char *text, int64_t *ret_ns, struct berth_err *err);

/* Parse RFC 3339, "2026-03-01T12:00:00Z" or with an offset, or seconds since 1970 (or since any other origin: the model
 * only compares times). */
int timestamp_parse(const json_t *value, int64_t *ret_ns, struct berth_err *err);
int timestamp_parse_text(const char *text, int64_t *ret_ns, struct berth_err *err);
