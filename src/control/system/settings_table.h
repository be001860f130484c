/* settings_table.h - the system's settings: one row each, with type, default, bounds and help.
 *
 * Stored as one document (KIND_SETTING "system") with the values that were set; all others have their default. The
 * options of berthd (folder, address, certificates) are not settings.
 *
 * To add a setting: a row in settings_table.c, the code that reads it, and its entry in docs/settings.md.
 */
#pragma once

#include <jansson.h>

#include "control/state/state.h"

/* Version of the defaults. A cluster keeps the defaults of its first start, in the setting `defaults`, so that a new
 * version decides as the old one did, and replays use the settings of the time. To change a default that affects plans,
 * raise this number. */
enum { SETTINGS_DEFAULTS = 3 };

enum system_setting {
    SETTING_DEFAULTS,
    SETTING_LEASE_S,
    SETTING_CYCLE_MAX_S,
    SETTING_HISTORY_REVISIONS,
    SETTING_REQUESTS_PER_S,
    SETTING_AUDIT_EVERY,
    SETTING_NODE_PODS,
    SETTING_DEFAULT_REQUESTS,
    SETTING_MEMORY_LIMIT,
    SETTING_PLACEMENT_BUDGET,
    SETTING_REPLICAS_MAX,
    SETTING_CAP_INSTANCES,
    SETTING_CAP_JOBS,
    SETTING_CAP_STORED_MB,
    SETTING_CAP_TOKENS,
    SETTING_CAP_WATCHES,
    SETTING_CAP_EXCEPTIONS,
    SETTING_HOLDER_SHOWN,
    SETTING_SEED,
    SETTING_PROFILE,
    SETTING_REBALANCE,
    SETTING_REBALANCE_MOVES,
    SETTING_REBALANCE_GAIN_PERCENT,
    SETTING_REBALANCE_AGE_S,
    SETTING_PRESSURE_PERCENT,
    SETTING_PRESSURE_LOW_PERCENT,
    SETTING_PRESSURE_HOLD_S,
    SETTING_SHED,
    SETTING_HEADROOM_PERCENT,
    SETTING_HEADROOM_PRIORITY,
    SETTING_HEADROOM_TASKS,
    SETTING_POLICY,
    SETTING_BACKFILL,
    SETTING_BACKFILL_POLICY,
    SETTING_BACKFILL_UNTIL_LIMIT,
    SETTING_RESERVATIONS,
    SETTING_RESERVATIONS_ALIKE,
    SETTING_ESTIMATE_S,
    SETTING_PREEMPTION,
    SETTING_PREEMPT_MIN_RUN_S,
    SETTING_HALF_LIFE_S,
    SETTING_AGE_MAX_S,
    SETTING_MAX_WAIT_S,
    SETTING_CHARGES,
    SETTING_PRICES,
    SETTING_AGENT_ADDRESSES,
    SETTING_CERTIFICATE_LIFE_S,
    SETTING_INVITATION_LIFE_S,
    SETTING_JOB_KEEP_S,
    SETTING_USAGE_KEEP_S,
    SETTING_USAGE_CUT_S,
    SETTING_USAGE_KEEP_RECORDS,
    SETTING_NOTIFY_ALLOW,
    SETTING_NOTIFY_SECRET,
    SETTING_MAIL_FROM,
    SETTING_SMTP_URL,
    SETTING_JOURNAL_SEGMENT_MB,
    SETTING_JOURNAL_SEGMENT_S,
    SETTING_JOURNAL_KEEP_S,
    SETTING_JOURNAL_KEEP_MB,
    SETTING_JOURNAL_EXPORT,
    SETTING_UID_FIRST,
    SYSTEM_SETTINGS
};

#define SETTINGS_ID "system"

/* Returns the schema of all settings (wire/doc/api.h), with these defaults. A new reference. */
json_t *system_settings_schema(int64_t defaults);
/* Returns the effective settings: stored values and defaults. A new reference. */
json_t *system_settings(const struct state *s);
/* Tells whether a value is stored under this name, known or not. */
bool system_setting_stored(const struct state *s, const char *name);
/* Returns the effective value of one setting; a text is in the arena. */
int64_t system_setting_number(const struct state *s, enum system_setting setting);
/* The same for a given settings document; NULL: no document. */
int64_t system_setting_number_of(const struct object *settings, enum system_setting setting);
const char *system_setting_text(const struct state *s, enum system_setting setting, struct arena *arena);
