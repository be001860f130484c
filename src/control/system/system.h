/* system.h - verbs for system settings, system services, and transactions of clients.
 *
 * A system service is an app of the owner `system`: it exists from the first start, and cannot be added or removed. It
 * can be configured and restarted and, if it permits that, disabled.
 */
#pragma once

#include "control/api/crud.h"

request_verb system_get_settings, system_put_settings, system_patch_settings;
request_verb system_list_services, system_get_service, system_enable_service, system_disable_service;
request_verb system_restart_service, system_put_service_settings, system_patch_service_settings,
    system_get_service_settings;

/* txn.c: {"guards": [{"kind", "id", "revision"}], "changes": [{"op", "kind", "id", "object"}]}, all or none applied. */
enum { TXN_CHANGES_MAX = 1000, TXN_VOLUMES_MAX = 32 };
extern const struct key_table txn_keys, txn_guard_keys, txn_change_keys;
request_verb txn_run;
