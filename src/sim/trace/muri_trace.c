/* muri_trace.c - reads published traces of training jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "sim/protocol/muri.h"
#include "sim/trace/trace_csv.h"

struct muri_row {
    int64_t id, gpus;
    double submit_ms, iterations, iteration_ms;
    const char *model;
};

#define AT(field) offsetof(struct muri_row, field)
static const struct sim_column columns[] = {
    {"job_id",         SIM_CELL_WHOLE,  AT(id),           true, -9e15, 9e15},
    {"num_gpu",        SIM_CELL_WHOLE,  AT(gpus),         true, 1,     1e6 },
    {"submit_time",    SIM_CELL_NUMBER, AT(submit_ms),    true, 0,     9e12},
    {"iterations",     SIM_CELL_NUMBER, AT(iterations),   true, 1,     9e15},
    {"model_name",     SIM_CELL_WORD,   AT(model),        true, 0,     0   },
    {"iteration_time", SIM_CELL_NUMBER, AT(iteration_ms), true, 1e-6,  9e12},
};

/* Jobs with the same submission keep the order of the file. */
static int by_submission(const void *a, const void *b)
{
    const struct muri_job *x = a, *y = b;
    if (x->submit_s != y->submit_s)
        return x->submit_s < y->submit_s ? -1 : 1;
    return (x->starts > y->starts) - (x->starts < y->starts);
}

int muri_trace_read(const char *path, struct muri_trace *t, struct berth_err *err)
{
    CLEANUP(sim_csv) struct sim_csv csv = {0};
    struct muri_row row = {0};
    int rc = sim_csv_open(&csv, path, columns, sizeof columns / sizeof *columns, false, err);
    if (rc)
        return rc;
    while ((rc = sim_csv_next(&csv, &row, err)) > 0) {
        struct muri_job job = {
            .id = row.id,
            .gpus = row.gpus,
            .submit_s = row.submit_ms / 1000,
            .iterations = row.iterations,
            .iteration_s = row.iteration_ms / 1000,
            .restart_s = muri_restart_s(row.model, row.gpus),
            .starts = (int64_t)t->len, /* index in the file, for the sort; every run resets it */
        };
        vec_push(t, job);
    }
    if (rc == 0 && t->len == 0)
        rc = sim_lines_error(&csv.lines, err, "the file has no jobs");
    if (rc == 0)
        qsort(t->at, t->len, sizeof *t->at, by_submission);
    return rc;
}

void muri_trace_done(struct muri_trace *t)
{
    mem_free(t->at);
    *t = (struct muri_trace){0};
}
