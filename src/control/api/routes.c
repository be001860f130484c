#include "control/api/routes.h"

/* The lengths are not constants in this file, so the table has pointers to them. */
#define AREA(name, title, text)                                                                                        \
    {                                                                                                                  \
        title, text, name##_routes, &name##_routes_len                                                                 \
    }

const struct route_table route_tables[] = {
    AREA(work, "workloads", "Apps, jobs and virtual machines."),
    AREA(node, "nodes", "Nodes, volumes, resources, profiles and instances."),
    AREA(queues, "queues", "Queues, policies, windows, domains and routing rules."),
    AREA(optask, "optasks", "Operations on nodes: scripts that run once on each node."),
    AREA(sessions, "calls", "Logs, shells and signals of instances."),
    AREA(users, "users", "Users, groups, roles and tokens."),
    AREA(system, "system", "Settings, system services, transactions."),
    AREA(usage, "usage", "Accounting for quotas and bills."),
    AREA(publish, "publish", "Derived configuration, health, metrics."),
    AREA(views, "views", "The queue, pending reasons and allocations."),
    AREA(decide, "decide", "Planning, explanations, events, audit, backup."),
};
const size_t route_tables_len = sizeof route_tables / sizeof *route_tables;
