/* report_plot.h - plots as SVG: axes, lines and bars, drawn into a text.
 *
 * plot_begin draws frame, grid and axes, then come the series, then plot_end. Colours are classes (s0, s1, ...) that the page's
 * style defines, so that a plot follows the reader's light or dark theme.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum plot_unit { PLOT_NUMBER, PLOT_PERCENT, PLOT_TIME, PLOT_DAYS };

/* A logarithmic axis has min above 0. Of PLOT_PERCENT values are 0 to 1, of PLOT_TIME and PLOT_DAYS seconds. */
struct plot_axis {
    double min, max;
    bool log;
    enum plot_unit unit;
    const char *title;
};

struct plot {
    struct str *s;
    struct plot_axis x, y;
    const char *const *classes; /* of bars, by groups, in place of numbers on the x axis; NULL: none */
    size_t classes_len;
};

/* Makes the end of a linear axis round. */
void plot_round(struct plot_axis *a);
void plot_begin(const struct plot *p, const char *label);
/* Points outside the axes are cut; a NaN interrupts the line. */
void plot_line(const struct plot *p, size_t color, const double *xs, const double *ys, size_t len);
/* One bar of each class, beside those of the other `series`; a NaN has none. `name` is for who points at it. */
void plot_bars(const struct plot *p, size_t color, size_t series, const double *ys, const char *name);
void plot_end(const struct plot *p);

/* Text of a page: what would be markup is escaped. */
void plot_add_text(struct str *s, const char *text);
