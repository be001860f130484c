#include "control/system/settings_table.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static const char *const on_off[] = {"on", "off", NULL};

static const struct setting_row {
    const char *name, *help;
    int64_t number, min, max;
    const char *text;          /* default of a text setting; NULL: a whole number */
    const char *const *values; /* allowed values of a text, ends with NULL; NULL: any */
    /* A cluster whose setting `defaults` is below `since` was begun by an earlier version, and has the default of that
     * version. */
    int64_t since, before;
    const char *before_text;
} rows[] = {
#define NUMBER(name_, default_, min_, max_, help_, ...)                                                                \
    {                                                                                                                  \
        .name = name_, .number = default_, .min = min_, .max = max_, .help = help_, __VA_ARGS__                        \
    }
#define TEXT(name_, default_, help_, ...)                                                                              \
    {                                                                                                                  \
        .name = name_, .text = default_, .help = help_, __VA_ARGS__                                                    \
    }
    [SETTING_DEFAULTS] =
        NUMBER("defaults", 1, 1, SETTINGS_DEFAULTS,
               "version of the default values: 3 is current; 1 or 2 for clusters created by an earlier version"),
    [SETTING_LEASE_S] = NUMBER("lease_s", 30, 2, 86400, "seconds without a report after which a node is lost"),
    [SETTING_CYCLE_MAX_S] = NUMBER("cycle_max_s", 10, 1, 3600, "maximum seconds between two scheduling cycles"),
    [SETTING_HISTORY_REVISIONS] =
        NUMBER("history_revisions", 100000, 1000, 100000000, "number of past revisions from which a watch can start"),
    [SETTING_REQUESTS_PER_S] = NUMBER(
        "requests_per_s", 200, 0, 1000000,
        "requests per second of one user who is not an administrator, with bursts of ten times as many; each 4 KiB "
        "of a body counts as another request; 0: no limit"),
    [SETTING_AUDIT_EVERY] = NUMBER("audit_every", 0, 0, 1000000, "cycles between audits of all counters; 0: never"),
    [SETTING_NODE_PODS] =
        NUMBER("node_pods", 250, 0, 1000000,
               "maximum pods of a node whose `allocatable` does not list pods; 0: no limit", .since = 3, .before = 0),
    [SETTING_DEFAULT_REQUESTS] =
        TEXT("default_requests", "cpu=50m,memory=256Mi", "default requests of new apps, jobs and vms; empty: none"),
    [SETTING_MEMORY_LIMIT] =
        TEXT("memory_limit", "request", "default memory limit of new work: the memory request, or none",
             .values = (const char *const[]){"request", "none", NULL}),
    [SETTING_PLACEMENT_BUDGET] = NUMBER(
        "placement_budget", 1000, 0, 10000000,
        "maximum pods of one user that are placed but have not begun to start; 0: no limit", .since = 3, .before = 0),
    [SETTING_REPLICAS_MAX] =
        NUMBER("replicas_max", 100000, 0, 10000000, "maximum replicas or tasks of one app, job or vm; 0: no limit"),
    [SETTING_CAP_INSTANCES] =
        NUMBER("cap_instances", 10000, 0, 1000000000, "maximum replicas of all apps and vms of one user; 0: no limit"),
    [SETTING_CAP_JOBS] = NUMBER("cap_jobs", 50000, 0, 1000000000,
                                "maximum unfinished jobs of one user, counting each task of an array; 0: no limit"),
    [SETTING_CAP_STORED_MB] = NUMBER("cap_stored_mb", 64, 0, 1000000,
                                     "maximum MiB of documents of one user, including finished jobs; 0: no limit"),
    [SETTING_CAP_TOKENS] = NUMBER("cap_tokens", 100, 0, 1000000, "maximum tokens of one user; 0: no limit"),
    [SETTING_CAP_WATCHES] = NUMBER("cap_watches", 128, 0, 1000000, "maximum open watches of one user; 0: no limit"),
    [SETTING_CAP_EXCEPTIONS] =
        TEXT("cap_exceptions", "",
             "exceptions from the caps, like user/ann:instances=50000,group/vision:jobs=200000; a user's exception "
             "overrides that of the group"),
    [SETTING_HOLDER_SHOWN] = TEXT("holder_shown", "group",
                                  "what other users see of the holder of a device: nobody (nothing), the "
                                  "group, or the user",
                                  .values = (const char *const[]){"nobody", "group", "user", NULL}),
    [SETTING_SEED] = NUMBER("seed", 0, 0, (int64_t)1 << 53, "seed of the score that breaks ties at random"),
    [SETTING_PROFILE] = TEXT("profile", "default",
                             "the active profile of filters and scores: one of /v1/profiles, "
                             "or a built-in one"),
    [SETTING_AGENT_ADDRESSES] = TEXT("agent_addresses", "",
                                     "addresses of berthd for agents, \"https://A:3981,https://B:3981\"; empty: the "
                                     "listen address"),
    [SETTING_CERTIFICATE_LIFE_S] = NUMBER("certificate_life_s", 604800, 60, 315360000,
                                          "seconds of validity of an agent's certificate; renewal starts at half "
                                          "of it"),
    [SETTING_INVITATION_LIFE_S] = NUMBER("invitation_life_s", 3600, 1, 2592000, "seconds of validity of an invitation"),
    [SETTING_JOB_KEEP_S] =
        NUMBER("job_keep_s", 604800, 60, 3153600000, "seconds for which the record of a finished job is kept"),
    [SETTING_REBALANCE] =
        TEXT("rebalance", "on", "migrate pods of apps to balance the real use of nodes", .values = on_off),
    [SETTING_REBALANCE_MOVES] = NUMBER("rebalance_moves", 2, 1, 100, "maximum concurrent migrations for rebalancing"),
    [SETTING_REBALANCE_GAIN_PERCENT] =
        NUMBER("rebalance_gain_percent", 15, 1, 100,
               "minimum gain of such a migration: the percentage of a node's capacity by which the busier node is "
               "relieved"),
    [SETTING_REBALANCE_AGE_S] =
        NUMBER("rebalance_age_s", 600, 0, 86400, "minimum seconds a pod must have run before rebalancing migrates it"),
    [SETTING_PRESSURE_PERCENT] =
        NUMBER("pressure_percent", 95, 0, 1000,
               "real memory use of a node, in percent, at which replicas are evicted; 0: never"),
    [SETTING_PRESSURE_LOW_PERCENT] = NUMBER("pressure_low_percent", 85, 0, 1000,
                                            "real memory use of a node, in percent, at which evictions "
                                            "end; above it no new work is placed there"),
    [SETTING_PRESSURE_HOLD_S] = NUMBER("pressure_hold_s", 10, 1, 3600,
                                       "seconds of memory pressure before an eviction, and between two "
                                       "evictions"),
    [SETTING_SHED] =
        TEXT("shed", "on", "move apps away from a node whose allocatable resources shrank below the allocated ones",
             .values = on_off),
    [SETTING_HEADROOM_PERCENT] =
        NUMBER("headroom_percent", 0, 0, 90, "percentage of the cpu and memory of each zone reserved for urgent work"),
    [SETTING_HEADROOM_PRIORITY] =
        NUMBER("headroom_priority", 1, INT32_MIN, INT32_MAX, "minimum priority of pods that may use the headroom"),
    [SETTING_USAGE_KEEP_S] =
        NUMBER("usage_keep_s", 7776000, 60, 315360000, "seconds for which usage records are kept after their end"),
    [SETTING_USAGE_CUT_S] = NUMBER("usage_cut_s", 86400, 60, 31536000,
                                   "interval in seconds at which usage of running instances is "
                                   "recorded"),
    [SETTING_USAGE_KEEP_RECORDS] = NUMBER("usage_keep_records", 500000, 1000, 10000000,
                                          "maximum number of usage records; the oldest are deleted first"),
    [SETTING_NOTIFY_ALLOW] =
        TEXT("notify_allow", "",
             "URL prefixes that notifications may be posted to, and allowed non-public addresses or ranges, "
             "separated by commas; empty: none"),
    [SETTING_NOTIFY_SECRET] =
        TEXT("notify_secret", "",
             "the secret NAME.OWNER/KEY that signs notifications: HMAC-SHA256 in X-Berth-Signature; empty: none"),
    [SETTING_MAIL_FROM] = TEXT("mail_from", "berth@localhost", "sender address of mail"),
    [SETTING_SMTP_URL] =
        TEXT("smtp_url", "",
             "mail server for notifications, like smtp://mail.example.org:25, if berthd's configuration file has no "
             "mail_command"),
    [SETTING_JOURNAL_SEGMENT_MB] =
        NUMBER("journal_segment_mb", 32, 1, 1024, "MiB of uncompressed records per segment of the journal"),
    [SETTING_JOURNAL_SEGMENT_S] =
        NUMBER("journal_segment_s", 86400, 1, 31536000, "seconds after which a smaller segment is created"),
    [SETTING_JOURNAL_KEEP_S] =
        NUMBER("journal_keep_s", 31536000, 1, 3153600000, "seconds after which segments of the journal are exported"),
    [SETTING_JOURNAL_KEEP_MB] =
        NUMBER("journal_keep_mb", 10240, 1, 100000000, "MiB of segments above which the oldest are exported"),
    [SETTING_JOURNAL_EXPORT] =
        TEXT("journal_export", "", "the folder for exported segments; empty: journal/exported in the folder of berthd"),
    [SETTING_UID_FIRST] = NUMBER("uid_first", 300000, 1000, 1800000000,
                                 "the first user number (uid) on nodes; existing numbers are kept and never reused"),
    [SETTING_HEADROOM_TASKS] = NUMBER("headroom_tasks", 0, 0, 10000000,
                                      "gangs with at least this many pods may also use the headroom; 0: "
                                      "none"),
    [SETTING_POLICY] =
        TEXT("policy", "berth",
             "default ordering policy of queues: one of /v1/policies, or a built-in one; fifo: by submission time",
             .since = 2, .before_text = "fifo"),
    [SETTING_BACKFILL] =
        TEXT("backfill", "on",
             "on: jobs may start early if no reservation is delayed; strict: no job starts early; off: no reservations",
             .values = (const char *const[]){"on", "strict", "off", NULL}),
    [SETTING_BACKFILL_POLICY] = TEXT(
        "backfill_policy", "",
        "policy that orders backfilled jobs: one of /v1/policies, or a built-in one, like sjf; empty: the order of "
        "their queues"),
    [SETTING_BACKFILL_UNTIL_LIMIT] =
        TEXT("backfill_until_limit", "on",
             "reservations assume that running jobs use their full time limit instead of their estimate",
             .values = on_off, .since = 2, .before_text = "off"),
    [SETTING_RESERVATIONS] = NUMBER("reservations", 100, 0, 10000, "maximum number of pending jobs with a reservation"),
    [SETTING_RESERVATIONS_ALIKE] =
        NUMBER("reservations_alike", 1, 0, 10000,
               "maximum number of reservations for jobs with the same node requirements; 0: no limit", .since = 2,
               .before = 0),
    [SETTING_ESTIMATE_S] =
        NUMBER("estimate_s", 3600, 1, 31536000, "default estimate of the run time of a job, in seconds"),
    [SETTING_PREEMPTION] = TEXT("preemption", "on", "stop jobs for jobs of a higher tier", .values = on_off),
    [SETTING_PREEMPT_MIN_RUN_S] =
        NUMBER("preempt_min_run_s", 60, 0, 31536000, "minimum seconds a job runs before it may be preempted"),
    [SETTING_HALF_LIFE_S] =
        NUMBER("half_life_s", 604800, 60, 315360000, "seconds after which past usage counts half, for fair shares"),
    [SETTING_AGE_MAX_S] = NUMBER("age_max_s", 604800, 60, 315360000, "seconds of waiting at which the factor age is 1"),
    [SETTING_MAX_WAIT_S] = NUMBER("max_wait_s", 604800, 0, 315360000,
                                  "seconds after which a pending job goes before all others of its tier; 0: never"),
    [SETTING_CHARGES] = TEXT("charges", "cpu=1,gpu=10,memory=0.25",
                             "usage charged for a second of a core, a GPU, a GiB or a unit of another resource"),
    [SETTING_PRICES] =
        TEXT("prices", "", "the text of a price file to show costs, in the format of berth-bill; empty: none"),
#undef NUMBER
#undef TEXT
};
static_assert(sizeof rows / sizeof *rows == SYSTEM_SETTINGS, "every setting has its row");

static json_t *row_default(const struct setting_row *row, int64_t defaults)
{
    if (row->text)
        return json_string(row->since > defaults ? row->before_text : row->text);
    return json_integer(row->since > defaults ? row->before : row->number);
}

static json_t *row_schema(const struct setting_row *row, int64_t defaults)
{
    json_t *schema = json_pack("{s:s, s:s, s:o}", "type", row->text ? "text" : "integer", "help", row->help, "default",
                               row_default(row, defaults));
    if (!row->text) {
        (void)json_object_set_new(schema, "min", json_integer(row->min));
        (void)json_object_set_new(schema, "max", json_integer(row->max));
    }
    if (row->values) {
        json_t *values = json_array();
        for (const char *const *value = row->values; *value; value++)
            (void)json_array_append_new(values, json_string(*value));
        (void)json_object_set_new(schema, "values", values);
    }
    return schema;
}

json_t *system_settings_schema(int64_t defaults)
{
    json_t *schema = json_object();
    for (size_t i = 0; i < SYSTEM_SETTINGS; i++)
        (void)json_object_set_new(schema, rows[i].name, row_schema(&rows[i], defaults));
    return schema;
}

/* Returns the stored value; NULL: not set. A setting of a later version, which this version does not know, is
 * ignored. */
static json_t *set_value(const struct object *o, enum system_setting setting)
{
    const char *name = rows[setting].name;
    if (!o || !memmem(o->doc.at, o->doc.len, name, strlen(name))) /* avoids parsing: every plan reads most settings */
        return NULL;
    CLEANUP(json) json_t *doc = object_doc(o);
    return json_incref(json_object_get(doc, name));
}

bool system_setting_stored(const struct state *s, const char *name)
{
    const struct object *o = state_find(s, KIND_SETTING, SETTINGS_ID);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    return json_object_get(doc, name) != NULL;
}

/* Returns the version of the cluster's defaults. */
static int64_t defaults_of(const struct object *o)
{
    CLEANUP(json) json_t *value = set_value(o, SETTING_DEFAULTS);
    return json_is_integer(value) ? json_integer_value(value) : rows[SETTING_DEFAULTS].number;
}

/* Returns the stored value, else the default. A new reference. */
static json_t *value_of(const struct object *o, enum system_setting setting)
{
    json_t *value = set_value(o, setting);
    if (value && (rows[setting].text ? json_is_string(value) : json_is_integer(value)))
        return value;
    json_decref(value);
    return row_default(&rows[setting], rows[setting].since ? defaults_of(o) : 1);
}

static const struct object *settings_object(const struct state *s)
{
    return state_find(s, KIND_SETTING, SETTINGS_ID);
}

json_t *system_settings(const struct state *s)
{
    json_t *all = json_object();
    for (size_t i = 0; i < SYSTEM_SETTINGS; i++) {
        (void)json_object_set_new(all, rows[i].name, value_of(settings_object(s), (enum system_setting)i));
    }
    return all;
}

int64_t system_setting_number_of(const struct object *settings, enum system_setting setting)
{
    assert(!rows[setting].text);
    CLEANUP(json) json_t *value = value_of(settings, setting);
    return json_integer_value(value);
}

int64_t system_setting_number(const struct state *s, enum system_setting setting)
{
    return system_setting_number_of(settings_object(s), setting);
}

const char *system_setting_text(const struct state *s, enum system_setting setting, struct arena *arena)
{
    assert(rows[setting].text);
    CLEANUP(json) json_t *value = value_of(settings_object(s), setting);
    return arena_strdup(arena, json_string_value(value));
}
