/* derived_parts.h - what the derived documents share. Internal to them and to watch.c. */
#pragma once

#include "base/arena.h"
#include "control/watch/derived.h"
#include "wire/doc/api.h"

/* Where a node is reached: its `address`, else its id. Texts live in the arena or are the argument. */
struct place {
    const char *address, *zone;
};
struct place node_place(const struct state *s, const char *node, struct arena *arena);

const char *protocol_name(enum berth_protocol protocol);
/* Is it in its service's selector as soon as it is ready? A stopping one has left it, a reserved one is not there yet. */
bool instance_serves(const struct instance_view *i);

/* Every service with its targets, read once for the gateways of all nodes. What was read of an instance or node stays until
 * its revision changes, so a refresh costs a look at each instance of an app, and reading only for those that changed. */
struct gateway;
struct gateway *gateway_new(void);
void gateway_free(struct gateway *g);
/* True: something differs from the last refresh. */
bool gateway_refresh(struct gateway *g, const struct state *s);
/* As gateway_config_write. */
int gateway_write(const struct gateway *g, const struct state *s, const char *node, struct str *to);

/* All services of whoever `scope` stands for: {"items": [service_info]}. */
int services_write(const struct state *s, const char *scope, struct str *to);
struct caller;
/* The text of a caller for services_write: what it may see is a function of this alone. */
const char *services_scope(const struct caller *caller, struct arena *arena);
