/* report_plot.h - draws plots as SVG: axes, lines and bars.
 *
 * Call plot_begin, which draws frame, grid and axes, then the functions for series, then plot_end. Colours are CSS
 * classes (s0, s1, ...) that the page's style defines, so a plot follows the light or dark theme.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum plot_unit { PLOT_NUMBER, PLOT_PERCENT, PLOT_TIME, PLOT_DAYS };

/* A logarithmic axis requires min > 0. PLOT_PERCENT values are 0 to 1; PLOT_TIME and PLOT_DAYS values are seconds. */
struct plot_axis {
    double min, max;
    bool log;
    enum plot_unit unit;
    const char *title;
};

struct plot {
    struct str *s;
    struct plot_axis x, y;
    const char *const *classes; /* labels of groups of bars, instead of numbers on the x axis; NULL: none */
    size_t classes_len;
};

/* Rounds up the end of a linear axis. */
void plot_round(struct plot_axis *a);
void plot_begin(const struct plot *p, const char *label);
/* Draws a line. Points outside the axes are clipped; a NaN interrupts the line. */
void plot_line(const struct plot *p, size_t color, const double *xs, const double *ys, size_t len);
/* Draws one bar per class, beside the bars of the other `series`; a NaN draws no bar. `name` is the tooltip. */
void plot_bars(const struct plot *p, size_t color, size_t series, const double *ys, const char *name);
void plot_end(const struct plot *p);

/* Appends text with markup characters escaped. */
void plot_add_text(struct str *s, const char *text);
