/* book.h - monthly usage, accumulated from the daemon's usage records.
 *
 * A book stores the id of the last record that it has seen, so that it continues there and counts each record once;
 * both are in one file that is replaced as a whole. A book stores hours, not money: other prices give another bill for
 * the same book. A record that spans the end of a month (UTC) counts in both months, each with its part.
 *
 * This module has no network access: the caller supplies pages of records (GET /v1/usage_records).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"

enum { MONTH_MAX = 8, BOOK_RESOURCES_MAX = 64, BOOK_ROWS_MAX = 1000000 };

struct book_hours {
    char *resource; /* owned */
    int64_t hours;  /* billionths of an hour of a core, a GiB, a GPU, or a unit */
};

struct book_row {
    char month[MONTH_MAX];                /* "2026-03" */
    char *user, *group, *queue, *outcome; /* owned; "" for none */
    uint64_t ended;                       /* number of ended instances */
    struct book_hours *hours;             /* sorted by resource; owned */
    size_t hours_len;
};

/* Limits that were lowered because a budget is spent. */
struct lowered_limit {
    char *quota; /* "user/ann", "group/vision"; owned */
    char month[MONTH_MAX];
    json_t *was, *set; /* limits before and after; a null value: no limit */
};

struct usage_book {
    uint64_t after;  /* id of the last record in the book */
    uint64_t missed; /* number of records deleted before they were read */
    struct book_row *rows;
    size_t rows_len, rows_cap;
    struct map map;
    struct lowered_limit *lowered;
    size_t lowered_len, lowered_cap;
};

void book_done(struct usage_book *b);
static inline void book_cleanup(struct usage_book *b)
{
    book_done(b);
}

/* Reads a book; a missing file is an empty book. */
int book_load(const char *path, struct usage_book *ret, struct berth_err *err);
/* Replaces the whole file; it is on disk when this returns. */
int book_save(const struct usage_book *b, const char *path, struct berth_err *err);

/* Adds one page: {"items", "after", "more", "first"}. *ret_more: another page follows. Skips records that are already
 * in the book. */
int book_add_page(struct usage_book *b, const json_t *page, bool *ret_more, struct berth_err *err);
/* book_row_open finds or creates a row by its keys; book_row_add adds hours to it. */
int book_row_open(struct usage_book *b, const char *month, const char *user, const char *group, const char *queue,
                  const char *outcome, struct book_row **ret, struct berth_err *err);
int book_row_add(struct book_row *row, const char *resource, int64_t hours, struct berth_err *err);
/* Find, add or remove the lowered limits of a quota; NULL: none. */
struct lowered_limit *lowered_limit_find(struct usage_book *b, const char *quota);
struct lowered_limit *lowered_limit_add(struct usage_book *b, const char *quota, const char *month);
void lowered_limit_drop(struct usage_book *b, const char *quota);

/* Returns the month of a time: "2026-03". */
const char *month_of(int64_t at_ns, char buf[static MONTH_MAX]);
/* Returns whether the text has the form "YYYY-MM". */
bool month_valid(const char *text);
