/* bill.h - a book and prices become bills: by user or by group, for a month, as a table, JSON or CSV.
 *
 * Also the budgets: what is spent, whose limits follow from that. Who asks the server is the caller's business
 * (struct bill_server), so `berth bill`, `berth-bill` and tests run the same code.
 */
#pragma once

#include <stdio.h>

#include "bill/book.h"
#include "bill/price.h"

enum bill_by { BILL_BY_USER, BILL_BY_GROUP };
enum bill_form { BILL_TABLE, BILL_JSON, BILL_CSV };

struct bill_line {
    const char *month, *group, *user; /* user "": of the whole group */
    int64_t cpu, memory, gpu;         /* billionths of hours */
    uint64_t ended;
    int64_t money;
};

struct bill {
    struct bill_line *lines; /* by month, group, user */
    size_t len, cap;
    int64_t money; /* of all of them */
};

struct bill_question {
    enum bill_by by;
    const char *month, *user, *group; /* NULL: all */
};
/* Texts are the book's. */
void bill_make(const struct book *b, const struct prices *p, const struct bill_question *q, struct bill *ret);
void bill_done(struct bill *b);
static inline void bill_cleanup(struct bill *b)
{
    bill_done(b);
}
void bill_print(const struct bill *b, const struct prices *p, enum bill_form form, FILE *to);

struct bill_server {
    void *ctx;
    /* The answer's document; a new reference. -ENOENT: there is no such thing. */
    int (*get)(void *ctx, const char *path, json_t **ret, struct berth_err *err);
    int (*patch)(void *ctx, const char *path, const json_t *body, struct berth_err *err);
};

/* Every record since the last one that is in the book. `path`: saved after every page; NULL: not at all. */
int bill_follow(struct book *b, const struct bill_server *server, const char *path, struct berth_err *err);

/* Brings limits in line with what is spent in this month: those of a budget that is spent are lowered to its floor, those
 * that were lowered for what is no longer so are restored, unless somebody has changed them since. What is (or, without
 * `really`, would be) done is told in a line each. One that fails does not keep the others; the first failure is
 * returned. The book is saved before anything is lowered, so that what was there is never forgotten. */
int bill_enforce(struct book *b, const struct prices *p, const struct bill_server *server, const char *path,
                 int64_t now_ns, bool really, FILE *to, struct berth_err *err);
