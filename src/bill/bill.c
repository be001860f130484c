#include "bill/bill.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static bool row_matches(const struct bill_question *q, const struct book_row *row)
{
    return (!q->month || strcmp(q->month, row->month) == 0) && (!q->user || strcmp(q->user, row->user) == 0) &&
           (!q->group || strcmp(q->group, row->group) == 0);
}

static int line_compare(const void *a, const void *b)
{
    const struct bill_line *x = a, *y = b;
    int order = strcmp(x->month, y->month);
    if (order == 0)
        order = strcmp(x->group, y->group);
    return order ? order : strcmp(x->user, y->user);
}

static void line_push(struct bill *b, struct bill_line line)
{
    if (b->len == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 16;
        b->lines = mem_resize(b->lines, b->cap, sizeof *b->lines);
    }
    b->lines[b->len++] = line;
}

static struct bill_line line_of(const struct book_row *row, const struct prices *p, enum bill_by by)
{
    struct bill_line line = {
        .month = row->month, .group = row->group, .user = by == BILL_BY_USER ? row->user : "", .ended = row->ended};
    for (size_t i = 0; i < row->hours_len; i++) {
        const struct book_hours *h = &row->hours[i];
        line.cpu += strcmp(h->resource, "cpu") == 0 ? h->hours : 0;
        line.memory += strcmp(h->resource, "memory") == 0 ? h->hours : 0;
        line.gpu += strcmp(h->resource, "gpu") == 0 ? h->hours : 0;
        if (!prices_outcome_free(p, row->outcome))
            line.money = money_add(line.money, prices_of(p, h->resource, row->queue, h->hours));
    }
    return line;
}

/* Merges equal lines, which are adjacent. */
static void lines_join(struct bill *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->len; i++) {
        struct bill_line *to = kept ? &b->lines[kept - 1] : NULL;
        const struct bill_line *from = &b->lines[i];
        if (!to || line_compare(to, from) != 0) {
            b->lines[kept++] = *from;
            continue;
        }
        to->cpu += from->cpu;
        to->memory += from->memory;
        to->gpu += from->gpu;
        to->ended += from->ended;
        to->money = money_add(to->money, from->money);
    }
    b->len = kept;
}

void bill_make(const struct usage_book *b, const struct prices *p, const struct bill_question *q, struct bill *ret)
{
    *ret = (struct bill){0};
    for (size_t i = 0; i < b->rows_len; i++)
        if (row_matches(q, &b->rows[i]))
            line_push(ret, line_of(&b->rows[i], p, q->by));
    if (ret->len)
        qsort(ret->lines, ret->len, sizeof *ret->lines, line_compare);
    lines_join(ret);
    for (size_t i = 0; i < ret->len; i++)
        ret->money = money_add(ret->money, ret->lines[i].money);
}

void bill_done(struct bill *b)
{
    mem_free(b->lines);
    *b = (struct bill){0};
}

/* ---- printed ---------------------------------------------------------------------------------------------------- */

static double hours(int64_t billionths)
{
    return (double)billionths / (double)HOURS_ONE;
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static void table_print(const struct bill *b, const struct prices *p, FILE *to)
{
    char money[MONEY_TEXT_MAX];
    (void)fprintf(to, "%-7s  %-16s %-16s %8s %12s %12s %12s %14s\n", "MONTH", "GROUP", "USER", "ENDED", "CORE-HOURS",
                  "GPU-HOURS", "GIB-HOURS", p->currency);
    for (size_t i = 0; i < b->len; i++) {
        const struct bill_line *l = &b->lines[i];
        (void)fprintf(to, "%-7s  %-16s %-16s %8" PRIu64 " %12.2f %12.2f %12.2f %14s\n", l->month, or_dash(l->group),
                      or_dash(l->user), l->ended, hours(l->cpu), hours(l->gpu), hours(l->memory),
                      money_text(l->money, money));
    }
    (void)fprintf(to, "%-7s  %-16s %-16s %8s %12s %12s %12s %14s\n", "total", "", "", "", "", "", "",
                  money_text(b->money, money));
}

/* Quotes text that a spreadsheet would misread, such as a leading sign, which could start a formula. */
static void csv_cell(FILE *to, const char *text)
{
    bool formula = *text && strchr("=+-@", *text);
    if (!formula && !text[strcspn(text, ",\"\r\n")]) {
        (void)fputs(text, to);
        return;
    }
    (void)fputs(formula ? "\"'" : "\"", to);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', to);
        (void)fputc(*text, to);
    }
    (void)fputc('"', to);
}

static void csv_print(const struct bill *b, const struct prices *p, FILE *to)
{
    char money[MONEY_TEXT_MAX];
    (void)fputs("month,group,user,ended,core_hours,gpu_hours,memory_gib_hours,cost,currency\n", to);
    for (size_t i = 0; i < b->len; i++) {
        const struct bill_line *l = &b->lines[i];
        (void)fprintf(to, "%s,", l->month);
        csv_cell(to, l->group);
        (void)fputc(',', to);
        csv_cell(to, l->user);
        (void)fprintf(to, ",%" PRIu64 ",%.6f,%.6f,%.6f,%s,", l->ended, hours(l->cpu), hours(l->gpu), hours(l->memory),
                      money_text(l->money, money));
        csv_cell(to, p->currency);
        (void)fputc('\n', to);
    }
}

static void bill_json_print(const struct bill *b, const struct prices *p, FILE *to)
{
    char money[MONEY_TEXT_MAX];
    json_t *lines = json_array();
    for (size_t i = 0; i < b->len; i++) {
        const struct bill_line *l = &b->lines[i];
        json_t *line = json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:s}", "month", l->month, "group", l->group, "ended",
                                 (json_int_t)l->ended, "core_hours", hours(l->cpu), "gpu_hours", hours(l->gpu),
                                 "memory_gib_hours", hours(l->memory), "cost", money_text(l->money, money));
        if (*l->user)
            (void)json_object_set_new(line, "user", json_string(l->user));
        (void)json_array_append_new(lines, line);
    }
    json_t *doc =
        json_pack("{s:s, s:o, s:s}", "currency", p->currency, "lines", lines, "total", money_text(b->money, money));
    char *text = json_dumps(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    if (text)
        (void)fprintf(to, "%s\n", text);
    free(text);
    json_decref(doc);
}

void bill_print(const struct bill *b, const struct prices *p, enum bill_form form, FILE *to)
{
    if (form == BILL_JSON)
        bill_json_print(b, p, to);
    else if (form == BILL_CSV)
        csv_print(b, p, to);
    else
        table_print(b, p, to);
}

/* ---- records from the server ------------------------------------------------------------------------------------ */

int bill_follow(struct usage_book *b, const struct bill_server *server, const char *path, struct berth_err *err)
{
    bool more = true;
    while (more) {
        CLEANUP(str) struct str url = {0};
        json_t *page = NULL;
        uint64_t before = b->after;
        str_addf(&url, "/v1/usage_records?after=%" PRIu64, before);
        int rc = server->get(server->ctx, str_text(&url), &page, err);
        if (rc == 0)
            rc = book_add_page(b, page, &more, err);
        json_decref(page);
        if (rc == 0 && path && b->after != before)
            rc = book_save(b, path, err);
        if (rc < 0)
            return rc;
        more = more && b->after != before;
    }
    return 0;
}
