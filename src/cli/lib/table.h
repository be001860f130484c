/* table.h - tables in the terminal: libsmartcols behind what the verbs need of it.
 *
 * Columns are as wide as their widest cell; on a terminal that is too narrow, columns that may be wrapped are.
 */
#pragma once

#include "cli/lib/cli.h"

struct libscols_table;
struct libscols_line;

enum table_flag { TABLE_PLAIN = 0, TABLE_RIGHT = 1, TABLE_WRAP = 2, TABLE_HIDDEN = 4 };

struct table_column {
    const char *name;
    unsigned flags; /* of enum table_flag */
    size_t width;   /* at least, for tables printed in parts; more than the name takes. 0: as it comes */
};

struct table {
    const struct cli *cli;
    struct libscols_table *scols;
    struct libscols_line *line;
};

void table_init(struct table *t, const struct cli *cli, const struct table_column *columns, size_t columns_len);
void table_done(struct table *t);
void table_row(struct table *t);
/* Fills a cell of the last row. The text is copied. */
void table_cell(struct table *t, size_t column, enum color color, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* No header, not even with the first rows. */
void table_headless(struct table *t);
/* Prints the rows and forgets them; a header comes with the first ones only. */
void table_print(struct table *t);
