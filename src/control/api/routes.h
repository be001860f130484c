/* routes.h - the route tables of the API, one per area, in routes_<area>.c. */
#pragma once

#include "control/api/request.h"

/* A row of a route table, in the order of struct route. Optional fields, such as .body and .query, follow the
 * summary. */
#define ROUTE(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

extern const struct route work_routes[]; /* apps, jobs, vms */
extern const size_t work_routes_len;
extern const struct route node_routes[]; /* nodes, volumes, resources, profiles, instances, reports */
extern const size_t node_routes_len;
extern const struct route system_routes[]; /* settings, system services, transactions */
extern const size_t system_routes_len;
extern const struct route users_routes[]; /* users, groups, roles, tokens */
extern const size_t users_routes_len;
extern const struct route publish_routes[]; /* derived configuration, health, metrics */
extern const size_t publish_routes_len;
extern const struct route decide_routes[]; /* schedule, why, events, audit, backup */
extern const size_t decide_routes_len;
/* the queue, why a job waits, current and past holders of nodes and devices */
extern const struct route views_routes[];
extern const size_t views_routes_len;
extern const struct route usage_routes[]; /* usage records and totals */
extern const size_t usage_routes_len;
extern const struct route queues_routes[]; /* queues, policies, windows, domains */
extern const size_t queues_routes_len;
extern const struct route optask_routes[]; /* operations on nodes */
extern const size_t optask_routes_len;
extern const struct route sessions_routes[]; /* logs, shells and signals of running instances */
extern const size_t sessions_routes_len;
