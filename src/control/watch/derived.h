/* derived.h - configuration that follows from the state: what each node runs, where each service is, who may what.
 *
 * Pure functions of the state: sorted, no time in them, the same bytes for the same content, whoever computes them and
 * whenever. They are not stored: a restarted daemon publishes what it published before because the state is what it was
 * before. Compared by content (`derived_hash`).
 */
#pragma once

#include "base/str.h"
#include "base/vec.h"
#include "control/state/state.h"

enum { DERIVED_HASH_MAX = 40 };

/* Each appends one JSON object, in one line. -ENOENT: there is no such node or service. */

/* {"node", "instances": [...]} as docs/node-config.md says: exactly what shall be there, in order of ids. Reserved instances
 * are not in it; install configuration is, apart from the app's settings. */
int node_config_write(const struct state *s, const char *node, struct str *to);

/* What is written of one instance. */
struct node_config_part {
    uint64_t number, mark;
    size_t at, len;
};
/* The same, kept: at the next change only what has changed is written anew. All zero is the beginning. */
struct node_config {
    VEC(struct node_config_part) parts; /* of the text, in order of ids */
    struct str text;
    char hash[DERIVED_HASH_MAX]; /* "": there is none yet */
    uint64_t mark;
};
/* Looks at each instance of the node, and reads the documents of those that have changed. */
void node_config_renew(struct node_config *c, const struct state *s, const struct object *node);
void node_config_done(struct node_config *c);
/* The document it was placed from. NULL: its workload is gone without a trace, so there is nothing to run. */
const struct object *instance_placed_from(const struct state *s, const struct instance_view *i);
/* {"node", "routes": [{"service", "endpoint", "targets": [{"instance", "node", "address", "port", "weight"}]}]}: every
 * service with a ready instance that reported its ports, those on the same node and zone first. */
int gateway_config_write(const struct state *s, const char *node, struct str *to);
/* {"service", "selector": {...}, "endpoints": [{"name", "protocol", "instances": [{"instance", "node", "port", "weight",
 * "ready"}]}]}: made from reports and settings. A migration's new instance enters the selector when it is ready, the old
 * one leaves it when it is told to stop. */
int service_info_write(const struct state *s, const char *app, struct str *to);
/* {"subjects": [{"user", "group", "role", "permissions": {permission: scope}}], "nodes": [...], "apps": [{"app", "owner",
 * "group"}]}: of a node the users and apps that have something there, and the node itself; of "" all. */
int rbac_write(const struct state *s, const char *of_node, struct str *to);

/* Of a document's bytes, in hexadecimal; the ETag. */
const char *derived_hash(const struct str *text, char buf[static DERIVED_HASH_MAX]);
