/* sim_sides.c - runs several policies and prints their results side by side. */
#include "cli/sim/sim_sides.h"

#include <inttypes.h>

#include "base/mem.h"
#include "cli/lib/table.h"

const char *const sides_forms[] = {"table", "json", "csv", "jobs", "html", NULL};

void sides_progress_update(void *ctx, size_t done, size_t total)
{
    struct sides_progress *p = ctx;
    progress_update(&p->progress, p->before * total + done, p->sides * total);
}

/* Warns about jobs that never started: averages over the others would mislead. */
static void warn_unrun(const struct cli *cli, const struct sim_side *s, const struct sim_trace *t)
{
    size_t first = 0;
    if (s->summary.unrun == 0)
        return;
    while (s->out.at[first].end_ns >= 0)
        first++;
    cli_warn(cli,
             "%s: %zu of %zu jobs never ran, the first of them job %" PRId64
             ": its requests never fit on the nodes; the results cover only the other jobs",
             s->label, s->summary.unrun, t->len, t->jobs[first].id);
}

int sides_run(struct cli *cli, struct sim_side *sides, size_t len, struct sim_side_options *p, struct berth_err *err)
{
    struct sides_progress progress = {.sides = 0};
    int rc = 0;
    for (size_t i = 0; i < len; i++)
        progress.sides += !sides[i].done;
    p->progress = sides_progress_update;
    p->ctx = &progress;
    progress_start(&progress.progress, cli, "Simulating");
    for (size_t i = 0; i < len && rc == 0; i++) {
        if (sides[i].done)
            continue;
        rc = sim_side_run(&sides[i], p, err);
        progress.before++;
    }
    progress_end(&progress.progress);
    for (size_t i = 0; i < len && rc == 0; i++)
        warn_unrun(cli, &sides[i], p->trace);
    return rc;
}

static void print_table(struct cli *cli, const struct sim_report *r)
{
    CLEANUP(mem) struct table_column *columns = mem_zarray(r->sides_len + 1, sizeof *columns);
    struct table table;
    struct sim_number n;
    columns[0] = (struct table_column){"", TABLE_PLAIN, 0};
    for (size_t i = 0; i < r->sides_len; i++)
        columns[i + 1] = (struct table_column){r->sides[i].label, TABLE_RIGHT, 0};
    (void)fprintf(cli->out, "%s\n%s\n\n", r->trace_text, r->cluster_text);
    table_init(&table, cli, columns, r->sides_len + 1);
    for (size_t k = 0; (n = sim_side_number(&r->sides[0], k)).key; k++) {
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "%s", n.title);
        for (size_t i = 0; i < r->sides_len; i++) {
            char buf[32];
            n = sim_side_number(&r->sides[i], k);
            table_cell(&table, i + 1, sim_report_best(r, i, k) ? COLOR_GREEN : COLOR_NONE, "%s",
                       sim_report_number(&n, buf));
        }
    }
    table_print(&table);
    table_done(&table);
}

void sides_print(struct cli *cli, const struct sim_report *r, unsigned form)
{
    static void (*const writers[])(const struct sim_report *, FILE *) = {
        [SIDES_JSON] = sim_report_json,
        [SIDES_CSV] = sim_report_csv,
        [SIDES_JOBS] = sim_report_jobs,
        [SIDES_HTML] = sim_report_html,
    };
    if (form == SIDES_TABLE)
        print_table(cli, r);
    else
        writers[form](r, cli->out);
}
