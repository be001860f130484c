/* report_html.c - the HTML page of a report. */
#include <inttypes.h>

#include "base/mem.h"
#include "sim/report/report.h"
#include "sim/report/report_plot.h"
#include "sim/report/report_plots.h"

static const char style[] =
    ":root{--bg:#f6f7f9;--card:#fff;--text:#1c2330;--dim:#5d6778;--line:#e3e7ee;--axis:#9aa4b4;--best:#0a7a3d;--best-bg:#e7f6ed;"
    "--s0:#2f6bd8;--s1:#e07b1a;--s2:#1f9d6b;--s3:#b1459f;--s4:#7a5cd6;--s5:#c8403f;--s6:#1b96b3;--s7:#8a7a1e}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#12161d;--card:#1b212b;--text:#e6eaf1;--dim:#98a3b5;--line:#2c3544;"
    "--axis:#66728a;--best:#6fdb9d;--best-bg:#17362a;--s0:#6ea0ff;--s1:#ffab57;--s2:#4fd6a0;--s3:#e58ad6;--s4:#ac95ff;"
    "--s5:#ff8280;--s6:#58cde6;--s7:#d3c35a}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\n"
    "main{max-width:1240px;margin:0 auto;padding:32px 24px 48px}header{margin-bottom:20px}h1{font-size:26px;line-height:1.2;"
    "margin:0 0 8px}header p{margin:0;color:var(--dim)}h2{font-size:16px;margin:0 0 2px}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px}.card>p{margin:0 0 10px;"
    "color:var(--dim);font-size:13.5px}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:18px;margin-top:18px}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{padding:6px 12px;"
    "text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}th:first-child,td:first-child{text-align:left;"
    "padding-left:0}tbody tr:last-child td{border-bottom:0}thead th{border-bottom:2px solid var(--line)}td:first-child{"
    "color:var(--dim)}td.best{color:var(--best);font-weight:600}\n"
    ".key{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px;vertical-align:-1px}.legend{display:flex;"
    "flex-wrap:wrap;gap:4px 18px;font-size:13.5px;margin-bottom:6px}\n"
    "svg{display:block;width:100%;max-width:820px;height:auto;margin:0 auto}.grid{stroke:var(--line);stroke-width:1}.base{stroke:var(--axis);stroke-width:1}"
    ".tick{fill:var(--dim);font-size:11.5px}.axis{fill:var(--dim);font-size:12px}.line{fill:none;stroke-width:1.8;"
    "stroke-linejoin:round}.bar{stroke:none}\n"
    ".s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}"
    ".s5{stroke:var(--s5)}.s6{stroke:var(--s6)}.s7{stroke:var(--s7)}\n"
    ".bar.s0,.k0{fill:var(--s0);background:var(--s0)}.bar.s1,.k1{fill:var(--s1);background:var(--s1)}"
    ".bar.s2,.k2{fill:var(--s2);background:var(--s2)}.bar.s3,.k3{fill:var(--s3);background:var(--s3)}"
    ".bar.s4,.k4{fill:var(--s4);background:var(--s4)}.bar.s5,.k5{fill:var(--s5);background:var(--s5)}"
    ".bar.s6,.k6{fill:var(--s6);background:var(--s6)}.bar.s7,.k7{fill:var(--s7);background:var(--s7)}\n"
    "footer{margin-top:24px;color:var(--dim);font-size:13px}@media print{body{background:#fff}.card{break-inside:avoid}}\n";

static void add_key(struct str *s, size_t side)
{
    str_addf(s, "<span class=\"key k%zu\"></span>", side % REPORT_COLORS);
}

static void add_table(struct str *s, const struct sim_report *r)
{
    struct sim_number n;
    str_add(s,
            "<section class=\"card\"><h2>Side by side</h2><p>The best of each row is green. Slowdown is the time from "
            "submission to end over the run time, at least 10 s; fairness is 1 where all users fare alike.</p>\n"
            "<div class=\"wide\"><table><thead><tr><th></th>");
    for (size_t i = 0; i < r->sides_len; i++) {
        str_add(s, "<th scope=\"col\">");
        add_key(s, i);
        plot_add_text(s, r->sides[i].label);
        str_add(s, "</th>");
    }
    str_add(s, "</tr></thead><tbody>\n");
    for (size_t k = 0; (n = sim_side_number(&r->sides[0], k)).key; k++) {
        str_addf(s, "<tr><td>%s</td>", n.title);
        for (size_t i = 0; i < r->sides_len; i++) {
            char buf[32];
            n = sim_side_number(&r->sides[i], k);
            str_addf(s, "<td%s>%s</td>", sim_report_best(r, i, k) ? " class=\"best\"" : "", sim_report_number(&n, buf));
        }
        str_add(s, "</tr>\n");
    }
    str_add(s, "</tbody></table></div></section>\n");
}

static void add_plot(struct str *s, const struct sim_report *r, const struct report_plot *plot)
{
    str_addf(s, "<section class=\"card\"><h2>%s</h2><p>%s</p>\n<div class=\"legend\">", plot->title, plot->text);
    for (size_t i = 0; i < r->sides_len; i++) {
        str_add(s, "<span>");
        add_key(s, i);
        plot_add_text(s, r->sides[i].label);
        str_add(s, "</span>");
    }
    str_add(s, "</div>\n");
    plot->draw(r, s);
    str_add(s, "</section>\n");
}

void sim_report_html(const struct sim_report *r, FILE *to)
{
    CLEANUP(str) struct str s = {0};
    struct report_plot plot;
    str_add(
        &s,
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/><title>");
    plot_add_text(&s, r->title);
    str_addf(&s, "</title>\n<style>%s</style></head>\n<body><main><header><h1>", style);
    plot_add_text(&s, r->title);
    str_add(&s, "</h1><p>");
    plot_add_text(&s, r->trace_text);
    str_add(&s, "</p><p>");
    plot_add_text(&s, r->cluster_text);
    str_add(&s, "</p></header>\n");
    add_table(&s, r);
    str_add(&s, "<div class=\"plots\">\n");
    for (size_t i = 0; (plot = report_plot_at(i)).title; i++)
        add_plot(&s, r, &plot);
    str_addf(
        &s,
        "</div>\n<footer>Made by berth %s. Every decision was made by the planner, in virtual time.</footer></main>"
        "</body></html>\n",
        berth_version());
    (void)fputs(str_text(&s), to);
}
