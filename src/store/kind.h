/* kind.h - what the kinds of store share: the generic half of a store, and a transaction under way.
 *
 * store.c checks arguments, keeps the watches and tells them; a kind makes transactions happen. Between the two goes a
 * `struct queued`: one copy of what was submitted, on which the kind notes what it did. Events are told from that copy,
 * so nothing is read back. Not for users of a store: they see store.h alone.
 *
 * A kind embeds `struct store` as its first member, calls store_base_init, makes a queued of whatever its `submit` is given,
 * and hands each to store_deliver from within its `pump`, in order of revisions.
 */
#pragma once

#include "base/vec.h"
#include "store/store.h"

struct store {
    const struct store_ops *ops;
    uint64_t revision, log_seq;        /* pumped so far */
    uint64_t log_trimmed;              /* records up to this one are not read again */
    size_t waiting, waiting_bytes;     /* submitted and not yet delivered */
    int trouble;                       /* of the last that was delivered: an errno */
    bool full;                         /* only what deletes is taken */
    unsigned calling;                  /* frames that call back: no pump within */
    bool closing;                      /* nothing new is taken */
    VEC(struct store_watch *) watches; /* in order of their making; ended ones stay until nobody calls back */
};

/* Where a change stands in all of history: the revision, then the place within its transaction. Never 0. On disk, where
 * places are signed 64-bit numbers: so the bits are a matter of format. */
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

/* What an operation did. */
struct effect {
    uint64_t place;    /* 0: nothing */
    uint64_t replaced; /* place of the value that was there; 0: none */
    uint64_t created;  /* revision that made the key */
};

struct queued {
    struct queued *next;
    struct store_txn txn;   /* points into this allocation */
    struct effect *effects; /* one for each operation */
    size_t bytes;           /* of keys, values and record */
    store_done *done;
    void *ctx;
    struct store_result result;
    char *text;    /* behind result.text; owned */
    bool happened; /* tell the watches */
    bool found;    /* nobody waits for it: it was found on disk after its commit had seemed to fail */
};

/* A list of transactions in order. */
struct queue {
    struct queued *first, *last;
};

void queued_push(struct queue *q, struct queued *one);
/* Moves all of `from` to the end of q. */
void queued_append(struct queue *q, struct queue *from);
/* NULL: empty. */
struct queued *queued_pop(struct queue *q);

/* Keys, values and record of a transaction, in bytes. */
size_t store_txn_bytes(const struct store_txn *txn);
/* Copies a transaction. */
struct queued *queued_new(const struct store_txn *txn, store_done *done, void *ctx);
void queued_free(struct queued *q);
/* Makes it a failure with a sentence; what was noted of effects stays, but is not told. */
void queued_fail(struct queued *q, int code, const char *text);

void store_base_init(struct store *s, const struct store_ops *ops);
/* Frees what store_base_init and the watches hold, not s. */
void store_base_done(struct store *s);
/* Tells the watches, then whoever submitted it; frees it. */
void store_deliver(struct store *s, struct queued *q);

bool store_key_valid(const char *key, size_t len);
bool store_key_under(const char *key, const char *prefix);

/* The same refusals from every kind. */
int store_refuse_compacted(uint64_t revision, uint64_t compacted, struct berth_err *err);
int store_refuse_future(uint64_t revision, uint64_t present, struct berth_err *err);
int store_refuse_trimmed(uint64_t seq, uint64_t trimmed, struct berth_err *err);
