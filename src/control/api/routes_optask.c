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
          "Add an OpTask; one that is there with the same content is taken, for these nodes too"),
    ROUTE("GET", "/v1/optasks/{id}", PERMIT_NODES, 0, 0, optask_get, "Read an OpTask, and how it stands on each node"),
    ROUTE("PUT", "/v1/optasks/{id}", CHANGE, optask_create, "Add an OpTask under a key, or say it again"),
    ROUTE("PATCH", "/v1/optasks/{id}", CHANGE, optask_patch, "Change how an OpTask is rolled out"),
    ROUTE("DELETE", "/v1/optasks/{id}", PERMIT_NODES, 0, ROUTE_CHANGES, optask_delete,
          "Forget an OpTask that does not run"),
    ROUTE("POST", "/v1/optasks/{id}/retry", PERMIT_NODES, VERB_BODY_MAX, ROUTE_CHANGES, optask_retry,
          "Run it once more where it failed or was undone", .body = &optask_act_keys),
    ROUTE("POST", "/v1/optasks/{id}/undo", PERMIT_NODES, VERB_BODY_MAX, ROUTE_CHANGES, optask_undo,
          "Run its undo script where it is done or has failed", .body = &optask_act_keys),
    ROUTE("GET", "/v1/optasks/{id}/logs", PERMIT_NODES, 0, 0, relay_optask_logs, "What an OpTask has written on a node",
          .query = "node,tail,follow,undo,lines,cursor"),
    ROUTE("GET", "/v1/nodes/{id}/optasks", PERMIT_NODES, 0, 0, optask_of_node, "How OpTasks stand on a node"),
    ROUTE("POST", "/v1/nodes/{id}/optasks/{optask}", PERMIT_REPORT, REPORT_BODY_MAX, ROUTE_CHANGES, optask_report,
          "An agent says how an OpTask went", .body = &opstep_report_keys, .query = "epoch"),
};
const size_t optask_routes_len = sizeof optask_routes / sizeof *optask_routes;
