/* derived.h - configuration derived from the state: instances of a node, endpoints of a service, permissions of users.
 *
 * Pure functions of the state: sorted and without time, so the same content always gives the same bytes. Derived
 * documents are not stored: a restarted daemon has the same state, so it publishes the same documents. Documents are
 * compared by content (`derived_hash`).
 */
#pragma once

#include "base/str.h"
#include "base/vec.h"
#include "control/state/state.h"

enum { DERIVED_HASH_MAX = 40 };

/* Each function appends one JSON object in one line. -ENOENT: no such node or service. */

/* {"node", "instances": [...]} as docs/node-config.md defines it: the desired instances of the node in order of ids.
 * Reserved instances are not included. The install configuration is included, separate from the app's settings. */
int node_config_write(const struct state *s, const char *node, struct str *to);

/* The text of one instance. */
struct node_config_part {
    uint64_t number, mark;
    size_t at, len;
};
/* A node configuration that is kept between changes: a change rewrites only the parts of changed instances. Initialised
 * with zeros. */
struct node_config {
    VEC(struct node_config_part) parts; /* parts of `text`, in order of ids */
    struct str text;
    char hash[DERIVED_HASH_MAX]; /* "": none yet */
    uint64_t mark;
};
/* Updates the configuration: examines each instance of the node, and reads the documents of changed ones. */
void node_config_update(struct node_config *c, const struct state *s, const struct object *node);
void node_config_done(struct node_config *c);
/* Returns the document from which the instance was placed. NULL: workload and spec are deleted, so there is nothing to
 * run. */
const struct object *instance_placed_from(const struct state *s, const struct instance_view *i);
/* {"node", "routes": [{"service", "endpoint", "targets": [{"instance", "node", "address", "port", "weight"}]}]}: every
 * service with a ready instance that reported its ports. Targets on the same node come first, then those in the same
 * zone. */
int gateway_config_write(const struct state *s, const char *node, struct str *to);
/* {"service", "selector": {...}, "endpoints": [{"name", "protocol", "instances": [{"instance", "node", "port",
 * "weight", "ready"}]}]}: derived from reports and settings. The new instance of a migration enters the selector when
 * it is ready; the old one leaves the selector when it begins to stop. */
int service_info_write(const struct state *s, const char *app, struct str *to);
/* {"subjects": [{"user", "group", "role", "permissions": {permission: scope}}], "nodes": [...], "apps": [{"app",
 * "owner", "group"}]}: for a node, the users and apps with instances there and the node itself; for "", all of them. */
int rbac_write(const struct state *s, const char *of_node, struct str *to);

/* Returns the hash of a document's bytes in hexadecimal, which is its ETag. */
const char *derived_hash(const struct str *text, char buf[static DERIVED_HASH_MAX]);
