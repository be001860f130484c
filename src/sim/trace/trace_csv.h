/* trace_csv.h - traces in CSV: Berth's own format (docs/sim.md), and a reader for CSV files with any table of columns.
 *
 * The first line names the columns, in any order. Required columns must be present; others may be missing or have empty
 * cells. A cell may be in double quotes; a quote inside is doubled. Blank lines and lines that start with '#' are
 * skipped. Errors have the line number and the name of the column.
 *
 * To add a column to Berth's format: a row in the table of trace_csv.c and a line in docs/sim.md.
 */
#pragma once

#include <stdio.h>

#include "sim/trace/trace.h"

enum sim_cell {
    SIM_CELL_SECONDS, /* int64_t, nanoseconds: "12", "0.25"; at most nine digits after the point */
    SIM_CELL_WHOLE,   /* int64_t */
    SIM_CELL_NUMBER,  /* double, finite */
    SIM_CELL_WORD,    /* const char *, valid until the next row */
    SIM_CELL_CPU,     /* int64_t, thousandths: "2", "500m" */
    SIM_CELL_BYTES,   /* int64_t: "16Gi" */
};

struct sim_column {
    const char *name;
    enum sim_cell cell;
    size_t offset; /* of the field in the row struct */
    bool required;
    double min, max; /* of numbers, in the unit of the file */
};

struct sim_csv {
    struct sim_lines lines;
    const struct sim_column *columns;
    size_t columns_len;
    uint32_t *bound; /* column of each field of a line, or UINT32_MAX */
    char **fields;
    size_t fields_len;
};

/* Opens the file and reads its first line. Returns -EINVAL if a required column is missing, if a column occurs twice,
 * or, with `strict`, if a column is unknown. Without `strict` unknown columns are ignored. */
int sim_csv_open(struct sim_csv *c, const char *path, const struct sim_column *columns, size_t len, bool strict,
                 struct berth_err *err);
void sim_csv_close(struct sim_csv *c);
/* Reads the next row to *row; missing and empty cells leave their fields unchanged. Returns 1, 0 at the end, or
 * -errno. */
int sim_csv_next(struct sim_csv *c, void *row, struct berth_err *err);
static inline void sim_csv_cleanup(struct sim_csv *c)
{
    sim_csv_close(c);
}

/* Reads a trace in Berth's format into an empty trace. */
int sim_trace_csv_read(const char *path, struct sim_trace *t, struct berth_err *err);
/* Reads a trace in Berth's format or in the Standard Workload Format; detects the format. */
int sim_trace_read(const char *path, struct sim_trace *t, struct berth_err *err);
/* Writes a trace so that reading gives the same jobs. */
void sim_trace_csv_write(const struct sim_trace *t, FILE *to);
/* Returns the name of a column, with a description, in order; NULL past the end. */
const char *sim_trace_csv_column(size_t i, const char **ret_sentence);

/* Parses "90" or "0.25" to nanoseconds, exactly. Returns false for any other text and for negative values. */
bool sim_seconds_parse(const char *text, int64_t *ret_ns);
/* Returns the shortest text for the value. */
const char *sim_seconds_print(int64_t ns, char buf[static 32]);
