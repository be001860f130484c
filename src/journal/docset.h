/* docset.h - the set of documents after a series of records: each key with its latest text.
 *
 * Checkpoints are made from it. The only knowledge about documents is their position in `changes` (record.h).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "store/store.h"

struct docset_document {
    char *key; /* NULL: deleted */
    uint64_t revision;
    char *text;
    size_t len;
};

struct docset {
    bool (*keeps)(const char *key); /* whether a document belongs to the state; NULL: all do */
    VEC(struct docset_document) list;
    struct map map;
    uint64_t bytes; /* size of all texts */
};

void docset_done(struct docset *f);
static inline void docset_cleanup(struct docset *f)
{
    docset_done(f);
}
void docset_put(struct docset *f, const char *key, uint64_t revision, struct bytes doc);
/* Applies the changes of a record. Returns -EBADMSG if the record has no readable changes. */
int docset_record(struct docset *f, const struct store_record *record, struct berth_err *err);
/* Sorts by key and removes deleted entries. Nothing may be added afterwards. */
void docset_sort(struct docset *f);
