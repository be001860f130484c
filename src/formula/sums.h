/* sums.h - the functions that formulas may call: base/math.h and a few more, with the same results to the last bit on
 * every machine.
 */
#pragma once

#include <lua.h>

/* sums_name returns the name of function i, NULL past the end; sums_function returns the function. */
const char *sums_name(size_t i);
lua_CFunction sums_function(size_t i);
