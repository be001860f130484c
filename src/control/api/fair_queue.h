/* fair_queue.h - chooses the next request to run: one queue per account, served in turn by the time that each account
 * has used.
 *
 * An account is a user, a node or an address. Accounts with waiting entries take turns (deficit round robin): an
 * account that has used more than its quantum waits until the others had their turns, so one account's backlog delays
 * the first entry of another account by about one entry. One thread runs the entries in slices: when a slice is used
 * up, the caller returns to its event loop before the next slice. An account whose entries have given the store more
 * than FAIR_COMMITTING_MAX uncommitted bytes is held back, so that commits of other accounts wait for few of these
 * bytes. Time is an argument. This module does not know requests; request_turn.c runs the entries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fair_queue;
struct fair_account;

/* Embedded in the object that waits. */
struct fair_entry {
    struct fair_entry *next;
    struct fair_account *account;          /* set when the entry is pushed */
    void (*run)(struct fair_entry *entry); /* called by the module that pops the entry (request_turn.h) */
    size_t bytes;                          /* memory that the entry keeps while it waits; set by the caller */
};

/* Limits on the waiting entries of one account. */
enum { FAIR_WAITING_MAX = 1024, FAIR_BYTES_MAX = 16 << 20 };
/* An account with this many uncommitted bytes in the store's queue is held back. */
enum { FAIR_COMMITTING_MAX = 256 << 10 };

#define FAIR_SLICE_NS INT64_C(1000000)
#define FAIR_QUANTUM_NS INT64_C(500000)
#define FAIR_DEBT_NS_MAX INT64_C(200000000) /* limit of the debt; time used beyond it is not charged */

/* The secret seed prevents clients from choosing names whose hashes collide. */
struct fair_queue *fair_queue_new(uint64_t seed);
/* Requires that every reference to every account has been released. */
void fair_queue_free(struct fair_queue *q);

/* Returns the account of this name, creating it if needed, and adds a reference. The account is freed with its last
 * reference. */
struct fair_account *fair_account_ref(struct fair_queue *q, const char *name);
/* Adds a reference. */
void fair_account_ref_again(struct fair_account *a);
void fair_account_unref(struct fair_queue *q, struct fair_account *a);
/* Counts one more running heavy request. Returns false if `max` are running. */
bool fair_account_begin_heavy(struct fair_account *a, size_t max);
void fair_account_end_heavy(struct fair_account *a);

/* Counts bytes of the account that the store has received. The same number is taken off when the commit succeeds or
 * fails. */
void fair_account_commit_begin(struct fair_queue *q, struct fair_account *a, size_t bytes);
void fair_account_commit_end(struct fair_queue *q, struct fair_account *a, size_t bytes);
/* From now on no account is held back; for shutdown. */
void fair_queue_hold_none(struct fair_queue *q);

/* Tells whether an entry of the account may run at once: no eligible account waits, the slice is not used up, and this
 * account is not held back. */
bool fair_queue_idle(const struct fair_queue *q, const struct fair_account *a);
/* Tells whether fair_queue_pop would return an entry. */
bool fair_queue_ready(const struct fair_queue *q);
/* Appends the entry to the account's queue. The caller holds a reference to the account until the entry is popped.
 * Returns false, without any effect, if too much of this account waits. */
bool fair_queue_push(struct fair_queue *q, struct fair_account *a, struct fair_entry *e);
/* Puts an entry that ran and is not finished at the front of the account's queue; never refused. */
void fair_queue_push_first(struct fair_queue *q, struct fair_account *a, struct fair_entry *e);
/* Removes a waiting entry. O(entries of the account). */
void fair_queue_remove(struct fair_queue *q, struct fair_entry *e);
/* Removes and returns the entry that runs next; NULL: nothing waits, or only entries of accounts that are held back. */
struct fair_entry *fair_queue_pop(struct fair_queue *q);
/* Charges used time to the account's turn and to the slice. */
void fair_queue_charge(struct fair_queue *q, struct fair_account *a, int64_t ns);
/* Begins a new slice. */
void fair_queue_renew(struct fair_queue *q);
/* Tells whether the slice has time left. */
bool fair_queue_has_slice(const struct fair_queue *q);
size_t fair_queue_waiting(const struct fair_queue *q);
size_t fair_queue_accounts(const struct fair_queue *q);
