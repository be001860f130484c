/* table.h - tables in the terminal, a thin layer over libsmartcols.
 *
 * Columns are as wide as their widest cell. On a terminal that is too narrow, columns with TABLE_WRAP are wrapped.
 */
#pragma once

#include "cli/lib/cli.h"

struct libscols_table;
struct libscols_line;

enum table_flag { TABLE_PLAIN = 0, TABLE_RIGHT = 1, TABLE_WRAP = 2, TABLE_HIDDEN = 4 };

struct table_column {
    const char *name;
    unsigned flags; /* of enum table_flag */
    size_t width;   /* least width, for tables printed in parts; must be more than the name's. 0: automatic */
};

struct table {
    const struct cli *cli;
    struct libscols_table *scols;
    struct libscols_line *line;
};

void table_init(struct table *t, const struct cli *cli, const struct table_column *columns, size_t columns_len);
void table_done(struct table *t);
void table_row(struct table *t);
/* Fills a cell of the last row. Copies the text. */
void table_cell(struct table *t, size_t column, enum color color, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints no header, not even with the first rows. */
void table_headless(struct table *t);
/* Prints the rows and removes them from the table; only the first call prints the header. */
void table_print(struct table *t);
