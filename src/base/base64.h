/* base64.h - base64 encoding and decoding (RFC 4648 alphabet, '=' padding).
 *
 * For bytes inside JSON. Not for secrets: the running time depends on the data.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Appends the base64 text of the bytes: four characters for each started group of three bytes. */
void str_add_base64(struct str *to, const void *bytes, size_t len);
/* Appends the decoded bytes of a base64 text. Returns false and leaves *to unchanged for any text that str_add_base64
 * does not produce: other characters, line breaks, missing padding, unused bits that are not zero. */
bool str_add_base64_bytes(struct str *to, const char *text, size_t len);
