/* usage.h - records of use, one for each ended instance, and the books that are kept from them.
 *
 * The transaction that ends an instance also adds its record (usage_note), so each instance is counted once, despite
 * retries and crashes. That transaction writes nothing else for accounting, so that ends of many instances do not
 * conflict. The books are updated from many records at a time, in transactions of their own that also store the last
 * booked record (usage_books_step):
 *
 *   KIND_FACT "usage/user/ID"   decayed use, for fair shares
 *   KIND_SPENT "user/ID", ...   what was spent of the totals of a user, a group, a queue and its parents
 *   KIND_PREDICTION             how long jobs run (predict.h)
 *
 * Records are kept for the setting usage_keep_s, and at most usage_keep_records of them. Billing follows them by their
 * numbers, which only grow.
 */
#pragma once

#include "control/api/request.h"

struct usage_end {
    const char *outcome; /* "ended", "failed", "stopped", "lost", "removed"; "running": a partial record */
    int64_t at_ns;
    bool exit_reported; /* an exit status was reported, so the instance has run, even if no report said so */
    int32_t exit;
};
/* Adds the record of an ended instance to the change. An instance that never ran has used nothing. `doc` is its
 * document. */
void usage_note(struct change *c, const struct object *instance, const json_t *doc, const struct usage_end *end);
/* Does the same, by the state, for an instance whose node is lost or removed. */
void usage_note_removed(struct change *c, const struct object *instance, const char *outcome, int64_t now_ns);

/* Long-running instances get partial records: adds records of some instances that have run for the setting usage_cut_s
 * since their last record. */
#define USAGE_RUNNING "running" /* outcome of a partial record that is not the last */
void usage_cut(struct change *c, int64_t now_ns);

/* Returns a permanent string equal to `word` if it is an outcome, else "". */
const char *usage_outcome(const char *word);

/* A record as read from its document. Its strings live as long as the document. */
enum { USAGE_RESOURCES_MAX = 32 };
struct usage_row {
    const char *kind, *workload, *name, *owner, *group, *queue, *node, *outcome, *class_name; /* never NULL */
    int64_t start_ns, end_ns, estimate_ns;
    int64_t limit_ns;        /* time limit; 0: unknown or none */
    uint32_t ordinal, tasks; /* ordinal among the tasks that ran together; tasks 1: it ran alone */
    int64_t began_ns;        /* start of the run; before start_ns if there are earlier partial records */
    struct berth_amount amounts[USAGE_RESOURCES_MAX]; /* as quotas count: "gpu" in thousandths, "pods" is 1 */
    size_t amounts_len;
    int64_t memory_peak; /* 0: unknown */
};
int usage_row_read(const json_t *doc, struct usage_row *ret, struct berth_err *err);
/* Returns the amount of a resource; 0: none. */
int64_t usage_row_amount(const struct usage_row *row, const char *resource);

/* Return a record's number, and the index of the first record above a number in the sorted list of all records. */
uint64_t usage_number(const struct object *record);
size_t usage_first_after(const struct object *const *list, size_t len, uint64_t number);

/* Gets what was spent of a total of the quota "user/ID" in the period that began at *ret_since_ns. Returns false if
 * nothing was. */
bool usage_spent(const struct state *s, const char *quota, const char *resource, int64_t *ret_spent,
                 int64_t *ret_since_ns);

/* ---- the books (usage_books.c) ---------------------------------------------------------------------------------- */

/* Returns the run's weight for fair shares at a time after its end: thousandths of units x seconds
 * (berth_usage_add). */
int64_t usage_row_weight(const struct usage_row *row, const struct berth_order *order, int64_t at_ns);
/* Returns amount x seconds of the part of a run that lies in the period, limited to the countable maximum. */
int64_t usage_row_spent(const struct usage_row *row, const char *resource, int64_t since_ns);
/* Returns the start of the period that contains `at_ns`; periods start at multiples of their length since 1970. */
int64_t usage_period_start(int64_t at_ns, int64_t period_ns);

/* Adds an ended run to the decayed use of an account, "user/ID". */
void usage_book_use(struct change *c, const char *account, const struct usage_row *row, const struct berth_order *order,
                    int64_t now_ns);
/* Adds an ended run to what was spent of the totals of its owner, group, queue and parent queues. */
void usage_book_totals(struct change *c, const struct usage_row *row, int64_t now_ns);

struct usage_books;
struct usage_books *usage_books_new(struct control *control);
void usage_books_free(struct usage_books *b);
/* Updates the books from new records, if it is time. Returns when to call again (steady time). */
int64_t usage_books_step(struct usage_books *b, int64_t steady_ns);
/* Submits nothing more. */
void usage_books_stop(struct usage_books *b);

/* Deletes some records that are too old or too many, but only booked ones, and keeps the last number. */
void usage_expire(struct change *c, int64_t now_ns);
/* For the sweep: returns whether the object that this fact, prediction or sum is about still exists. */
bool usage_book_needed(struct control *control, const struct object *o, struct arena *arena);
/* Returns the number of the last booked record. */
uint64_t usage_booked(const struct state *s);

/* GET /v1/usage, GET /v1/usage_records (routes_usage.c). */
request_verb usage_get, usage_list;
