#include "cli/table.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"

/* libsmartcols fails for want of memory only. */
static void must(bool ok)
{
    if (!ok)
        abort();
}

void table_init(struct table *t, const struct cli *cli, const struct table_column *columns, size_t columns_len)
{
    *t = (struct table){.cli = cli, .scols = scols_new_table()};
    must(t->scols != NULL);
    scols_table_set_stream(t->scols, cli->out);
    scols_table_enable_colors(t->scols, cli->color_out);
    scols_table_set_column_separator(t->scols, "  ");
    for (size_t i = 0; i < columns_len; i++) {
        unsigned flags = columns[i].flags;
        int scols_flags = (flags & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0) | (flags & TABLE_WRAP ? SCOLS_FL_WRAP : 0) |
                          (flags & TABLE_HIDDEN ? SCOLS_FL_HIDDEN : 0) | (columns[i].width ? SCOLS_FL_STRICTWIDTH : 0);
        struct libscols_column *column =
            scols_table_new_column(t->scols, columns[i].name, (double)columns[i].width, scols_flags);
        must(column != NULL);
        if (cli->color_out)
            scols_cell_set_color(scols_column_get_header(column), cli_color_name(COLOR_BOLD));
    }
}

void table_done(struct table *t)
{
    scols_unref_table(t->scols);
    t->scols = NULL;
}

void table_row(struct table *t)
{
    t->line = scols_table_new_line(t->scols, NULL);
    must(t->line != NULL);
}

void table_cell(struct table *t, size_t column, enum color color, const char *fmt, ...)
{
    char *text;
    va_list args;

    va_start(args, fmt);
    must(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    must(scols_line_refer_data(t->line, column, text) == 0);
    if (color != COLOR_NONE && t->cli->color_out)
        scols_cell_set_color(scols_line_get_cell(t->line, column), cli_color_name(color));
}

void table_headless(struct table *t)
{
    scols_table_enable_noheadings(t->scols, 1);
}

void table_print(struct table *t)
{
    scols_print_table(t->scols);
    scols_table_remove_lines(t->scols);
    scols_table_enable_noheadings(t->scols, 1);
    t->line = NULL;
}
