/* base64.h - bytes as text, in the alphabet of RFC 4648 with '=' at the end.
 *
 * For bytes that travel inside JSON. Not for secrets: it takes time that depends on what it reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Appends the text of the bytes: four characters for each three of them, or fewer. */
void str_add_base64(struct str *to, const void *bytes, size_t len);
/* Appends the bytes that a text stands for. False, with *to as it was, for anything that str_add_base64 does not write:
 * other characters, line breaks, a missing '=', bits left over. */
bool str_add_base64_bytes(struct str *to, const char *text, size_t len);
