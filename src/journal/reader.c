/* reader.c - reads segments, the log, and exports. */
#include "journal/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "journal/scan.h"

struct journal {
    struct shelf shelf;
    struct store *store; /* NULL: none */
    bool borrowed;
    bool beside;            /* the store belongs to another thread: read only with store_log_concurrent */
    uint64_t trimmed, upto; /* of that store */
    char *dir;              /* directory of the segments; NULL: none */
    char *lines;            /* path of a file of JSON lines; NULL: none */
};

void journal_close(struct journal *j)
{
    if (!j)
        return;
    shelf_done(&j->shelf);
    if (!j->borrowed)
        store_close(j->store);
    mem_free(j->dir);
    mem_free(j->lines);
    mem_free(j);
}

struct journal *journal_of_store(struct store *store)
{
    struct journal *j = mem_zalloc(sizeof *j);
    j->store = store;
    j->borrowed = true;
    return j;
}

const struct shelf *journal_shelf(const struct journal *j)
{
    return &j->shelf;
}

uint64_t journal_log_last(const struct journal *j)
{
    if (j->beside)
        return j->upto;
    return j->store ? store_log_last(j->store) : 0;
}

static uint64_t log_trimmed(const struct journal *j)
{
    return j->beside ? j->trimmed : store_log_trimmed(j->store);
}

static int log_visit(const struct journal *j, uint64_t from, store_visit_record *visit, void *ctx,
                     struct berth_err *err)
{
    return j->beside ? store_log_concurrent(j->store, from, j->upto, visit, ctx, err)
                     : store_log(j->store, from, visit, ctx, err);
}

int64_t journal_record_ns(const struct store_record *record)
{
    return scan_i64(record->record, "at", 0);
}

/* ---- sources ---------------------------------------------------------------------------------------------------- */

/* Adds the segments of both directories. The source directory of moves is read first, so that a segment that is moved
 * meanwhile is found in at least one of them. */
static int shelf_fill(struct journal *j, struct berth_err *err)
{
    CLEANUP(str) struct str exported = {0};
    str_addf(&exported, "%s/" SHELF_EXPORTED, j->dir);
    int rc = shelf_add_folder(&j->shelf, j->dir, err);
    return rc < 0 ? rc : shelf_add_folder(&j->shelf, exported.at, err);
}

int journal_concurrent(struct store *store, const char *dir, uint64_t trimmed, uint64_t upto, struct journal **ret,
                       struct berth_err *err)
{
    CLEANUP(journal) struct journal *j = journal_of_store(store);
    j->beside = true;
    j->trimmed = trimmed;
    j->upto = upto;
    j->dir = dir ? mem_strdup(dir) : NULL;
    int rc = dir ? shelf_fill(j, err) : 0;
    if (rc == 0)
        *ret = take_ptr(&j);
    return rc;
}

static int open_data(struct journal *j, const char *data, struct berth_err *err)
{
    CLEANUP(str) struct str dir = {0};
    str_addf(&dir, "%s/" SHELF_FOLDER, data);
    j->dir = str_take(&dir);
    /* Segments are read after the log was opened, so they include records that leave the log meanwhile. */
    int rc = store_sqlite_open(data, &(struct store_options){.readonly = true}, &j->store, err);
    if (rc == -ENOENT)
        j->store = NULL; /* segments alone are sufficient */
    int shelved = shelf_fill(j, err);
    if (shelved < 0 || (rc == -ENOENT && j->shelf.items.len))
        rc = shelved;
    return rc;
}

static int open_file(struct journal *j, const char *path, struct berth_err *err)
{
    struct stat st;
    size_t before = j->shelf.items.len;
    if (stat(path, &st) < 0)
        return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        int rc = shelf_add_folder(&j->shelf, path, err);
        if (rc == 0 && j->shelf.items.len == before)
            return err_set(err, ENOENT,
                           "%s has no segments of a journal (NNNNNN.seg); for the folder of a daemon "
                           "use --data",
                           path);
        return rc;
    }
    size_t len = strlen(path);
    if (len > 4 && strcmp(path + len - 4, SHELF_ENDING) == 0)
        return shelf_add_file(&j->shelf, path, err);
    if (j->lines)
        return err_set(err, EINVAL, "%s and %s: only one file of JSON lines can be read at a time", j->lines, path);
    j->lines = mem_strdup(path);
    return 0;
}

int journal_open(const struct journal_sources *sources, struct journal **ret, struct berth_err *err)
{
    CLEANUP(journal) struct journal *j = mem_zalloc(sizeof *j);
    int rc = 0;
    if (!sources->data == !sources->files_len)
        return err_set(err, EINVAL,
                       sources->data ? "the folder of a daemon and files cannot be read together"
                                     : "nothing to read: expected the folder of a daemon, or files");
    if (sources->data)
        rc = open_data(j, sources->data, err);
    for (size_t i = 0; rc == 0 && i < sources->files_len; i++)
        rc = open_file(j, sources->files[i], err);
    if (rc == 0 && j->lines && j->shelf.items.len)
        rc = err_set(err, EINVAL, "segments and a file of JSON lines cannot be read together");
    if (rc == 0)
        *ret = take_ptr(&j);
    return rc;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

struct journal_read {
    struct journal *j;
    const struct journal_range *range;
    const struct journal_visitor *v;
    struct berth_err *err;
    uint64_t last, chain; /* the last record read; 0: none */
    uint64_t total, done;
    bool started;
};

enum { VISIT_DONE = 1000001 }; /* distinct from all results of visitors */

static int start(struct journal_read *r, enum journal_start how, uint64_t revision, uint64_t first)
{
    struct journal_break b = {how, revision, r->last, first};
    r->started = true;
    return r->v->start ? r->v->start(r->v->ctx, &b) : 0;
}

static int visit_document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    struct journal_read *r = ctx;
    return r->v->document ? r->v->document(r->v->ctx, key, revision, doc) : 0;
}

static int visit_record(void *ctx, const struct store_record *record)
{
    struct journal_read *r = ctx;
    const struct journal_range *range = r->range;
    enum { TELL_EVERY = 256 };
    if (record->seq <= r->last)
        return 0; /* the record was sealed in a segment meanwhile */
    if ((range->to_seq && record->seq > range->to_seq) || (range->to_ns && journal_record_ns(record) > range->to_ns))
        return VISIT_DONE;
    bool early = range->bare &&
                 ((record->seq < range->from_seq) || (range->from_ns && journal_record_ns(record) < range->from_ns));
    r->last = record->seq;
    r->chain = record->chain;
    if (++r->done % TELL_EVERY == 0 && r->v->progress)
        r->v->progress(r->v->ctx, r->done, r->total);
    return early || !r->v->record ? 0 : r->v->record(r->v->ctx, record);
}

/* Visits a log record. The store has verified the log; this verifies that the log continues the segments. */
static int visit_log_record(void *ctx, const struct store_record *record)
{
    struct journal_read *r = ctx;
    if (r->last && record->seq == r->last + 1 &&
        record->chain != store_chain(r->chain, record->seq, record->revision, record->record))
        return err_set(r->err, EBADMSG,
                       "record %" PRIu64 " of the log does not follow the segments: they belong to another history",
                       record->seq);
    return visit_record(r, record);
}

/* Returns the item to begin with: the last one from which everything in the range can be reached, with its state if
 * possible. */
static size_t first_item(const struct journal_read *r)
{
    const struct shelf *s = &r->j->shelf;
    const struct journal_range *range = r->range;
    size_t at = 0;
    for (size_t i = 0; i < s->items.len; i++) {
        const struct segment *g = &s->items.at[i].segment;
        bool early =
            (!range->from_seq || g->first <= range->from_seq) && (!range->from_ns || g->from_ns <= range->from_ns);
        if ((range->from_seq || range->from_ns) && early && (range->bare || g->base != SEGMENT_CONTINUES))
            at = i;
    }
    return at;
}

static enum journal_start start_of(const struct segment *g)
{
    switch (g->base) {
    case SEGMENT_CHECKPOINT: return JOURNAL_FROM_DOCUMENTS;
    case SEGMENT_BEGINNING: return JOURNAL_FROM_NOTHING;
    default: return JOURNAL_FROM_UNKNOWN;
    }
}

static int read_shelf(struct journal_read *r)
{
    const struct shelf *s = &r->j->shelf;
    int rc = 0;
    size_t begin = first_item(r);
    for (size_t i = begin; rc == 0 && i < s->items.len; i++) {
        const struct segment *g = &s->items.at[i].segment;
        bool follows = i > begin && shelf_follows(&s->items.at[i - 1].segment, g) && g->base != SEGMENT_LOOSE;
        bool anchors = follows && g->base == SEGMENT_CHECKPOINT && shelf_base_of(s, i - 1) == s->items.len;
        struct segment_visitor visitor = {NULL, visit_record, r};
        if (!follows || anchors) {
            rc = start(r, start_of(g), g->base_revision, g->first);
            visitor.document = r->range->bare ? NULL : visit_document;
        }
        if (rc == 0)
            rc = segment_walk(s->items.at[i].path, r->range->bare ? r->range->from_seq : 0, &visitor, r->err);
        if (rc == 0 && g->last > r->last)
            r->last = g->last;
        if (rc == 0)
            r->chain = g->chain;
    }
    return rc;
}

static int read_log(struct journal_read *r)
{
    uint64_t from = r->last + 1;
    if (r->range->bare && r->range->from_seq > from)
        from = r->range->from_seq;
    int rc = 0;
    if (!r->started) {
        uint64_t trimmed = log_trimmed(r->j);
        if (trimmed >= from)
            from = trimmed + 1;
        rc = start(r, from == 1 ? JOURNAL_FROM_NOTHING : JOURNAL_FROM_UNKNOWN, 0, from);
    }
    if (rc == 0)
        rc = log_visit(r->j, from, visit_log_record, r, r->err);
    if (rc != -ESTALE)
        return rc;
    /* Records were moved to segments meanwhile, or are gone. */
    uint64_t before = r->last;
    rc = r->j->dir ? shelf_fill(r->j, r->err) : 0;
    for (size_t i = 0; rc == 0 && i < r->j->shelf.items.len; i++)
        if (r->j->shelf.items.at[i].segment.last > before) {
            struct segment_visitor visitor = {NULL, visit_record, r};
            rc = segment_walk(r->j->shelf.items.at[i].path, r->last + 1, &visitor, r->err);
        }
    if (rc == 0 && r->last == before) {
        uint64_t trimmed = log_trimmed(r->j);
        rc = start(r, JOURNAL_FROM_UNKNOWN, 0, trimmed + 1);
        if (rc == 0)
            rc = log_visit(r->j, 0, visit_record, r, r->err);
    } else if (rc == 0) {
        rc = log_visit(r->j, r->last + 1, visit_log_record, r, r->err);
    }
    return rc;
}

static int read_line(struct journal_read *r, struct bytes line, struct str *key)
{
    struct segment_line l;
    int rc = 0;
    if (!segment_line_read(line, key, &l))
        return err_set(r->err, EBADMSG, "%s: a line is neither a journal record nor a document", r->j->lines);
    if (!r->started)
        rc = start(r,
                   l.document          ? JOURNAL_FROM_DOCUMENTS
                   : l.record.seq == 1 ? JOURNAL_FROM_NOTHING
                                       : JOURNAL_FROM_UNKNOWN,
                   0, l.document ? 0 : l.record.seq);
    if (rc || l.document)
        return rc ? rc : visit_document(r, l.key, l.revision, l.doc);
    const struct store_record *record = &l.record;
    bool follows = r->last == 0 || record->seq == r->last + 1;
    if (follows && (r->last || record->seq == 1) &&
        record->chain != store_chain(r->chain, record->seq, record->revision, record->record))
        return err_set(r->err, EBADMSG, "%s is damaged: the hash chain breaks at record %" PRIu64, r->j->lines,
                       record->seq);
    if (!follows)
        rc = start(r, JOURNAL_FROM_UNKNOWN, 0, record->seq);
    return rc ? rc : visit_record(r, record);
}

static int read_lines(struct journal_read *r)
{
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    CLEANUP(str) struct str key = {0};
    FILE *in = fopen(r->j->lines, "re");
    if (!in)
        return err_set(r->err, errno, "cannot open %s: %s", r->j->lines, strerror(errno));
    for (ssize_t n; rc == 0 && (n = getline(&line, &cap, in)) > 0;) {
        size_t len = (size_t)n - (line[n - 1] == '\n');
        if (len)
            rc = read_line(r, (struct bytes){line, len}, &key);
    }
    free(line);
    (void)fclose(in);
    return rc;
}

int journal_read(struct journal *j, const struct journal_range *range, const struct journal_visitor *visitor,
                 struct berth_err *err)
{
    struct berth_err unheard;
    struct journal_read r = {.j = j, .range = range, .v = visitor, .err = err ? err : &unheard};
    uint64_t shelved = j->shelf.items.len ? j->shelf.items.at[j->shelf.items.len - 1].segment.last : 0;
    uint64_t last = journal_log_last(j) > shelved ? journal_log_last(j) : shelved;
    size_t begin = first_item(&r);
    r.total = last - (j->shelf.items.len ? j->shelf.items.at[begin].segment.first - 1 : 0);
    int rc = j->lines ? read_lines(&r) : read_shelf(&r);
    if (rc == 0 && j->store)
        rc = read_log(&r);
    return rc == VISIT_DONE ? 0 : rc;
}
