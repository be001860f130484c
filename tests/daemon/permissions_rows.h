/* permissions_rows.h - the two tables of permissions_test.c: what each role may do, and what each route needs.
 *
 * To add a route: a row in `rows`.
 */
#pragma once

#include <stddef.h>

/* ---- roles ------------------------------------------------------------------------------------------------------ */

/* Each permission lists the owners on whose objects the role has it: o own, g the same group's, x others'. An object
 * without an owner counts as others'. */
static const struct role_rights {
    const char *role;
    const char *read, *cluster, *submit, *manage, *nodes, *users, *system, *audit, *report;
} roles[] = {
    {"admin",    "ogx", "ogx", "ogx", "ogx", "ogx", "ogx", "ogx", "ogx", "ogx"},
    {"operator", "ogx", "ogx", "ogx", "ogx", "ogx", "---", "ogx", "---", "---"},
    {"auditor",  "ogx", "ogx", "---", "---", "---", "---", "---", "ogx", "---"},
    {"manager",  "og-", "ogx", "og-", "og-", "---", "og-", "---", "---", "---"},
    {"user",     "o--", "ogx", "o--", "o--", "---", "---", "---", "---", "---"},
    {"viewer",   "og-", "ogx", "---", "---", "---", "---", "---", "---", "---"},
    {"agent",    "---", "---", "---", "---", "---", "---", "---", "---", "o--"},
};
enum { ROLES = sizeof roles / sizeof *roles };

/* ---- routes ----------------------------------------------------------------------------------------------------- */

/* The kind of object that a request is about, by its path or body. */
enum about {
    NOTHING,
    APP,
    JOB,
    VM,
    VOLUME,
    INSTANCE,
    USER,
    TOKEN,
    NODE,
    OWN_NODE,
    SHARED_OBJECT,
    SYSTEM_SERVICE,
    SESSION,
    SECRET,
    CRON
};

struct row {
    const char *method, *path;
    const char *gate; /* permission needed before the request is examined */
    enum about about;
    const char *then; /* permission needed on the object; "": read access is enough */
    const char *body; /* % stands for the owner, & for the owner's group */
    /* An exception to the columns above; "": none. "makes": the object is new, so a refusal is 403, never 404.
     * "not-self": users cannot do this to themselves. "exports": needs manage and, on other users, users. "for-nodes":
     * the node's own agent, and users with the permission nodes. "table": agents, and users with the permission users
     * on all. "own-agent": only the node's own agent. "invited": authorised by the request body. */
    const char *rule;
};

#define WORK(plural, about, body)                                                                                      \
    {"GET", "/v1/" plural, "read", NOTHING, "", NULL, ""},                                                             \
        {"POST", "/v1/" plural, "submit", about, "submit", body, "makes"},                                             \
        {"GET", "/v1/" plural "/{id}", "read", about, "read", NULL, ""},                                               \
        {"PATCH", "/v1/" plural "/{id}", "manage", about, "manage", "{\"display\": \"x\"}", ""},                       \
    {                                                                                                                  \
        "DELETE", "/v1/" plural "/{id}", "manage", about, "manage", NULL, ""                                           \
    }
#define VERB(path, about)                                                                                              \
    {                                                                                                                  \
        "POST", path, "manage", about, "manage", NULL, ""                                                              \
    }
#define CLUSTER(plural, one, gate, body)                                                                               \
    {"GET", "/v1/" plural, "cluster", NOTHING, "", NULL, ""},                                                          \
        {"POST", "/v1/" plural, gate, SHARED_OBJECT, gate, "{\"id\": \"new\", \"name\": \"new\"}", "makes"},           \
        {"GET", "/v1/" plural "/" one, "cluster", SHARED_OBJECT, "", NULL, ""},                                        \
        {"PUT", "/v1/" plural "/" one, gate, SHARED_OBJECT, gate, body, ""},                                           \
        {"PATCH", "/v1/" plural "/" one, gate, SHARED_OBJECT, gate, "{\"display\": \"x\"}", ""},                       \
    {                                                                                                                  \
        "DELETE", "/v1/" plural "/" one, gate, SHARED_OBJECT, gate, NULL, ""                                           \
    }
#define KNOWN(plural, one, gate)                                                                                       \
    {"GET", "/v1/" plural, "self", NOTHING, "", NULL, ""},                                                             \
        {"POST", "/v1/" plural, gate, SHARED_OBJECT, gate, "{\"id\": \"new\"}", "makes"},                              \
        {"GET", "/v1/" plural "/" one, "self", SHARED_OBJECT, "", NULL, ""},                                           \
        {"PUT", "/v1/" plural "/" one, gate, SHARED_OBJECT, gate, "{\"display\": \"y\"}", ""},                         \
        {"PATCH", "/v1/" plural "/" one, gate, SHARED_OBJECT, gate, "{\"display\": \"x\"}", ""},                       \
    {                                                                                                                  \
        "DELETE", "/v1/" plural "/" one, gate, SHARED_OBJECT, gate, NULL, ""                                           \
    }
#define ORDER(plural, gate, new, body)                                                                                 \
    {"GET", "/v1/" plural, "cluster", NOTHING, "", NULL, ""},                                                          \
        {"POST", "/v1/" plural, gate, SHARED_OBJECT, gate, new, "makes"},                                              \
        {"GET", "/v1/" plural "/{id}", "cluster", SHARED_OBJECT, "", NULL, ""},                                        \
        {"PUT", "/v1/" plural "/{id}", gate, SHARED_OBJECT, gate, body, ""},                                           \
        {"PATCH", "/v1/" plural "/{id}", gate, SHARED_OBJECT, gate, "{\"display\": \"x\"}", ""},                       \
    {                                                                                                                  \
        "DELETE", "/v1/" plural "/{id}", gate, SHARED_OBJECT, gate, NULL, ""                                           \
    }
#define WINDOW(more)                                                                                                   \
    "{" more "\"start\": \"2030-01-01T00:00:00Z\", \"duration\": \"1h\", \"nodes\": [\"n1\"], \"maintenance\": true}"
#define OPTASK(more) "{" more "\"script\": \"true\", \"init\": true}"
#define ON_NODE(method, verb, body)                                                                                    \
    {                                                                                                                  \
        method, "/v1/nodes/{id}/" verb, "nodes", NODE, "nodes", body, ""                                               \
    }
#define OF_SYSTEM(method, path, body)                                                                                  \
    {                                                                                                                  \
        method, "/v1/system/" path, "system", SYSTEM_SERVICE, "system", body, ""                                       \
    }

static const struct row rows[] = {
    WORK("apps", APP, "{\"name\": \"new\", \"owner\": \"%\"}"),
    {"PUT",    "/v1/apps/{id}",                   "submit",  APP,           "manage", "{\"replicas\": 2}",                                      ""         },
    VERB("/v1/apps/{id}/start", APP),
    VERB("/v1/apps/{id}/stop", APP),
    VERB("/v1/apps/{id}/restart", APP),
    {"POST",   "/v1/apps/{id}/scale",             "manage",  APP,           "manage", "{\"replicas\": 3}",                                      ""         },
    {"GET",    "/v1/apps/{id}/settings",          "read",    APP,           "read",   NULL,                                                     ""         },
    {"PUT",    "/v1/apps/{id}/settings",          "manage",  APP,           "manage", "{}",                                                     ""         },
    {"PATCH",  "/v1/apps/{id}/settings",          "manage",  APP,           "manage", "{}",                                                     ""         },
    {"GET",    "/v1/apps/{id}/install",           "manage",  APP,           "manage", NULL,                                                     ""         },
    {"PUT",    "/v1/apps/{id}/install",           "manage",  APP,           "manage", "{}",                                                     ""         },
    {"PATCH",  "/v1/apps/{id}/install",           "manage",  APP,           "manage", "{}",                                                     ""         },
    WORK("jobs", JOB, "{\"owner\": \"%\"}"),
    {"PUT",    "/v1/jobs/{id}",                   "manage",  JOB,           "manage", "{\"priority\": 2}",                                      ""         },
    VERB("/v1/jobs/{id}/hold", JOB),
    VERB("/v1/jobs/{id}/release", JOB),
    VERB("/v1/jobs/{id}/cancel", JOB),
    VERB("/v1/jobs/{id}/requeue", JOB),
    {"GET",    "/v1/jobs/{id}/why",               "read",    JOB,           "read",   NULL,                                                     ""         },
    WORK("crons", CRON, "{\"name\": \"new\", \"owner\": \"%\", \"schedule\": \"0 * * * *\", \"job\": {}}"),
    {"PUT",    "/v1/crons/{id}",                  "submit",  CRON,          "manage", "{\"schedule\": \"1 * * * *\", \"job\": {}}",             ""         },
    {"GET",    "/v1/queue",                       "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/use",                         "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/series",                      "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/holders",                     "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/what_if",                     "cluster", NOTHING,       "",       "{\"policy\": \"fifo\"}",                                 ""         },
    {"POST",   "/v1/policies/test",               "cluster", NOTHING,       "",       "{\"ranking\": \"fifo\"}",                                ""         },
    WORK("vms", VM, "{\"name\": \"new\", \"owner\": \"%\"}"),
    {"PUT",    "/v1/vms/{id}",                    "submit",  VM,            "manage", "{\"priority\": 2}",                                      ""         },
    VERB("/v1/vms/{id}/start", VM),
    VERB("/v1/vms/{id}/stop", VM),
    VERB("/v1/vms/{id}/restart", VM),
    WORK("volumes", VOLUME, "{\"id\": \"new\", \"owner\": \"%\"}"),
    {"PUT",    "/v1/volumes/{id}",                "submit",  VOLUME,        "manage", "{\"driver\": \"disk\"}",                                 ""         },
    {"GET",    "/v1/secrets",                     "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/secrets",                     "submit",  SECRET,        "submit",
                                                            "{\"name\": \"new\", \"owner\": \"%\", \"data\": {\"a\": \"b\"}}",                                                                         "makes"    },
    {"GET",    "/v1/secrets/{id}",                "read",    SECRET,        "read",   NULL,                                                     ""         },
    {"PUT",    "/v1/secrets/{id}",                "submit",  SECRET,        "manage", "{\"data\": {\"a\": \"c\"}}",                             ""         },
    {"DELETE", "/v1/secrets/{id}",                "manage",  SECRET,        "manage", NULL,                                                     ""         },
    {"GET",    "/v1/instances",                   "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/instances/{id}",              "read",    INSTANCE,      "read",   NULL,                                                     ""         },
    {"POST",   "/v1/instances/{id}/migrate",      "manage",  INSTANCE,      "manage", "{}",                                                     ""         },
    {"GET",    "/v1/migrations",                  "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/migrations/{id}/undo",        "manage",  INSTANCE,      "manage", NULL,                                                     ""         },

    {"GET",    "/v1/instances/{id}/logs",         "read",    INSTANCE,      "read",   NULL,                                                     ""         },
    {"POST",   "/v1/instances/{id}/exec",         "manage",  INSTANCE,      "manage", "{\"command\": [\"true\"]}",                              ""         },
    {"POST",   "/v1/instances/{id}/signal",       "manage",  INSTANCE,      "manage", "{\"signal\": \"HUP\"}",                                  ""         },
    {"GET",    "/v1/apps/{id}/logs",              "read",    APP,           "read",   NULL,                                                     ""         },
    {"GET",    "/v1/jobs/{id}/logs",              "read",    JOB,           "read",   NULL,                                                     ""         },
    {"GET",    "/v1/vms/{id}/logs",               "read",    VM,            "read",   NULL,                                                     ""         },
    {"GET",    "/v1/calls/{id}",                  "manage",  SESSION,       "",       NULL,                                                     ""         },
    {"DELETE", "/v1/calls/{id}",                  "manage",  SESSION,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/calls/{id}/input",            "manage",  SESSION,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/calls/{id}/resize",           "manage",  SESSION,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/nodes/{id}/calls",            "report",  OWN_NODE,      "report", NULL,                                                     ""         },
    {"POST",   "/v1/nodes/{id}/calls/{call}",     "report",  SESSION,       "",       NULL,                                                     ""         },

    {"GET",    "/v1/nodes/{id}/secrets/{secret}", "report",  SESSION,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/nodes",                       "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/nodes",                       "nodes",   SHARED_OBJECT, "nodes",  "{\"id\": \"new\"}",                                      "makes"    },
    {"GET",    "/v1/nodes/{id}",                  "cluster", NODE,          "",       NULL,                                                     ""         },
    {"PUT",    "/v1/nodes/{id}",                  "nodes",   NODE,          "nodes",  "{\"allocatable\": {\"cpu\": 16, \"memory\": \"64Gi\"}}", ""         },
    {"PATCH",  "/v1/nodes/{id}",                  "nodes",   NODE,          "nodes",  "{\"zone\": \"z\"}",                                      ""         },
    {"DELETE", "/v1/nodes/{id}",                  "nodes",   NODE,          "nodes",  NULL,                                                     ""         },
    ON_NODE("POST", "disable", NULL),
    ON_NODE("POST", "enable", NULL),
    ON_NODE("POST", "cordon", NULL),
    ON_NODE("POST", "drain", NULL),
    ON_NODE("POST", "invite", "{}"),
    ON_NODE("POST", "accept", NULL),
    ON_NODE("PUT", "capabilities", "{\"allocatable\": {\"cpu\": 16, \"memory\": \"64Gi\"}}"),
    ON_NODE("PUT", "settings", "{\"zone\": \"z\"}"),
    {"POST",   "/v1/nodes/{id}/report",           "report",  OWN_NODE,      "report", "{\"epoch\": 1, \"seq\": 1, \"instances\": []}",
                                                            ""                                                                                                                                                    },
    {"POST",   "/v1/nodes/{id}/certificate",      "report",  OWN_NODE,      "report", "{\"request\": \"KEY\"}",                                 "own-agent"},
    {"POST",   "/v1/join",                        "public",  NOTHING,       "",       "{}",                                                     "invited"  },
    {"GET",    "/v1/nodes/{id}/config",           "self",    NODE,          "",       NULL,                                                     "for-nodes"},
    {"GET",    "/v1/nodes/{id}/gateway",          "self",    NODE,          "",       NULL,                                                     "for-nodes"},
    CLUSTER("resources", "{id}", "nodes", "{\"kind\": \"cumulative\"}"),
    CLUSTER("profiles", "{id}", "system", "{}"),
    ORDER("queues", "system", "{\"id\": \"new\"}", "{\"priority\": 3}"),
    ORDER("policies", "system", "{\"id\": \"new\"}", "{\"ranking\": \"fifo\"}"),
    ORDER("windows", "nodes", WINDOW("\"id\": \"new\", "), WINDOW("")),
    ORDER("domains", "nodes", "{\"id\": \"new\"}", "{\"nodes\": [\"n1\"]}"),
    {"GET",    "/v1/optasks",                     "nodes",   NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/optasks",                     "nodes",   SHARED_OBJECT, "users",  OPTASK("\"id\": \"new\", "),                              "makes"    },
    {"GET",    "/v1/optasks/{id}",                "nodes",   SHARED_OBJECT, "",       NULL,                                                     ""         },
    {"PUT",    "/v1/optasks/{id}",                "nodes",   SHARED_OBJECT, "users",  OPTASK(""),                                               ""         },
    {"PATCH",  "/v1/optasks/{id}",                "nodes",   SHARED_OBJECT, "users",  "{\"display\": \"x\"}",                                   ""         },
    {"DELETE", "/v1/optasks/{id}",                "nodes",   SHARED_OBJECT, "users",  NULL,                                                     ""         },
    {"POST",   "/v1/optasks/{id}/retry",          "nodes",   SHARED_OBJECT, "users",  "{}",                                                     ""         },
    {"POST",   "/v1/optasks/{id}/undo",           "nodes",   SHARED_OBJECT, "users",  "{}",                                                     ""         },
    {"GET",    "/v1/optasks/{id}/logs",           "nodes",   SHARED_OBJECT, "",       NULL,                                                     ""         },
    {"GET",    "/v1/nodes/{id}/optasks",          "nodes",   NODE,          "nodes",  NULL,                                                     ""         },
    {"POST",   "/v1/nodes/{id}/optasks/{optask}", "report",  SESSION,       "",       "{\"attempt\": 1, \"state\": \"done\"}",                  ""         },
    {"GET",    "/v1/routes",                      "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"PUT",    "/v1/routes",                      "system",  NOTHING,       "",       "{}",                                                     ""         },

    {"GET",    "/v1/users",                       "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/users",                       "users",   USER,          "users",  "{\"id\": \"new\", \"group\": \"&\"}",                    "makes"    },
    {"POST",   "/v1/users/import",                "users",   USER,          "users",  "archive",                                                "makes"    },
    {"GET",    "/v1/users/{id}",                  "read",    USER,          "",       NULL,                                                     ""         },
    {"PUT",    "/v1/users/{id}",                  "users",   USER,          "users",  "{\"group\": \"&\", \"role\": \"user\"}",                 ""         },
    {"PATCH",  "/v1/users/{id}",                  "users",   USER,          "users",  "{\"level\": 4}",                                         ""         },
    {"DELETE", "/v1/users/{id}",                  "users",   USER,          "users",  NULL,                                                     "not-self" },
    {"POST",   "/v1/users/{id}/disable",          "users",   USER,          "users",  NULL,                                                     "not-self" },
    {"POST",   "/v1/users/{id}/enable",           "users",   USER,          "users",  NULL,                                                     ""         },
    {"GET",    "/v1/users/{id}/export",           "read",    USER,          "",       NULL,                                                     "exports"  },
    KNOWN("groups", "{id}", "users"),
    KNOWN("roles", "{id}", "system"),
    {"GET",    "/v1/tokens",                      "self",    NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/tokens",                      "self",    USER,          "users",  "{\"user\": \"%\"}",                                      ""         },
    {"GET",    "/v1/tokens/{id}",                 "self",    TOKEN,         "",       NULL,                                                     ""         },
    {"DELETE", "/v1/tokens/{id}",                 "self",    TOKEN,         "",       NULL,                                                     ""         },
    {"GET",    "/v1/whoami",                      "self",    NOTHING,       "",       NULL,                                                     ""         },

    {"GET",    "/v1/system/settings",             "system",  NOTHING,       "",       NULL,                                                     ""         },
    {"PUT",    "/v1/system/settings",             "system",  NOTHING,       "",       "{}",                                                     ""         },
    {"PATCH",  "/v1/system/settings",             "system",  NOTHING,       "",       "{}",                                                     ""         },
    {"GET",    "/v1/system/services",             "system",  NOTHING,       "",       NULL,                                                     ""         },
    OF_SYSTEM("GET", "services/{id}", NULL),
    OF_SYSTEM("POST", "services/{id}/enable", NULL),
    OF_SYSTEM("POST", "services/{id}/disable", NULL),
    OF_SYSTEM("POST", "services/{id}/restart", NULL),
    OF_SYSTEM("GET", "services/{id}/settings", NULL),
    OF_SYSTEM("PUT", "services/{id}/settings", "{}"),
    OF_SYSTEM("PATCH", "services/{id}/settings", "{}"),
    {"POST",   "/v1/txn",                         "self",    APP,           "manage",
                                                            "{\"changes\": [{\"op\": \"delete\", \"kind\": \"app\", \"id\": \"web.%\"}]}",                                                             ""         },

    {"GET",    "/v1/shares",                      "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/prices",                      "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/usage",                       "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/usage_records",               "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/services",                    "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/services/{id}",               "read",    APP,           "read",   NULL,                                                     ""         },
    {"GET",    "/v1/rbac",                        "self",    NOTHING,       "",       NULL,                                                     "table"    },
    {"GET",    "/metrics",                        "system",  NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/healthz",                        "public",  NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/readyz",                         "public",  NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/version",                        "public",  NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/openapi.json",                   "public",  NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/schedule",                    "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/why/{kind}/{id}",             "cluster", APP,           "read",   NULL,                                                     ""         },
    {"GET",    "/v1/alarms",                      "cluster", NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/events",                      "read",    NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/audit",                       "audit",   NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/audit/{seq}",                 "audit",   NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/audit/{seq}/replay",          "audit",   NOTHING,       "",       NULL,                                                     ""         },
    {"GET",    "/v1/backup",                      "system",  NOTHING,       "",       NULL,                                                     ""         },
    {"POST",   "/v1/backup",                      "system",  NOTHING,       "users",  NULL,                                                     ""         },
};
enum { ROWS = sizeof rows / sizeof *rows };
