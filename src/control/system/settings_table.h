/* settings_table.h - the system's settings: one row each, with type, default, bounds and help.
 *
 * Stored as one document (KIND_SETTING "system") that holds what was set; the rest is the default. What berthd is
 * started with (folder, address, certificates) is not here.
 *
 * To add a setting: a row in settings_table.c, and whoever reads it.
 */
#pragma once

#include <jansson.h>

#include "control/state/state.h"

/* A cluster keeps the defaults it was begun with, by the setting `defaults`, so that a new version decides as the old one did, and
 * journals are replayed by what was in force. Who changes a default that plans go by raises this. */
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

/* All of them as a schema (wire/doc/api.h), by the table, with these defaults. A new reference. */
json_t *system_settings_schema(int64_t defaults);
/* What is in force: what was set, and defaults. A new reference. */
json_t *system_settings(const struct state *s);
/* Is anything stored under this name, known or not? */
bool system_setting_stored(const struct state *s, const char *name);
/* One of them; a text is in the arena. */
int64_t system_setting_number(const struct state *s, enum system_setting setting);
/* The same by a document of settings; NULL: by none. */
int64_t system_setting_number_of(const struct object *settings, enum system_setting setting);
const char *system_setting_text(const struct state *s, enum system_setting setting, struct arena *arena);
