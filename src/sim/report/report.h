/* report.h - reports about the sides of a simulation: CSV, JSON, and an HTML page with plots.
 *
 * The page is one file without scripts, fonts and other external resources; plots are SVG. The page is well-formed XML,
 * so programs can parse it. To add a plot: a function in report_plots.c and its section in report_html.c.
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

/* Formats a duration: "45 s", "12 min", "3.2 h", "4.1 d". */
const char *sim_report_time(double seconds, char buf[static 32]);
/* Returns whether a side has the best value of a number, unless all sides have the same value. */
bool sim_report_best(const struct sim_report *r, size_t side, size_t number);
/* Formats a number of a side for people. */
const char *sim_report_number(const struct sim_number *n, char buf[static 32]);
