/* openapi_schema.h - converts key tables to JSON schemas. Internal to openapi*.c.
 *
 * To add a form of value: a row in forms[] (openapi_schema.c).
 */
#pragma once

#include "base/vec.h"
#include "control/kind/kind.h"
#include "control/watch/derived_out.h"
#include "wire/text/keys.h"

/* A schema under "components": of a kind, or of an object nested in a kind. */
struct component {
    char *name;
    const struct key_table *const *tables; /* ends with NULL; NULL: `table` alone */
    const struct key_table *table;
};

struct components {
    VEC(struct component) at;
};

/* Collects every kind with a collection, the report, the bodies of the routes, and all objects nested in these. */
void components_collect(struct components *c);
void components_done(struct components *c);
/* Returns the name of the component; NULL: none. */
const char *component_of_table(const struct components *c, const struct key_table *table);
const char *component_of_kind(const struct components *c, enum kind kind);

/* Writes {"$ref": ...} to a component. */
void ref_write(struct json_out *o, const char *key, const char *component);
void components_write(struct json_out *o, const struct components *c);
