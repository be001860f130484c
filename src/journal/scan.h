/* scan.h - a look into JSON text without reading it: where a value ends, where a member is, what an array has.
 *
 * For text that the daemon wrote itself and a checksum protects: it is taken to be JSON, and what is not only ends the
 * look. Nothing is copied or decoded but keys. Who wants documents reads them properly (wire/).
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "store/store.h"

/* Just behind the value that begins at `at`; NULL: it has no end. */
const char *scan_value(const char *at, const char *end);
/* The value of a member of an object, not of objects within it. */
bool scan_member(struct bytes object, const char *key, struct bytes *ret);
/* The same of an array, whose end is not looked for: up to the end of the object, for scan_next alone. */
bool scan_array(struct bytes object, const char *key, struct bytes *ret);
/* The next element of an array; *at is NULL at first and then where it goes on. */
bool scan_next(struct bytes array, const char **at, struct bytes *ret);

/* A member as a number, a number in sixteen hex digits, a text; the default if it is not there or is none. */
uint64_t scan_u64(struct bytes object, const char *key, uint64_t otherwise);
int64_t scan_i64(struct bytes object, const char *key, int64_t otherwise);
uint64_t scan_hex(struct bytes object, const char *key, uint64_t otherwise);
/* Appends the text of a JSON string, without quotes and escapes. False: it is no string. */
bool scan_text(struct bytes value, struct str *to);
