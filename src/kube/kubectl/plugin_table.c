#include "kube/kubectl/plugin_table.h"

#include <stdarg.h>
#include <stdio.h>

enum { CELL_MAX = 512 };

void plugin_cell(struct plugin_table *t, const char *fmt, ...)
{
    char text[CELL_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    vec_push(&t->cells, mem_strdup(text));
}

void plugin_row(struct plugin_table *t)
{
    vec_push(&t->rows, t->cells.len);
}

static void cell_print(const char *text, size_t width, bool right, bool last, struct str *to)
{
    size_t len = strlen(text), pad = width > len ? width - len : 0;
    if (right)
        str_addf(to, "%*s", (int)pad, "");
    str_add(to, text);
    if (!last)
        str_addf(to, "%*s  ", right ? 0 : (int)pad, "");
}

void plugin_table_print(struct plugin_table *t, bool numbers, struct str *to)
{
    VEC(size_t) widths = {0};
    for (size_t r = 0, at = 0; r < t->rows.len; r++)
        for (size_t c = 0; at < t->rows.at[r]; at++, c++) {
            size_t len = strlen(t->cells.at[at]);
            if (c == widths.len)
                vec_push(&widths, 0);
            widths.at[c] = len > widths.at[c] ? len : widths.at[c];
        }
    for (size_t r = 0, at = 0; r < t->rows.len; r++) {
        for (size_t c = 0; at < t->rows.at[r]; at++, c++)
            cell_print(t->cells.at[at], widths.at[c], numbers && c > 0, at + 1 == t->rows.at[r], to);
        str_add(to, "\n");
    }
    for (size_t i = 0; i < t->cells.len; i++)
        mem_free(t->cells.at[i]);
    vec_done(&t->cells);
    vec_done(&t->rows);
    vec_done(&widths);
    *t = (struct plugin_table){0};
}
