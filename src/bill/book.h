/* book.h - what everybody used, by month, kept from the daemon's records of use.
 *
 * A book remembers the last record it has seen, so it goes on where it stopped, and each record is in it once: both stand in
 * one file that is replaced as a whole. Hours are kept, not money: other prices give another bill for the same book. A record
 * that spans the end of a month (UTC) counts in both, each by its part.
 *
 * Knows no network: pages of records are handed in (GET /v1/usage_records).
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
    char *user, *group, *queue, *outcome; /* owned; "" where there is none */
    uint64_t ended;                       /* instances that are over */
    struct book_hours *hours;             /* sorted by resource; owned */
    size_t hours_len;
};

/* A limit that was lowered because a budget is spent. */
struct book_lowered {
    char *quota; /* "user/ann", "group/vision"; owned */
    char month[MONTH_MAX];
    json_t *was, *set; /* limits, as they were and as they were set; a value null: there was none */
};

struct book {
    uint64_t after;  /* the last record that is in it */
    uint64_t missed; /* records that were gone before they were seen */
    struct book_row *rows;
    size_t rows_len, rows_cap;
    struct map map;
    struct book_lowered *lowered;
    size_t lowered_len, lowered_cap;
};

void book_done(struct book *b);
static inline void book_cleanup(struct book *b)
{
    book_done(b);
}

/* A file that is not there is an empty book. */
int book_load(const char *path, struct book *ret, struct berth_err *err);
/* Replaces the file as a whole, and it is on disk when this returns. */
int book_save(const struct book *b, const char *path, struct berth_err *err);

/* One page: {"items", "after", "more", "first"}. *ret_more: there is another. What was seen before is passed over. */
int book_add_page(struct book *b, const json_t *page, bool *ret_more, struct berth_err *err);
/* A row by its names, made if need be; hours added to it. */
int book_row_open(struct book *b, const char *month, const char *user, const char *group, const char *queue,
                  const char *outcome, struct book_row **ret, struct berth_err *err);
int book_row_add(struct book_row *row, const char *resource, int64_t hours, struct berth_err *err);
/* Limits that a budget has lowered; NULL: none. */
struct book_lowered *book_lowered_find(struct book *b, const char *quota);
struct book_lowered *book_lowered_add(struct book *b, const char *quota, const char *month);
void book_lowered_drop(struct book *b, const char *quota);

/* "2026-03" of a moment. */
const char *month_of(int64_t at_ns, char buf[static MONTH_MAX]);
/* Is it "YYYY-MM"? */
bool month_valid(const char *text);
