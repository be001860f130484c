/* routes_queues.c - the routes of queues, policies, windows and domains, and of the rules that assign jobs to queues.
 */
#include "control/api/routes.h"
#include "control/sched/route_rules.h"

enum { BODY_MAX = 256 * 1024 };

COLLECTION(queue)
COLLECTION(policy)
COLLECTION(window)
COLLECTION(domain)

static const char plain[] = "limit,after,watch";

#define SEE PERMIT_CLUSTER, 0
#define COLLECT(plural, one, word, permit)                                                                             \
    ROUTE("GET", "/v1/" plural, SEE, ROUTE_STREAMS, one##_list, "List " plural, .query = plain),                       \
        ROUTE("POST", "/v1/" plural, permit, BODY_MAX, ROUTE_CHANGES, one##_create, "Add a " word),                    \
        ROUTE("GET", "/v1/" plural "/{id}", SEE, 0, one##_get, "Read a " word),                                        \
        ROUTE("PUT", "/v1/" plural "/{id}", permit, BODY_MAX, ROUTE_CHANGES, one##_replace, "Add or replace a " word), \
        ROUTE("PATCH", "/v1/" plural "/{id}", permit, BODY_MAX, ROUTE_CHANGES, one##_patch,                            \
              "Change some keys of a " word),                                                                          \
        ROUTE("DELETE", "/v1/" plural "/{id}", permit, 0, ROUTE_CHANGES, one##_delete, "Remove a " word)

const struct route queues_routes[] = {
    COLLECT("queues", queue, "queue", PERMIT_SYSTEM),
    COLLECT("policies", policy, "policy", PERMIT_SYSTEM),
    COLLECT("windows", window, "window", PERMIT_NODES),
    COLLECT("domains", domain, "domain", PERMIT_NODES),
    ROUTE("GET", "/v1/routes", SEE, 0, routes_get, "Read the routing rules of jobs"),
    ROUTE("PUT", "/v1/routes", PERMIT_SYSTEM, BODY_MAX, ROUTE_CHANGES, routes_put, "Replace the routing rules of jobs",
          .body = &routes_keys),
};
const size_t queues_routes_len = sizeof queues_routes / sizeof *queues_routes;
