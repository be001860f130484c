/* derived_parts.h - shared parts of the derived documents. Internal to these documents and to watch.c. */
#pragma once

#include "base/arena.h"
#include "control/watch/derived.h"
#include "wire/doc/api.h"

/* The address of a node: its `address`, else its id. Texts are in the arena, or are the argument itself. */
struct node_address {
    const char *address, *zone;
};
struct node_address node_place(const struct state *s, const char *node, struct arena *arena);

const char *protocol_name(enum berth_protocol protocol);
/* Tells whether the instance is in its service's selector once it is ready: neither stopping, ended nor reserved. */
bool instance_serves(const struct instance_view *i);

/* All services with their targets, read once for the gateways of all nodes. Values read from an instance or node are
 * cached until its revision changes: a refresh examines each instance of each app, and parses only changed
 * documents. */
struct gateway_config;
struct gateway_config *gateway_new(void);
void gateway_free(struct gateway_config *g);
/* Returns true if something differs from the last refresh. */
bool gateway_refresh(struct gateway_config *g, const struct state *s);
/* As gateway_config_write. */
int gateway_write(const struct gateway_config *g, const struct state *s, const char *node, struct str *to);

/* Writes all services that are visible in `scope`: {"items": [service_info]}. */
int services_write(const struct state *s, const char *scope, struct str *to);
struct caller;
/* Returns the scope of a caller for services_write: the visible services depend on this text alone. */
const char *services_scope(const struct caller *caller, struct arena *arena);
