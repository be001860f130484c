/* report_plot.c - axes, lines and bars of plots. */
#include "sim/report/report_plot.h"

#include "base/math.h"

enum { WIDTH = 640, HEIGHT = 300, LEFT = 62, RIGHT = 22, TOP = 12, BOTTOM = 46, TICKS = 5, TICKS_MAX = 40 };

void plot_add_text(struct str *s, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            str_add(s, "&amp;");
        else if (*text == '<')
            str_add(s, "&lt;");
        else if (*text == '>')
            str_add(s, "&gt;");
        else if (*text == '"')
            str_add(s, "&quot;");
        else if ((unsigned char)*text >= ' ')
            str_add_char(s, *text);
    }
}

/* ---- coordinates ------------------------------------------------------------------------------------------------ */

static double share(const struct plot_axis *a, double value)
{
    double low = a->min, high = a->max;
    if (a->log) {
        value = math_log10(value > low ? value : low);
        low = math_log10(low);
        high = math_log10(high);
    }
    double x = high > low ? (value - low) / (high - low) : 0;
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double at_x(const struct plot *p, double value)
{
    return LEFT + share(&p->x, value) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct plot *p, double value)
{
    return HEIGHT - BOTTOM - share(&p->y, value) * (HEIGHT - TOP - BOTTOM);
}

/* ---- ticks ------------------------------------------------------------------------------------------------------ */

/* Returns 1, 2 or 5 times a power of ten; for times, a divisor of a day. */
static double step_of(const struct plot_axis *a)
{
    double span = (a->max - a->min) / TICKS, unit = a->unit == PLOT_DAYS ? 86400 : 1;
    if (a->unit == PLOT_DAYS && span < 86400)
        return span <= 600 ? 600 : span <= 3600 ? 3600 : span <= 6 * 3600 ? 6 * 3600 : 86400;
    double power = math_pow(10, (double)(int)(math_log10(span / unit) + 100) - 100);
    double over = span / unit / power;
    return unit * power * (over <= 1 ? 1 : over <= 2 ? 2 : over <= 5 ? 5 : 10);
}

void plot_round(struct plot_axis *a)
{
    if (!(a->max > a->min))
        a->max = a->min + 1;
    double step = step_of(a), top = a->min;
    while (top < a->max)
        top += step;
    a->max = top;
}

static size_t ticks_of(const struct plot_axis *a, double *ret)
{
    static const double times[] = {1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400.0, 365 * 86400.0};
    size_t len = 0;
    if (a->log && a->unit == PLOT_TIME) {
        for (size_t i = 0; i < sizeof times / sizeof *times; i++)
            if (times[i] >= a->min && times[i] <= a->max)
                ret[len++] = times[i];
        return len;
    }
    if (a->log) {
        for (double x = 1e-6; x <= a->max && len < TICKS_MAX; x *= 10)
            if (x >= a->min * 0.999)
                ret[len++] = x;
        return len;
    }
    double step = step_of(a);
    for (double x = a->min; x <= a->max + step * 1e-6 && len < TICKS_MAX; x += step)
        ret[len++] = x;
    return len;
}

/* Formats the round times of ticks: "10 s", "1 min", "6 h". */
static void add_time(struct str *s, double value)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {
        {86400, "d"  },
        {3600,  "h"  },
        {60,    "min"},
        {1,     "s"  },
    };
    size_t i = 0;
    while (i < 3 && value < units[i].unit)
        i++;
    str_addf(s, "%g %s", value / units[i].unit, units[i].name);
}

static void add_value(struct str *s, const struct plot_axis *a, double value)
{
    switch (a->unit) {
    case PLOT_PERCENT: str_addf(s, "%g %%", value * 100); break;
    case PLOT_TIME: add_time(s, value); break;
    case PLOT_DAYS:
        if (a->max - a->min < 3 * 86400.0)
            str_addf(s, "%g h", (double)(int)(value / 360 + 0.5) / 10);
        else
            str_addf(s, "%g d", (double)(int)(value / 8640 + 0.5) / 10);
        break;
    default:
        if (value >= 10000)
            str_addf(s, "%gk", value / 1000);
        else
            str_addf(s, "%g", value);
    }
}

/* ---- frame ------------------------------------------------------------------------------------------------------ */

static void x_axis(const struct plot *p)
{
    double ticks[TICKS_MAX], width = (double)(WIDTH - LEFT - RIGHT) / (double)(p->classes_len ? p->classes_len : 1);
    size_t len = p->classes ? p->classes_len : ticks_of(&p->x, ticks);
    for (size_t i = 0; i < len; i++) {
        double x = p->classes ? LEFT + width * ((double)i + 0.5) : at_x(p, ticks[i]);
        if (!p->classes)
            str_addf(p->s, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP,
                     HEIGHT - BOTTOM);
        str_addf(p->s, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, HEIGHT - BOTTOM + 16);
        if (p->classes)
            plot_add_text(p->s, p->classes[i]);
        else
            add_value(p->s, &p->x, ticks[i]);
        str_add(p->s, "</text>");
    }
    str_addf(p->s, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2,
             HEIGHT - 10);
    plot_add_text(p->s, p->x.title);
    str_add(p->s, "</text>\n");
}

static void y_axis(const struct plot *p)
{
    double ticks[TICKS_MAX];
    size_t len = ticks_of(&p->y, ticks);
    for (size_t i = 0; i < len; i++) {
        double y = at_y(p, ticks[i]);
        str_addf(p->s, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, y, y);
        str_addf(p->s, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 7, y + 4);
        add_value(p->s, &p->y, ticks[i]);
        str_add(p->s, "</text>");
    }
    str_addf(p->s, "<text class=\"axis\" transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">",
             (TOP + HEIGHT - BOTTOM) / 2);
    plot_add_text(p->s, p->y.title);
    str_add(p->s, "</text>\n");
}

void plot_begin(const struct plot *p, const char *label)
{
    str_addf(p->s, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    plot_add_text(p->s, label);
    str_add(p->s, "\" xmlns=\"http://www.w3.org/2000/svg\">\n");
    y_axis(p);
    x_axis(p);
    str_addf(p->s, "<line class=\"base\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT, WIDTH - RIGHT,
             HEIGHT - BOTTOM, HEIGHT - BOTTOM);
}

void plot_end(const struct plot *p)
{
    str_add(p->s, "</svg>\n");
}

/* ---- series ----------------------------------------------------------------------------------------------------- */

void plot_line(const struct plot *p, size_t color, const double *xs, const double *ys, size_t len)
{
    bool pen = false;
    str_addf(p->s, "<path class=\"line s%zu\" d=\"", color);
    for (size_t i = 0; i < len; i++) {
        bool there = ys[i] == ys[i];
        if (there)
            str_addf(p->s, "%s%.1f %.1f", pen ? "L" : "M", at_x(p, xs[i]), at_y(p, ys[i]));
        pen = there;
    }
    str_add(p->s, "\"/>\n");
}

void plot_bars(const struct plot *p, size_t color, size_t series, const double *ys, const char *name)
{
    double group = (double)(WIDTH - LEFT - RIGHT) / (double)p->classes_len, width = group * 0.8 / (double)series;
    for (size_t i = 0; i < p->classes_len; i++) {
        if (ys[i] != ys[i])
            continue;
        double x = LEFT + group * ((double)i + 0.1) + width * (double)color, y = at_y(p, ys[i]);
        str_addf(p->s, "<rect class=\"bar s%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>", color,
                 x, y, width > 2 ? width - 1 : width, HEIGHT - BOTTOM - y);
        plot_add_text(p->s, name);
        str_add(p->s, ", ");
        plot_add_text(p->s, p->classes[i]);
        str_addf(p->s, ": %.3g</title></rect>\n", ys[i]);
    }
}
