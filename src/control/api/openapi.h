/* openapi.h - prints the OpenAPI reference of the API from the tables that serve the API.
 *
 * Paths, permissions, bounds and parameters come from route_tables; objects come from the key tables of wire/doc/api.h,
 * whose `form` describes the syntax of a value. Only what all routes share is described here by hand.
 */
#pragma once

#include "base/str.h"

/* Appends an OpenAPI 3.0.3 document in one line. The bytes are the same each time. */
void openapi_write(struct str *to);
