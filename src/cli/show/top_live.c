#include "cli/show/top_live.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/job/forecast_text.h"
#include "cli/job/task_rows.h"
#include "cli/lib/api.h"
#include "cli/lib/human.h"
#include "cli/lib/screen.h"
#include "cli/show/collection.h"
#include "cli/show/listing.h"
#include "wire/text/document.h"

enum { REFRESH_MS = 2000, DOMAINS_SHOWN = 6, BAR_MAX = 40, BAR_MIN = 10, WIDE = 100 };
/* lines for titles, empty lines, "and more" and the foot; least number of queue rows */
enum { TITLE_LINES = 7, ROWS_MIN = 4 };

/* Sort orders of the queue rows. */
enum top_order { ORDER_PLACE, ORDER_OWNER, ORDER_WAITED, ORDERS };
static const char *const order_names[ORDERS] = {"place", "owner", "longest wait"};

struct top_data {
    json_t *use, *queue, *jobs, *who;
    int64_t now_ns;
};

static void top_data_cleanup(struct top_data *p)
{
    json_decref(p->use);
    json_decref(p->queue);
    json_decref(p->jobs);
    json_decref(p->who);
}

struct top_view {
    const struct cli *cli;
    int rows, columns;
    size_t from; /* index of the first visible queue row */
    enum top_order order;
};

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int top_data_get(struct api *a, struct top_data *p)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    struct api_error trouble;

    int rc = api_get(a, "/v1/whoami", &p->who);
    if (rc == EXIT_OK) {
        rc = api_try(a, &(struct api_request){.method = "GET", .path = "/v1/use"}, &answer, &trouble);
        p->use = take_ptr(&answer.body);
        rc = rc == EXIT_OK || trouble.status == 403 ? EXIT_OK : api_error_print(a, &trouble);
    }
    if (rc == EXIT_OK)
        rc = jobs_queue(a, &p->queue);
    if (rc == EXIT_OK)
        rc = jobs_read(a, member(p->who, "user"), false, &p->jobs);
    p->now_ns = wall_clock_ns();
    return rc;
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

static void amount_add(struct str *to, const char *resource, double amount)
{
    if (strcmp(resource, "memory") == 0)
        str_add(to, show_bytes((uint64_t)amount).text);
    else
        str_addf(to, "%.4g", amount);
}

/* "cpu    [######....]  58%  37 of 64" */
static void bar_draw(const struct top_view *v, struct str *to, const char *resource, const json_t *use)
{
    double there = json_number_value(json_object_get(use, "there"));
    double held = json_number_value(json_object_get(use, "held")), share = there > 0 ? held / there : 0;
    int width = v->columns / 3 < BAR_MIN ? BAR_MIN : v->columns / 3 > BAR_MAX ? BAR_MAX : v->columns / 3;
    enum color color = share >= 0.9 ? COLOR_RED : share >= 0.7 ? COLOR_YELLOW : COLOR_GREEN;

    if (there <= 0 && held <= 0)
        return;
    str_addf(to, "  %-7s [%s", resource, cli_paint(v->cli, color));
    for (int i = 0; i < width; i++)
        str_add_char(to, i < (int)(share * width + 0.5) ? '#' : '.');
    str_addf(to, "%s] %3.0f%%  ", cli_paint(v->cli, COLOR_NONE), share * 100);
    amount_add(to, resource, held);
    str_add(to, " of ");
    amount_add(to, resource, there);
    str_add_char(to, '\n');
}

static void use_draw(const struct top_view *v, struct str *to, const struct top_data *p)
{
    const json_t *total = json_object_get(p->use, "total"), *domains = json_object_get(p->use, "domains");
    json_t *domain;
    size_t i;

    if (!p->use)
        return;
    bar_draw(v, to, "cpu", json_object_get(total, "cpu"));
    bar_draw(v, to, "memory", json_object_get(total, "memory"));
    bar_draw(v, to, "gpu", json_object_get(total, "gpu"));
    if (json_array_size(domains) < 2)
        return;
    json_array_foreach(domains, i, domain)
    {
        static const char *const resources[] = {"cpu", "memory", "gpu"};
        if (i >= DOMAINS_SHOWN)
            break;
        const char *name = member(domain, "domain");
        str_addf(to, "  %s%-14.14s%s", cli_paint(v->cli, COLOR_BOLD), *name ? name : "(no domain)",
                 cli_paint(v->cli, COLOR_NONE));
        for (size_t r = 0; r < 3; r++) {
            const json_t *use = json_object_get(domain, resources[r]);
            double there = json_number_value(json_object_get(use, "there"));
            if (there > 0)
                str_addf(to, " %s %3.0f%% ", resources[r],
                         json_number_value(json_object_get(use, "held")) / there * 100);
        }
        str_addf(to, " %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " nodes\n",
                 json_integer_value(json_object_get(domain, "ready")),
                 json_integer_value(json_object_get(domain, "nodes")));
    }
}

static void head_draw(const struct top_view *v, struct str *to, const struct api *a, const struct top_data *p)
{
    const json_t *total = json_object_get(p->use, "total");
    time_t now = (time_t)(p->now_ns / 1000000000);
    struct tm local;
    char clock[16];

    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &local));
    str_addf(to, "%sberth top%s  %s  %s", cli_paint(v->cli, COLOR_BOLD), cli_paint(v->cli, COLOR_NONE), clock,
             a->connection.server);
    if (total)
        str_addf(to, "  %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " nodes ready",
                 json_integer_value(json_object_get(total, "ready")),
                 json_integer_value(json_object_get(total, "nodes")));
    str_add_char(to, '\n');
}

static void jobs_draw(const struct top_view *v, struct str *to, const struct top_data *p, size_t most)
{
    size_t len = json_array_size(p->jobs);
    char id[ID_TEXT_MAX], when[WHEN_TEXT_MAX];

    str_addf(to, "\n%sYour jobs (%zu)%s\n", cli_paint(v->cli, COLOR_BOLD), len, cli_paint(v->cli, COLOR_NONE));
    for (size_t i = 0; i < len && i < most; i++) {
        const json_t *job = json_array_get(p->jobs, i);
        const char *state = json_string_value(value_at(job, "status.state"));
        const json_t *progress = value_at(job, "status.progress");
        const json_t *standing = jobs_queue_row(p->queue, object_id(job, id));
        str_addf(to, "  %6s  %-16.16s %s%-10.10s%s", id, member(job, "name"),
                 cli_paint(v->cli, state_color(state ? state : "")), state ? state : "", cli_paint(v->cli, COLOR_NONE));
        if (json_is_integer(progress))
            str_addf(to, " %3d%%", (int)(json_integer_value(progress) / 10));
        else
            str_add(to, "     ");
        if (standing)
            str_addf(to, "  position %" JSON_INTEGER_FORMAT ", starts %s",
                     json_integer_value(json_object_get(standing, "position")),
                     *expected_text(standing, "start", p->now_ns, when) ? when : "at an unknown time");
        else if (*time_left_text(json_object_get(job, "status"), "until", p->now_ns, when))
            str_addf(to, "  %s left", when);
        str_add_char(to, '\n');
    }
    if (len > most)
        str_addf(to, "  ... and %zu more\n", len - most);
}

static int rows_compare(const json_t *a, const json_t *b, enum top_order order)
{
    json_int_t x = json_integer_value(json_object_get(a, "position")),
               y = json_integer_value(json_object_get(b, "position"));
    int by = 0;

    if (order == ORDER_OWNER)
        by = strcmp(member(a, "owner"), member(b, "owner"));
    if (order == ORDER_WAITED) {
        json_int_t p = json_integer_value(json_object_get(a, "waited_s")),
                   q = json_integer_value(json_object_get(b, "waited_s"));
        by = (p < q) - (p > q);
    }
    return by ? by : (x > y) - (x < y);
}

static int rows_order(const void *a, const void *b, void *ctx)
{
    return rows_compare(*(json_t *const *)a, *(json_t *const *)b, *(const enum top_order *)ctx);
}

static void row_draw(const struct top_view *v, struct str *to, const json_t *row, int64_t now_ns)
{
    char asked[128], when[WHEN_TEXT_MAX], who[160];
    bool known = json_object_get(row, "id");

    expected_text(row, "start", now_ns, when);
    snprintf(who, sizeof who, *member(row, "owner") ? "%s%s" : "(%s%s)", member(row, "owner"),
             *member(row, "owner")   ? ""
             : *member(row, "group") ? member(row, "group")
                                     : "others");
    str_addf(to, "  %5" JSON_INTEGER_FORMAT "  %6s %-14.14s %-12.12s %-10.10s ",
             json_integer_value(json_object_get(row, "position")), known ? member(row, "id") : "", member(row, "name"),
             who, member(row, "queue"));
    if (v->columns >= WIDE)
        str_addf(to, "%-10.10s ", tier_text(row));
    str_addf(to, "%s%-8s%s", cli_paint(v->cli, COLOR_GREEN), *when ? when : "?", cli_paint(v->cli, COLOR_NONE));
    if (known)
        str_addf(to, "  %s", requested_text(json_object_get(row, "asked"), asked, sizeof asked));
    str_add_char(to, '\n');
}

static void queue_draw(struct top_view *v, struct str *to, const struct top_data *p, size_t most)
{
    json_t *items = json_object_get(p->queue, "items");
    size_t len = json_array_size(items);

    if (!p->queue)
        return;
    v->from = len > most ? v->from > len - most ? len - most : v->from : 0;
    str_addf(to, "\n%sQueue (%s pending), by %s%s\n", cli_paint(v->cli, COLOR_BOLD),
             show_count((uint64_t)json_integer_value(json_object_get(p->queue, "total"))).text, order_names[v->order],
             cli_paint(v->cli, COLOR_NONE));
    if (len == 0)
        return;
    json_t **rows = mem_array(len, sizeof *rows);
    for (size_t i = 0; i < len; i++)
        rows[i] = json_array_get(items, i);
    qsort_r(rows, len, sizeof *rows, rows_order, &v->order);
    str_addf(to, "%s  %5s  %6s %-14s %-12s %-10s %s%-8s  %s%s\n", cli_paint(v->cli, COLOR_DIM), "#", "JOB", "NAME",
             "OWNER", "QUEUE", v->columns >= WIDE ? "TIER       " : "", "STARTS", "ASKED",
             cli_paint(v->cli, COLOR_NONE));
    for (size_t i = v->from; i < len && i < v->from + most; i++)
        row_draw(v, to, rows[i], p->now_ns);
    mem_free(rows);
}

static size_t lines_of(const struct str *text)
{
    size_t n = 0;

    for (const char *at = str_text(text); *at; at++)
        n += *at == '\n';
    return n;
}

static void draw(struct top_view *v, const struct api *a, const struct top_data *p, struct str *to)
{
    size_t rows = v->rows > 0 ? (size_t)v->rows : 0;

    str_clear(to);
    head_draw(v, to, a, p);
    use_draw(v, to, p);
    size_t taken = lines_of(to) + TITLE_LINES, left = rows > taken + ROWS_MIN ? rows - taken : ROWS_MIN;
    size_t own = json_array_size(p->jobs) < left / 2 ? json_array_size(p->jobs) : left / 2;
    jobs_draw(v, to, p, own);
    queue_draw(v, to, p, left > own ? left - own : 1);
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static void key_take(struct top_view *v, int key)
{
    if (key == 'j')
        v->from++;
    else if (key == 'k' && v->from > 0)
        v->from--;
    else if (key == 's')
        v->order = (enum top_order)((v->order + 1) % ORDERS);
}

static void foot_draw(const struct top_view *v, struct str *to)
{
    while (lines_of(to) + 1 < (size_t)v->rows)
        str_add_char(to, '\n');
    str_addf(to, "%s q quit   j k scroll   s sort%s", cli_paint(v->cli, COLOR_DIM), cli_paint(v->cli, COLOR_NONE));
}

static int live(struct api *a, struct screen *screen)
{
    struct top_view v = {.cli = a->cli};
    struct str frame = {0};
    int rc = EXIT_OK, key = 0;

    while (rc == EXIT_OK && key != 'q') {
        CLEANUP(top_data) struct top_data p = {0};
        rc = top_data_get(a, &p);
        int64_t until_ns = cli_clock_ns() + (int64_t)REFRESH_MS * 1000000;
        while (rc == EXIT_OK && key != 'q') {
            screen_measure(screen);
            v.rows = screen->rows;
            v.columns = screen->columns;
            draw(&v, a, &p, &frame);
            foot_draw(&v, &frame);
            screen_draw(screen, &frame);
            int64_t left_ns = until_ns - cli_clock_ns();
            if (left_ns <= 0)
                break;
            key = screen_key(screen, (int)(left_ns / 1000000) + 1);
            key_take(&v, key);
        }
    }
    str_done(&frame);
    return rc;
}

int top_live(struct cli *cli)
{
    CLEANUP(api) struct api api = {0};
    CLEANUP(top_data) struct top_data p = {0};
    CLEANUP(str) struct str frame = {0};
    struct top_view v = {.cli = cli, .rows = 60, .columns = (int)cli->width};
    struct screen screen;

    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = top_data_get(&api, &p); /* before the terminal changes, so that errors are printed normally */
    if (rc != EXIT_OK)
        return rc;
    if (screen_open(&screen, cli)) {
        rc = live(&api, &screen);
        screen_close(&screen);
        return rc;
    }
    draw(&v, &api, &p, &frame);
    fputs(str_text(&frame), cli->out);
    return EXIT_OK;
}
