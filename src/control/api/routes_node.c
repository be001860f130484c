/* routes_node.c - the routes of nodes, volumes, resources, profiles, instances and reports. */
#include "control/api/routes.h"
#include "control/kind/secret.h"
#include "control/node/join.h"
#include "control/sched/migration.h"
#include "wire/doc/api.h"

enum {
    NODE_BODY_MAX = 512 * 1024,
    SMALL_BODY_MAX = 64 * 1024,
    VERB_BODY_MAX = 4096,
    REPORT_BODY_MAX = 8 * 1024 * 1024,
    JOIN_BODY_MAX = 256 * 1024,
};

COLLECTION(node)
COLLECTION(volume)
COLLECTION(resource)
COLLECTION(profile)
CRUD_VERB(instance, list)
CRUD_VERB(instance, get)

static const char plain[] = "limit,after,watch", owned[] = "limit,after,watch,owner,group";

#define SEE PERMIT_CLUSTER, 0
#define NODE PERMIT_NODES, NODE_BODY_MAX
#define NODE_VERB PERMIT_NODES, VERB_BODY_MAX
const struct route node_routes[] = {
    ROUTE("GET", "/v1/nodes", SEE, ROUTE_STREAMS, node_list, "List nodes", .query = "limit,after,watch,state"),
    ROUTE("POST", "/v1/nodes", NODE, ROUTE_CHANGES, node_create, "Add a node"),
    ROUTE("GET", "/v1/nodes/{id}", SEE, 0, node_get, "Read a node"),
    ROUTE("PUT", "/v1/nodes/{id}", NODE, ROUTE_CHANGES, node_replace, "Add or replace a node"),
    ROUTE("PATCH", "/v1/nodes/{id}", NODE, ROUTE_CHANGES, node_patch, "Change some keys of a node"),
    ROUTE("DELETE", "/v1/nodes/{id}", PERMIT_NODES, 0, ROUTE_CHANGES, node_delete, "Remove a node", .query = "force"),
    ROUTE("POST", "/v1/nodes/{id}/disable", NODE_VERB, ROUTE_CHANGES, node_disable,
          "Disable a node: drain it and place no new work on it"),
    ROUTE("POST", "/v1/nodes/{id}/enable", NODE_VERB, ROUTE_CHANGES, node_enable, "Enable a node: accept work again"),
    ROUTE("POST", "/v1/nodes/{id}/cordon", NODE_VERB, ROUTE_CHANGES, node_cordon, "Cordon a node"),
    ROUTE("POST", "/v1/nodes/{id}/drain", NODE_VERB, ROUTE_CHANGES, node_drain, "Drain a node"),
    ROUTE("POST", "/v1/nodes/{id}/invite", NODE, ROUTE_CHANGES, node_invite,
          "Create a one-time token for a machine to join as this node"),
    ROUTE("POST", "/v1/nodes/{id}/accept", NODE_VERB, ROUTE_CHANGES, node_accept,
          "Let a node offer all detected "
          "resources"),
    ROUTE("PUT", "/v1/nodes/{id}/capabilities", NODE, ROUTE_CHANGES, node_put_capabilities,
          "Set the resources that a node may offer"),
    ROUTE("PUT", "/v1/nodes/{id}/settings", NODE, ROUTE_CHANGES, node_put_settings,
          "Set the scheduling properties "
          "of a node"),
    ROUTE("POST", "/v1/nodes/{id}/report", PERMIT_REPORT, REPORT_BODY_MAX, ROUTE_CHANGES, node_report,
          "Report of an agent"),
    ROUTE("POST", "/v1/nodes/{id}/certificate", PERMIT_REPORT, SMALL_BODY_MAX, ROUTE_EXPIRED_OK, node_certificate,
          "Renew the certificate of a node's agent"),
    ROUTE("POST", "/v1/join", PERMIT_PUBLIC, JOIN_BODY_MAX, ROUTE_CHANGES, node_join,
          "Join as a node with the token of an invitation"),
    ROUTE("GET", "/v1/nodes/{id}/secrets/{secret}", PERMIT_REPORT, 0, 0, node_secret,
          "Read a secret, for the agent of a node whose instances use it"),

    ROUTE("GET", "/v1/volumes", PERMIT_READ, 0, ROUTE_STREAMS, volume_list, "List volumes", .query = owned),
    ROUTE("POST", "/v1/volumes", PERMIT_SUBMIT, SMALL_BODY_MAX, ROUTE_CHANGES, volume_create, "Add a volume"),
    ROUTE("GET", "/v1/volumes/{id}", PERMIT_READ, 0, 0, volume_get, "Read a volume"),
    ROUTE("PUT", "/v1/volumes/{id}", PERMIT_SUBMIT, SMALL_BODY_MAX, ROUTE_CHANGES, volume_replace,
          "Add or replace a volume"),
    ROUTE("PATCH", "/v1/volumes/{id}", PERMIT_MANAGE, SMALL_BODY_MAX, ROUTE_CHANGES, volume_patch,
          "Change some keys of a volume"),
    ROUTE("DELETE", "/v1/volumes/{id}", PERMIT_MANAGE, 0, ROUTE_CHANGES, volume_delete, "Remove a volume"),

    ROUTE("GET", "/v1/resources", SEE, ROUTE_STREAMS, resource_list, "List resource definitions", .query = plain),
    ROUTE("POST", "/v1/resources", PERMIT_NODES, SMALL_BODY_MAX, ROUTE_CHANGES, resource_create, "Define a resource"),
    ROUTE("GET", "/v1/resources/{id}", SEE, 0, resource_get, "Read a resource definition"),
    ROUTE("PUT", "/v1/resources/{id}", PERMIT_NODES, SMALL_BODY_MAX, ROUTE_CHANGES, resource_replace,
          "Define or redefine a resource"),
    ROUTE("PATCH", "/v1/resources/{id}", PERMIT_NODES, SMALL_BODY_MAX, ROUTE_CHANGES, resource_patch,
          "Change some keys of a resource definition"),
    ROUTE("DELETE", "/v1/resources/{id}", PERMIT_NODES, 0, ROUTE_CHANGES, resource_delete,
          "Remove a resource definition"),

    ROUTE("GET", "/v1/profiles", SEE, ROUTE_STREAMS, profile_list, "List profiles", .query = plain),
    ROUTE("POST", "/v1/profiles", PERMIT_SYSTEM, SMALL_BODY_MAX, ROUTE_CHANGES, profile_create, "Add a profile"),
    ROUTE("GET", "/v1/profiles/{id}", SEE, 0, profile_get, "Read a profile"),
    ROUTE("PUT", "/v1/profiles/{id}", PERMIT_SYSTEM, SMALL_BODY_MAX, ROUTE_CHANGES, profile_replace,
          "Add or replace a profile"),
    ROUTE("PATCH", "/v1/profiles/{id}", PERMIT_SYSTEM, SMALL_BODY_MAX, ROUTE_CHANGES, profile_patch,
          "Change some keys of a profile"),
    ROUTE("DELETE", "/v1/profiles/{id}", PERMIT_SYSTEM, 0, ROUTE_CHANGES, profile_delete, "Remove a profile"),

    ROUTE("GET", "/v1/instances", PERMIT_READ, 0, ROUTE_STREAMS, instance_list, "List instances",
          .query = "limit,after,watch,owner,group,state,workload,node"),
    ROUTE("GET", "/v1/instances/{id}", PERMIT_READ, 0, 0, instance_get, "Read an instance"),
    ROUTE("POST", "/v1/instances/{id}/migrate", PERMIT_MANAGE, VERB_BODY_MAX, ROUTE_CHANGES, instance_migrate,
          "Migrate an instance: the new one is ready before the old one stops", .body = &migrate_keys),
    ROUTE("GET", "/v1/migrations", PERMIT_READ, 0, ROUTE_HEAVY, migration_list, "List migrations"),
    ROUTE("POST", "/v1/migrations/{id}/undo", PERMIT_MANAGE, 0, ROUTE_CHANGES, migration_undo,
          "Cancel a migration before the old instance stops"),
};
const size_t node_routes_len = sizeof node_routes / sizeof *node_routes;
