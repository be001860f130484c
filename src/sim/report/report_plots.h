/* report_plots.h - the plots of a report: each draws all sides into a text. */
#pragma once

#include "sim/report/report.h"

enum { REPORT_COLORS = 8 }; /* further sides begin anew */

struct report_plot {
    const char *title, *text; /* what it shows */
    void (*draw)(const struct sim_report *r, struct str *s);
};

/* In the order of the page; title NULL past the end. */
struct report_plot report_plot_at(size_t i);
