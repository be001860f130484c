#include "cli/lib/table.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* libsmartcols fails only when memory is exhausted. */
static void check_memory(bool ok)
{
    if (!ok)
        abort();
}

void table_init(struct table *t, const struct cli *cli, const struct table_column *columns, size_t columns_len)
{
    *t = (struct table){.cli = cli, .scols = scols_new_table()};
    check_memory(t->scols != NULL);
    scols_table_set_stream(t->scols, cli->out);
    scols_table_enable_colors(t->scols, cli->color_out);
    scols_table_set_column_separator(t->scols, "  ");
    for (size_t i = 0; i < columns_len; i++) {
        unsigned flags = columns[i].flags;
        int scols_flags = (flags & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0) | (flags & TABLE_WRAP ? SCOLS_FL_WRAP : 0) |
                          (flags & TABLE_HIDDEN ? SCOLS_FL_HIDDEN : 0) | (columns[i].width ? SCOLS_FL_STRICTWIDTH : 0);
        struct libscols_column *column =
            scols_table_new_column(t->scols, columns[i].name, (double)columns[i].width, scols_flags);
        check_memory(column != NULL);
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
    check_memory(t->line != NULL);
}

void table_cell(struct table *t, size_t column, enum color color, const char *fmt, ...)
{
    char *text;
    va_list args;

    va_start(args, fmt);
    check_memory(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    check_memory(scols_line_refer_data(t->line, column, text) == 0);
    if (color != COLOR_NONE && t->cli->color_out)
        scols_cell_set_color(scols_line_get_cell(t->line, column), cli_color_name(color));
}

void table_headless(struct table *t)
{
    scols_table_enable_noheadings(t->scols, 1);
}

/* ---- word wrap -------------------------------------------------------------------------------------------------- */

/* Counts the columns of UTF-8 text: bytes that are not continuation bytes. */
static size_t columns_of(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static const char *cell_text(const struct table *t, size_t line, size_t column)
{
    const char *text = scols_cell_get_data(scols_line_get_cell(scols_table_get_line(t->scols, line), column));

    return text ? text : "";
}

static size_t column_width(const struct table *t, size_t column)
{
    struct libscols_column *c = scols_table_get_column(t->scols, column);
    const char *name = scols_cell_get_data(scols_column_get_header(c));
    size_t width = columns_of(name, strlen(name)), hint = (size_t)scols_column_get_whint(c);

    width = width > hint ? width : hint;
    for (size_t i = 0; i < scols_table_get_nlines(t->scols); i++) {
        const char *text = cell_text(t, i, column);
        size_t n = columns_of(text, strlen(text));
        width = width > n ? width : n;
    }
    return width;
}

/* Returns whether every word of the column fits into `room` columns. */
static bool words_fit(const struct table *t, size_t column, size_t room)
{
    for (size_t i = 0; i < scols_table_get_nlines(t->scols); i++) {
        const char *text = cell_text(t, i, column);
        while (*text) {
            size_t len = strcspn(text, " \n");
            if (columns_of(text, len) > room)
                return false;
            text += len + (text[len] != '\0');
        }
    }
    return true;
}

/* Replaces spaces by newlines so that no line is wider than `room`. */
static void text_break(char *text, size_t room)
{
    char *space = NULL;
    size_t at = 0;

    while (*text) {
        size_t len = strcspn(text, " \n"), width = columns_of(text, len);
        bool fits = !space || at + 1 + width <= room;
        if (space)
            *space = fits ? ' ' : '\n';
        at = space && fits ? at + 1 + width : width;
        space = text + len;
        text = *space ? space + 1 : space;
    }
    if (space && *space)
        *space = ' ';
}

/* By default libsmartcols breaks a line in the middle of a word. This function breaks the last column between words, if
 * the other columns leave enough room. */
static void words_break(struct table *t)
{
    enum { ROOM_MIN = 20, BETWEEN = 2 };
    size_t len = scols_table_get_ncols(t->scols), last = len, taken = 0;

    for (size_t i = 0; i < len; i++) {
        if (scols_column_is_hidden(scols_table_get_column(t->scols, i)))
            continue;
        if (last < len)
            taken += column_width(t, last) + BETWEEN;
        last = i;
    }
    if (last == len || !isatty(fileno(t->cli->out)) || t->cli->width < taken + ROOM_MIN)
        return;
    struct libscols_column *column = scols_table_get_column(t->scols, last);
    size_t room = t->cli->width - taken;
    if (!scols_column_is_wrap(column))
        return;
    bool breaks = column_width(t, last) > room && words_fit(t, last, room);
    scols_column_set_safechars(column, breaks ? "\n" : NULL);
    scols_column_set_wrapfunc(column, breaks ? scols_wrapnl_chunksize : NULL, breaks ? scols_wrapnl_nextchunk : NULL,
                              NULL);
    if (!breaks)
        return;
    for (size_t i = 0; i < scols_table_get_nlines(t->scols); i++) {
        char *text = strdup(cell_text(t, i, last));
        check_memory(text != NULL);
        text_break(text, room);
        check_memory(scols_line_refer_data(scols_table_get_line(t->scols, i), last, text) == 0);
    }
}

void table_print(struct table *t)
{
    words_break(t);
    scols_print_table(t->scols);
    scols_table_remove_lines(t->scols);
    scols_table_enable_noheadings(t->scols, 1);
    t->line = NULL;
}
