/* heads.h - the present keys in memory: where each was last written and since when it is there.
 *
 * Guards and effects of a transaction are worked out here, the same for every kind that keeps history in order of
 * places. Values are not here. What a batch of transactions does can be taken back until it is kept, so that a commit
 * that fails leaves no trace. Not shared between threads: it belongs to whoever applies transactions.
 *
 * Why in memory: an index of keys on disk scatters each transaction over random pages, which costs five times the
 * processor time and the bytes written of an append-only history.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "store/kind.h"

struct head {
    char *key;               /* NULL: the slot is free */
    uint64_t place, created; /* place 0: not there (any more) */
};

/* A slot as it was. */
struct head_before {
    uint32_t slot;
    uint64_t place, created;
};

struct heads {
    VEC(struct head) list;
    VEC(uint32_t) unused;
    struct map map; /* key -> slot */
    VEC(struct head_before) undo;
};

/* A version of a key, for a walk in order of keys. */
struct version {
    const char *key;
    uint64_t place;
};

struct versions {
    struct arena arena; /* of keys */
    VEC(struct version) list;
};

/* One row of history. */
struct change {
    uint64_t place, replaced, created;
    const char *key;
    bool gone;
};

void heads_done(struct heads *h);

/* Evaluates a transaction that would be revision `next`: notes its result and effects and returns whether it happens.
 * If not, it failed or has nothing to do. */
bool heads_apply(struct heads *h, struct queued *q, uint64_t next);
/* Makes all that was applied or loaded since the last keep or undo final, or takes it back. */
void heads_keep(struct heads *h);
void heads_undo(struct heads *h);

/* Adds a row of history while it is read back in order. `swept`: places up to this one may lack what they replaced.
 * Returns NULL, or in words what is wrong with the row. */
const char *heads_load(struct heads *h, const struct change *change, uint64_t swept);

/* Adds the keys under the prefix that stand at `place` or before, with copies of the keys, in no order. */
void heads_collect(const struct heads *h, const char *prefix, uint64_t place, struct versions *to);

void versions_init(struct versions *v);
void versions_done(struct versions *v);
void versions_add(struct versions *v, const char *key, uint64_t place);
/* By key. */
void versions_sort(struct versions *v);

static inline void versions_cleanup(struct versions *v)
{
    versions_done(v);
}
