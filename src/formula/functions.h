/* functions.h - the functions that formulas may call: base/math.h and a few more, with the same results to the last bit
 * on every machine.
 */
#pragma once

#include <lua.h>

/* formula_function_name returns the name of function i, NULL past the end; formula_function_at returns the function. */
const char *formula_function_name(size_t i);
lua_CFunction formula_function_at(size_t i);
