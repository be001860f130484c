/* store_impl.h - shared base of the kinds of store: the generic part of a store, and queued transactions.
 *
 * store.c checks arguments and manages watches. A kind executes transactions. Both exchange `struct queued`: a copy of
 * a submitted transaction, in which the kind stores the effects. Events are created from this copy, so nothing is read
 * back from the store. Only for implementations of stores; users of a store include store.h.
 *
 * A kind embeds `struct store` as its first member, calls store_base_init, creates a `struct queued` in its `submit`,
 * and calls store_deliver for each in its `pump`, in order of revisions.
 */
#pragma once

#include "base/vec.h"
#include "store/store.h"

struct store {
    const struct store_ops *ops;
    uint64_t revision, log_seq;        /* of delivered transactions */
    uint64_t log_trimmed;              /* records up to this one were trimmed */
    size_t waiting, waiting_bytes;     /* submitted and not yet delivered */
    int last_errno;                    /* errno of the last delivered transaction */
    bool full;                         /* the disk is full: only transactions that delete are accepted */
    unsigned callback_depth;           /* depth of running callbacks: store_pump does nothing meanwhile */
    bool closing;                      /* new transactions are rejected */
    VEC(struct store_watch *) watches; /* in order of creation; ended watches stay while callbacks run */
};

/* The position of a change in the whole history: the revision, then the index of the change in its transaction. Never
 * 0. The number of bits is part of the disk format, where places are signed 64-bit numbers. */
enum { PLACE_BITS = 18 };
#define STORE_REVISION_MAX ((uint64_t)1 << (62 - PLACE_BITS))

_Static_assert(STORE_OPS_MAX <= 1 << PLACE_BITS, "every operation of a transaction has its place");

static inline uint64_t place_of(uint64_t revision, size_t nth)
{
    return (revision << PLACE_BITS) + nth;
}

static inline uint64_t place_revision(uint64_t place)
{
    return place >> PLACE_BITS;
}

/* The effect of an operation. */
struct effect {
    uint64_t place;    /* 0: no effect */
    uint64_t replaced; /* place of the replaced value; 0: none */
    uint64_t created;  /* revision that created the key */
};

struct queued {
    struct queued *next;
    struct store_txn txn;   /* its pointers point into this allocation */
    struct effect *effects; /* one per operation */
    size_t bytes;           /* size of keys, values and record */
    store_done *done;
    void *ctx;
    struct store_result result;
    char *text;       /* memory of result.text; owned */
    bool took_effect; /* the transaction took effect: call the watches */
    bool found;       /* no submitter: found on disk after its commit had seemed to fail */
};

/* A queue of transactions. */
struct txn_queue {
    struct queued *first, *last;
};

void queued_push(struct txn_queue *q, struct queued *one);
/* Moves all of `from` to the end of q. */
void queued_append(struct txn_queue *q, struct txn_queue *from);
/* Removes the first transaction. Returns NULL if the queue is empty. */
struct queued *queued_pop(struct txn_queue *q);

/* Returns the size of keys, values and record, in bytes. */
size_t store_txn_bytes(const struct store_txn *txn);
/* Copies a transaction. */
struct queued *queued_new(const struct store_txn *txn, store_done *done, void *ctx);
void queued_free(struct queued *q);
/* Marks the transaction as failed, with an error text. Stored effects remain but cause no events. */
void queued_fail(struct queued *q, int code, const char *text);

void store_base_init(struct store *s, const struct store_ops *ops);
/* Frees what store_base_init and the watches have allocated, but not s. */
void store_base_done(struct store *s);
/* Calls the watches, then the submitter's `done`, and frees the transaction. */
void store_deliver(struct store *s, struct queued *q);

bool store_key_valid(const char *key, size_t len);
bool store_key_under(const char *key, const char *prefix);

/* Set the same errors for every kind of store. */
int store_error_compacted(uint64_t revision, uint64_t compacted, struct berth_err *err);
int store_error_future(uint64_t revision, uint64_t present, struct berth_err *err);
int store_error_trimmed(uint64_t seq, uint64_t trimmed, struct berth_err *err);
