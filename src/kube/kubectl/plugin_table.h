/* plugin_table.h - text tables in kubectl's style: columns separated by spaces, no lines. */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "base/vec.h"

struct plugin_table {
    VEC(char *) cells;
    VEC(size_t) rows; /* index of the end of each row */
};

void plugin_cell(struct plugin_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void plugin_row(struct plugin_table *t); /* ends the row */
/* Prints and empties the table; `numbers`: all columns but the first are right-aligned. */
void plugin_table_print(struct plugin_table *t, bool numbers, struct str *to);
