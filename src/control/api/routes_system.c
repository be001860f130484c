/* routes_system.c - the routes of system settings, system services and transactions. */
#include "control/api/routes.h"
#include "control/system/system.h"

enum { SETTINGS_BODY_MAX = 128 * 1024, VERB_BODY_MAX = 4096, TXN_BODY_MAX = 8 * 1024 * 1024 };

#define SEE PERMIT_SYSTEM, 0, 0
#define SETTINGS PERMIT_SYSTEM, SETTINGS_BODY_MAX, ROUTE_CHANGES
#define VERB PERMIT_SYSTEM, VERB_BODY_MAX, ROUTE_CHANGES
const struct route system_routes[] = {
    ROUTE("GET", "/v1/system/settings", SEE, system_get_settings, "Read the system's settings", .query = "schema"),
    ROUTE("PUT", "/v1/system/settings", SETTINGS, system_put_settings, "Replace the system's settings"),
    ROUTE("PATCH", "/v1/system/settings", SETTINGS, system_patch_settings, "Change some of the system's settings"),
    ROUTE("GET", "/v1/system/services", SEE, system_list_services, "List system services"),
    ROUTE("GET", "/v1/system/services/{id}", SEE, system_get_service, "Read a system service"),
    ROUTE("POST", "/v1/system/services/{id}/enable", VERB, system_enable_service, "Enable a system service"),
    ROUTE("POST", "/v1/system/services/{id}/disable", VERB, system_disable_service,
          "Disable a system service that allows it"),
    ROUTE("POST", "/v1/system/services/{id}/restart", VERB, system_restart_service, "Restart a system service"),
    ROUTE("GET", "/v1/system/services/{id}/settings", SEE, system_get_service_settings,
          "Read a system service's settings"),
    ROUTE("PUT", "/v1/system/services/{id}/settings", SETTINGS, system_put_service_settings,
          "Replace a system service's settings"),
    ROUTE("PATCH", "/v1/system/services/{id}/settings", SETTINGS, system_patch_service_settings,
          "Change some of a system service's settings"),
    ROUTE("POST", "/v1/txn", PERMIT_SELF, TXN_BODY_MAX, ROUTE_CHANGES | ROUTE_HEAVY, txn_run,
          "Make several changes in one conditional transaction", .body = &txn_keys),
};
const size_t system_routes_len = sizeof system_routes / sizeof *system_routes;
