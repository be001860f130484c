#include "control/system/backup_stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const unsigned char magic[8] = {'B', 'e', 'r', 't', 'h', 'B', 'k', '1'};

static void put_u32(unsigned char *to, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(x >> 8 * i);
}

static uint32_t get_u32(const unsigned char *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static int bytes_write(const struct backup_stream *s, const unsigned char *at, size_t len, struct berth_err *err)
{
    while (len) {
        ssize_t n = write(s->fd, at, len);
        if (n < 0 && errno != EINTR)
            return err_set(err, errno, "cannot write %s: %s", s->path, strerror(errno));
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* Returns the number of available bytes, at most `len`; negative: a read error. */
static ssize_t bytes_read(int fd, const char *path, unsigned char *to, size_t len, struct berth_err *err)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, to + done, len - done);
        if (n < 0 && errno != EINTR)
            return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            break;
        if (n > 0)
            done += (size_t)n;
    }
    return (ssize_t)done;
}

/* ---- the head --------------------------------------------------------------------------------------------------- */

static void head_write(const struct backup_head *head, unsigned char raw[static BACKUP_HEAD_LEN])
{
    memcpy(raw, magic, sizeof magic);
    put_u32(raw + 8, head->derived);
    put_u32(raw + 12, head->passes);
    put_u32(raw + 16, head->memory_mib);
    memcpy(raw + 20, head->salt, sizeof head->salt);
    memcpy(raw + 20 + BACKUP_SALT_LEN, head->stream, sizeof head->stream);
}

int backup_head_read(int fd, const char *path, unsigned char raw[static BACKUP_HEAD_LEN], struct backup_head *ret,
                     struct berth_err *err)
{
    ssize_t n = bytes_read(fd, path, raw, BACKUP_HEAD_LEN, err);

    if (n < 0)
        return (int)n;
    if (n < (ssize_t)sizeof magic || memcmp(raw, magic, sizeof magic) != 0)
        return err_set(err, EINVAL, "%s is not a backup of Berth", path);
    if (n < BACKUP_HEAD_LEN)
        return err_set(err, EBADMSG, "%s is truncated; make another backup", path);
    struct backup_head head = {.passes = get_u32(raw + 12), .memory_mib = get_u32(raw + 16)};
    uint32_t derived = get_u32(raw + 8);
    memcpy(head.salt, raw + 20, sizeof head.salt);
    memcpy(head.stream, raw + 20 + BACKUP_SALT_LEN, sizeof head.stream);
    if (derived > 1 || (derived && (head.passes < 1 || head.passes > BACKUP_PASSES_MAX || head.memory_mib < 1 ||
                                    head.memory_mib > BACKUP_MEMORY_MIB_MAX)))
        return err_set(err, EBADMSG, "the header of %s is damaged; make another backup", path);
    head.derived = derived;
    *ret = head;
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static int chunk_write(struct backup_stream *s, const unsigned char *extra, size_t extra_len, unsigned char tag,
                       struct berth_err *err)
{
    unsigned char length[4];
    unsigned long long sealed_len = 0;

    (void)crypto_secretstream_xchacha20poly1305_push(&s->state, s->sealed, &sealed_len, s->plain, s->len, extra,
                                                     extra_len, tag);
    put_u32(length, (uint32_t)sealed_len);
    s->len = 0;
    int rc = bytes_write(s, length, sizeof length, err);
    return rc < 0 ? rc : bytes_write(s, s->sealed, sealed_len, err);
}

int backup_stream_create(struct backup_stream *s, int fd, const char *path, const struct backup_key *key,
                         struct berth_err *err)
{
    struct backup_head head = {.derived = key->derived, .passes = key->passes, .memory_mib = key->memory_mib};
    unsigned char raw[BACKUP_HEAD_LEN];

    s->fd = fd;
    s->path = path;
    s->len = s->at = 0;
    s->last = false;
    memcpy(head.salt, key->salt, sizeof head.salt);
    (void)crypto_secretstream_xchacha20poly1305_init_push(&s->state, head.stream, key->bytes);
    head_write(&head, raw);
    int rc = bytes_write(s, raw, sizeof raw, err);
    return rc < 0 ? rc : chunk_write(s, raw, sizeof raw, 0, err);
}

int backup_stream_write(struct backup_stream *s, const void *at, size_t len, struct berth_err *err)
{
    const unsigned char *p = at;
    int rc = 0;

    while (rc == 0 && len) {
        size_t n = BACKUP_CHUNK - s->len < len ? BACKUP_CHUNK - s->len : len;
        memcpy(s->plain + s->len, p, n);
        s->len += n;
        p += n;
        len -= n;
        if (s->len == BACKUP_CHUNK)
            rc = chunk_write(s, NULL, 0, 0, err);
    }
    return rc;
}

int backup_stream_end(struct backup_stream *s, struct berth_err *err)
{
    return chunk_write(s, NULL, 0, crypto_secretstream_xchacha20poly1305_TAG_FINAL, err);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int damaged(const struct backup_stream *s, struct berth_err *err)
{
    return err_set(err, EBADMSG, "%s is damaged or truncated; nothing was restored; make another backup", s->path);
}

static int chunk_read(struct backup_stream *s, const unsigned char *extra, size_t extra_len, struct berth_err *err)
{
    unsigned char length[4], tag = 0;
    unsigned long long len = 0;
    ssize_t n = bytes_read(s->fd, s->path, length, sizeof length, err);

    if (n < 0)
        return (int)n;
    uint32_t sealed_len = get_u32(length);
    if (n < (ssize_t)sizeof length || sealed_len > BACKUP_SEALED ||
        sealed_len < crypto_secretstream_xchacha20poly1305_ABYTES)
        return damaged(s, err);
    n = bytes_read(s->fd, s->path, s->sealed, sealed_len, err);
    if (n < 0)
        return (int)n;
    if (n < (ssize_t)sealed_len || crypto_secretstream_xchacha20poly1305_pull(
                                       &s->state, s->plain, &len, &tag, s->sealed, sealed_len, extra, extra_len) != 0)
        return damaged(s, err);
    s->len = (size_t)len;
    s->at = 0;
    s->last = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    return 0;
}

int backup_stream_open(struct backup_stream *s, int fd, const char *path, const struct backup_key *key,
                       struct berth_err *err)
{
    struct backup_head head;
    unsigned char raw[BACKUP_HEAD_LEN];

    s->fd = fd;
    s->path = path;
    s->len = s->at = 0;
    s->last = false;
    int rc = backup_head_read(fd, path, raw, &head, err);
    if (rc < 0)
        return rc;
    if (crypto_secretstream_xchacha20poly1305_init_pull(&s->state, head.stream, key->bytes) != 0)
        return damaged(s, err);
    rc = chunk_read(s, raw, sizeof raw, err);
    if (rc == -EBADMSG)
        return err_set(err, EPERM, "the %s does not match %s; nothing was restored",
                       key->derived ? "passphrase" : "key", path);
    return rc;
}

int backup_stream_read(struct backup_stream *s, void *at, size_t len, struct berth_err *err)
{
    unsigned char *to = at;

    while (len) {
        if (s->at == s->len) {
            int rc = s->last ? damaged(s, err) : chunk_read(s, NULL, 0, err);
            if (rc < 0)
                return rc;
            continue;
        }
        size_t n = s->len - s->at < len ? s->len - s->at : len;
        memcpy(to, s->plain + s->at, n);
        s->at += n;
        to += n;
        len -= n;
    }
    return 0;
}

int backup_stream_done(struct backup_stream *s, struct berth_err *err)
{
    unsigned char more;

    while (s->at == s->len && !s->last) {
        int rc = chunk_read(s, NULL, 0, err);
        if (rc < 0)
            return rc;
    }
    if (s->at < s->len)
        return 0;
    ssize_t n = bytes_read(s->fd, s->path, &more, 1, err);
    return n < 0 ? (int)n : n > 0 ? damaged(s, err) : 1;
}
