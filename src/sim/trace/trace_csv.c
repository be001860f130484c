/* trace_csv.c - traces in Berth's own CSV format. */
#include "sim/trace/trace_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/quantity.h"

struct trace_row {
    int64_t id, submit_ns, run_ns, request_ns, priority, tasks, cpu_milli, memory_bytes, gpus, gpu_milli;
    const char *user, *group, *name, *queue;
};

#define AT(field) offsetof(struct trace_row, field)
#define SECONDS_MAX 9e9 /* about 285 years */

/* clang-format off */
static const struct sim_column columns[] = {
    {"id",        SIM_CELL_WHOLE,   AT(id),           false, -9e15, 9e15},
    {"submit",    SIM_CELL_SECONDS, AT(submit_ns),    true,  0, SECONDS_MAX},
    {"run",       SIM_CELL_SECONDS, AT(run_ns),       true,  0, SECONDS_MAX},
    {"request",   SIM_CELL_SECONDS, AT(request_ns),   false, 0, SECONDS_MAX},
    {"user",      SIM_CELL_WORD,    AT(user),         false, 0, 0},
    {"group",     SIM_CELL_WORD,    AT(group),        false, 0, 0},
    {"name",      SIM_CELL_WORD,    AT(name),         false, 0, 0},
    {"queue",     SIM_CELL_WORD,    AT(queue),        false, 0, 0},
    {"priority",  SIM_CELL_WHOLE,   AT(priority),     false, INT32_MIN, INT32_MAX},
    {"tasks",     SIM_CELL_WHOLE,   AT(tasks),        false, 1, 10000000},
    {"cpu",       SIM_CELL_CPU,     AT(cpu_milli),    false, 0, 0},
    {"memory",    SIM_CELL_BYTES,   AT(memory_bytes), false, 0, 0},
    {"gpus",      SIM_CELL_WHOLE,   AT(gpus),         false, 0, 64},
    {"gpu_milli", SIM_CELL_WHOLE,   AT(gpu_milli),    false, 0, 1000},
};
static const char *const sentences[] = {
    "job ID; default: row number in the file, from 1",
    "submission time, seconds",
    "run time, seconds",
    "run time requested by the user, seconds; default: none",
    "user who submits the job",
    "group that the job is charged to",
    "name of the program or the job",
    "queue",
    "priority, higher first",
    "tasks, each on one node; all start together",
    "cores of each task, such as 2 or 500m; default: 1",
    "memory of each task, such as 16Gi",
    "GPUs of each task",
    "thousandths of one GPU; requires gpus 1",
};
/* clang-format on */
enum { COLUMNS = sizeof columns / sizeof *columns };
_Static_assert(sizeof sentences / sizeof *sentences == COLUMNS, "a sentence for each column");

const char *sim_trace_csv_column(size_t i, const char **ret_sentence)
{
    if (i >= COLUMNS)
        return NULL;
    if (ret_sentence)
        *ret_sentence = sentences[i];
    return columns[i].name;
}

static int take(struct sim_trace *t, const struct sim_csv *csv, const struct trace_row *row, struct berth_err *err)
{
    if (row->gpu_milli % 1000 && row->gpus != 1)
        return sim_lines_error(&csv->lines, err, "gpu_milli: a share is a part of one GPU, so gpus must be 1");
    struct sim_job job = {
        .id = row->id,
        .submit_ns = row->submit_ns,
        .run_ns = row->run_ns,
        .request_ns = row->request_ns,
        .user = intern_put(&t->words, row->user),
        .group = intern_put(&t->words, row->group),
        .name = intern_put(&t->words, row->name),
        .queue = intern_put(&t->words, row->queue),
        .priority = (int32_t)row->priority,
        .tasks = (uint32_t)row->tasks,
        .cpu_milli = row->cpu_milli,
        .memory_bytes = row->memory_bytes,
        .gpus = (uint32_t)row->gpus,
        .gpu_milli = (uint32_t)(row->gpu_milli % 1000),
    };
    sim_trace_add(t, &job);
    return 0;
}

int sim_trace_csv_read(const char *path, struct sim_trace *t, struct berth_err *err)
{
    CLEANUP(sim_csv) struct sim_csv csv = {0};
    int rc = sim_csv_open(&csv, path, columns, COLUMNS, true, err);
    if (rc)
        return rc;
    do {
        struct trace_row row = {.id = (int64_t)t->len + 1, .tasks = 1, .cpu_milli = 1000};
        rc = sim_csv_next(&csv, &row, err);
        if (rc > 0 && take(t, &csv, &row, err) < 0)
            rc = -EINVAL;
    } while (rc > 0);
    if (rc == 0 && t->len == 0)
        rc = sim_lines_error(&csv.lines, err, "the file has no jobs");
    if (rc == 0)
        sim_trace_sort(t);
    return rc;
}

/* Berth's format begins with column names; the Standard Workload Format with a number or a semicolon. */
int sim_trace_read(const char *path, struct sim_trace *t, struct berth_err *err)
{
    CLEANUP(sim_lines) struct sim_lines l = {0};
    bool csv = false;
    int rc = sim_lines_open(&l, path, err);
    while (rc == 0 && (rc = sim_lines_next(&l, err)) > 0) {
        const char *text = l.text + strspn(l.text, " \t\r");
        csv = *text == '"' || (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        rc = *text && *text != '#';
        if (rc)
            break;
    }
    if (rc < 0)
        return rc;
    return csv ? sim_trace_csv_read(path, t, err) : sim_trace_swf_read(path, t, err);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void add_word(struct str *s, const char *word)
{
    if (!strpbrk(word, ",\"\n\r") && word[0] != '#') {
        str_add(s, word);
        return;
    }
    str_add_char(s, '"');
    for (; *word; word++)
        str_addf(s, *word == '"' ? "\"\"" : "%c", *word);
    str_add_char(s, '"');
}

static void add_cell(struct str *s, const struct sim_column *column, const struct trace_row *row)
{
    const void *at = (const char *)row + column->offset;
    char seconds[32], quantity[QUANTITY_TEXT_MAX];
    int64_t whole = column->cell == SIM_CELL_WORD ? 0 : *(const int64_t *)at;
    if (column->cell == SIM_CELL_WORD)
        add_word(s, *(const char *const *)at);
    else if (column->cell == SIM_CELL_SECONDS)
        str_add(s, sim_seconds_print(whole, seconds));
    else if (column->cell == SIM_CELL_WHOLE)
        str_addf(s, "%" PRId64, whole);
    else
        str_add(s, quantity_print(column->cell == SIM_CELL_CPU ? "cpu" : "memory", whole, quantity));
}

void sim_trace_csv_write(const struct sim_trace *t, FILE *to)
{
    CLEANUP(str) struct str s = {0};
    for (size_t i = 0; i < COLUMNS; i++)
        (void)fprintf(to, "%s%s", i ? "," : "", columns[i].name);
    (void)fputc('\n', to);
    for (size_t i = 0; i < t->len; i++) {
        const struct sim_job *job = &t->jobs[i];
        struct trace_row row = {
            job->id,    job->submit_ns, job->run_ns,       job->request_ns, job->priority,
            job->tasks, job->cpu_milli, job->memory_bytes, job->gpus,       job->gpu_milli,
        };
        row.user = sim_trace_text(t, job->user);
        row.group = sim_trace_text(t, job->group);
        row.name = sim_trace_text(t, job->name);
        row.queue = sim_trace_text(t, job->queue);
        str_clear(&s);
        for (size_t k = 0; k < COLUMNS; k++) {
            if (k)
                str_add_char(&s, ',');
            add_cell(&s, &columns[k], &row);
        }
        (void)fprintf(to, "%s\n", str_text(&s));
    }
}
