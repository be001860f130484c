/* scan.h - checks the text of a formula before Lua parses it: the names that it uses, and what it must not use. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Rejects what would use libm (^), build strings (..), or store values between rows (_ENV). -EINVAL with the line. */
int scan_check(const char *text, struct berth_err *err);
/* Returns whether the text contains the word by itself. Strings and comments count, too: callers only leave out names
 * that are not needed. */
bool scan_contains_word(const char *text, const char *word);
