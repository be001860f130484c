/* docset.c - applies records to a set of documents. */
#include "journal/docset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "journal/scan.h"

static void document_free(struct docset_document *d)
{
    mem_free(d->key);
    mem_free(d->text);
    *d = (struct docset_document){0};
}

void docset_done(struct docset *f)
{
    for (size_t i = 0; i < f->list.len; i++)
        document_free(&f->list.at[i]);
    vec_done(&f->list);
    map_done(&f->map);
}

static bool same_key(const void *ctx, uint32_t at, const void *key)
{
    return strcmp(((const struct docset *)ctx)->list.at[at].key, key) == 0;
}

void docset_put(struct docset *f, const char *key, uint64_t revision, struct bytes doc)
{
    if (f->keeps && !f->keeps(key))
        return;
    uint64_t hash = hash_bytes(key, strlen(key), 0);
    uint32_t at = map_find(&f->map, hash, same_key, f, key);
    if (at == MAP_NONE) {
        struct docset_document fresh = {.key = mem_strdup(key)};
        at = (uint32_t)f->list.len;
        map_add(&f->map, hash, at);
        vec_push(&f->list, fresh);
    }
    struct docset_document *d = &f->list.at[at];
    f->bytes += doc.len - d->len;
    d->text = mem_resize(d->text, doc.len + 1, 1);
    memcpy(d->text, doc.at, doc.len);
    d->len = doc.len;
    d->revision = revision;
}

static void drop(struct docset *f, const char *key)
{
    uint64_t hash = hash_bytes(key, strlen(key), 0);
    uint32_t at = map_find(&f->map, hash, same_key, f, key);
    if (at == MAP_NONE)
        return;
    f->bytes -= f->list.at[at].len;
    map_drop(&f->map, hash, at);
    document_free(&f->list.at[at]);
}

int docset_record(struct docset *f, const struct store_record *record, struct berth_err *err)
{
    struct bytes changes = {0}, change, key, doc;
    CLEANUP(str) struct str text = {0};
    const char *at = NULL;
    if (!scan_array(record->record, "changes", &changes))
        return err_set(err, EBADMSG, "record %" PRIu64 " has no changes", record->seq);
    while (scan_next(changes, &at, &change)) {
        const char *in = NULL;
        str_clear(&text);
        if (!scan_next(change, &in, &key) || !scan_text(key, &text))
            return err_set(err, EBADMSG, "record %" PRIu64 ": a change has no key", record->seq);
        /* without the closing bracket */
        doc = (struct bytes){in, (size_t)((const char *)change.at + change.len - 1 - in)};
        if (doc.len == 0)
            continue; /* left out */
        if (doc.len == 4 && memcmp(doc.at, "null", 4) == 0)
            drop(f, str_text(&text));
        else
            docset_put(f, str_text(&text), record->revision, doc);
    }
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct docset_document *)a)->key, ((const struct docset_document *)b)->key);
}

void docset_sort(struct docset *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->list.len; i++)
        if (f->list.at[i].key)
            f->list.at[kept++] = f->list.at[i];
    f->list.len = kept;
    if (kept)
        qsort(f->list.at, kept, sizeof *f->list.at, by_key);
    map_done(&f->map);
}
