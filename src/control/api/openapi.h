/* openapi.h - the reference of the API for programs, printed from the tables that serve it.
 *
 * Paths, permissions, bounds and parameters come from route_tables; objects from the key tables of wire/doc/api.h, whose
 * `form` says how a value is written. Nothing is described here by hand but what all routes share.
 */
#pragma once

#include "base/str.h"

/* Appends an OpenAPI 3.0.3 document, in one line; the same bytes each time. */
void openapi_write(struct str *to);
