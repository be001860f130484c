/* routes_optask.c - the routes of OpTasks. */
#include "control/api/routes.h"
#include "control/optask/optask.h"
#include "control/session/session.h"

enum { OPTASK_BODY_MAX = 1024 * 1024, VERB_BODY_MAX = 512 * 1024, REPORT_BODY_MAX = 64 * 1024 };

CRUD_VERB(optask, list)
CRUD_VERB(optask, get)
CRUD_VERB(optask, patch)
CRUD_VERB(optask, delete)

#define CHANGE PERMIT_NODES, OPTASK_BODY_MAX, ROUTE_CHANGES
const struct route optask_routes[] = {
    ROUTE("GET", "/v1/optasks", PERMIT_NODES, 0, ROUTE_STREAMS, optask_list, "List OpTasks",
          .query = "limit,after,watch"),
    ROUTE("POST", "/v1/optasks", CHANGE, optask_create,
          "Add an OpTask; an existing one with the same content is extended to these nodes"),
    ROUTE("GET", "/v1/optasks/{id}", PERMIT_NODES, 0, 0, optask_get, "Read an OpTask and its state on each node"),
    ROUTE("PUT", "/v1/optasks/{id}", CHANGE, optask_create, "Add an OpTask under a key; may be repeated"),
    ROUTE("PATCH", "/v1/optasks/{id}", CHANGE, optask_patch, "Change the rollout of an OpTask"),
    ROUTE("DELETE", "/v1/optasks/{id}", PERMIT_NODES, 0, ROUTE_CHANGES, optask_delete,
          "Delete an OpTask that does not run"),
    ROUTE("POST", "/v1/optasks/{id}/retry", PERMIT_NODES, VERB_BODY_MAX, ROUTE_CHANGES, optask_retry,
          "Retry an OpTask on the nodes where it failed or was undone", .body = &optask_act_keys),
    ROUTE("POST", "/v1/optasks/{id}/undo", PERMIT_NODES, VERB_BODY_MAX, ROUTE_CHANGES, optask_undo,
          "Run the undo script on the nodes where the OpTask is done or failed", .body = &optask_act_keys),
    ROUTE("GET", "/v1/optasks/{id}/logs", PERMIT_NODES, 0, 0, session_optask_logs,
          "Read the output of an OpTask on "
          "a node",
          .query = "node,tail,follow,undo,lines,cursor"),
    ROUTE("GET", "/v1/nodes/{id}/optasks", PERMIT_NODES, 0, 0, optask_of_node, "List the OpTasks of a node"),
    ROUTE("POST", "/v1/nodes/{id}/optasks/{optask}", PERMIT_REPORT, REPORT_BODY_MAX, ROUTE_CHANGES, optask_report,
          "Report of an agent about an OpTask", .body = &opstep_report_keys, .query = "epoch"),
};
const size_t optask_routes_len = sizeof optask_routes / sizeof *optask_routes;
