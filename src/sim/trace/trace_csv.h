/* trace_csv.h - traces as comma-separated values: Berth's own format (docs/sim.md), and rows of any such file by a table.
 *
 * The first line names the columns, in any order; those that are required must be there, the others may be missing or a
 * cell empty. Cells may stand in double quotes, a quote within is written twice. Blank lines and lines that start with
 * '#' are skipped. What is wrong is told with the line's number and the column's name.
 *
 * To add a column to the own format: a row in the table of trace_csv.c and a line in docs/sim.md.
 */
#pragma once

#include <stdio.h>

#include "sim/trace/trace.h"

enum sim_cell {
    SIM_CELL_SECONDS, /* int64_t, nanoseconds: "12", "0.25"; at most nine digits after the point */
    SIM_CELL_WHOLE,   /* int64_t */
    SIM_CELL_NUMBER,  /* double, finite */
    SIM_CELL_WORD,    /* const char *, until the next row */
    SIM_CELL_CPU,     /* int64_t, thousandths: "2", "500m" */
    SIM_CELL_BYTES,   /* int64_t: "16Gi" */
};

struct sim_column {
    const char *name;
    enum sim_cell cell;
    size_t offset; /* into what a row fills */
    bool required;
    double min, max; /* of numbers, in the unit of the file */
};

struct sim_csv {
    struct sim_lines lines;
    const struct sim_column *columns;
    size_t columns_len;
    uint32_t *bound; /* of each field of a line: its column, or UINT32_MAX */
    char **fields;
    size_t fields_len;
};

/* Opens the file and reads its first line. -EINVAL if a required column is missing, one is named twice, or one is in no row
 * of the table while `strict`; else such a column is not read. */
int sim_csv_open(struct sim_csv *c, const char *path, const struct sim_column *columns, size_t len, bool strict,
                 struct berth_err *err);
void sim_csv_close(struct sim_csv *c);
/* 1: the next row is in *row (what is missing or empty is left as it was); 0: there is none; -errno. */
int sim_csv_next(struct sim_csv *c, void *row, struct berth_err *err);
static inline void sim_csv_cleanup(struct sim_csv *c)
{
    sim_csv_close(c);
}

/* Reads a trace in the own format into an empty trace. */
int sim_trace_csv_read(const char *path, struct sim_trace *t, struct berth_err *err);
/* Reads one in this format or in the Standard Workload Format, whichever the file is in. */
int sim_trace_read(const char *path, struct sim_trace *t, struct berth_err *err);
/* Writes one that reads back as the same jobs. */
void sim_trace_csv_write(const struct sim_trace *t, FILE *to);
/* The columns with a sentence each, in order; NULL past the end. */
const char *sim_trace_csv_column(size_t i, const char **ret_sentence);

/* "90", "0.25" as nanoseconds, exactly. False for anything else or below 0. */
bool sim_seconds_parse(const char *text, int64_t *ret_ns);
/* The shortest such text. */
const char *sim_seconds_print(int64_t ns, char buf[static 32]);
