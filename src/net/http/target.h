/* target.h - parses and decodes a request target such as "/v1/jobs/a%20b?watch&limit=5".
 *
 * The decoded texts are valid UTF-8. The path contains no control characters, and the query no NUL. Ambiguous targets
 * are rejected: a repeated parameter, a percent sign without two digits. The module knows neither routes nor
 * connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TARGET_PARAMS_MAX = 64 };

/* Decoded texts, each with its NUL, stored one after another: the path, then name and value of each parameter. */
struct request_target {
    const char *text;
    size_t params;
};

/* Returns the buffer size that target_parse needs for this text. */
size_t target_room(const char *raw);
/* Parses a target into `room`, which must outlive *ret. Returns false if the target is rejected; *why is then a
 * sentence for the client, and *ret is unchanged. O(length). */
bool target_parse(const char *raw, char *room, struct request_target *ret, const char **why);

/* Returns the value of a parameter, "" if the parameter has no value, NULL if the parameter is absent. */
const char *target_param(const struct request_target *t, const char *name);
