/* report.h - sides of a simulation told to people and programs: CSV, JSON, and a page with plots.
 *
 * The page is one file: no scripts, no fonts and nothing else from elsewhere; plots are drawn as SVG. It is well-formed XML, so that
 * programs can read it too. To add a plot: a function in report_plots.c and its section in report_html.c.
 */
#pragma once

#include <stdio.h>

#include "sim/report/side.h"

struct sim_report {
    const char *title, *trace_text, *cluster_text;
    const struct sim_trace *trace;
    const struct sim_fleet *fleet;
    const struct sim_side *sides;
    size_t sides_len;
};

void sim_report_html(const struct sim_report *r, FILE *to);
void sim_report_json(const struct sim_report *r, FILE *to);
void sim_report_csv(const struct sim_report *r, FILE *to);  /* a row for each side */
void sim_report_jobs(const struct sim_report *r, FILE *to); /* a row for each job and side */

/* "45 s", "12 min", "3.2 h", "4.1 d" */
const char *sim_report_time(double seconds, char buf[static 32]);
/* Is a number of a side the best of all sides, where not all are alike? */
bool sim_report_best(const struct sim_report *r, size_t side, size_t number);
/* A number of a side as people read it. */
const char *sim_report_number(const struct sim_number *n, char buf[static 32]);
