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
    ROUTE("GET", "/v1/queue", PERMIT_CLUSTER, 0, ROUTE_HEAVY, queue_run, "What waits, in order, and when it will start",
          .query = "queue,user,limit,after,waits,factors"),
    ROUTE("GET", "/v1/jobs/{id}/why", PERMIT_READ, 0, ROUTE_HEAVY, job_why,
          "Why a job does not run yet, and when it will", .query = "suggest"),
    ROUTE("POST", "/v1/policies/test", PERMIT_CLUSTER, POLICY_BODY_MAX, ROUTE_HEAVY, policy_try,
          "How the present queue would be ordered by a policy", .query = "limit"),
    ROUTE("POST", "/v1/what_if", PERMIT_CLUSTER, POLICY_BODY_MAX, ROUTE_HEAVY, what_if,
          "Starts and waits by another policy or with other nodes, beside those of now", .body = &what_if_keys,
          .query = "limit"),
    ROUTE("GET", "/v1/use", PERMIT_CLUSTER, 0, ROUTE_HEAVY, use_run, "What there is and what is held of it, by domain"),
    ROUTE("GET", "/v1/series", PERMIT_CLUSTER, 0, ROUTE_HEAVY, series_run,
          "The cluster over time: use, queue and waits", .query = "span"),
    ROUTE("GET", "/v1/holders", PERMIT_CLUSTER, 0, ROUTE_HEAVY, holders_run,
          "Who holds a node or a device, now or at a past time", .query = "node,device,at,all,after,limit"),
};
const size_t views_routes_len = sizeof views_routes / sizeof *views_routes;
