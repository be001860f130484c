/* backup_stream.h - the sealed stream of a backup: writes bytes as encrypted chunks, and reads them. See backup.h for
 * the format.
 */
#pragma once

#include <sodium.h>

#include "control/system/backup.h"

enum { BACKUP_CHUNK = 64 * 1024, BACKUP_SEALED = BACKUP_CHUNK + crypto_secretstream_xchacha20poly1305_ABYTES };

struct backup_stream {
    int fd;           /* borrowed */
    const char *path; /* for messages; borrowed */
    crypto_secretstream_xchacha20poly1305_state state;
    unsigned char plain[BACKUP_CHUNK], sealed[BACKUP_SEALED];
    size_t len, at; /* filled and read bytes of `plain` */
    bool last;      /* the last chunk has been read */
};

/* Writes the head. */
int backup_stream_create(struct backup_stream *s, int fd, const char *path, const struct backup_key *key,
                         struct berth_err *err);
int backup_stream_write(struct backup_stream *s, const void *at, size_t len, struct berth_err *err);
/* Writes the remaining bytes as the last chunk. */
int backup_stream_end(struct backup_stream *s, struct berth_err *err);

/* Reads the head and the first chunk: -EPERM for a wrong key. */
int backup_stream_open(struct backup_stream *s, int fd, const char *path, const struct backup_key *key,
                       struct berth_err *err);
/* Reads exactly `len` bytes. -EBADMSG: fewer bytes, or damaged ones. */
int backup_stream_read(struct backup_stream *s, void *at, size_t len, struct berth_err *err);
/* Returns 1 at the end of the file, 0 if more follows, -EBADMSG for bytes after the last chunk. */
int backup_stream_done(struct backup_stream *s, struct berth_err *err);

/* The head of a file, which is readable without the key. -EINVAL: not a sealed backup. */
struct backup_head {
    bool derived;
    uint32_t passes, memory_mib;
    unsigned char salt[BACKUP_SALT_LEN];
    unsigned char stream[crypto_secretstream_xchacha20poly1305_HEADERBYTES];
};
int backup_head_read(int fd, const char *path, unsigned char ret_raw[static BACKUP_HEAD_LEN], struct backup_head *ret,
                     struct berth_err *err);
