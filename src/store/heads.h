/* heads.h - the index of present keys in memory: for each key, its last change and its creation.
 *
 * The guards and effects of a transaction are evaluated here, for all kinds of store that keep history in order of
 * places. The index holds no values. The effects of a batch can be undone until they are kept, so a failed commit
 * leaves no trace. Not thread-safe: only the thread that applies transactions uses the index.
 *
 * The index is in memory because an index on disk scatters each transaction over random pages. That costs five times
 * the CPU time and five times the bytes written, compared with an append-only history.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "store/store_impl.h"

struct head {
    char *key;               /* NULL: unused slot */
    uint64_t place, created; /* place 0: the key is absent */
};

/* The previous contents of a slot, for undo. */
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

/* A version of a key, for visiting keys in order. */
struct version {
    const char *key;
    uint64_t place;
};

struct versions {
    struct arena arena; /* memory of the keys */
    VEC(struct version) list;
};

/* A row of the history. */
struct history_row {
    uint64_t place, replaced, created;
    const char *key;
    bool gone;
};

void heads_done(struct heads *h);

/* Evaluates a transaction that would become revision `next`, and stores its result and effects in q. Returns whether
 * the transaction takes effect; otherwise it has failed, or changes nothing. */
bool heads_apply(struct heads *h, struct queued *q, uint64_t next);
/* heads_keep makes everything final that was applied or loaded since the last keep or undo. heads_undo reverts it. */
void heads_keep(struct heads *h);
void heads_undo(struct heads *h);

/* Adds a row of history while a store is loaded, in order. `swept`: rows up to this place may refer to values that were
 * deleted by compaction. Returns NULL, or a text that describes the error in the row. */
const char *heads_load(struct heads *h, const struct history_row *change, uint64_t swept);

/* Adds the present keys under the prefix that were last changed at `place` or before, unordered. Copies the keys. */
void heads_collect(const struct heads *h, const char *prefix, uint64_t place, struct versions *to);

void versions_init(struct versions *v);
void versions_done(struct versions *v);
void versions_add(struct versions *v, const char *key, uint64_t place);
/* Sorts by key. */
void versions_sort(struct versions *v);

static inline void versions_cleanup(struct versions *v)
{
    versions_done(v);
}
