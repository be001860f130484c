/* scan.h - a minimal JSON scanner: finds the end of a value, a member of an object, the elements of an array.
 *
 * For text that the daemon has written itself and that a checksum protects: the text is assumed to be valid JSON, and
 * invalid text only ends the scan. Only keys are copied and decoded. To parse documents, use wire/.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "store/store.h"

/* Returns the position after the value that begins at `at`; NULL: the value has no end. */
const char *scan_value(const char *at, const char *end);
/* Finds the value of a member of an object, not of nested objects. */
bool scan_member(struct bytes object, const char *key, struct bytes *ret);
/* Finds a member that is an array, without searching its end: *ret extends to the end of the object. Only for
 * scan_next. */
bool scan_array(struct bytes object, const char *key, struct bytes *ret);
/* Finds the next element of an array. *at must be NULL at first and stores the position. */
bool scan_next(struct bytes array, const char **at, struct bytes *ret);

/* Return a member as a number, or as a number in 16 hexadecimal digits; the default if it is absent or has another
 * form. */
uint64_t scan_u64(struct bytes object, const char *key, uint64_t otherwise);
int64_t scan_i64(struct bytes object, const char *key, int64_t otherwise);
uint64_t scan_hex(struct bytes object, const char *key, uint64_t otherwise);
/* Appends the decoded text of a JSON string. Returns false if the value is not a string. */
bool scan_text(struct bytes value, struct str *to);
