/* report_plots.c - the data of the plots of a report. */
#include "sim/report/report_plots.h"

#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "sim/report/report_plot.h"

enum { BINS = 240, LOADS = 25, WAITS = 160, SIZES = 24, USERS = 12, LABEL = 32 };

static const double nothing = __builtin_nan("");

static size_t color_of(size_t side)
{
    return side % REPORT_COLORS;
}

static bool by_gpus(const struct sim_report *r)
{
    return sim_fleet_total(r->fleet).gpus > 0;
}

/* ---- over time -------------------------------------------------------------------------------------------------- */

struct time_span {
    int64_t from_ns, to_ns;
};

static struct time_span span_of(const struct sim_report *r)
{
    struct time_span s = {r->trace->jobs[0].submit_ns, r->trace->jobs[0].submit_ns + SIM_SECOND_NS};
    for (size_t i = 0; i < r->sides_len; i++)
        for (size_t k = 0; k < r->trace->len; k++)
            s.to_ns = r->sides[i].out.at[k].end_ns > s.to_ns ? r->sides[i].out.at[k].end_ns : s.to_ns;
    return s;
}

/* Fills bins of equal length with means over time; a point's value holds until the next point. */
static void bins_fill(const struct sim_side *side, struct time_span span,
                      double (*value)(const struct sim_side *s, size_t i), double bins[BINS])
{
    double width = (double)(span.to_ns - span.from_ns) / BINS;
    memset(bins, 0, BINS * sizeof *bins);
    for (size_t i = 0; i + 1 < side->out.points_len; i++) {
        double from = (double)(side->out.points[i].at_ns - span.from_ns) / width, what = value(side, i);
        double to = (double)(side->out.points[i + 1].at_ns - span.from_ns) / width;
        for (size_t b = from > 0 ? (size_t)from : 0; b < BINS && (double)b < to; b++) {
            double low = from > (double)b ? from : (double)b, high = to < (double)b + 1 ? to : (double)b + 1;
            bins[b] += what * (high - low);
        }
    }
}

static double held_at(const struct sim_side *s, size_t i)
{
    return s->out.capacity ? (double)s->out.points[i].held / (double)s->out.capacity : 0;
}

static double waiting_at(const struct sim_side *s, size_t i)
{
    return s->out.points[i].waiting;
}

static void over_time(const struct sim_report *r, struct str *s, struct plot_axis y, const char *label,
                      double (*value)(const struct sim_side *s, size_t i))
{
    struct time_span span = span_of(r);
    double(*bins)[BINS] = mem_zarray(r->sides_len, sizeof *bins), xs[BINS];
    bool fits = y.max > 0;
    for (size_t b = 0; b < BINS; b++)
        xs[b] = ((double)b + 0.5) * (double)(span.to_ns - span.from_ns) / 1e9 / BINS;
    for (size_t i = 0; i < r->sides_len; i++) {
        bins_fill(&r->sides[i], span, value, bins[i]);
        for (size_t b = 0; b < BINS && !fits; b++)
            y.max = bins[i][b] > y.max ? bins[i][b] : y.max;
    }
    if (!fits)
        plot_round(&y);
    struct plot p = {
        .s = s, .y = y, .x = {0, (double)(span.to_ns - span.from_ns) / 1e9, false, PLOT_DAYS, "time"}
    };
    plot_begin(&p, label);
    for (size_t i = r->sides_len; i-- > 0;)
        plot_line(&p, color_of(i), xs, bins[i], BINS);
    plot_end(&p);
    mem_free(bins);
}

static void draw_utilisation(const struct sim_report *r, struct str *s)
{
    over_time(r, s, (struct plot_axis){0, 1, false, PLOT_PERCENT, "held of the cluster"}, "Utilisation over time",
              held_at);
}

static void draw_queue(const struct sim_report *r, struct str *s)
{
    over_time(r, s, (struct plot_axis){0, 0, false, PLOT_NUMBER, "jobs that wait"}, "Length of the queue over time",
              waiting_at);
}

/* ---- waits ------------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t waits_of(const struct sim_report *r, const struct sim_side *side, double *waits)
{
    size_t len = 0;
    for (size_t k = 0; k < r->trace->len; k++)
        if (side->out.at[k].end_ns >= 0)
            waits[len++] = (double)(side->out.at[k].start_ns - r->trace->jobs[k].submit_ns) / 1e9;
    qsort(waits, len, sizeof *waits, by_value);
    return len;
}

/* Returns the number of sorted waits that are at most x. */
static size_t at_most(const double *waits, size_t len, double x)
{
    size_t low = 0, high = len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (waits[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void draw_waits(const struct sim_report *r, struct str *s)
{
    double longest = 600, xs[WAITS], ys[WAITS];
    double *waits = mem_zarray(r->trace->len + 1, sizeof *waits);
    for (size_t i = 0; i < r->sides_len; i++)
        longest = r->sides[i].summary.max_wait_s > longest ? r->sides[i].summary.max_wait_s : longest;
    struct plot p = {
        .s = s,
        .x = {1, longest, true,  PLOT_TIME,    "wait"                      },
        .y = {0, 1,       false, PLOT_PERCENT, "jobs that waited no longer"}
    };
    for (size_t k = 0; k < WAITS; k++)
        xs[k] = math_pow(10, math_log10(longest) * (double)k / (WAITS - 1));
    plot_begin(&p, "Waits: the share of jobs that waited no longer");
    for (size_t i = r->sides_len; i-- > 0;) {
        size_t len = waits_of(r, &r->sides[i], waits);
        for (size_t k = 0; k < WAITS; k++)
            ys[k] = len ? (double)at_most(waits, len, xs[k] * (1 + 1e-9)) / (double)len : nothing;
        plot_line(&p, color_of(i), xs, ys, WAITS);
    }
    plot_end(&p);
    mem_free(waits);
}

/* ---- slowdown by size and by user ------------------------------------------------------------------------------- */

struct job_mean {
    double sum, jobs;
};

static double mean_of(const struct job_mean *m)
{
    return m->jobs > 0 ? m->sum / m->jobs : nothing;
}

/* Draws bars of means from 1 upwards, on a common scale. */
static void draw_means(const struct sim_report *r, struct str *s, const char *label, const char *title,
                       const char *const *classes, size_t len, const struct job_mean *means, size_t stride)
{
    double top = 2, ys[SIZES > USERS ? SIZES : USERS];
    for (size_t i = 0; i < r->sides_len; i++)
        for (size_t k = 0; k < len; k++)
            top = mean_of(&means[i * stride + k]) > top ? mean_of(&means[i * stride + k]) : top;
    struct plot p = {
        .s = s,
        .x = {.title = title             },
        .y = { top > 30 ? 1 : 0, top * 1.05, top > 30, PLOT_NUMBER, "average bounded slowdown"},
        .classes = classes,
        .classes_len = len,
    };
    if (!p.y.log)
        plot_round(&p.y);
    plot_begin(&p, label);
    for (size_t i = 0; i < r->sides_len && i < REPORT_COLORS; i++) {
        for (size_t k = 0; k < len; k++)
            ys[k] = mean_of(&means[i * stride + k]);
        plot_bars(&p, i, r->sides_len < REPORT_COLORS ? r->sides_len : REPORT_COLORS, ys, r->sides[i].label);
    }
    plot_end(&p);
}

/* Returns the size class of a job: 1, 2, 3 to 4, 5 to 8, ... */
static size_t size_class(const struct sim_job *job, bool gpus)
{
    int64_t size = (sim_job_held(job, gpus) + 999) / 1000;
    size_t class = 0;
    while (class + 1 < SIZES && ((int64_t)1 << class) < size)
        class ++;
    return class;
}

static void size_label(char buf[static LABEL], size_t class)
{
    if (class < 2)
        (void)snprintf(buf, LABEL, "%d", 1 << class);
    else
        (void)snprintf(buf, LABEL, "%d-%d", (1 << (class - 1)) + 1, 1 << class);
}

static void draw_sizes(const struct sim_report *r, struct str *s)
{
    struct job_mean *means = mem_zarray(r->sides_len * SIZES, sizeof *means);
    char labels[SIZES][LABEL];
    const char *classes[SIZES];
    size_t last = 0;
    for (size_t i = 0; i < r->sides_len; i++)
        for (size_t k = 0; k < r->trace->len; k++) {
            const struct sim_outcome *o = &r->sides[i].out.at[k];
            size_t class = size_class(&r->trace->jobs[k], by_gpus(r));
            if (o->end_ns < 0)
                continue;
            last = class > last ? class : last;
            means[i * SIZES + class].sum += sim_bounded_slowdown(&r->trace->jobs[k], o);
            means[i * SIZES + class].jobs++;
        }
    for (size_t c = 0; c <= last; c++) {
        size_label(labels[c], c);
        classes[c] = labels[c];
    }
    draw_means(r, s, "Slowdown by size", by_gpus(r) ? "GPUs of the job" : "processors of the job", classes, last + 1,
               means, SIZES);
    mem_free(means);
}

struct user_jobs {
    sym name;
    size_t jobs;
};

static int busiest(const void *a, const void *b)
{
    const struct user_jobs *x = a, *y = b;
    if (x->jobs != y->jobs)
        return x->jobs > y->jobs ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

/* Finds the users with the most jobs, at most USERS. Returns their number. */
static size_t users_of(const struct sim_report *r, struct user_jobs *ret)
{
    size_t len = 0;
    for (size_t k = 0; k < r->trace->len; k++)
        len = r->trace->jobs[k].user >= len ? r->trace->jobs[k].user + 1 : len;
    struct user_jobs *users = mem_zarray(len + 1, sizeof *users);
    for (size_t k = 0; k < r->trace->len; k++) {
        users[r->trace->jobs[k].user].name = r->trace->jobs[k].user;
        users[r->trace->jobs[k].user].jobs++;
    }
    qsort(users, len, sizeof *users, busiest);
    size_t kept = 0;
    while (kept < len && kept < USERS && users[kept].jobs) {
        ret[kept] = users[kept];
        kept++;
    }
    mem_free(users);
    return kept;
}

static void draw_users(const struct sim_report *r, struct str *s)
{
    struct job_mean *means = mem_zarray(r->sides_len * USERS, sizeof *means);
    struct user_jobs users[USERS];
    const char *classes[USERS];
    size_t len = users_of(r, users);
    for (size_t u = 0; u < len; u++) {
        classes[u] = sim_trace_text(r->trace, users[u].name);
        for (size_t i = 0; i < r->sides_len; i++)
            for (size_t k = 0; k < r->trace->len; k++) {
                if (r->trace->jobs[k].user != users[u].name || r->sides[i].out.at[k].end_ns < 0)
                    continue;
                means[i * USERS + u].sum += sim_bounded_slowdown(&r->trace->jobs[k], &r->sides[i].out.at[k]);
                means[i * USERS + u].jobs++;
            }
    }
    draw_means(r, s, "Slowdown by user", "user", classes, len, means, USERS);
    mem_free(means);
}

/* ---- fragmentation ---------------------------------------------------------------------------------------------- */

/* Computes the means by load. Returns the number of bins with data. */
static size_t fragments_of(const struct sim_side *side, double xs[LOADS + 1], double ys[LOADS + 1])
{
    struct job_mean bins[LOADS] = {0};
    size_t len = 0;
    for (size_t k = 0; k < side->samples.len; k++) {
        const struct sim_sample *sample = &side->samples.at[k];
        size_t bin = (size_t)(sample->load * LOADS);
        if (bin >= LOADS)
            continue; /* nothing is idle */
        bins[bin].sum += sample->fragmented;
        bins[bin].jobs++;
    }
    for (size_t b = 0; b < LOADS; b++) {
        xs[len] = ((double)b + 0.5) / LOADS;
        ys[len] = mean_of(&bins[b]);
        len += bins[b].jobs > 0;
    }
    return len;
}

static void draw_fragmentation(const struct sim_report *r, struct str *s)
{
    double xs[LOADS + 1], ys[LOADS + 1];
    struct plot p = {
        .s = s,
        .x = {0, 1,    false, PLOT_PERCENT, "held of the cluster"           },
        .y = {0, 0.05, false, PLOT_PERCENT, "of what is idle: of no use now"}
    };
    for (size_t i = 0; i < r->sides_len; i++)
        for (size_t k = fragments_of(&r->sides[i], xs, ys); k-- > 0;)
            p.y.max = ys[k] > p.y.max ? ys[k] : p.y.max;
    plot_round(&p.y);
    plot_begin(&p, "Fragmentation over load");
    for (size_t i = r->sides_len; i-- > 0;) {
        size_t len = fragments_of(&r->sides[i], xs, ys);
        plot_line(&p, color_of(i), xs, ys, len);
    }
    plot_end(&p);
}

struct report_plot report_plot_at(size_t i)
{
    static const struct report_plot plots[] = {
        {"Utilisation over time",   "What jobs held of the cluster, on average over each piece of time.",
         draw_utilisation                                                                                                                                 },
        {"Queue length over time",  "How many jobs were waiting.",                                                                      draw_queue        },
        {"Waits",                   "The share of jobs that waited for no longer than this. Further to the left and higher is better.",
         draw_waits                                                                                                                                       },
        {"Slowdown by size",
         "Time from submission to end over run time (at least 10 s), on average by the size of the job.",                               draw_sizes        },
        {"Fragmentation over load",
         "Of what is idle, the part on nodes where a task drawn from the trace finds no room.",                                         draw_fragmentation},
        {"Slowdown by user",        "The users with the most jobs. Bars of equal height are fair.",                                     draw_users        },
    };
    return i < sizeof plots / sizeof *plots ? plots[i] : (struct report_plot){0};
}
