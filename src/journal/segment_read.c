/* segment_read.c - reads and verifies segment files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "journal/scan.h"
#include "journal/segment_parts.h"

struct opened {
    const char *path;
    int fd;
    struct segment said;
    VEC(struct segment_frame) frames;
    uint64_t frames_end; /* offset of the foot */
};

static void opened_cleanup(struct opened *o)
{
    if (o->fd >= 0)
        (void)close(o->fd);
    vec_done(&o->frames);
}

static int damaged(const struct opened *o, struct berth_err *err, const char *what)
{
    return err_set(err, EBADMSG, "%s is not a segment of a journal, or is damaged: %s", o->path, what);
}

static int get(const struct opened *o, uint64_t offset, void *buf, size_t len, struct berth_err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(o->fd, (char *)buf + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot read %s: %s", o->path, strerror(errno));
        if (n == 0)
            return damaged(o, err, "the file is truncated");
        done += (size_t)n;
    }
    return 0;
}

static uint32_t word_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Returns the contents of a skippable frame; the caller frees it. */
static int skipped_read(const struct opened *o, uint64_t offset, char **ret, size_t *ret_len, struct berth_err *err)
{
    unsigned char head[SKIPPED_HEAD];
    int rc = get(o, offset, head, sizeof head, err);
    if (rc < 0)
        return rc;
    uint32_t len = word_at(head + 4);
    if (word_at(head) != SKIPPED_MAGIC || len > FOOT_MAX)
        return damaged(o, err, "the signature is missing");
    char *text = mem_alloc(len + 1);
    rc = get(o, offset + SKIPPED_HEAD, text, len, err);
    if (rc < 0) {
        mem_free(text);
        return rc;
    }
    text[len] = 0;
    *ret = text;
    *ret_len = len;
    return 0;
}

static int head_read(struct opened *o, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    int rc = skipped_read(o, 0, &text, &len, err);
    if (rc < 0)
        return rc;
    struct bytes head = {text, len}, base = {0};
    struct segment *s = &o->said;
    uint64_t version = scan_u64(head, "berth_journal", 0);
    if (version > SEGMENT_VERSION)
        return err_set(err, ENOTSUP, "%s is of a newer version (%" PRIu64 ", this program supports up to %d); upgrade",
                       o->path, version, SEGMENT_VERSION);
    if (version == 0 || !scan_member(head, "base", &base))
        return damaged(o, err, "the header cannot be read");
    s->base = SEGMENT_BASES;
    for (unsigned i = 0; i < SEGMENT_BASES; i++)
        if (base.len == strlen(segment_bases[i]) + 2 &&
            memcmp((const char *)base.at + 1, segment_bases[i], base.len - 2) == 0)
            s->base = (enum segment_base)i;
    s->number = scan_u64(head, "segment", 0);
    s->first = scan_u64(head, "first", 0);
    s->base_revision = scan_u64(head, "base_revision", 0);
    s->chain_before = scan_hex(head, "chain", 0);
    s->previous = scan_hex(head, "previous", 0);
    s->hash = hash_bytes(text, len, 0);
    if (s->base == SEGMENT_BASES || s->number == 0 || s->first == 0)
        return damaged(o, err, "the header cannot be read");
    o->frames_end = SKIPPED_HEAD + len; /* as far as is known yet */
    return 0;
}

static int frames_read(struct opened *o, struct bytes list, struct berth_err *err)
{
    const char *at = NULL;
    uint64_t offset = o->frames_end;
    for (struct bytes one; scan_next(list, &at, &one);) {
        uint64_t numbers[4] = {0};
        const char *in = NULL;
        struct bytes part = {0};
        struct segment_frame f;
        for (size_t i = 0; i < 4; i++) {
            if (!scan_next(one, &in, &part) || part.len == 0 || part.len > 20)
                return damaged(o, err, "the index cannot be read");
            for (size_t k = 0; k < part.len; k++)
                numbers[i] = numbers[i] * 10 + (uint64_t)(((const char *)part.at)[k] - '0');
        }
        if (!scan_next(one, &in, &part) || part.len != 18)
            return damaged(o, err, "the index cannot be read");
        f = (struct segment_frame){numbers[0], numbers[1], numbers[2], numbers[3], 0};
        for (size_t k = 1; k < 17; k++) {
            char c = ((const char *)part.at)[k];
            f.hash = f.hash << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        if (f.offset != offset || f.bytes > FRAME_PACKED_MAX || f.unpacked > FRAME_BYTES + (uint64_t)SEGMENT_LINE_MAX)
            return damaged(o, err, "the index is invalid");
        offset += f.bytes;
        o->said.hash = hash_pair(o->said.hash, f.hash);
        vec_push(&o->frames, f);
    }
    o->frames_end = offset;
    return 0;
}

static int foot_read(struct opened *o, struct berth_err *err)
{
    unsigned char tail[FOOT_TAIL];
    struct segment *s = &o->said;
    if (s->file_bytes < FOOT_TAIL)
        return damaged(o, err, "the file is truncated");
    int rc = get(o, s->file_bytes - FOOT_TAIL, tail, sizeof tail, err);
    if (rc < 0)
        return rc;
    uint64_t text_len = word_at(tail);
    if (memcmp(tail + 4, FOOT_MARK, 4) != 0 || text_len + FOOT_TAIL + SKIPPED_HEAD > s->file_bytes)
        return damaged(o, err, "the end is missing");
    uint64_t begin = s->file_bytes - FOOT_TAIL - text_len - SKIPPED_HEAD;
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    rc = skipped_read(o, begin, &text, &len, err);
    if (rc < 0)
        return rc;
    assert(text);
    struct bytes foot = {text, (size_t)text_len}, list = {0};
    const char *hashed = memmem(text, len, "],\"hash\":", 9);
    if (len != text_len + FOOT_TAIL || !scan_member(foot, "frames", &list) || !hashed)
        return damaged(o, err, "the footer cannot be read");
    s->last = scan_u64(foot, "last", 0);
    s->last_revision = scan_u64(foot, "last_revision", 0);
    s->chain = scan_hex(foot, "chain", 0);
    s->from_ns = scan_i64(foot, "from", 0);
    s->to_ns = scan_i64(foot, "to", 0);
    s->documents = scan_u64(foot, "documents", 0);
    s->document_bytes = scan_u64(foot, "document_bytes", 0);
    s->record_bytes = scan_u64(foot, "record_bytes", 0);
    s->since_bytes = scan_u64(foot, "since_bytes", 0);
    rc = frames_read(o, list, err);
    if (rc < 0)
        return rc;
    s->hash = hash_bytes(text, (size_t)(hashed + 1 - text), s->hash);
    if (s->hash != scan_hex(foot, "hash", 0) || o->frames_end != begin)
        return damaged(o, err, "the checksum is wrong");
    return 0;
}

static int opened_begin(struct opened *o, const char *path, struct berth_err *err)
{
    struct stat st;
    *o = (struct opened){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (o->fd < 0 || fstat(o->fd, &st) < 0)
        return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
    o->said.file_bytes = (uint64_t)st.st_size;
    int rc = head_read(o, err);
    return rc < 0 ? rc : foot_read(o, err);
}

int segment_read_info(const char *path, struct segment *ret, struct berth_err *err)
{
    CLEANUP(opened) struct opened o = {.fd = -1};
    int rc = opened_begin(&o, path, err);
    if (rc == 0)
        *ret = o.said;
    return rc;
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* Parses the exact output of segment_line_write: the part before the record is short, and the record extends to the
 * last brace. */
static bool record_line_read(struct bytes line, struct segment_line *ret)
{
    enum { BEFORE_MAX = 128 };
    const char *at = line.at, *end = at + line.len;
    const char *value = memmem(at, line.len < BEFORE_MAX ? line.len : BEFORE_MAX, "\"record\":", 9);
    if (!value || value + 11 > end || end[-1] != '}' || strncmp(at, "{\"seq\":", 7) != 0)
        return false;
    struct bytes before = {at, (size_t)(value - at)};
    value += 9;
    *ret = (struct segment_line){.revision = scan_u64(before, "revision", 0)};
    ret->record = (struct store_record){
        scan_u64(before, "seq", 0), ret->revision, scan_hex(before, "chain", 0), {value, (size_t)(end - 1 - value)}
    };
    return ret->record.seq != 0;
}

bool segment_line_read(struct bytes line, struct str *key, struct segment_line *ret)
{
    struct bytes value;
    if (record_line_read(line, ret))
        return true;
    *ret = (struct segment_line){.revision = scan_u64(line, "revision", 0)};
    str_clear(key);
    if (!scan_member(line, "key", &value) || !scan_text(value, key) || !scan_member(line, "doc", &ret->doc))
        return false;
    ret->document = true;
    ret->key = str_text(key);
    return true;
}

struct segment_walk {
    struct opened *o;
    uint64_t from_seq, next, revision, chain; /* the next record; revision and chain of the record before it */
    bool chain_known;
    uint64_t documents;
    const struct segment_visitor *visitor;
    struct str key;
    struct berth_err *err;
};

static int line_visit(struct segment_walk *w, struct bytes line)
{
    struct segment_line l;
    const struct segment_visitor *v = w->visitor;
    if (!segment_line_read(line, &w->key, &l))
        return damaged(w->o, w->err, "a line is neither a record nor a document");
    if (l.document) {
        w->documents++;
        return v->document ? v->document(v->ctx, l.key, l.revision, l.doc) : 0;
    }
    const struct store_record *r = &l.record;
    if (r->seq != w->next || r->revision <= w->revision ||
        (w->chain_known && !v->skip_chain_check && r->chain != store_chain(w->chain, r->seq, r->revision, r->record)))
        return err_set(w->err, EBADMSG, "%s is damaged: the hash chain breaks at record %" PRIu64, w->o->path, r->seq);
    w->next++;
    w->revision = r->revision;
    w->chain = r->chain;
    w->chain_known = true;
    return v->record && r->seq >= w->from_seq ? v->record(v->ctx, r) : 0;
}

static int lines_visit(struct segment_walk *w, const char *at, size_t len)
{
    int rc = 0;
    for (const char *end = at + len; rc == 0 && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            return damaged(w->o, w->err, "the last line is incomplete");
        rc = line_visit(w, (struct bytes){at, (size_t)(stop - at)});
        at = stop + 1;
    }
    return rc;
}

/* Reads frame i. Decompresses and visits the frame unless all of its records are before from_seq. */
static int frame_visit(struct segment_walk *w, size_t i)
{
    const struct opened *o = w->o;
    const struct segment_frame *f = &o->frames.at[i];
    uint64_t end = i + 1 < o->frames.len ? o->frames.at[i + 1].first : o->said.last + 1;
    char *room = mem_alloc(f->bytes + 1), *text = NULL;
    int rc = get(o, f->offset, room, f->bytes, w->err);
    if (rc == 0 && hash_bytes(room, f->bytes, 0) != f->hash)
        rc = damaged(o, w->err, "the checksum of a frame is wrong");
    bool before = f->first ? end <= w->from_seq : !w->visitor->document;
    if (rc == 0 && before) {
        if (f->first) {
            w->next = end;
            w->chain_known = false;
        } else {
            w->documents = o->said.documents; /* verified only by the checksum */
        }
    } else if (rc == 0) {
        text = mem_alloc(f->unpacked + 1);
        size_t len = ZSTD_decompress(text, f->unpacked, room, f->bytes);
        if (ZSTD_isError(len) || len != f->unpacked)
            rc = damaged(o, w->err, ZSTD_isError(len) ? ZSTD_getErrorName(len) : "a frame is too short");
        else
            rc = lines_visit(w, text, len);
    }
    mem_free(room);
    mem_free(text);
    return rc;
}

int segment_walk(const char *path, uint64_t from_seq, const struct segment_visitor *visitor, struct berth_err *err)
{
    CLEANUP(opened) struct opened o = {.fd = -1};
    struct berth_err unheard;
    int rc = opened_begin(&o, path, err);
    if (rc < 0)
        return rc;
    struct segment_walk w = {.o = &o,
                             .from_seq = from_seq,
                             .next = o.said.first,
                             .revision = o.said.base_revision,
                             .chain = o.said.chain_before,
                             .chain_known = o.said.base != SEGMENT_LOOSE,
                             .visitor = visitor,
                             .err = err ? err : &unheard};
    for (size_t i = 0; rc == 0 && i < o.frames.len; i++)
        rc = frame_visit(&w, i);
    if (rc == 0 &&
        (w.next != o.said.last + 1 || w.documents != o.said.documents || (w.chain_known && w.chain != o.said.chain)))
        rc = damaged(&o, w.err, "the contents do not match the footer");
    str_done(&w.key);
    return rc;
}
