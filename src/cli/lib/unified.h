/* unified.h - the difference of two texts, line by line, as `diff -u` prints it.
 *
 * The shortest script is found (Myers) while it has at most UNIFIED_EDITS_MAX edits; beyond that everything that is not
 * alike at both ends counts as replaced. Pure: text in, text out.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum { UNIFIED_CONTEXT = 3, UNIFIED_EDITS_MAX = 2000 };

/* Appends the header and the hunks; nothing for equal texts. Returns whether they differ. Lines end in '\n'; where the
 * last one does not, it is taken as if. */
bool unified_diff(struct str *to, const char *old_name, const char *new_name, const char *old_text,
                  const char *new_text);
