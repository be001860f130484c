/* fair_queue.h - decides which request runs next: one queue per account, served in turn by the time that each has used.
 *
 * An account is a user, a node or an address. Accounts with waiting entries take turns (deficit round robin): an account that
 * has used more than its quantum waits until the others had theirs, so one account's backlog delays the first entry of
 * another by about one entry. One thread runs the entries in slices: when a slice is used up, the caller returns to its
 * event loop before the next slice. An account whose entries have given the store more than FAIR_COMMITTING_MAX bytes that
 * are not committed yet is held back, so that others' commits wait for few of its bytes. Time is an argument. Knows nothing of
 * requests; request_turn.c runs them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fair_queue;
struct fair_account;

/* Embedded in what waits. */
struct fair_entry {
    struct fair_entry *next;
    struct fair_account *account;          /* since it was pushed */
    void (*run)(struct fair_entry *entry); /* what its turn is for; for whoever pops it (request_turn.h) */
    size_t bytes;                          /* that it keeps in memory while it waits; the caller's to set */
};

/* What may wait of one account. */
enum { FAIR_WAITING_MAX = 1024, FAIR_BYTES_MAX = 16 << 20 };
/* Bytes of one account in the store's queue from which on its entries wait. */
enum { FAIR_COMMITTING_MAX = 256 << 10 };

#define FAIR_SLICE_NS INT64_C(1000000)
#define FAIR_QUANTUM_NS INT64_C(500000)
#define FAIR_DEBT_NS_MAX INT64_C(200000000) /* time used beyond this is forgiven */

/* The seed keeps strangers from choosing names that collide. */
struct fair_queue *fair_queue_new(uint64_t seed);
/* Every account was left before. */
void fair_queue_free(struct fair_queue *q);

/* The account of this name, made where there is none; it is freed when everybody who joined has left. */
struct fair_account *fair_account_join(struct fair_queue *q, const char *name);
/* Joins once more. */
void fair_account_rejoin(struct fair_account *a);
void fair_account_leave(struct fair_queue *q, struct fair_account *a);
/* Heavy requests under way: one more, unless there are `max`. */
bool fair_account_begin_heavy(struct fair_account *a, size_t max);
void fair_account_end_heavy(struct fair_account *a);

/* The store got so many bytes of the account; the same number ends with the commit, or with its failure. */
void fair_account_commit_begin(struct fair_queue *q, struct fair_account *a, size_t bytes);
void fair_account_commit_end(struct fair_queue *q, struct fair_account *a, size_t bytes);
/* From now on no account is held back: for the end of the program. */
void fair_queue_hold_none(struct fair_queue *q);

/* May an entry of the account run at once? No account that may run waits, the slice is not used up, and this account is not
 * held back. */
bool fair_queue_idle(const struct fair_queue *q, const struct fair_account *a);
/* Would fair_queue_pop find an entry? */
bool fair_queue_ready(const struct fair_queue *q);
/* The entry waits at the end of the account's queue; whoever pushes has joined the account and stays until the entry is popped.
 * False: too much of this account waits, and nothing was done. */
bool fair_queue_push(struct fair_queue *q, struct fair_account *a, struct fair_entry *e);
/* The same at the front of the account's queue, for an entry that ran and is not done; never refused. */
void fair_queue_push_first(struct fair_queue *q, struct fair_account *a, struct fair_entry *e);
/* Takes out an entry that waits. Costs as much as the account has entries. */
void fair_queue_remove(struct fair_queue *q, struct fair_entry *e);
/* Takes out the entry that runs next; NULL: nothing waits, or only entries of accounts that are held back. */
struct fair_entry *fair_queue_pop(struct fair_queue *q);
/* The account has used so much time, of the slice and of its turn. */
void fair_queue_charge(struct fair_queue *q, struct fair_account *a, int64_t ns);
/* A new slice begins. */
void fair_queue_renew(struct fair_queue *q);
/* Is there something left in the slice? */
bool fair_queue_has_slice(const struct fair_queue *q);
size_t fair_queue_waiting(const struct fair_queue *q);
size_t fair_queue_accounts(const struct fair_queue *q);
