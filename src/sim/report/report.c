/* report.c - reports for programs: JSON and CSV. */
#include "sim/report/report.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "sim/trace/trace_csv.h"

const char *sim_report_time(double seconds, char buf[static 32])
{
    static const struct {
        double from, unit;
        const char *name;
    } units[] = {
        {172800, 86400, "d"  },
        {7200,   3600,  "h"  },
        {120,    60,    "min"},
        {0,      1,     "s"  },
    };
    size_t i = 0;
    while (seconds < units[i].from && units[i].from > 0)
        i++;
    double x = seconds / units[i].unit;
    (void)snprintf(buf, 32, "%.*f %s", x < 10 && x > 0 ? 1 : 0, x, units[i].name);
    return buf;
}

const char *sim_report_number(const struct sim_number *n, char buf[static 32])
{
    if (n->seconds)
        return sim_report_time(n->value, buf);
    if (n->percent)
        (void)snprintf(buf, 32, "%.1f %%", n->value * 100);
    else
        (void)snprintf(buf, 32, "%.*f", n->digits, n->value);
    return buf;
}

bool sim_report_best(const struct sim_report *r, size_t side, size_t number)
{
    struct sim_number n = sim_side_number(&r->sides[side], number);
    bool differs = false, best = n.better != 0;
    for (size_t i = 0; i < r->sides_len; i++) {
        double other = sim_side_number(&r->sides[i], number).value;
        best &= (other - n.value) * n.better <= 0;
        differs |= other < n.value || other > n.value;
    }
    return best && differs;
}

void sim_report_json(const struct sim_report *r, FILE *to)
{
    CLEANUP(str) struct str s = {0};
    struct sim_number n;
    str_add(&s, "{\"trace\":");
    str_add_json(&s, r->trace_text);
    str_add(&s, ",\"cluster\":");
    str_add_json(&s, r->cluster_text);
    str_add(&s, ",\"policies\":[");
    for (size_t i = 0; i < r->sides_len; i++) {
        str_addf(&s, "%s{\"policy\":", i ? "," : "");
        str_add_json(&s, r->sides[i].label);
        for (size_t k = 0; (n = sim_side_number(&r->sides[i], k)).key; k++)
            str_addf(&s, ",\"%s\":%.10g", n.key, n.value);
        str_addf(&s, ",\"plans\":%" PRIu64 "}", r->sides[i].out.plans);
    }
    (void)fprintf(to, "%s]}\n", str_text(&s));
}

void sim_report_csv(const struct sim_report *r, FILE *to)
{
    struct sim_number n;
    (void)fputs("policy", to);
    for (size_t k = 0; (n = sim_side_number(&r->sides[0], k)).key; k++)
        (void)fprintf(to, ",%s", n.key);
    (void)fputc('\n', to);
    for (size_t i = 0; i < r->sides_len; i++) {
        (void)fputs(r->sides[i].label, to);
        for (size_t k = 0; (n = sim_side_number(&r->sides[i], k)).key; k++)
            (void)fprintf(to, ",%.10g", n.value);
        (void)fputc('\n', to);
    }
}

void sim_report_jobs(const struct sim_report *r, FILE *to)
{
    (void)fputs("policy,id,submit,start,end,wait,bounded_slowdown\n", to);
    for (size_t i = 0; i < r->sides_len; i++)
        for (size_t k = 0; k < r->trace->len; k++) {
            const struct sim_job *job = &r->trace->jobs[k];
            const struct sim_outcome *o = &r->sides[i].out.at[k];
            char submit[32], start[32], end[32], wait[32];
            (void)fprintf(to, "%s,%" PRId64 ",%s,", r->sides[i].label, job->id,
                          sim_seconds_print(job->submit_ns, submit));
            if (o->end_ns < 0)
                (void)fputs(",,,\n", to);
            else
                (void)fprintf(to, "%s,%s,%s,%.6g\n", sim_seconds_print(o->start_ns, start),
                              sim_seconds_print(o->end_ns, end), sim_seconds_print(o->start_ns - job->submit_ns, wait),
                              sim_bounded_slowdown(job, o));
        }
}
