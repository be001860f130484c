/* unified.h - the line-by-line difference of two texts, as `diff -u` prints it.
 *
 * Myers' algorithm finds the shortest edit script of at most UNIFIED_EDITS_MAX edits. Beyond that limit all lines
 * between the common head and the common tail count as replaced. Pure: text in, text out.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { UNIFIED_CONTEXT = 3, UNIFIED_EDITS_MAX = 2000 };

/* Appends the header and the hunks; nothing for equal texts. Returns whether the texts differ. Lines end in '\n'; a
 * last line without '\n' is treated as if it had one. */
bool unified_diff(struct str *to, const char *old_name, const char *new_name, const char *old_text,
                  const char *new_text);
