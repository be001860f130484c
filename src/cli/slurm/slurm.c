/* slurm.c - `berth squeue`, `scancel` and `sinfo`: Slurm's commands on Berth's API.
 *
 * A link with one of these names to `berth` runs that verb (docs/jobs.md).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/table.h"
#include "cli/show/listing.h"
#include "cli/show/object.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

/* ---- squeue ----------------------------------------------------------------------------------------------------- */

struct squeue_values {
    const char *user, *states, *jobs, *partition, *name;
    bool me, headless, all, wide;
};

static const struct option squeue_options[] = {
    OPTION_TEXT_ROW("user", 'u', squeue_values, user, "USER", "Show only jobs of this user."),
    OPTION_FLAG_ROW("me", 0, squeue_values, me, "Show only your own jobs."),
    OPTION_TEXT_ROW("jobs", 'j', squeue_values, jobs, "LIST", "Show only these jobs, including ended ones."),
    OPTION_TEXT_ROW("states", 't', squeue_values, states, "LIST",
                    "Show only jobs in these states: PD, R, CG, CD, F, CA, TO, OOM, NF, PR, or all. Default: "
                    "jobs that have not ended."),
    OPTION_TEXT_ROW("partition", 'p', squeue_values, partition, "QUEUE", "Show only jobs of this queue."),
    OPTION_TEXT_ROW("name", 'n', squeue_values, name, "NAME", "Show only jobs of this name."),
    OPTION_FLAG_ROW("noheader", 'h', squeue_values, headless, "Do not print the header."),
    OPTION_FLAG_ROW("long", 'l', squeue_values, wide, "Show long state names and the time limit."),
    OPTION_FLAG_ROW("all", 'a', squeue_values, all, "Accepted but ignored: all visible jobs are always shown."),
};

static const struct state_word {
    const char *berth, *code, *word;
    bool over;
} state_words[] = {
    {"pending",       "PD",  "PENDING",       false},
    {"held",          "PD",  "PENDING",       false},
    {"suspended",     "PD",  "PENDING",       false},
    {"waiting",       "PD",  "PENDING",       false},
    {"backing-off",   "PD",  "PENDING",       false},
    {"starting",      "CF",  "CONFIGURING",   false},
    {"partial",       "R",   "RUNNING",       false},
    {"running",       "R",   "RUNNING",       false},
    {"stopping",      "CG",  "COMPLETING",    false},
    {"ended",         "CD",  "COMPLETED",     true },
    {"succeeded",     "CD",  "COMPLETED",     true },
    {"failed",        "F",   "FAILED",        true },
    {"cancelled",     "CA",  "CANCELLED",     true },
    {"timed-out",     "TO",  "TIMEOUT",       true },
    {"out-of-memory", "OOM", "OUT_OF_MEMORY", true },
    {"node-lost",     "NF",  "NODE_FAIL",     true },
    {"preempted",     "PR",  "PREEMPTED",     true },
};

static const struct state_word *state_word(const json_t *job)
{
    static const struct state_word other = {"", "?", "UNKNOWN", false};
    const char *state = json_string_value(value_at(job, "status.outcome|status.state"));

    if (state && strcmp(state, "ended") == 0 && json_is_true(json_object_get(job, "cancelled")))
        state = "cancelled";
    for (size_t i = 0; state && i < sizeof state_words / sizeof *state_words; i++)
        if (strcmp(state, state_words[i].berth) == 0)
            return &state_words[i];
    return &other;
}

/* Returns whether a comma-separated list contains the word, ignoring case. */
static bool listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == len && strncasecmp(at, word, len) == 0)
            return true;
    return false;
}

static bool text_is(const json_t *job, const char *key, const char *want, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(job, key));

    return !want || listed(want, text ? text : otherwise);
}

static bool job_wanted(const struct squeue_values *v, const json_t *job)
{
    const struct state_word *state = state_word(job);
    char id[ID_TEXT_MAX];

    if (!text_is(job, "owner", v->user, "") || !text_is(job, "name", v->name, "") ||
        !text_is(job, "queue", v->partition, "default"))
        return false;
    if (v->jobs && !listed(v->jobs, object_id(job, id)))
        return false;
    if (!v->states)
        return v->jobs || !state->over;
    return listed(v->states, "all") || listed(v->states, state->code) || listed(v->states, state->word);
}

/* Formats "1-02:03:04" or "3:04". */
static const char *clock_text(int64_t seconds, char buf[static 32])
{
    int64_t days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;

    if (days)
        (void)snprintf(buf, 32, "%" PRId64 "-%02" PRId64 ":%02" PRId64 ":%02" PRId64, days, hours, minutes,
                       seconds % 60);
    else if (hours)
        (void)snprintf(buf, 32, "%" PRId64 ":%02" PRId64 ":%02" PRId64, hours, minutes, seconds % 60);
    else
        (void)snprintf(buf, 32, "%" PRId64 ":%02" PRId64, minutes, seconds % 60);
    return buf;
}

static int64_t ran_s(const json_t *job)
{
    int64_t from = 0, to = 0;

    if (!json_object_get(job, "started") || timestamp_parse(json_object_get(job, "started"), &from, NULL) != 0)
        return 0;
    if (!json_object_get(job, "finished") || timestamp_parse(json_object_get(job, "finished"), &to, NULL) != 0)
        to = wall_clock_ns();
    return to > from ? (to - from) / INT64_C(1000000000) : 0;
}

/* Writes the nodes of the job, each once; returns their number. */
static size_t nodes_text(const json_t *job, struct str *to)
{
    CLEANUP(json) json_t *seen = json_object();
    const json_t *one;
    size_t i;

    json_array_foreach(value_at(job, "status.instances"), i, one)
    {
        const char *node = json_string_value(json_object_get(one, "node"));
        if (!node || json_object_get(seen, node))
            continue;
        if (json_object_size(seen))
            str_add_char(to, ',');
        str_add(to, node);
        (void)json_object_set_new(seen, node, json_true());
    }
    return json_object_size(seen);
}

static void job_id_text(const json_t *job, bool pending, struct str *to)
{
    char id[ID_TEXT_MAX];
    const json_t *array = json_object_get(job, "array");

    str_add(to, object_id(job, id));
    if (!array || !pending)
        return;
    if (json_is_string(array))
        str_addf(to, "_[%s]", json_string_value(array));
    else
        str_addf(to, "_[%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT "]",
                 json_integer_value(json_object_get(array, "from")), json_integer_value(json_object_get(array, "to")));
}

/* Returns Slurm's reason code for a pending job. */
static const char *reason_word(const char *reason)
{
    static const struct {
        const char *ours, *slurms;
    } rows[] = {
        {"after",    "Dependency"            },
        {"begin",    "BeginTime"             },
        {"behind",   "Priority"              },
        {"deadline", "Deadline"              },
        {"quota",    "AssocGrpLimit"         },
        {"reserved", "Priority"              },
        {"total",    "AssocGrpBillingMinutes"},
        {"window",   "ReqNodeNotAvail"       },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].ours, reason) == 0)
            return rows[i].slurms;
    return "Resources";
}

enum { SQ_ID, SQ_PARTITION, SQ_NAME, SQ_USER, SQ_STATE, SQ_TIME, SQ_LIMIT, SQ_NODES, SQ_REASON, SQ_COLUMNS };

static void job_row(struct table *t, const struct squeue_values *v, const json_t *job)
{
    const struct state_word *state = state_word(job);
    const char *queue = json_string_value(json_object_get(job, "queue")),
               *name = json_string_value(json_object_get(job, "name"));
    const char *owner = json_string_value(json_object_get(job, "owner"));
    const char *reason = json_string_value(value_at(job, "status.reason"));
    const char *limit = json_string_value(json_object_get(job, "time_limit"));
    CLEANUP(str) struct str nodes = {0}, id = {0};
    size_t nodes_len = nodes_text(job, &nodes);
    bool pending = strcmp(state->code, "PD") == 0;
    char clock[32];

    job_id_text(job, pending, &id);
    reason = strcmp(state->berth, "held") == 0 ? "JobHeldUser" : reason && *reason ? reason_word(reason) : NULL;
    table_row(t);
    table_cell(t, SQ_ID, COLOR_NONE, "%s", str_text(&id));
    table_cell(t, SQ_PARTITION, COLOR_NONE, "%s", queue ? queue : "default");
    table_cell(t, SQ_NAME, COLOR_NONE, "%s", name ? name : "");
    table_cell(t, SQ_USER, COLOR_NONE, "%s", owner ? owner : "");
    table_cell(t, SQ_STATE, state_color(state->berth), "%s", v->wide ? state->word : state->code);
    table_cell(t, SQ_TIME, COLOR_NONE, "%s", clock_text(pending ? 0 : ran_s(job), clock));
    table_cell(t, SQ_LIMIT, COLOR_NONE, "%s", limit ? limit : "UNLIMITED");
    table_cell(t, SQ_NODES, COLOR_NONE, "%zu", nodes_len);
    if (nodes_len)
        table_cell(t, SQ_REASON, COLOR_NONE, "%s", str_text(&nodes));
    else
        table_cell(t, SQ_REASON, COLOR_NONE, "(%s)", reason ? reason : state->over ? "None" : "Priority");
}

/* Returns the name of the calling user. */
static int own_name_find(struct api *a, char ret[static ID_TEXT_MAX])
{
    CLEANUP(json) json_t *who = NULL;
    int rc = api_get(a, "/v1/whoami", &who);
    const char *user = json_string_value(json_object_get(who, "user"));

    (void)snprintf(ret, ID_TEXT_MAX, "%s", user ? user : "");
    return rc;
}

static int squeue_run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct squeue_values v = *(const struct squeue_values *)values;
    const struct table_column columns[SQ_COLUMNS] = {
        {"JOBID",                 TABLE_RIGHT,                         0},
        {"PARTITION",             0,                                   0},
        {"NAME",                  0,                                   0},
        {"USER",                  0,                                   0},
        {v.wide ? "STATE" : "ST", 0,                                   0},
        {"TIME",                  TABLE_RIGHT,                         0},
        {"TIME_LIMIT",            v.wide ? TABLE_RIGHT : TABLE_HIDDEN, 0},
        {"NODES",                 TABLE_RIGHT,                         0},
        {"NODELIST(REASON)",      TABLE_WRAP,                          0},
    };
    CLEANUP(json) json_t *items = NULL;
    CLEANUP(api) struct api api = {0};
    char me[ID_TEXT_MAX];
    struct table table;
    const json_t *job;
    size_t i;

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK && v.me) {
        rc = own_name_find(&api, me);
        v.user = me;
    }
    if (rc == EXIT_OK)
        rc = api_list(&api, "/v1/jobs", 0, &items, NULL);
    if (rc != EXIT_OK)
        return rc;
    table_init(&table, cli, columns, SQ_COLUMNS);
    if (v.headless)
        table_headless(&table);
    json_array_foreach(items, i, job) if (job_wanted(&v, job)) job_row(&table, &v, job);
    table_print(&table);
    table_done(&table);
    return EXIT_OK;
}

const struct command squeue_command = {
    .name = "squeue",
    .operands = "",
    .operands_max = 0,
    .summary = "List jobs as Slurm's squeue does.",
    .text = "Lists the same jobs as 'berth get jobs' with the columns of squeue. A partition is a "
            "queue. 'berth queue' shows the scheduling order, 'berth why JOB' why a job is pending.",
    .examples = "  berth squeue -u alice\n"
                "  berth squeue --me -t all",
    .options = squeue_options,
    .options_len = sizeof squeue_options / sizeof *squeue_options,
    .values_size = sizeof(struct squeue_values),
    .section = SECTION_WORK,
    .talks = true,
    .hidden = true,
    .run = squeue_run,
};

/* ---- scancel ---------------------------------------------------------------------------------------------------- */

struct scancel_values {
    const char *user, *name, *partition, *states;
    bool me;
};

static const struct option scancel_options[] = {
    OPTION_TEXT_ROW("user", 'u', scancel_values, user, "USER", "Cancel the jobs of this user."),
    OPTION_FLAG_ROW("me", 0, scancel_values, me, "Cancel your own jobs."),
    OPTION_TEXT_ROW("name", 'n', scancel_values, name, "NAME", "Cancel the jobs of this name."),
    OPTION_TEXT_ROW("partition", 'p', scancel_values, partition, "QUEUE", "Cancel the jobs of this queue."),
    OPTION_TEXT_ROW("state", 't', scancel_values, states, "LIST", "Cancel the jobs in these states: PD, R."),
};

static int job_cancel_one(struct api *a, const char *id)
{
    struct object_target target = {collection_find("job"), id};
    struct object_act act = {.method = "POST", .sub = "cancel", .done = "cancelled"};

    return object_do(a, &target, &act, NULL);
}

/* Cancels one job of a list; a job that has ended in the meantime is not an error. */
static int job_cancel_listed(struct api *a, const char *id)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct object_target target = {collection_find("job"), id};
    struct api_error trouble = {0};

    object_path(&path, &target);
    str_add(&path, "/cancel");
    int rc = api_try(a, &(struct api_request){.method = "POST", .path = str_text(&path)}, &answer, &trouble);
    if (rc == EXIT_OK)
        object_done_print(a->cli, "job", id, "cancelled", false);
    return rc == EXIT_OK || trouble.status == 409 ? EXIT_OK : object_error_print(a, &target, &trouble);
}

static int scancel_all(struct api *a, const struct scancel_values *v)
{
    CLEANUP(json) json_t *items = NULL;
    char me[ID_TEXT_MAX], id[ID_TEXT_MAX];
    struct squeue_values wanted = {.user = v->user, .states = v->states, .partition = v->partition, .name = v->name};
    const json_t *job;
    size_t i;
    int rc = EXIT_OK;

    if (v->me || !v->user) { /* jobs of other users only with --user */
        rc = own_name_find(a, me);
        wanted.user = me;
    }
    if (rc == EXIT_OK)
        rc = api_list(a, "/v1/jobs", 0, &items, NULL);
    json_array_foreach(items, i, job)
    {
        if (!job_wanted(&wanted, job) || state_word(job)->over)
            continue;
        int failed = job_cancel_listed(a, object_id(job, id));
        rc = rc == EXIT_OK ? failed : rc;
    }
    return rc;
}

static int scancel_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct scancel_values *v = values;
    CLEANUP(api) struct api api = {0};
    bool filtered = v->user || v->name || v->partition || v->states || v->me;

    if (!filtered && !operands->len)
        return cli_fail(cli, EXIT_USAGE,
                        "no jobs selected: expected job numbers, or -u USER, --me, -n NAME, -p QUEUE, -t STATES");
    for (size_t i = 0; i < operands->len; i++)
        if (strchr(operands->at[i], '_'))
            return cli_fail(cli, EXIT_USAGE, "%s: cannot cancel a single task of an array; cancel its job instead",
                            operands->at[i]);
    int rc = api_open(&api, cli);
    for (size_t i = 0; i < operands->len && rc != EXIT_UNREACHABLE; i++) {
        int failed = job_cancel_one(&api, operands->at[i]);
        rc = rc == EXIT_OK ? failed : rc;
    }
    return rc == EXIT_OK && filtered ? scancel_all(&api, v) : rc;
}

const struct command scancel_command = {
    .name = "scancel",
    .operands = "[ID...]",
    .operands_max = OPERANDS_ANY,
    .summary = "Cancel jobs as Slurm's scancel does.",
    .text = "Like 'berth job cancel', with selection by user, name, queue or state. Without a user "
            "it cancels only your own jobs.",
    .examples = "  berth scancel 17 18\n"
                "  berth scancel --me -t PD",
    .options = scancel_options,
    .options_len = sizeof scancel_options / sizeof *scancel_options,
    .values_size = sizeof(struct scancel_values),
    .section = SECTION_WORK,
    .talks = true,
    .hidden = true,
    .ids = "jobs",
    .run = scancel_run,
};

/* ---- sinfo ------------------------------------------------------------------------------------------------------ */

struct sinfo_values {
    bool by_node, headless, wide;
};

static const struct option sinfo_options[] = {
    OPTION_FLAG_ROW("Node", 'N', sinfo_values, by_node, "Print one line per node."),
    OPTION_FLAG_ROW("long", 'l', sinfo_values, wide, "Accepted but ignored."),
    OPTION_FLAG_ROW("noheader", 'h', sinfo_values, headless, "Do not print the header."),
};

static const char *node_word(const json_t *node)
{
    static const struct {
        const char *berth, *slurm;
    } rows[] = {
        {"cordoned", "drain"},
        {"draining", "drng" },
        {"drained",  "drain"},
        {"disabled", "drain"},
        {"lost",     "down" },
        {"down",     "down" },
        {"unknown",  "unk"  },
    };
    const char *state = json_string_value(value_at(node, "status.state|state"));

    for (size_t i = 0; state && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(state, rows[i].berth) == 0)
            return rows[i].slurm;
    return json_integer_value(value_at(node, "status.instances")) > 0 ? "mix" : "idle";
}

/* Returns whether a queue may use a node: the queue has no domains, or a domain with the node. */
static bool queue_has(const json_t *queue, const json_t *node)
{
    const json_t *domains = json_object_get(queue, "domains"), *one;
    const char *domain = json_string_value(value_at(node, "status.domain|domain"));
    size_t i;

    json_array_foreach(domains, i, one) if (domain && strcmp(json_string_value(one), domain) == 0) return true;
    return json_array_size(domains) == 0;
}

enum { SI_PARTITION, SI_AVAIL, SI_LIMIT, SI_NODES, SI_STATE, SI_LIST, SI_COLUMNS };

static void sinfo_row(struct table *t, const char *name, const json_t *queue, size_t len, const char *state,
                      const char *nodes)
{
    const char *limit = json_string_value(json_object_get(queue, "max_time"));

    table_row(t);
    table_cell(t, SI_PARTITION, COLOR_NONE, "%s%s", name, strcmp(name, "default") == 0 ? "*" : "");
    table_cell(t, SI_AVAIL, COLOR_NONE, "up");
    table_cell(t, SI_LIMIT, COLOR_NONE, "%s", limit ? limit : "infinite");
    table_cell(t, SI_NODES, COLOR_NONE, "%zu", len);
    table_cell(t, SI_STATE, strcmp(state, "down") == 0 ? COLOR_RED : COLOR_NONE, "%s", state);
    table_cell(t, SI_LIST, COLOR_NONE, "%s", nodes);
}

/* Prints a row for each state that a node of the queue has. */
static void queue_rows(struct table *t, const struct sinfo_values *v, const char *name, const json_t *queue,
                       const json_t *nodes)
{
    CLEANUP(json) json_t *states = json_object();
    const json_t *node;
    json_t *list;
    const char *state;
    char id[ID_TEXT_MAX];
    size_t i;

    json_array_foreach(nodes, i, node)
    {
        if (!queue_has(queue, node))
            continue;
        if (v->by_node) {
            sinfo_row(t, name, queue, 1, node_word(node), object_id(node, id));
            continue;
        }
        list = json_object_get(states, node_word(node));
        if (!list) {
            list = json_array();
            (void)json_object_set_new(states, node_word(node), list);
        }
        (void)json_array_append_new(list, json_string(object_id(node, id)));
    }
    json_object_foreach(states, state, list)
    {
        CLEANUP(str) struct str text = {0};
        for (i = 0; i < json_array_size(list); i++)
            str_addf(&text, "%s%s", i ? "," : "", json_string_value(json_array_get(list, i)));
        sinfo_row(t, name, queue, json_array_size(list), state, str_text(&text));
    }
}

static int sinfo_run(struct cli *cli, const void *values, const struct operands *operands)
{
    static const struct table_column columns[SI_COLUMNS] = {
        {"PARTITION", 0,           0},
        {"AVAIL",     0,           0},
        {"TIMELIMIT", TABLE_RIGHT, 0},
        {"NODES",     TABLE_RIGHT, 0},
        {"STATE",     0,           0},
        {"NODELIST",  TABLE_WRAP,  0},
    };
    const struct sinfo_values *v = values;
    CLEANUP(json) json_t *nodes = NULL;
    CLEANUP(json) json_t *queues = NULL;
    CLEANUP(api) struct api api = {0};
    struct table table;
    bool is_default = false;
    const json_t *queue;
    char id[ID_TEXT_MAX];
    size_t i;

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = api_list(&api, "/v1/nodes", 0, &nodes, NULL);
    if (rc == EXIT_OK)
        rc = api_list(&api, "/v1/queues", 0, &queues, NULL);
    if (rc != EXIT_OK)
        return rc;
    table_init(&table, cli, columns, SI_COLUMNS);
    if (v->headless)
        table_headless(&table);
    json_array_foreach(queues, i, queue) is_default |= strcmp(object_id(queue, id), "default") == 0;
    if (!is_default)
        queue_rows(&table, v, "default", NULL, nodes);
    json_array_foreach(queues, i, queue) queue_rows(&table, v, object_id(queue, id), queue, nodes);
    table_print(&table);
    table_done(&table);
    return EXIT_OK;
}

const struct command sinfo_command = {
    .name = "sinfo",
    .operands = "",
    .operands_max = 0,
    .summary = "List queues and nodes as Slurm's sinfo does.",
    .text = "Lists the same as 'berth get nodes' and 'berth get queues' with the columns of sinfo. A "
            "partition is a queue; it has the nodes of its domains, or all nodes.",
    .options = sinfo_options,
    .options_len = sizeof sinfo_options / sizeof *sinfo_options,
    .values_size = sizeof(struct sinfo_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .hidden = true,
    .run = sinfo_run,
};
