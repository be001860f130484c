/* target.h - the target of a request, "/v1/jobs/a%20b?watch&limit=5", taken apart and decoded.
 *
 * What comes out is valid UTF-8; the path is without control characters, the query without NUL. What is ambiguous is
 * refused rather than guessed: a parameter given twice, a percent sign without two digits. Knows neither routes nor
 * connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TARGET_PARAMS_MAX = 64 };

/* Decoded texts one after the other, each with its NUL: the path, then name and value of each parameter. */
struct target {
    const char *text;
    size_t params;
};

/* The bytes of room that target_parse may fill for this text. */
size_t target_room(const char *raw);
/* False: refused, with *why a sentence for the client and *ret untouched. `room` must outlive *ret. O(length). */
bool target_parse(const char *raw, char *room, struct target *ret, const char **why);

/* The parameter's value, "" without one; NULL: not there. */
const char *target_param(const struct target *t, const char *name);
