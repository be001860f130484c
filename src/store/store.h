/* store.h - the one truth: keys and bytes, revisions, guarded transactions, ordered watches.
 *
 * What is acknowledged is on disk. Every transaction that changes something gets the next revision; every key remembers
 * the revision that wrote it; a transaction names the revisions it rests on and happens wholly or not at all. Beside the
 * keys there is a log: a transaction may append one record to it, numbered and chained by a hash, durable with it.
 *
 * A store has no word of the domain, reads no clock and calls back only from within store_pump, on the thread that
 * calls it: first every event of a transaction to the watches, then its `done`, in order of revisions. So whoever is
 * told of success has already seen the change.
 *
 * Kinds of store: sqlite.c (one file, group commit on a thread of its own), memory.c (tests, simulator). To add one: a
 * struct store_ops, an open function, and a row in conformance_test.c, which every store must pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    STORE_KEY_MAX = 512, /* bytes of a key: printable ASCII without spaces */
    STORE_VALUE_MAX = 8 * 1024 * 1024,
    STORE_RECORD_MAX = 64 * 1024 * 1024, /* it tells the values of a whole transaction once more */
    STORE_OPS_MAX = 65536,               /* of one transaction; a gang is one */
    STORE_GUARDS_MAX = 131072,
    STORE_TXN_BYTES_MAX = 128 * 1024 * 1024,   /* of one transaction: keys, values and record */
    STORE_QUEUE_MAX = 16384,                   /* transactions submitted and not yet done; beyond it -ENOBUFS */
    STORE_QUEUE_BYTES_MAX = 256 * 1024 * 1024, /* and what they hold */
};

struct bytes {
    const void *at;
    size_t len;
};

/* Holds while the key was last written by exactly this revision; 0: while the key is not there. */
struct store_guard {
    const char *key;
    uint64_t revision;
};

/* Each key at most once in a transaction. Deleting what is not there changes nothing. */
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
    int rc;            /* 0; -EAGAIN: a guard failed; -ENOSPC, -EIO, ...: nothing happened, or (EIO) it is not known */
    uint64_t revision; /* of the transaction; of one without effect: the present one */
    uint64_t log_seq;  /* of its record; 0: none */
    size_t guard;      /* that failed first */
    const char *text;  /* of other failures: a sentence, valid during the call */
};

struct store_entry {
    const char *key;
    struct bytes value;
    uint64_t created, revision; /* first and last written */
};

struct store_event {
    const char *key;
    struct bytes value;
    bool gone;
    uint64_t created, revision;
    struct bytes replaced; /* by store_history: what it was before; at NULL: it was not there */
};

struct store_record {
    uint64_t seq, revision; /* seq counts from 1 */
    uint64_t chain;         /* over all records up to this one */
    struct bytes record;
};

/* Callbacks. What they are given lives until they return. A visitor returns 0 to go on; anything else ends the walk and
 * is returned by it. */
typedef void store_done(void *ctx, const struct store_result *result);
typedef void store_watched(void *ctx, const struct store_event *event);
typedef int store_visit(void *ctx, const struct store_entry *entry);
typedef int store_visit_event(void *ctx, const struct store_event *event);
typedef int store_visit_record(void *ctx, const struct store_record *record);

struct store;
struct store_watch;

/* Waits for all that was submitted, pumps once more, and closes. Watches end without a word. NULL is fine. */
void store_close(struct store *s);

/* Takes a copy and returns at once; `done` is called by a later store_pump unless this fails: -EINVAL for keys, sizes or
 * counts out of bounds or a key twice, -ENOBUFS when the queue is full: to be tried again after a pause, unlike a guard
 * that failed. Transactions happen in the order submitted. */
int store_submit(struct store *s, const struct store_txn *txn, store_done *done, void *ctx, struct berth_err *err);
/* Readable when store_pump has something to do; -1: pump whenever convenient. */
int store_fd(const struct store *s);
/* Delivers what is finished; returns the number of transactions done. */
size_t store_pump(struct store *s);
/* Waits until everything submitted is finished, pumping. */
void store_drain(struct store *s);

/* Why the last transaction was not written: ENOSPC, EIO, ...; 0: it was, or it rested on what had changed. */
int store_trouble(const struct store *s);

/* Of what has been pumped. Revisions count from 1; 0: an empty store. */
uint64_t store_revision(const struct store *s);
/* History is known above this revision. */
uint64_t store_compacted(const struct store *s);

/* Visits keys that start with prefix, in byte order, as of a revision (0: the last one that is durable, in flight ones
 * may be included). -ESTALE: compacted. Reads the disk; for start, tools and tests, not for serving. */
int store_range(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                struct berth_err *err);
/* Visits changes after revision `from` up to and including `to` (0: the last), in order. -ESTALE: compacted. */
int store_history(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit, void *ctx,
                  struct berth_err *err);
/* Tells of every change under the prefix after revision `from`: what is past is told before this returns, what comes by
 * store_pump. -ESTALE: compacted. */
int store_watch(struct store *s, const char *prefix, uint64_t from, store_watched *watched, void *ctx,
                struct store_watch **ret, struct berth_err *err);
void store_unwatch(struct store_watch *w); /* may be called from its own callback; NULL is fine */

/* Of the last record; 0: there is none. */
uint64_t store_log_last(const struct store *s);
/* Of the last record that was trimmed; 0: none. Of a store that another process writes: as of when it was opened. */
uint64_t store_log_trimmed(const struct store *s);
/* Records from seq on, in order; 0: from the first that is there. -ESTALE: that one was trimmed. */
int store_log(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err);
/* The same up to and including `to_seq`, on any thread while the store is open, beside whatever it does; of a store in
 * memory on its own thread only. */
int store_log_beside(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                     struct berth_err *err);
/* Forgets records up to and including this one, which the caller has elsewhere. They are not read again, and leave the
 * disk bit by bit; after a crash some may be there once more. The chain goes on. */
int store_log_trim(struct store *s, uint64_t seq, struct berth_err *err);

/* The chain after one more record, given the chain before it (0 before the first): for those who keep records elsewhere. */
uint64_t store_chain(uint64_t chain, uint64_t seq, uint64_t revision, struct bytes record);

/* Forgets history up to and including this revision; present values stay. */
int store_compact(struct store *s, uint64_t revision, struct berth_err *err);
/* Writes a consistent copy into one new file (which must not exist; it appears whole, synced, or not at all). The store
 * goes on meanwhile. */
int store_backup(struct store *s, const char *path, struct berth_err *err);
/* Bytes on disk, or in memory. */
uint64_t store_size(const struct store *s);

/* ---- kinds --------------------------------------------------------------------------------------------------------- */

struct store_options {
    bool create;   /* make it if it is not there; else -ENOENT */
    bool readonly; /* for tools beside a running daemon: no lock, no writes */
};

/* Opens DIR/store.db, which one process has at a time (-EBUSY with its pid). Refuses, with a sentence that says what to
 * do and changing nothing: a file that is no store of ours, a newer format, damage anywhere (every value and record has
 * a checksum, the log is chained, all are verified here). A tail that was never acknowledged may be cut. */
int store_sqlite_open(const char *dir, const struct store_options *options, struct store **ret, struct berth_err *err);
/* Makes DIR/store.db from a backup, after verifying it. -EEXIST when there is a store already. */
int store_sqlite_restore(const char *backup, const char *dir, struct berth_err *err);

/* Keeps everything in memory. What was submitted happens in store_pump, not before. */
struct store *store_memory_new(void);
/* A copy of what is durable: what a crash now would leave. Submitted but unpumped transactions are lost. */
struct store *store_memory_crash(const struct store *memory);
/* The next n transactions fail with this code (ENOSPC, EIO); for tests. */
void store_memory_fail(struct store *memory, int code, size_t n);

/* ---- for those who write a kind ------------------------------------------------------------------------------------- */

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
    int (*log_beside)(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                      struct berth_err *err);
    int (*log_trim)(struct store *s, uint64_t seq, struct berth_err *err);
    int (*compact)(struct store *s, uint64_t revision, struct berth_err *err);
    int (*backup)(struct store *s, const char *path, struct berth_err *err);
    uint64_t (*size)(const struct store *s);
};
