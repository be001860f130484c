/* routes_views.c - the routes of explanations: the queue, why a job waits, current and past holders of nodes. */
#include "control/api/routes.h"
#include "control/explain/holders.h"
#include "control/explain/occupancy.h"
#include "control/explain/policy_trial.h"
#include "control/explain/queue_view.h"
#include "control/explain/why.h"
#include "control/system/series.h"

enum { POLICY_BODY_MAX = 64 * 1024 };

const struct route views_routes[] = {
    ROUTE("GET", "/v1/queue", PERMIT_CLUSTER, 0, ROUTE_HEAVY, queue_run,
          "List pending jobs in order, with start "
          "estimates",
          .query = "queue,user,limit,after,waits,factors"),
    ROUTE("GET", "/v1/jobs/{id}/why", PERMIT_READ, 0, ROUTE_HEAVY, job_why,
          "Explain why a job is pending and estimate its start", .query = "suggest"),
    ROUTE("POST", "/v1/policies/test", PERMIT_CLUSTER, POLICY_BODY_MAX, ROUTE_HEAVY, policy_test,
          "Preview the order of the queue under a policy", .query = "limit"),
    ROUTE("POST", "/v1/what_if", PERMIT_CLUSTER, POLICY_BODY_MAX, ROUTE_HEAVY, what_if,
          "Compare starts and waiting times under another policy or with other nodes", .body = &what_if_keys,
          .query = "limit"),
    ROUTE("GET", "/v1/use", PERMIT_CLUSTER, 0, ROUTE_HEAVY, occupancy_run, "List capacity and allocation by domain"),
    ROUTE("GET", "/v1/series", PERMIT_CLUSTER, 0, ROUTE_HEAVY, series_run,
          "Read time series of use, queue and waiting times", .query = "span"),
    ROUTE("GET", "/v1/holders", PERMIT_CLUSTER, 0, ROUTE_HEAVY, holders_run,
          "List the allocations of a node or device, now or at a past time", .query = "node,device,at,all,after,limit"),
};
const size_t views_routes_len = sizeof views_routes / sizeof *views_routes;
