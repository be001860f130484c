/* plugin_table.h - rows of text in columns, as kubectl prints them: two spaces between, no lines. */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "base/vec.h"

struct plugin_table {
    VEC(char *) cells;
    VEC(size_t) rows; /* where each ends */
};

void plugin_cell(struct plugin_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void plugin_row(struct plugin_table *t); /* ends it */
/* Prints and empties it; `numbers`: all columns but the first are to the right. */
void plugin_table_print(struct plugin_table *t, bool numbers, struct str *to);
