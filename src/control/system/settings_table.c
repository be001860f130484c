#include "control/system/settings_table.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static const char *const on_off[] = {"on", "off", NULL};

static const struct row {
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
    [SETTING_DEFAULTS] = NUMBER(
        "defaults", 1, 1, SETTINGS_DEFAULTS,
        "which defaults settings have that say nothing: 3 as of now, 1 or 2 of clusters that an earlier version began"),
    [SETTING_LEASE_S] = NUMBER("lease_s", 30, 2, 86400, "seconds of silence after which a node counts as lost"),
    [SETTING_CYCLE_MAX_S] = NUMBER("cycle_max_s", 10, 1, 3600, "seconds between two looks of the loop at most"),
    [SETTING_HISTORY_REVISIONS] =
        NUMBER("history_revisions", 100000, 1000, 100000000, "revisions that watches can go back"),
    [SETTING_REQUESTS_PER_S] = NUMBER(
        "requests_per_s", 200, 0, 1000000,
        "requests a second of one user who is no administrator, and ten times as many at once; each 4 KiB of a body "
        "count as one more; 0: no limit"),
    [SETTING_AUDIT_EVERY] = NUMBER("audit_every", 0, 0, 1000000, "cycles between audits of every counter; 0: never"),
    [SETTING_NODE_PODS] = NUMBER("node_pods", 250, 0, 1000000,
                                 "pods that a node takes whose `allocatable` says nothing of pods; 0: any number",
                                 .since = 3, .before = 0),
    [SETTING_DEFAULT_REQUESTS] =
        TEXT("default_requests", "cpu=50m,memory=256Mi",
             "what new apps, jobs and vms request of resources of which they say nothing; none if empty"),
    [SETTING_MEMORY_LIMIT] = TEXT("memory_limit", "request",
                                  "the limit of memory of new work that says none: as much as it requests, or none",
                                  .values = (const char *const[]){"request", "none", NULL}),
    [SETTING_PLACEMENT_BUDGET] =
        NUMBER("placement_budget", 1000, 0, 10000000,
               "pods of one user that are placed and have not begun to start, at most; others wait; 0: any number",
               .since = 3, .before = 0),
    [SETTING_REPLICAS_MAX] = NUMBER("replicas_max", 100000, 0, 10000000,
                                    "replicas or tasks of one app, job or vm at most, whoever writes it; 0: any"),
    [SETTING_CAP_INSTANCES] = NUMBER("cap_instances", 10000, 0, 1000000000,
                                     "replicas that one user's apps and vms may have together; 0: any number"),
    [SETTING_CAP_JOBS] =
        NUMBER("cap_jobs", 50000, 0, 1000000000,
               "jobs of one user that may be unfinished at once, each task of an array counted; 0: any number"),
    [SETTING_CAP_STORED_MB] =
        NUMBER("cap_stored_mb", 64, 0, 1000000,
               "MiB that one user's documents may take, those of finished jobs included; 0: any number"),
    [SETTING_CAP_TOKENS] = NUMBER("cap_tokens", 100, 0, 1000000, "tokens that one user may have; 0: any number"),
    [SETTING_CAP_WATCHES] =
        NUMBER("cap_watches", 128, 0, 1000000, "watches that one user may have open at once; 0: any number"),
    [SETTING_CAP_EXCEPTIONS] =
        TEXT("cap_exceptions", "",
             "other caps of single users and groups, like user/ann:instances=50000,group/vision:jobs=200000; a user's "
             "own goes before its group's"),
    [SETTING_HOLDER_SHOWN] =
        TEXT("holder_shown", "group", "what others see of who holds a device: nobody, the group, or the user",
             .values = (const char *const[]){"nobody", "group", "user", NULL}),
    [SETTING_SEED] = NUMBER("seed", 0, 0, (int64_t)1 << 53, "of the score that breaks ties at random"),
    [SETTING_PROFILE] = TEXT("profile", "default", "filters and scores in force: one of /v1/profiles, or one built in"),
    [SETTING_AGENT_ADDRESSES] = TEXT(
        "agent_addresses", "", "where agents reach berthd, \"https://A:3981,https://B:3981\"; as it listens if empty"),
    [SETTING_CERTIFICATE_LIFE_S] = NUMBER("certificate_life_s", 604800, 60, 315360000,
                                          "seconds that an agent's certificate is good; it is renewed at half"),
    [SETTING_INVITATION_LIFE_S] =
        NUMBER("invitation_life_s", 3600, 1, 2592000, "seconds in which an invited machine must have joined"),
    [SETTING_JOB_KEEP_S] =
        NUMBER("job_keep_s", 604800, 60, 3153600000, "seconds that the record of a job is kept that is over"),
    [SETTING_REBALANCE] = TEXT("rebalance", "on", "move pods of apps to even out real use", .values = on_off),
    [SETTING_REBALANCE_MOVES] = NUMBER("rebalance_moves", 2, 1, 100, "such moves at a time"),
    [SETTING_REBALANCE_GAIN_PERCENT] =
        NUMBER("rebalance_gain_percent", 15, 1, 100,
               "by how much of a node's capacity the busier of two nodes must be relieved"),
    [SETTING_REBALANCE_AGE_S] =
        NUMBER("rebalance_age_s", 600, 0, 86400, "seconds that a pod must have been running before it is moved so"),
    [SETTING_PRESSURE_PERCENT] =
        NUMBER("pressure_percent", 95, 0, 1000,
               "of a node's memory really in use, from which replicas are dropped there; 0: never"),
    [SETTING_PRESSURE_LOW_PERCENT] =
        NUMBER("pressure_low_percent", 85, 0, 1000, "down to which they are, and the node gets nothing new"),
    [SETTING_PRESSURE_HOLD_S] =
        NUMBER("pressure_hold_s", 10, 1, 3600, "seconds of pressure before a replica is dropped, and between two"),
    [SETTING_SHED] =
        TEXT("shed", "on", "move apps away from a node that has shrunk below what it holds", .values = on_off),
    [SETTING_HEADROOM_PERCENT] =
        NUMBER("headroom_percent", 0, 0, 90, "of each zone's cpu and memory kept free for urgent work"),
    [SETTING_HEADROOM_PRIORITY] = NUMBER("headroom_priority", 1, INT32_MIN, INT32_MAX,
                                         "pods of this priority and above may use what is kept free"),
    [SETTING_USAGE_KEEP_S] =
        NUMBER("usage_keep_s", 7776000, 60, 315360000, "seconds that records of use are kept after their end"),
    [SETTING_USAGE_CUT_S] =
        NUMBER("usage_cut_s", 86400, 60, 31536000, "seconds after which what still runs is recorded, and again"),
    [SETTING_USAGE_KEEP_RECORDS] = NUMBER("usage_keep_records", 500000, 1000, 10000000,
                                          "records of use that are kept at most; the oldest go first"),
    [SETTING_NOTIFY_ALLOW] =
        TEXT("notify_allow", "",
             "how the URLs may begin that jobs have posted to, and addresses or ranges that are not public and may be "
             "posted to, separated by commas; none if empty"),
    [SETTING_NOTIFY_SECRET] =
        TEXT("notify_secret", "",
             "the secret NAME.OWNER/KEY that signs what is posted: HMAC-SHA256 in X-Berth-Signature; none if empty"),
    [SETTING_MAIL_FROM] = TEXT("mail_from", "berth@localhost", "whom that mail comes from"),
    [SETTING_SMTP_URL] = TEXT(
        "smtp_url", "",
        "where mail about jobs is sent to, like smtp://mail.example.org:25, if berthd's configuration file names no mail_command"),
    [SETTING_JOURNAL_SEGMENT_MB] = NUMBER("journal_segment_mb", 32, 1, 1024,
                                          "MiB of records, unpacked, that the journal's next segment is made of"),
    [SETTING_JOURNAL_SEGMENT_S] =
        NUMBER("journal_segment_s", 86400, 1, 31536000, "seconds after which it is made of less"),
    [SETTING_JOURNAL_KEEP_S] =
        NUMBER("journal_keep_s", 31536000, 1, 3153600000, "seconds after which segments of the journal are exported"),
    [SETTING_JOURNAL_KEEP_MB] =
        NUMBER("journal_keep_mb", 10240, 1, 100000000, "MiB of segments beyond which the oldest are exported"),
    [SETTING_JOURNAL_EXPORT] =
        TEXT("journal_export", "", "the folder they are exported to; journal/exported in berthd's own if empty"),
    [SETTING_UID_FIRST] =
        NUMBER("uid_first", 300000, 1000, 1800000000,
               "the first number that users have on nodes; who has one keeps it, and none is given twice"),
    [SETTING_HEADROOM_TASKS] =
        NUMBER("headroom_tasks", 0, 0, 10000000, "and gangs of at least so many pods; 0: none for their size"),
    [SETTING_POLICY] =
        TEXT("policy", "berth",
             "that orders jobs of queues which name none: one of /v1/policies, or one built in; fifo: who came first",
             .since = 2, .before_text = "fifo"),
    [SETTING_BACKFILL] =
        TEXT("backfill", "on",
             "jobs start before others if that delays no reservation; strict: none starts before another; off: no "
             "reservations",
             .values = (const char *const[]){"on", "strict", "off", NULL}),
    [SETTING_BACKFILL_POLICY] = TEXT(
        "backfill_policy", "",
        "that orders those who may start before others, once all reservations are made: one of /v1/policies, or one "
        "built in, like sjf; as they stand in their queues if empty"),
    [SETTING_BACKFILL_UNTIL_LIMIT] =
        TEXT("backfill_until_limit", "on",
             "what runs is expected to run until its limit, and not for its estimate, when places are reserved",
             .values = on_off, .since = 2, .before_text = "off"),
    [SETTING_RESERVATIONS] =
        NUMBER("reservations", 100, 0, 10000, "of jobs that found no place: the first so many have one in the future"),
    [SETTING_RESERVATIONS_ALIKE] =
        NUMBER("reservations_alike", 1, 0, 10000,
               "of jobs that may stand on the same nodes, by what they require of them; 0: any number", .since = 2,
               .before = 0),
    [SETTING_ESTIMATE_S] =
        NUMBER("estimate_s", 3600, 1, 31536000, "seconds that a job is taken to run of which nothing is known"),
    [SETTING_PREEMPTION] = TEXT("preemption", "on", "stop jobs for those of a higher tier", .values = on_off),
    [SETTING_PREEMPT_MIN_RUN_S] =
        NUMBER("preempt_min_run_s", 60, 0, 31536000, "seconds that every job may run before it is stopped so"),
    [SETTING_HALF_LIFE_S] =
        NUMBER("half_life_s", 604800, 60, 315360000, "after which past use counts half, for fair shares"),
    [SETTING_AGE_MAX_S] = NUMBER("age_max_s", 604800, 60, 315360000, "seconds of waiting at which the factor age is 1"),
    [SETTING_MAX_WAIT_S] = NUMBER("max_wait_s", 604800, 0, 315360000,
                                  "seconds after which a job that waits goes before all others of its tier; 0: never"),
    [SETTING_CHARGES] = TEXT("charges", "cpu=1,gpu=10,memory=0.25",
                             "what a second of a core, a GPU, a GiB or a unit of another resource counts as use"),
    [SETTING_PRICES] =
        TEXT("prices", "",
             "the text of a file of prices for people to see amounts by, as berth-bill reads it; none if empty"),
#undef NUMBER
#undef TEXT
};
static_assert(sizeof rows / sizeof *rows == SYSTEM_SETTINGS, "every setting has its row");

static json_t *row_default(const struct row *row, int64_t defaults)
{
    if (row->text)
        return json_string(row->since > defaults ? row->before_text : row->text);
    return json_integer(row->since > defaults ? row->before : row->number);
}

static json_t *row_schema(const struct row *row, int64_t defaults)
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
