/* journal_export.c - `berth journal export`: writes a journal as JSON lines, or as CSV tables. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/journal/journal_source.h"
#include "cli/lib/progress.h"
#include "cli/lib/save.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

struct export_values {
    const char *data, *from, *to, *into;
    unsigned form;
};

enum { FORM_LINES, FORM_JOBS, FORM_DECISIONS };
static const char *const forms[] = {"lines", "jobs", "decisions", NULL};

static const struct option options[] = {
    OPTION_TEXT_ROW("data", 0, export_values, data, "DIR", JOURNAL_DATA_HELP),
    OPTION_CHOICE_ROW("form", 'f', export_values, form, forms,
                      "Output format: JSON lines, CSV with one row per job, or CSV with one row per action."),
    OPTION_TEXT_ROW("into", 0, export_values, into, "FILE",
                    "Write to this new file, atomically and readable only by you. Default: standard output."),
    OPTION_TEXT_ROW("from", 0, export_values, from, "WHEN", "Start at this record or time."),
    OPTION_TEXT_ROW("to", 0, export_values, to, "WHEN", "End at this record or time."),
};

/* The data of one job read from the journal so far. */
struct job_row {
    uint64_t id;
    json_t *doc;       /* its last document; NULL: only its usage is known */
    uint64_t placed;   /* number of placements of its pods */
    double pod_s;      /* total run time of its pods */
    double estimate_s; /* expected run time; 0: not known */
    json_t *used;      /* usage of the last ended pod */
    char *node;        /* node of the last placement */
};

struct journal_export {
    struct cli *cli;
    FILE *out;
    int failed; /* errno of the first failed write; 0: none */
    struct progress progress;
    unsigned form;
    VEC(struct job_row) jobs; /* in order of their first record */
    struct map map;
    struct str line;
};

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* Writes a field, quoted if necessary. */
static void field(FILE *out, const char *text, const char *after)
{
    if (!text)
        text = "";
    if (!text[strcspn(text, ",\"\r\n")]) {
        (void)fprintf(out, "%s%s", text, after);
        return;
    }
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fprintf(out, "\"%s", after);
}

static void value_field(FILE *out, const json_t *value, const char *after)
{
    if (json_is_string(value) || !value) {
        field(out, json_string_value(value), after);
        return;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    field(out, text, after);
    free(text);
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static bool same_job(const void *ctx, uint32_t at, const void *id)
{
    return ((const struct journal_export *)ctx)->jobs.at[at].id == *(const uint64_t *)id;
}

static struct job_row *job_of(struct journal_export *e, uint64_t id)
{
    uint32_t at = map_find(&e->map, hash_u64(id), same_job, e, &id);
    if (at == MAP_NONE) {
        struct job_row fresh = {.id = id};
        at = (uint32_t)e->jobs.len;
        map_add(&e->map, hash_u64(id), at);
        vec_push(&e->jobs, fresh);
    }
    return &e->jobs.at[at];
}

/* "jobs/17" */
static bool key_number(const char *key, const char *prefix, uint64_t *ret)
{
    size_t len = strlen(prefix);
    int64_t n = 0;
    if (!key || strncmp(key, prefix, len) != 0 || !str_parse_i64(key + len, &n) || n < 0)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static void jobs_change(struct journal_export *e, const char *key, json_t *doc)
{
    uint64_t id;
    if (key_number(key, "jobs/", &id)) {
        struct job_row *row = job_of(e, id);
        if (json_is_object(doc)) {
            json_decref(row->doc);
            row->doc = json_incref(doc);
        }
    } else if (doc && strncmp(key, "usage", 5) == 0 &&
               key_number(json_string_value(json_object_get(doc, "workload")), "", &id)) {
        struct job_row *row = job_of(e, id);
        row->pod_s += json_number_value(json_object_get(doc, "seconds"));
        row->estimate_s = json_number_value(json_object_get(doc, "estimate"));
        json_decref(row->used);
        row->used = json_incref(json_object_get(doc, "used"));
    }
}

static void jobs_cycle(struct journal_export *e, const json_t *cycle)
{
    size_t i;
    json_t *action;
    json_array_foreach(json_object_get(cycle, "actions"), i, action)
    {
        uint64_t id;
        const char *op = json_string_value(json_array_get(action, 0));
        if (!op || strcmp(op, "place") != 0 || !key_number(json_string_value(json_array_get(action, 1)), "", &id))
            continue;
        struct job_row *row = job_of(e, id);
        row->placed++;
        mem_free(row->node);
        row->node = mem_strdup(json_string_value(json_array_get(action, 3)));
    }
}

static const char *job_state(const struct job_row *row)
{
    if (json_is_true(json_object_get(row->doc, "cancelled")))
        return "cancelled";
    if (json_is_true(json_object_get(row->doc, "failed")))
        return "failed";
    if (json_is_true(json_object_get(row->doc, "ended")))
        return "ended";
    return json_object_get(row->doc, "started") ? "started" : "waiting";
}

static void seconds_between(FILE *out, const json_t *doc, const char *from, const char *to)
{
    int64_t a = 0, b = 0;
    if (timestamp_parse(json_object_get(doc, from), &a, NULL) == 0 &&
        timestamp_parse(json_object_get(doc, to), &b, NULL) == 0)
        (void)fprintf(out, "%.3f", (double)(b - a) / 1e9);
    (void)fputc(',', out);
}

static void jobs_write(struct journal_export *e)
{
    static const char *const keys[] = {"name",     "owner",      "queue",   "priority", "replicas",
                                       "requests", "time_limit", "created", "started",  "finished"};
    FILE *out = e->out;
    (void)fprintf(out, "id,name,owner,queue,priority,pods,requests,time_limit,created,started,finished,state,"
                       "wait_s,run_s,estimate_s,pod_s,placed,node,used\n");
    for (size_t i = 0; i < e->jobs.len; i++) {
        const struct job_row *row = &e->jobs.at[i];
        if (!row->doc)
            continue; /* an app, or a job older than the range */
        (void)fprintf(out, "%" PRIu64 ",", row->id);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            value_field(out, json_object_get(row->doc, keys[k]), ",");
        (void)fprintf(out, "%s,", job_state(row));
        seconds_between(out, row->doc, "created", "started");
        seconds_between(out, row->doc, "started", "finished");
        if (row->estimate_s > 0)
            (void)fprintf(out, "%.3f", row->estimate_s);
        (void)fprintf(out, ",%.3f,%" PRIu64 ",", row->pod_s, row->placed);
        field(out, row->node, ",");
        value_field(out, row->used, "\n");
    }
}

/* ---- decisions -------------------------------------------------------------------------------------------------- */

static void decisions_write(struct journal_export *e, const struct store_record *record, const json_t *cycle)
{
    char now[TIMESTAMP_MAX];
    size_t i, k;
    json_t *action, *part;
    json_array_foreach(json_object_get(cycle, "actions"), i, action)
    {
        (void)fprintf(e->out, "%" PRIu64 ",%s,%lld,%lld,%lld,", record->seq,
                      timestamp_text(json_integer_value(json_object_get(cycle, "now")), now),
                      json_integer_value(json_object_get(cycle, "n")),
                      json_integer_value(json_object_get(cycle, "unit")),
                      json_integer_value(json_object_get(cycle, "revision")));
        json_array_foreach(action, k, part)
        {
            (void)fputs(k ? "," : "", e->out);
            if (json_is_string(part))
                field(e->out, json_string_value(part), "");
            else
                (void)fprintf(e->out, "%lld", json_integer_value(part));
        }
        (void)fputs(k < 8 ? ",,\n" : "\n", e->out);
    }
}

/* ---- all forms -------------------------------------------------------------------------------------------------- */

/* Returns nonzero after a failed write, which ends the reading. Saves errno, because the stream only remembers that an
 * error happened. */
static int write_failed(struct journal_export *e)
{
    if (ferror(e->out) && !e->failed)
        e->failed = errno ? errno : EIO;
    return -e->failed;
}

static int visit_document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    struct journal_export *e = ctx;
    if (e->form == FORM_LINES) {
        str_clear(&e->line);
        segment_line_write_document(&e->line, key, revision, doc);
        (void)fwrite(e->line.at, 1, e->line.len, e->out);
    } else if (e->form == FORM_JOBS) {
        CLEANUP(json) json_t *read = json_loadb(doc.at, doc.len, 0, NULL);
        jobs_change(e, key, read);
    }
    return write_failed(e);
}

static int visit_record(void *ctx, const struct store_record *record)
{
    struct journal_export *e = ctx;
    if (e->form == FORM_LINES) {
        str_clear(&e->line);
        segment_line_write(&e->line, record);
        (void)fwrite(e->line.at, 1, e->line.len, e->out);
        return write_failed(e);
    }
    CLEANUP(json) json_t *doc = json_loadb(record->record.at, record->record.len, 0, NULL);
    const json_t *cycle = json_object_get(doc, "cycle");
    size_t i;
    json_t *change;
    if (e->form == FORM_DECISIONS) {
        decisions_write(e, record, cycle);
        return write_failed(e);
    }
    json_array_foreach(json_object_get(doc, "changes"), i, change)
        jobs_change(e, json_string_value(json_array_get(change, 0)), json_array_get(change, 1));
    jobs_cycle(e, cycle);
    return 0;
}

static void progress_show(void *ctx, uint64_t done, uint64_t total)
{
    progress_update(&((struct journal_export *)ctx)->progress, (size_t)done, (size_t)total);
}

/* A failed write is reported when the stream is closed. */
static int export_all(struct journal_export *e, struct journal *j, const struct journal_range *range)
{
    struct journal_visitor visitor = {NULL, visit_document, visit_record, progress_show, e};
    struct berth_err err;
    if (e->form == FORM_DECISIONS)
        (void)fprintf(e->out, "record,now,cycle,unit,revision,op,workload,ordinal,node,instance,cause,score,rival\n");
    progress_start(&e->progress, e->cli, "Exporting");
    int rc = journal_read(j, range, &visitor, &err);
    progress_end(&e->progress);
    if (rc < 0 && !e->failed)
        return cli_fail(e->cli, EXIT_FAILED, "%s", err.text);
    if (e->form == FORM_JOBS)
        jobs_write(e);
    (void)write_failed(e);
    return EXIT_OK;
}

/* Opens a stream on the file that `save` writes; the stream is closed separately. */
static int file_begin(struct journal_export *e, struct saved_file *save, const char *path)
{
    struct berth_err err;
    if (save_begin(save, path, &err) < 0)
        return cli_fail(e->cli, EXIT_FAILED, "%s", err.text);
    int fd = dup(save->fd);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out) {
        e->out = out;
        return EXIT_OK;
    }
    int code = cli_fail(e->cli, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return code;
}

/* `code`: the result of the export. */
static int file_end(struct journal_export *e, struct saved_file *save, int code)
{
    struct berth_err err;
    if (fclose(e->out) != 0 && !e->failed)
        e->failed = errno;
    e->out = e->cli->out;
    if (code != EXIT_OK)
        return code;
    if (e->failed)
        return cli_fail(e->cli, EXIT_FAILED, "cannot write %s: %s", save->path, strerror(e->failed));
    return save_end(save, &err) < 0 ? cli_fail(e->cli, EXIT_FAILED, "%s", err.text) : EXIT_OK;
}

static void journal_export_cleanup(struct journal_export *e)
{
    for (size_t i = 0; i < e->jobs.len; i++) {
        json_decref(e->jobs.at[i].doc);
        json_decref(e->jobs.at[i].used);
        mem_free(e->jobs.at[i].node);
    }
    vec_done(&e->jobs);
    map_done(&e->map);
    str_done(&e->line);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct export_values *v = values;
    CLEANUP(journal_export) struct journal_export e = {.cli = cli, .out = cli->out, .form = v->form};
    CLEANUP(save) struct saved_file save = {0};
    struct journal_bound from = {0}, to = {0};
    CLEANUP(journal) struct journal *j = NULL;
    int code = journal_bound_read(cli, "from", v->from, &from);
    if (code == EXIT_OK)
        code = journal_bound_read(cli, "to", v->to, &to);
    if (code == EXIT_OK)
        code = journal_source_open(cli, v->data, operands, &j);
    if (code == EXIT_OK && v->into)
        code = file_begin(&e, &save, v->into);
    if (code != EXIT_OK)
        return code;
    /* JSON lines begin with the state, so that they can be replayed; CSV tables contain only the requested range. */
    struct journal_range range = {.from_seq = from.number,
                                  .to_seq = to.number,
                                  .from_ns = from.ns,
                                  .to_ns = to.ns,
                                  .bare = v->form == FORM_DECISIONS};
    code = export_all(&e, j, &range);
    return v->into ? file_end(&e, &save, code) : code;
}

const struct command journal_export_command = {
    .name = "journal export",
    .operands = JOURNAL_OPERANDS,
    .operands_max = OPERANDS_ANY,
    .summary = "Write a journal as JSON lines, or as CSV for notebooks.",
    .text = "JSON lines begin with the documents of the last checkpoint before the requested range, "
            "so that `berth replay` and the other commands of `berth journal` read them like the "
            "journal itself. docs/journal.md describes the columns.",
    .examples = "  berth journal export --data /var/lib/berth --into journal.jsonl\n"
                "  berth journal export --data /var/lib/berth --form jobs --into jobs.csv\n"
                "  berth journal export --form decisions 000017.seg 000018.seg",
    .options = options,
    .options_len = sizeof options / sizeof *options,
    .values_size = sizeof(struct export_values),
    .section = SECTION_FILES,
    .run = run,
};
