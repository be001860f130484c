/* sums.h - the functions that formulas may call: base/math.h and a few more, with the same bits on every machine. */
#pragma once

#include <lua.h>

/* Names of the functions, NULL past the end; and the function itself. */
const char *sums_name(size_t i);
lua_CFunction sums_function(size_t i);
