/* bill.h - computes bills from a book and prices: by user or by group, for a month, as a table, JSON or CSV.
 *
 * Also enforces budgets, from which limits follow. Requests to the server go through callbacks (struct bill_server), so
 * that `berth bill`, `berth-bill` and the tests run the same code.
 */
#pragma once

#include <stdio.h>

#include "bill/book.h"
#include "bill/price.h"

enum bill_by { BILL_BY_USER, BILL_BY_GROUP };
enum bill_form { BILL_TABLE, BILL_JSON, BILL_CSV };

struct bill_line {
    const char *month, *group, *user; /* user "": the whole group */
    int64_t cpu, memory, gpu;         /* billionths of hours */
    uint64_t ended;
    int64_t money;
};

struct bill {
    struct bill_line *lines; /* sorted by month, group, user */
    size_t len, cap;
    int64_t money; /* total of all lines */
};

struct bill_question {
    enum bill_by by;
    const char *month, *user, *group; /* NULL: all */
};
/* Computes the lines of a bill. The strings belong to the book. */
void bill_make(const struct usage_book *b, const struct prices *p, const struct bill_question *q, struct bill *ret);
void bill_done(struct bill *b);
static inline void bill_cleanup(struct bill *b)
{
    bill_done(b);
}
void bill_print(const struct bill *b, const struct prices *p, enum bill_form form, FILE *to);

struct bill_server {
    void *ctx;
    /* Returns the answer's document, a new reference, or -ENOENT if the object does not exist. */
    int (*get)(void *ctx, const char *path, json_t **ret, struct berth_err *err);
    int (*patch)(void *ctx, const char *path, const json_t *body, struct berth_err *err);
};

/* Adds all records after the last one in the book. `path`: the book is saved there after every page; NULL: not
 * saved. */
int bill_follow(struct usage_book *b, const struct bill_server *server, const char *path, struct berth_err *err);

/* Adjusts limits to the money spent in this month. The limits of a spent budget are lowered to its floor. Limits that
 * were lowered for a budget that is no longer spent are restored, unless they were changed since. Each change is
 * printed as a line; without `really` nothing is changed. An error does not stop the other changes; the first error is
 * returned. The book is saved before any limit is lowered, so that the original limits are never lost. */
int bill_enforce(struct usage_book *b, const struct prices *p, const struct bill_server *server, const char *path,
                 int64_t now_ns, bool really, FILE *to, struct berth_err *err);
