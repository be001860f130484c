/* scan.h - a look at the text of a formula before Lua reads it: what it names, and what it must not use. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Refuses what would count with libm (^), make strings (..), or keep something from row to row (_ENV). -EINVAL with the line. */
int scan_check(const char *text, struct berth_err *err);
/* Does the word stand in the text by itself? Strings and comments count too: who asks only wants to leave out what is not
 * needed. */
bool scan_names(const char *text, const char *word);
