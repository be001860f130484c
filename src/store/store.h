/* store.h - a transactional key-value store: keys and bytes, revisions, guarded transactions, ordered watches.
 *
 * Acknowledged data is on disk. Every transaction that changes something gets the next revision. Every key records the
 * revision that wrote it. A transaction names the revisions that it depends on, and is executed completely or not at
 * all. The store also has a log: a transaction may append one record, which is numbered, chained by a hash, and as
 * durable as the transaction.
 *
 * A store knows nothing of clusters and reads no clock. It calls back only inside store_pump, on the calling thread, in
 * order of revisions: first all events of a transaction to the watches, then its `done`. When `done` reports success,
 * the watches have already seen the change.
 *
 * Kinds of store: sqlite.c (one file, group commit on its own thread), memory.c (tests, simulator). To add a kind:
 * write a struct store_ops, an open function, and a row in conformance_test.c, whose tests every store must pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    STORE_KEY_MAX = 512, /* bytes of a key: printable ASCII without spaces */
    STORE_VALUE_MAX = 8 * 1024 * 1024,
    STORE_RECORD_MAX = 64 * 1024 * 1024, /* a record repeats the values of a whole transaction */
    STORE_OPS_MAX = 65536,               /* per transaction; a gang is one transaction */
    STORE_GUARDS_MAX = 131072,
    STORE_TXN_BYTES_MAX = 128 * 1024 * 1024,   /* per transaction: keys, values and record */
    STORE_QUEUE_MAX = 16384,                   /* submitted and unfinished transactions; above it -ENOBUFS */
    STORE_QUEUE_BYTES_MAX = 256 * 1024 * 1024, /* bytes of these transactions */
};

struct bytes {
    const void *at;
    size_t len;
};

/* A condition: the key was last written by exactly this revision; 0: the key is absent. */
struct store_guard {
    const char *key;
    uint64_t revision;
};

/* A write. Each key occurs at most once in a transaction. Deleting an absent key changes nothing. */
struct store_op {
    const char *key;
    struct bytes value;
    bool gone; /* delete */
};

struct store_txn {
    const struct store_guard *guards;
    size_t guards_len;
    const struct store_op *ops;
    size_t ops_len;
    struct bytes record; /* appended to the log; empty: none */
};

struct store_result {
    int rc;            /* 0; -EAGAIN: a guard failed; -ENOSPC and others: no effect; -EIO: effect unknown */
    uint64_t revision; /* of the transaction; without effect: the present revision */
    uint64_t log_seq;  /* of the record; 0: none */
    size_t guard;      /* index of the first failed guard */
    const char *text;  /* error text of other failures, valid during the call */
};

struct store_entry {
    const char *key;
    struct bytes value;
    uint64_t created, revision; /* of the first and the last write */
};

struct store_event {
    const char *key;
    struct bytes value;
    bool gone;
    uint64_t created, revision;
    struct bytes replaced; /* only in store_history: the previous value; at NULL: the key was absent */
};

struct store_record {
    uint64_t seq, revision; /* seq counts from 1 */
    uint64_t chain;         /* hash over all records up to this one */
    struct bytes record;
};

/* Callbacks. Their arguments are valid during the call. A visitor returns 0 to continue; any other value ends the visit
 * and is returned to the caller. */
typedef void store_done(void *ctx, const struct store_result *result);
typedef void store_watched(void *ctx, const struct store_event *event);
typedef int store_visit(void *ctx, const struct store_entry *entry);
typedef int store_visit_event(void *ctx, const struct store_event *event);
typedef int store_visit_record(void *ctx, const struct store_record *record);

struct store;
struct store_watch;

/* Waits for all submitted transactions, pumps once more, and closes the store. Watches end without a callback. Accepts
 * NULL. */
void store_close(struct store *s);

/* Copies the transaction and returns at once; a later store_pump calls `done`, unless this function fails. Returns
 * -EINVAL for invalid keys, sizes or counts, or a repeated key; -ENOBUFS if the queue is full (unlike after a failed
 * guard, retry after a pause). Transactions are executed in the order of submission. */
int store_submit(struct store *s, const struct store_txn *txn, store_done *done, void *ctx, struct berth_err *err);
/* Returns a descriptor that is readable when store_pump has work; -1: call store_pump at any time. */
int store_fd(const struct store *s);
/* Delivers finished transactions. Returns their number. */
size_t store_pump(struct store *s);
/* Pumps until every submitted transaction is finished. */
void store_drain(struct store *s);

/* Returns why the last transaction was not written: ENOSPC, EIO, ...; 0: it was written, or a guard failed. */
int store_last_errno(const struct store *s);

/* Returns the revision of the last delivered transaction. Revisions count from 1; 0: an empty store. */
uint64_t store_revision(const struct store *s);
/* Returns the compacted revision; history is available above it. */
uint64_t store_compacted(const struct store *s);

/* Visits the keys that start with prefix, in byte order, as of a revision (0: the last durable one; may include
 * transactions that are not delivered yet). Returns -ESTALE if the revision was compacted. Reads the disk: for startup,
 * tools and tests, not for serving requests. */
int store_range(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                struct berth_err *err);
/* Visits the changes after revision `from` up to and including `to` (0: the last), in order. Returns -ESTALE if they
 * were compacted. */
int store_history(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit, void *ctx,
                  struct berth_err *err);
/* Reports every change under the prefix after revision `from`: past changes before this function returns, later changes
 * from store_pump. Returns -ESTALE if they were compacted. */
int store_watch(struct store *s, const char *prefix, uint64_t from, store_watched *watched, void *ctx,
                struct store_watch **ret, struct berth_err *err);
void store_unwatch(struct store_watch *w); /* may be called from the watch's own callback; accepts NULL */

/* Returns the number of the last record; 0: none. */
uint64_t store_log_last(const struct store *s);
/* Returns the number of the last trimmed record; 0: none. For a store that another process writes: as of opening. */
uint64_t store_log_trimmed(const struct store *s);
/* Visits the records from `from_seq` on, in order; 0: from the first one. Returns -ESTALE if that record was
 * trimmed. */
int store_log(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err);
/* Like store_log, up to and including `to_seq`. May be called on any thread while the store is open and in use; for a
 * store in memory only on its own thread. */
int store_log_concurrent(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                         struct berth_err *err);
/* Trims records up to and including this one, which the caller has stored elsewhere. Trimmed records are not visible
 * any more and leave the disk gradually; after a crash some may be visible again. The chain continues. */
int store_log_trim(struct store *s, uint64_t seq, struct berth_err *err);

/* Returns the chain hash after one more record, given the hash before it (0 before the first); for records stored
 * elsewhere. */
uint64_t store_chain(uint64_t chain, uint64_t seq, uint64_t revision, struct bytes record);

/* Deletes the history up to and including this revision; present values stay. */
int store_compact(struct store *s, uint64_t revision, struct berth_err *err);
/* Writes a consistent copy to a new file, atomically and synced. The file must not exist. The store remains usable
 * meanwhile. */
int store_backup(struct store *s, const char *path, struct berth_err *err);
/* Returns the size on disk or in memory, in bytes. */
uint64_t store_size(const struct store *s);

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

struct store_options {
    bool create;   /* create a missing store; otherwise -ENOENT */
    bool readonly; /* for tools beside a running daemon: no lock, no writes */
};

/* Opens DIR/store.db; one process at a time (-EBUSY with its pid). Rejects, without any change and with a text that
 * names a remedy: a file that is not a store, a newer format, and any damage. Opening verifies the checksums of all
 * values and records, and the chain of the log. A tail that was never acknowledged may be truncated. */
int store_sqlite_open(const char *dir, const struct store_options *options, struct store **ret, struct berth_err *err);
/* Verifies a backup and creates DIR/store.db from it. Returns -EEXIST if there is a store already. */
int store_sqlite_restore(const char *backup, const char *dir, struct berth_err *err);

/* Creates a store in memory. Submitted transactions are executed in store_pump. */
struct store *store_memory_new(void);
/* Returns a copy of the durable state, as a crash would leave it. Submitted transactions that were not pumped are
 * lost. */
struct store *store_memory_crash(const struct store *memory);
/* Makes the next n transactions fail with this code (ENOSPC, EIO); for tests. */
void store_memory_fail(struct store *memory, int code, size_t n);

/* ---- for implementations of a kind ------------------------------------------------------------------------------ */

struct store_ops {
    void (*close)(struct store *s);
    int (*submit)(struct store *s, const struct store_txn *txn, store_done *done, void *ctx, struct berth_err *err);
    int (*fd)(const struct store *s);
    size_t (*pump)(struct store *s, bool wait);
    uint64_t (*compacted)(const struct store *s);
    int (*range)(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                 struct berth_err *err);
    int (*history)(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit, void *ctx,
                   struct berth_err *err);
    int (*log)(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err);
    int (*log_concurrent)(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                          struct berth_err *err);
    int (*log_trim)(struct store *s, uint64_t seq, struct berth_err *err);
    int (*compact)(struct store *s, uint64_t revision, struct berth_err *err);
    int (*backup)(struct store *s, const char *path, struct berth_err *err);
    uint64_t (*size)(const struct store *s);
};
