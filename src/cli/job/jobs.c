/* jobs.c - `berth jobs`: lists the user's own jobs with progress, start and end times. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job/forecast_text.h"
#include "cli/job/task_rows.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "cli/show/collection.h"
#include "cli/show/listing.h"
#include "cli/show/status_line.h"
#include "wire/text/document.h"

struct jobs_values {
    bool all, over;
    const char *owner;
    unsigned form;
};

static const struct option options[] = {
    OPTION_FLAG_ROW("all", 'a', jobs_values, all, "Show the jobs of all users that are visible to you."),
    OPTION_FLAG_ROW("over", 0, jobs_values, over, "Include jobs that have succeeded, failed or were cancelled."),
    OPTION_TEXT_ROW("owner", 'u', jobs_values, owner, "USER", "Show the jobs of this user instead of your own."),
    OPTION_CHOICE_ROW("output", 'o', jobs_values, form, view_choices, "Output format."),
};

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool is_finished(const json_t *job)
{
    return status_is_final(json_object_get(job, "status"));
}

int jobs_read(struct api *a, const char *owner, bool over, json_t **ret)
{
    CLEANUP(json) json_t *all = NULL;
    CLEANUP(str) struct str path = {0};
    json_t *job;
    size_t i;

    str_add(&path, "/v1/jobs");
    query_add(&path, "owner", owner);
    int rc = api_list(a, str_text(&path), 0, &all, NULL);
    if (rc != EXIT_OK)
        return rc;
    *ret = json_array();
    json_array_foreach(all, i, job) if (over || !is_finished(job)) json_array_append(*ret, job);
    return EXIT_OK;
}

int queue_read(struct api *a, const char *path, uint64_t rows, json_t **ret, struct api_error *ret_trouble)
{
    CLEANUP(json) json_t *queue = NULL;
    CLEANUP(mem) char *after = NULL;
    size_t have = 0;

    do {
        CLEANUP(api_answer) struct api_answer answer = {0};
        CLEANUP(str) struct str at = {0};
        char limit[24];
        str_add(&at, path);
        query_add(&at, "limit", str_u64(rows - have, limit));
        query_add(&at, "after", after);
        int rc = api_try(a, &(struct api_request){.method = "GET", .path = str_text(&at)}, &answer, ret_trouble);
        if (rc != EXIT_OK)
            return rc;
        const char *next = json_string_value(json_object_get(answer.body, "continue"));
        mem_free(take_ptr(&after));
        after = next ? mem_strdup(next) : NULL;
        if (queue)
            (void)json_array_extend(json_object_get(queue, "items"), json_object_get(answer.body, "items"));
        else
            queue = json_incref(answer.body);
        have = json_array_size(json_object_get(queue, "items"));
    } while (after && have < rows);
    *ret = take_ptr(&queue);
    return EXIT_OK;
}

/* A user who may not read the queue still sees their own jobs. */
int jobs_queue(struct api *a, json_t **ret)
{
    struct api_error trouble;
    int rc = queue_read(a, "/v1/queue", QUEUE_ROWS_MAX, ret, &trouble);

    return rc == EXIT_OK || trouble.status == 403 ? EXIT_OK : api_error_print(a, &trouble);
}

const json_t *jobs_queue_row(const json_t *queue, const char *id)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(queue, "items"), i, row) if (strcmp(member(row, "id"), id) == 0) return row;
    return NULL;
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

/* "[####....]  52%" */
static void progress_cell(struct table *table, size_t column, const json_t *job, bool bar)
{
    const json_t *progress = value_at(job, "status.progress");
    char text[16];
    enum { BAR = 8 };

    if (!json_is_integer(progress))
        return;
    json_int_t milli = json_integer_value(progress);
    for (int i = 0; i < BAR; i++)
        text[i] = i * 1000 < milli * BAR ? '#' : '.';
    text[BAR] = '\0';
    if (bar)
        table_cell(table, column, COLOR_NONE, "[%s] %3d%%", text, (int)(milli / 10));
    else
        table_cell(table, column, COLOR_NONE, "%d%%", (int)(milli / 10));
}

static void job_row(struct table *table, const json_t *job, const json_t *standing, int64_t now_ns, bool bar)
{
    const char *state = status_word(json_object_get(job, "status"));
    char id[ID_TEXT_MAX], when[WHEN_TEXT_MAX], why[64];

    table_row(table);
    table_cell(table, 0, COLOR_BOLD, "%s", object_id(job, id));
    table_cell(table, 1, COLOR_NONE, "%s", member(job, "name"));
    table_cell(table, 2, COLOR_NONE, "%s", member(job, "owner"));
    table_cell(table, 3, state_color(state), "%s", state);
    table_cell(table, 4, COLOR_NONE, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
               json_integer_value(value_at(job, "status.running")) + json_integer_value(value_at(job, "status.ended")),
               json_integer_value(value_at(job, "status.replicas")));
    progress_cell(table, 5, job, bar);
    if (standing) {
        table_cell(table, 6, COLOR_NONE, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(standing, "position")));
        expected_text(standing, "start", now_ns, when);
        table_cell(table, 7, *when ? COLOR_GREEN : COLOR_DIM, "%s", *when ? when : "?");
        table_cell(table, 9, COLOR_YELLOW, "%s", reason_text(standing, why, sizeof why));
    } else {
        table_cell(table, 8, COLOR_NONE, "%s", time_left_text(json_object_get(job, "status"), "until", now_ns, when));
    }
    if (!standing && value_at(job, "status.reason"))
        table_cell(table, 9, COLOR_YELLOW, "%s", reason_text(json_object_get(job, "status"), why, sizeof why));
}

void jobs_print(const struct cli *cli, const json_t *jobs, const json_t *queue, bool owners, int64_t now_ns)
{
    const struct table_column columns[] = {
        {"JOB",      TABLE_RIGHT,                         0},
        {"NAME",     TABLE_WRAP,                          0},
        {"OWNER",    owners ? TABLE_PLAIN : TABLE_HIDDEN, 0},
        {"STATE",    TABLE_PLAIN,                         0},
        {"PODS",     TABLE_RIGHT,                         0},
        {"PROGRESS", TABLE_RIGHT,                         0},
        {"PLACE",    TABLE_RIGHT,                         0},
        {"STARTS",   TABLE_PLAIN,                         0},
        {"LEFT",     TABLE_RIGHT,                         0},
        {"WHY",      TABLE_PLAIN,                         0},
    };
    struct table table;
    json_t *job;
    size_t i;
    char id[ID_TEXT_MAX];

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(jobs, i, job)
        job_row(&table, job, jobs_queue_row(queue, object_id(job, id)), now_ns, cli->width >= 100);
    table_print(&table);
    table_done(&table);
}

static int owner_find(struct api *a, const struct jobs_values *v, json_t **ret_who, const char **ret_owner)
{
    *ret_owner = v->owner;
    if (v->all || v->owner)
        return EXIT_OK;
    int rc = api_get(a, "/v1/whoami", ret_who);
    *ret_owner = rc == EXIT_OK ? member(*ret_who, "user") : NULL;
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct jobs_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(json) json_t *jobs = NULL, *queue = NULL, *who = NULL;
    const char *owner = NULL;

    (void)operands;
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = owner_find(&api, v, &who, &owner);
    if (rc == EXIT_OK)
        rc = jobs_read(&api, owner, v->over, &jobs);
    if (rc == EXIT_OK)
        rc = jobs_queue(&api, &queue);
    if (rc != EXIT_OK)
        return rc;
    if (v->form != VIEW_TEXT) {
        json_t *job;
        size_t i;
        char id[ID_TEXT_MAX];
        json_array_foreach(jobs, i, job)
        {
            const json_t *standing = jobs_queue_row(queue, object_id(job, id));
            if (standing)
                json_object_set(job, "standing", (json_t *)standing);
        }
        (void)view_print(cli, v->form, jobs);
        return EXIT_OK;
    }
    if (json_array_size(jobs) > 0)
        jobs_print(cli, jobs, queue, v->all, wall_clock_ns());
    else
        fprintf(cli->out, "%s\n",
                v->over ? "There are no jobs." : "No pending or running jobs; --over includes jobs that have ended.");
    return EXIT_OK;
}

const struct command jobs_command = {
    .name = "jobs",
    .operands = "",
    .summary = "Show your jobs: state, progress, queue position, estimated start, time left.",
    .text = "PLACE is the position among all pending jobs. STARTS is an estimate of the scheduler; "
            "LEFT comes from the job's estimate or time limit. '~' marks a guess that depends on "
            "jobs without a time limit or estimate. 'berth why JOB' explains why a job waits, 'berth "
            "job show JOB' shows all about it.",
    .examples = "  berth jobs\n"
                "  berth jobs --all --over",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct jobs_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = run,
};
