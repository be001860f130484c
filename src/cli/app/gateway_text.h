/* gateway_text.h - the configuration of a load balancer, from service_info; a pure function of it.
 *
 * To add a program: a row in gateway_text.c.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"

/* One door: who comes to `bind` ("0.0.0.0:80") is sent to an endpoint of an app. */
struct gateway_door {
    const char *app, *endpoint; /* endpoint NULL: the app's first */
    const char *bind;
};

extern const char *const gateway_programs[]; /* "haproxy", "nginx"; ends with NULL */

/* Appends it. `program` is a place in gateway_programs; `services` the items of GET /v1/services. A door whose app is not
 * there, or has nothing ready, answers 503, or closes at once where it is not HTTP. The text only changes when something
 * of it does. */
void balancer_write(struct str *to, unsigned program, const json_t *services, const struct gateway_door *doors,
                    size_t doors_len);
