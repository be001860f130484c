/* usage.h - what was used: a record for each instance that is over, and the books that are kept from the records.
 *
 * Whoever ends an instance adds its record to the very transaction that does (usage_note): so it is counted once, whatever
 * is repeated and whoever crashes. Nothing else is written there, so that ends of many instances do not get in each other's
 * way. The books follow from the records, many at a time, in transactions of their own that also say up to which record
 * they go (usage_books_step):
 *
 *   KIND_FACT "usage/user/ID"   decayed use, for fair shares
 *   KIND_SPENT "user/ID", ...   what was spent of the totals of a user, a group, a queue and its parents
 *   KIND_PREDICTION             how long jobs run (predict.h)
 *
 * Records stay for the settings' usage_keep_s, and as many as usage_keep_records; whoever bills follows them by their
 * numbers, which only grow.
 */
#pragma once

#include "control/api/request.h"

struct usage_end {
    const char *outcome; /* "ended", "failed", "stopped", "lost", "removed"; of a piece "running" */
    int64_t at_ns;
    bool exit_said; /* it did run, even if nobody was told so while it did */
    int32_t exit;
};
/* An instance is over: adds its record to the change. One that never ran has used nothing. `doc` is its document. */
void usage_note(struct change *c, const struct object *instance, const json_t *doc, const struct usage_end *end);
/* The same of one that its node is lost or removed with, as the state has it. */
void usage_note_gone(struct change *c, const struct object *instance, const char *outcome, int64_t now_ns);

/* What runs for long is recorded piece by piece: adds records of some that have run since the last one for the settings'
 * usage_cut_s. */
#define USAGE_RUNNING "running" /* the outcome of a piece that is not the last */
void usage_cut(struct change *c, int64_t now_ns);

/* The word itself, of those there are, for ever; "" for another. */
const char *usage_outcome(const char *word);

/* A record as read. Texts live as long as the document. */
enum { USAGE_RESOURCES_MAX = 32 };
struct usage_row {
    const char *kind, *workload, *name, *owner, *group, *queue, *node, *outcome, *class_name; /* never NULL */
    int64_t start_ns, end_ns, estimate_ns;
    int64_t limit_ns;        /* for which it might run; 0: not known, or for ever */
    uint32_t ordinal, tasks; /* it was the ordinal-th of so many that ran together; 1: it ran alone */
    int64_t began_ns;        /* before start_ns where an earlier record has the beginning */
    struct berth_amount amounts[USAGE_RESOURCES_MAX]; /* as quotas count them: "gpu" in thousandths, "pods" is 1 */
    size_t amounts_len;
    int64_t memory_peak; /* 0: not known */
};
int usage_row_read(const json_t *doc, struct usage_row *ret, struct berth_err *err);
/* Of a resource; 0: none. */
int64_t usage_row_amount(const struct usage_row *row, const char *resource);

/* Its number; and of all records, which are sorted, the place of the first above a number. */
uint64_t usage_number(const struct object *record);
size_t usage_first_after(const struct object *const *list, size_t len, uint64_t number);

/* What was spent of a total of the quota "user/ID" in the period that began at *ret_since_ns; false: nothing yet. */
bool usage_spent(const struct state *s, const char *quota, const char *resource, int64_t *ret_spent,
                 int64_t *ret_since_ns);

/* ---- the books (usage_books.c) ---- */

/* What a run is worth at a moment after its end, for fair shares: thousandths of units x seconds (berth_usage_add). */
int64_t usage_row_worth(const struct usage_row *row, const struct berth_order *order, int64_t at_ns);
/* Amount x seconds of the part of a run that lies in the period; never beyond what can be counted. */
int64_t usage_row_spent(const struct usage_row *row, const char *resource, int64_t since_ns);
/* Of the period that the moment is in; periods begin at whole multiples of their length since 1970. */
int64_t usage_period_start(int64_t at_ns, int64_t period_ns);

/* Adds a run that is over to the decayed use of an account, "user/ID". */
void usage_book_use(struct change *c, const char *account, const struct usage_row *row, const struct berth_order *order,
                    int64_t now_ns);
/* And to what was spent of the totals of its owner, its group, its queue and those above that. */
void usage_book_totals(struct change *c, const struct usage_row *row, int64_t now_ns);

struct usage_books;
struct usage_books *usage_books_new(struct control *control);
void usage_books_free(struct usage_books *b);
/* Brings the books up to the records, if it is time; tells when to be called again (steady time). */
int64_t usage_books_step(struct usage_books *b, int64_t steady_ns);
/* Nothing more is submitted. */
void usage_books_stop(struct usage_books *b);

/* Deletes some records that are too old or too many, none that the books have not seen, and remembers the last number. */
void usage_expire(struct change *c, int64_t now_ns);
/* Is there still somebody or something that this fact, prediction or sum is about? For the sweep. */
bool usage_book_needed(struct control *control, const struct object *o, struct arena *arena);
/* Up to which record the books go. */
uint64_t usage_booked(const struct state *s);

/* GET /v1/usage, GET /v1/usage_records (routes_usage.c). */
call_run usage_get, usage_list;
