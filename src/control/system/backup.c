#include "control/system/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "control/system/backup_parts.h"
#include "control/system/backup_stream.h"
#include "journal/shelf.h"

/* The keys and certificates in a daemon's folder. Missing files are skipped. */
const char *const backup_files[] = {
    "secret.key",     /* encrypts secrets */
    "ca-cert.pem",    /* the cluster's certificate authority, which signs agents */
    "ca-key.pem",     /* key of the authority */
    "agents-key.pem", /* key of the agents' server, pinned by agents */
    "tls-cert.pem",   /* certificate of the API server, made by --tls */
    "tls-key.pem",    /* key of the API server, pinned by clients */
    "admin.token",    /* written by --init */
    NULL,
};

/* ---- keys ------------------------------------------------------------------------------------------------------- */

void backup_key_salt(struct backup_key *key)
{
    key->derived = true;
    key->passes = (uint32_t)crypto_pwhash_OPSLIMIT_MODERATE;
    key->memory_mib = (uint32_t)(crypto_pwhash_MEMLIMIT_MODERATE >> 20);
    randombytes_buf(key->salt, sizeof key->salt);
}

int backup_key_derive(struct backup_key *key, const char *passphrase, size_t len, struct berth_err *err)
{
    if (crypto_pwhash(key->bytes, sizeof key->bytes, passphrase, len, key->salt, key->passes,
                      (size_t)key->memory_mib << 20, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return err_set(err, ENOMEM, "not enough memory: deriving the key from the passphrase needs %u MiB",
                       key->memory_mib);
    return 0;
}

int backup_inspect(const char *path, enum backup_kind *ret_kind, struct backup_key *ret_key, struct berth_err *err)
{
    static const char sqlite[16] = "SQLite format 3";
    unsigned char raw[BACKUP_HEAD_LEN];
    struct backup_head head;
    CLEANUP(backup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
    if (pread(fd, raw, sizeof sqlite, 0) == sizeof sqlite && memcmp(raw, sqlite, sizeof sqlite) == 0) {
        *ret_kind = BACKUP_STORE;
        return 0;
    }
    int rc = backup_head_read(fd, path, raw, &head, err);
    if (rc < 0)
        return rc;
    *ret_kind = head.derived ? BACKUP_PASSPHRASE : BACKUP_KEY;
    *ret_key = (struct backup_key){.derived = head.derived, .passes = head.passes, .memory_mib = head.memory_mib};
    memcpy(ret_key->salt, head.salt, sizeof head.salt);
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static int entry_head_write(struct backup_stream *s, const char *name, uint64_t size, struct berth_err *err)
{
    unsigned char head[1 + BACKUP_NAME_MAX + 8];
    size_t len = strlen(name);

    head[0] = (unsigned char)len;
    for (size_t i = 0; i < len; i++) /* bytes without a terminating NUL */
        head[1 + i] = (unsigned char)name[i];
    for (size_t i = 0; i < 8; i++)
        head[1 + len + i] = (unsigned char)(size >> 8 * i);
    return backup_stream_write(s, head, 1 + len + 8, err);
}

/* Skips a missing file unless `must` is set. */
static int entry_write(struct backup_stream *s, const char *path, const char *name, bool required,
                       struct berth_err *err)
{
    CLEANUP(backup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    CLEANUP(mem) unsigned char *piece = mem_alloc(BACKUP_CHUNK);
    struct stat st;

    if (fd < 0 && errno == ENOENT && !required)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    int rc = entry_head_write(s, name, (uint64_t)st.st_size, err);
    for (uint64_t left = (uint64_t)st.st_size; rc == 0 && left;) {
        ssize_t n = read(fd, piece, left < BACKUP_CHUNK ? left : BACKUP_CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            rc = err_set(err, n < 0 ? errno : EIO, "cannot read %s: %s", path,
                         n < 0 ? strerror(errno)
                               : "the file "
                                 "shrinks");
        else
            rc = backup_stream_write(s, piece, (size_t)n, err);
        left -= n > 0 ? (uint64_t)n : 0;
    }
    sodium_memzero(piece, BACKUP_CHUNK);
    return rc;
}

static uint64_t shelf_last(const struct shelf *shelf)
{
    return shelf->items.len ? shelf->items.at[shelf->items.len - 1].segment.number : 0;
}

/* Copies the store such that the journal's segments and the log of the copy have no gap and no overlap: retries until
 * the segments are the same before and after the copy. */
static int store_copy(struct store *store, const char *journal, const char *copy, struct shelf *segments,
                      struct berth_err *err)
{
    enum { TRIES = 5 };
    for (int i = 0; i < TRIES; i++) {
        CLEANUP(shelf) struct shelf after = {0};
        shelf_done(segments);
        *segments = (struct shelf){0};
        (void)unlink(copy);
        int rc = shelf_add_folder(segments, journal, err);
        if (rc == 0)
            rc = store_backup(store, copy, err);
        if (rc == 0)
            rc = shelf_add_folder(&after, journal, err);
        if (rc < 0 || shelf_last(&after) == shelf_last(segments))
            return rc;
    }
    return err_set(err, EBUSY, "the journal grows too fast for a backup; try again soon");
}

static int entries_write(struct backup_stream *s, const char *dir, const char *copy, const struct shelf *segments,
                         struct berth_err *err)
{
    int rc = entry_write(s, copy, BACKUP_STORE_NAME, true, err);

    for (size_t i = 0; rc == 0 && backup_files[i]; i++) {
        CLEANUP(str) struct str path = {0};
        str_addf(&path, "%s/%s", dir, backup_files[i]);
        rc = entry_write(s, path.at, backup_files[i], false, err);
    }
    for (size_t i = 0; rc == 0 && i < segments->items.len; i++) {
        CLEANUP(str) struct str name = {0};
        const char *path = segments->items.at[i].path, *slash = strrchr(path, '/');
        str_addf(&name, SHELF_FOLDER "/%s", slash ? slash + 1 : path);
        rc = entry_write(s, path, name.at, false, err);
    }
    return rc;
}

static int file_write(int fd, const char *path, const char *dir, const char *copy, const struct shelf *segments,
                      const struct backup_options *options, struct berth_err *err)
{
    struct backup_stream *s = mem_alloc(sizeof *s);
    int rc = backup_stream_create(s, fd, path, options->key, err);

    if (rc == 0)
        rc = entries_write(s, dir, copy, segments, err);
    if (rc == 0)
        rc = backup_stream_end(s, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
    sodium_memzero(s, sizeof *s);
    mem_free(s);
    return rc;
}

int backup_write(struct store *store, const char *dir, const struct backup_options *options, const char *path,
                 struct berth_err *err)
{
    CLEANUP(str) struct str copy = {0}, partial = {0}, journal = {0};
    CLEANUP(shelf) struct shelf segments = {0};
    struct stat st;

    if (lstat(path, &st) == 0)
        return err_set(err, EEXIST, "%s already exists; choose another file or remove it", path);
    str_addf(&copy, "%s.store-%ld", path, (long)getpid());
    str_addf(&partial, "%s.part-%ld", path, (long)getpid());
    str_addf(&journal, "%s/" SHELF_FOLDER, dir);
    int rc = store_copy(store, journal.at, copy.at, &segments, err);
    if (!options->journal) {
        shelf_done(&segments);
        segments = (struct shelf){0};
    }
    if (rc == 0) {
        (void)unlink(partial.at);
        CLEANUP(backup_fd) int fd = open(partial.at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        rc = fd < 0 ? err_set(err, errno, "cannot write %s: %s", partial.at, strerror(errno))
                    : file_write(fd, path, dir, copy.at, &segments, options, err);
    }
    /* Unlike rename, link never replaces a file; some file systems lack links. */
    bool made = rc == 0 && link(partial.at, path) == 0;
    if (rc == 0 && !made && (errno == EPERM || errno == EOPNOTSUPP))
        made = rename(partial.at, path) == 0;
    if (rc == 0 && !made)
        rc = err_set(err, errno, "cannot create %s: %s", path, strerror(errno));
    (void)unlink(copy.at);
    (void)unlink(partial.at);
    return rc;
}
