/* report_plots.h - the plots of a report; each plot shows all sides. */
#pragma once

#include "sim/report/report.h"

enum { REPORT_COLORS = 8 }; /* more sides reuse the colours */

struct report_plot {
    const char *title, *text; /* text: description */
    void (*draw)(const struct sim_report *r, struct str *s);
};

/* Returns a plot, in the order of the page; title NULL past the end. */
struct report_plot report_plot_at(size_t i);
