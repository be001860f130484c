/* gateway_text.h - the configuration of a load balancer as a pure function of the services.
 *
 * To add a program: a row in gateway_text.c.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"

/* A listening address `bind` ("0.0.0.0:80") that forwards to an endpoint of an app. */
struct gateway_listener {
    const char *app, *endpoint; /* endpoint NULL: the app's first */
    const char *bind;
};

extern const char *const gateway_programs[]; /* "haproxy", "nginx"; ends with NULL */

/* Appends the configuration. `program` is an index into gateway_programs; `services` are the items of GET /v1/services.
 * A door without app or without a ready instance answers 503, or closes the connection if it is not HTTP. The text
 * changes only if its contents change. */
void balancer_write(struct str *to, unsigned program, const json_t *services, const struct gateway_listener *listeners,
                    size_t listeners_len);
