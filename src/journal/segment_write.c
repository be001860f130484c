/* segment_write.c - writes segment files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "journal/scan.h"
#include "journal/segment_parts.h"

/* Level 1 compresses a journal to a tenth, at some hundred MB/s; higher levels gain little. */
enum { LEVEL = 1 };

const char *const segment_bases[SEGMENT_BASES] = {"goes-on", "checkpoint", "beginning", "loose"};

struct segment_writer {
    char *path;
    int fd;
    struct segment seen; /* contents so far */
    uint64_t offset;
    struct str lines; /* lines of the next frame */
    uint64_t lines_first;
    ZSTD_CCtx *zstd;
    void *packed;
    size_t packed_cap;
    VEC(struct segment_frame) frames;
};

void segment_line_write(struct str *to, const struct store_record *record)
{
    str_addf(to, "{\"seq\":%" PRIu64 ",\"revision\":%" PRIu64 ",\"chain\":\"%016" PRIx64 "\",\"record\":", record->seq,
             record->revision, record->chain);
    str_add_bytes(to, record->record.at, record->record.len);
    str_add(to, "}\n");
}

void segment_line_write_document(struct str *to, const char *key, uint64_t revision, struct bytes doc)
{
    str_add(to, "{\"key\":");
    str_add_json(to, key);
    str_addf(to, ",\"revision\":%" PRIu64 ",\"doc\":", revision);
    str_add_bytes(to, doc.at, doc.len);
    str_add(to, "}\n");
}

static void writer_free(struct segment_writer *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    (void)ZSTD_freeCCtx(w->zstd);
    mem_free(w->packed);
    vec_done(&w->frames);
    str_done(&w->lines);
    mem_free(w->path);
    mem_free(w);
}

void segment_abandon(struct segment_writer *w)
{
    if (!w)
        return;
    (void)unlink(w->path);
    writer_free(w);
}

static int put(struct segment_writer *w, const void *p, size_t len, struct berth_err *err)
{
    const char *at = p;
    while (len) {
        ssize_t n = write(w->fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, n < 0 ? errno : EIO, "cannot write %s: %s", w->path, strerror(n < 0 ? errno : EIO));
        at += n;
        len -= (size_t)n;
        w->offset += (uint64_t)n;
    }
    return 0;
}

static void add_word(struct str *to, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        str_add_char(to, (char)(word >> (8 * i) & 0xff));
}

static int put_skipped(struct segment_writer *w, const struct str *text, struct berth_err *err)
{
    CLEANUP(str) struct str head = {0};
    add_word(&head, SKIPPED_MAGIC);
    add_word(&head, (uint32_t)text->len);
    int rc = put(w, head.at, head.len, err);
    return rc < 0 ? rc : put(w, text->at, text->len, err);
}

int segment_create(const char *path, const struct segment *head, struct segment_writer **ret, struct berth_err *err)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot create %s: %s", path, strerror(errno));
    struct segment_writer *w = mem_zalloc(sizeof *w);
    *w = (struct segment_writer){.path = mem_strdup(path), .fd = fd, .seen = *head, .zstd = ZSTD_createCCtx()};
    struct segment *s = &w->seen;
    s->last = s->first - 1;
    s->last_revision = s->base_revision;
    s->chain = s->chain_before;
    s->documents = s->record_bytes = 0;
    s->from_ns = s->to_ns = 0;
    if (s->base != SEGMENT_CONTINUES)
        s->document_bytes = s->since_bytes = 0;
    CLEANUP(str) struct str text = {0};
    str_addf(&text,
             "{\"berth_journal\":%d,\"segment\":%" PRIu64 ",\"base\":\"%s\",\"first\":%" PRIu64
             ",\"base_revision\":%" PRIu64 ",\"chain\":\"%016" PRIx64 "\",\"previous\":\"%016" PRIx64 "\"}\n",
             SEGMENT_VERSION, s->number, segment_bases[s->base], s->first, s->base_revision, s->chain_before,
             s->previous);
    s->hash = hash_bytes(text.at, text.len, 0);
    int rc = w->zstd ? 0 : err_set(err, ENOMEM, "not enough memory to compress %s", path);
    if (rc == 0) {
        (void)ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
        (void)ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
        rc = put_skipped(w, &text, err);
    }
    if (rc < 0) {
        segment_abandon(w);
        return rc;
    }
    *ret = w;
    return 0;
}

static int frame_end(struct segment_writer *w, struct berth_err *err)
{
    if (w->lines.len == 0)
        return 0;
    size_t bound = ZSTD_compressBound(w->lines.len);
    if (bound > w->packed_cap) {
        mem_free(w->packed);
        w->packed = mem_alloc(bound);
        w->packed_cap = bound;
    }
    size_t len = ZSTD_compress2(w->zstd, w->packed, w->packed_cap, w->lines.at, w->lines.len);
    if (ZSTD_isError(len))
        return err_set(err, EIO, "cannot compress %s: %s", w->path, ZSTD_getErrorName(len));
    struct segment_frame frame = {w->offset, len, w->lines.len, w->lines_first, hash_bytes(w->packed, len, 0)};
    vec_push(&w->frames, frame);
    w->seen.hash = hash_pair(w->seen.hash, frame.hash);
    str_clear(&w->lines);
    return put(w, w->packed, len, err);
}

int segment_add_document(struct segment_writer *w, const char *key, uint64_t revision, struct bytes doc,
                         struct berth_err *err)
{
    size_t before = w->lines.len;
    assert(w->seen.base == SEGMENT_CHECKPOINT && w->seen.last == w->seen.first - 1);
    segment_line_write_document(&w->lines, key, revision, doc);
    w->seen.documents++;
    w->seen.document_bytes += w->lines.len - before;
    return w->lines.len >= FRAME_BYTES ? frame_end(w, err) : 0;
}

int segment_add_record(struct segment_writer *w, const struct store_record *record, struct berth_err *err)
{
    struct segment *s = &w->seen;
    /* The log has verified its own chain; only the continuation of the previous segment is verified here. */
    bool proved = record->seq != s->first || s->base == SEGMENT_LOOSE;
    if (record->seq != s->last + 1 ||
        (!proved && record->chain != store_chain(s->chain, record->seq, record->revision, record->record)))
        return err_set(err, EBADMSG, "record %" PRIu64 " does not follow record %" PRIu64 " of %s", record->seq,
                       s->last, w->path);
    if (memchr(record->record.at, '\n', record->record.len))
        return err_set(err, EBADMSG, "record %" PRIu64 " has a line break, which is not allowed in a record",
                       record->seq);
    int rc = s->last < s->first ? frame_end(w, err) : 0; /* documents have frames of their own */
    if (rc < 0)
        return rc;
    if (w->lines.len == 0)
        w->lines_first = record->seq;
    size_t before = w->lines.len;
    segment_line_write(&w->lines, record);
    s->record_bytes += w->lines.len - before;
    s->since_bytes += w->lines.len - before;
    s->last = record->seq;
    s->last_revision = record->revision;
    s->chain = record->chain;
    s->to_ns = scan_i64(record->record, "at", s->to_ns);
    s->from_ns = s->from_ns ? s->from_ns : s->to_ns;
    return w->lines.len >= FRAME_BYTES ? frame_end(w, err) : 0;
}

uint64_t segment_written(const struct segment_writer *w)
{
    return w->seen.record_bytes;
}

static void foot_write(const struct segment_writer *w, struct str *to)
{
    const struct segment *s = &w->seen;
    str_addf(to,
             "{\"last\":%" PRIu64 ",\"last_revision\":%" PRIu64 ",\"chain\":\"%016" PRIx64 "\",\"from\":%" PRId64
             ",\"to\":%" PRId64 ",\"documents\":%" PRIu64 ",\"document_bytes\":%" PRIu64 ",\"record_bytes\":%" PRIu64
             ",\"since_bytes\":%" PRIu64 ",\"frames\":[",
             s->last, s->last_revision, s->chain, s->from_ns, s->to_ns, s->documents, s->document_bytes,
             s->record_bytes, s->since_bytes);
    for (size_t i = 0; i < w->frames.len; i++) {
        const struct segment_frame *f = &w->frames.at[i];
        str_addf(to, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\"%016" PRIx64 "\"]", i ? "," : "", f->offset,
                 f->bytes, f->unpacked, f->first, f->hash);
    }
    str_add_char(to, ']');
}

int segment_finish(struct segment_writer *w, struct segment *ret, struct berth_err *err)
{
    CLEANUP(str) struct str foot = {0};
    int rc = frame_end(w, err);
    foot_write(w, &foot);
    struct segment *s = &w->seen;
    s->hash = hash_bytes(foot.at, foot.len, s->hash);
    str_addf(&foot, ",\"hash\":\"%016" PRIx64 "\"}\n", s->hash);
    uint32_t text_len = (uint32_t)foot.len;
    add_word(&foot, text_len);
    str_add(&foot, FOOT_MARK);
    if (rc == 0)
        rc = put_skipped(w, &foot, err);
    if (rc < 0) {
        segment_abandon(w);
        return rc;
    }
    s->file_bytes = w->offset;
    *ret = *s;
    writer_free(w);
    return 0;
}
