/* docset.h - the documents that a series of records leaves: each key with its last text.
 *
 * What a checkpoint is made of. Knows of documents only that they stand in `changes` (record.h).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "store/store.h"

struct docset_document {
    char *key; /* NULL: it is gone */
    uint64_t revision;
    char *text;
    size_t len;
};

struct docset {
    bool (*keeps)(const char *key); /* does this document belong to the state? NULL: all do */
    VEC(struct docset_document) list;
    struct map map;
    uint64_t bytes; /* of all texts */
};

void docset_done(struct docset *f);
static inline void docset_cleanup(struct docset *f)
{
    docset_done(f);
}
void docset_put(struct docset *f, const char *key, uint64_t revision, struct bytes doc);
/* -EBADMSG: it has no changes to be found. */
int docset_record(struct docset *f, const struct store_record *record, struct berth_err *err);
/* Sorts by key; then nothing more may be added. The list has documents only. */
void docset_sort(struct docset *f);
