/* seal.c - seals records of the log in segments, and makes checkpoints. */
#include "journal/seal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/shelf.h"
#include "store/publish.h"

#define UNDER_WAY "next.partial"
/* A new checkpoint is made when the records since the last one have this many times its bytes. */
enum { RECORDS_PER_CHECKPOINT = 4 };

struct seal_run {
    const struct seal_options *o;
    struct segment_writer *w;
    struct berth_err *err;
};

static void step(const struct seal_options *o, enum seal_step at)
{
    if (o->step)
        o->step(o->ctx, at);
}

int seal_status_read(const char *dir, struct seal_status *ret, struct berth_err *err)
{
    CLEANUP(shelf) struct shelf s = {0};
    int rc = shelf_add_folder(&s, dir, err);
    if (rc < 0)
        return rc;
    *ret = (struct seal_status){.segments = s.items.len, .rooted = shelf_base(&s) < s.items.len};
    for (size_t i = 0; i < s.items.len; i++) {
        const struct segment *at = &s.items.at[i].segment;
        ret->last = at->last;
        ret->to_ns = at->to_ns ? at->to_ns : ret->to_ns;
        ret->bytes += at->file_bytes;
    }
    return 0;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------ */

struct docset_builder {
    struct docset *docs;
    struct berth_err *err;
};

static int gather_document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    docset_put(((struct docset_builder *)ctx)->docs, key, revision, doc);
    return 0;
}

static int gather_record(void *ctx, const struct store_record *record)
{
    struct docset_builder *f = ctx;
    return docset_record(f->docs, record, f->err);
}

/* Rebuilds the state at the end of the last segment. */
static int gather_shelf(const struct shelf *s, struct docset *to, struct berth_err *err)
{
    struct docset_builder gathering = {to, err};
    struct segment_visitor visitor = {gather_document, gather_record, &gathering, true};
    int rc = 0;
    for (size_t i = shelf_base(s); rc == 0 && i < s->items.len; i++) {
        rc = segment_walk(s->items.at[i].path, 0, &visitor, err);
        visitor.document = NULL; /* documents of later checkpoints are already included */
    }
    docset_sort(to);
    return rc;
}

static int write_documents(struct segment_writer *w, const struct docset *f, struct berth_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->list.len; i++) {
        const struct docset_document *d = &f->list.at[i];
        rc = segment_add_document(w, d->key, d->revision, (struct bytes){d->text, d->len}, err);
    }
    return rc;
}

/* ---- a segment -------------------------------------------------------------------------------------------------- */

/* Returns the head of the next segment. */
static struct segment head_of(const struct seal_options *o, const struct shelf *s)
{
    const struct segment *last = s->items.len ? &s->items.at[s->items.len - 1].segment : NULL;
    struct segment head = {.number = last ? last->number + 1 : 1, .first = last ? last->last + 1 : 1};
    if (last) {
        head.previous = last->hash;
        head.base_revision = last->last_revision;
        head.chain_before = last->chain;
        head.document_bytes = last->document_bytes;
        head.since_bytes = last->since_bytes;
    }
    bool rooted = last && shelf_base(s) < s->items.len;
    if (head.first <= o->trimmed) {
        head.base = SEGMENT_LOOSE;
        head.first = o->trimmed + 1;
        head.base_revision = head.chain_before = 0;
    } else if (!last) {
        head.base = SEGMENT_BEGINNING;
    } else if (!rooted && o->anchor && head.first == o->upto + 1) {
        head.base = SEGMENT_CHECKPOINT;
        head.base_revision = o->anchor_revision;
    } else if (rooted && head.first <= o->upto && last->since_bytes >= RECORDS_PER_CHECKPOINT * last->document_bytes) {
        head.base = SEGMENT_CHECKPOINT;
    }
    return head;
}

static int seal_record(void *ctx, const struct store_record *record)
{
    struct seal_run *s = ctx;
    int rc = segment_add_record(s->w, record, s->err);
    return rc == 0 && segment_written(s->w) >= s->o->bytes_max ? 1 : rc;
}

static int write_segment(const struct seal_options *o, const struct shelf *s, const struct segment *head,
                         const char *path, struct segment *ret, struct berth_err *err)
{
    struct seal_run sealing = {.o = o, .err = err};
    CLEANUP(docset) struct docset made = {.keeps = o->keeps};
    const struct docset *documents = head->base == SEGMENT_CHECKPOINT ? &made : NULL;
    int rc = 0;
    if (documents && head->first == o->upto + 1)
        documents = o->anchor;
    else if (documents)
        rc = gather_shelf(s, &made, err);
    if (rc == 0)
        rc = segment_create(path, head, &sealing.w, err);
    if (rc < 0)
        return rc;
    step(o, SEAL_BEGUN);
    if (documents)
        rc = write_documents(sealing.w, documents, err);
    if (rc == 0 && head->first <= o->upto)
        rc = store_log_concurrent(o->store, head->first, o->upto, seal_record, &sealing, err);
    if (rc >= 0)
        return segment_finish(sealing.w, ret, err);
    segment_abandon(sealing.w);
    return rc;
}

int seal_next(const struct seal_options *o, struct segment *ret, struct berth_err *err)
{
    CLEANUP(shelf) struct shelf s = {0};
    struct berth_err unheard;
    err = err ? err : &unheard;
    if (mkdir(o->dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot create %s: %s", o->dir, strerror(errno));
    int rc = shelf_add_folder(&s, o->dir, err);
    if (rc < 0)
        return rc;
    struct segment head = head_of(o, &s), made;
    if (head.first > o->upto + 1)
        return err_set(err, ENOTUNIQ,
                       "the segments in %s go up to record %" PRIu64 ", but the log ends at %" PRIu64
                       ": they belong to another history; move them to another folder",
                       o->dir, head.first - 1, o->upto);
    if (head.first > o->upto && head.base != SEGMENT_CHECKPOINT)
        return 0;
    CLEANUP(str) struct str partial = {0};
    CLEANUP(mem) char *path = shelf_path(o->dir, head.number);
    str_addf(&partial, "%s/" UNDER_WAY, o->dir);
    rc = write_segment(o, &s, &head, partial.at, &made, err);
    if (rc == 0) {
        step(o, SEAL_WRITTEN);
        rc = folder_file_publish(partial.at, path, err);
        if (rc < 0)
            (void)unlink(partial.at);
    }
    if (rc < 0)
        return rc;
    step(o, SEAL_NAMED);
    *ret = made;
    return 1;
}
