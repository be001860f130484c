/* trace_swf.c - reads the Standard Workload Format: one line with 18 numbers per job; comments begin with a semicolon.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/trace/trace.h"

/* The columns, in order; -1 in a file: unknown. */
enum swf_column {
    COLUMN_ID,
    COLUMN_SUBMIT,
    COLUMN_WAIT,
    COLUMN_RUN,
    COLUMN_PROCS,
    COLUMN_CPU_TIME,
    COLUMN_MEMORY_KIB,
    COLUMN_PROCS_ASKED,
    COLUMN_TIME_ASKED,
    COLUMN_MEMORY_ASKED_KIB,
    COLUMN_STATUS,
    COLUMN_USER,
    COLUMN_GROUP,
    COLUMN_PROGRAM,
    COLUMN_QUEUE,
    COLUMN_PARTITION,
    COLUMN_BEFORE,
    COLUMN_THINK,
    COLUMNS,
    COLUMNS_LEAST = COLUMN_TIME_ASKED + 1, /* the minimum that describes a job */
};

#define SECONDS_MAX ((int64_t)1 << 33) /* 272 years */
#define PROCS_MAX ((int64_t)1 << 40)

static const char *const names[COLUMNS] = {"job number",
                                           "submit time",
                                           "wait time",
                                           "run time",
                                           "allocated processors",
                                           "average CPU time",
                                           "used memory",
                                           "requested processors",
                                           "requested time",
                                           "requested memory",
                                           "status",
                                           "user",
                                           "group",
                                           "executable",
                                           "queue",
                                           "partition",
                                           "preceding job",
                                           "think time"};

/* Reads a whole number; the fraction that some logs have is truncated. */
static bool number_read(char **at, int64_t *ret)
{
    char *end;
    long long n = strtoll(*at, &end, 10);
    if (end == *at)
        return false;
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9';)
            end++;
    if (*end && *end != ' ' && *end != '\t')
        return false;
    *at = end;
    *ret = n;
    return true;
}

static int columns_read(struct sim_lines *l, int64_t at[static COLUMNS], struct berth_err *err)
{
    char *text = l->text;
    size_t len = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        at[i] = -1;
    for (;; len++) {
        text += strspn(text, " \t");
        if (!*text)
            break;
        if (len == COLUMNS)
            return sim_lines_error(l, err, "more than %d numbers", COLUMNS);
        if (!number_read(&text, &at[len]))
            return sim_lines_error(l, err, "column %zu, %s: \"%.20s\" is no number", len + 1, names[len], text);
    }
    if (len < COLUMNS_LEAST)
        return sim_lines_error(l, err, "%zu numbers; a job of the Standard Workload Format has %d", len, COLUMNS);
    if (at[COLUMN_SUBMIT] > SECONDS_MAX || at[COLUMN_RUN] > SECONDS_MAX || at[COLUMN_TIME_ASKED] > SECONDS_MAX)
        return sim_lines_error(l, err, "a time of more than %" PRId64 " seconds", SECONDS_MAX);
    if (at[COLUMN_PROCS] > PROCS_MAX || at[COLUMN_PROCS_ASKED] > PROCS_MAX)
        return sim_lines_error(l, err, "more than %" PRId64 " processors", PROCS_MAX);
    return 0;
}

static sym word(struct sim_trace *t, int64_t number)
{
    char text[24];
    if (number < 0)
        return 0;
    (void)snprintf(text, sizeof text, "%" PRId64, number);
    return intern_put(&t->words, text);
}

static void job_add(struct sim_trace *t, const int64_t at[static COLUMNS])
{
    int64_t procs = at[COLUMN_PROCS_ASKED] > 0 ? at[COLUMN_PROCS_ASKED] : at[COLUMN_PROCS];
    int64_t asked = at[COLUMN_TIME_ASKED] > 0 ? at[COLUMN_TIME_ASKED] : at[COLUMN_RUN];
    if (procs <= 0 || at[COLUMN_SUBMIT] < 0 || at[COLUMN_RUN] < 0)
        return;
    sim_trace_add(t, &(struct sim_job){.id = at[COLUMN_ID],
                                       .submit_ns = at[COLUMN_SUBMIT] * SIM_SECOND_NS,
                                       .run_ns = at[COLUMN_RUN] * SIM_SECOND_NS,
                                       .request_ns = asked * SIM_SECOND_NS,
                                       .user = word(t, at[COLUMN_USER]),
                                       .group = word(t, at[COLUMN_GROUP]),
                                       .name = word(t, at[COLUMN_PROGRAM]),
                                       .queue = word(t, at[COLUMN_QUEUE]),
                                       .tasks = 1,
                                       .cpu_milli = procs * 1000});
}

/* Reads "; MaxProcs: 100"; a log that only gives nodes has one processor per node. */
static void header_read(struct sim_trace *t, const char *line, bool *by_procs)
{
    long long n;
    if (sscanf(line, ";%*[ \t]MaxProcs:%lld", &n) == 1 && n > 0 && n <= PROCS_MAX) {
        t->procs = n;
        *by_procs = true;
    } else if (!*by_procs && sscanf(line, ";%*[ \t]MaxNodes:%lld", &n) == 1 && n > 0 && n <= PROCS_MAX) {
        t->procs = n;
    }
}

int sim_trace_swf_read(const char *path, struct sim_trace *t, struct berth_err *err)
{
    CLEANUP(sim_lines) struct sim_lines l = {0};
    int64_t at[COLUMNS];
    bool by_procs = false;
    int rc = sim_lines_open(&l, path, err);
    if (rc)
        return rc;
    while ((rc = sim_lines_next(&l, err)) == 1) {
        const char *text = l.text + strspn(l.text, " \t");
        if (*text == ';')
            header_read(t, text, &by_procs);
        if (!*text || *text == ';')
            continue;
        rc = columns_read(&l, at, err);
        if (rc)
            return rc;
        job_add(t, at);
    }
    if (rc == 0 && t->len == 0)
        rc = err_set(err, EINVAL, "%s: there is no job in it that ran", path);
    if (rc == 0)
        sim_trace_sort(t);
    return rc;
}
