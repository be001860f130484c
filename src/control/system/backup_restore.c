/* backup_restore.c - restores a daemon's folder from a sealed backup: unpacks and verifies in a temporary folder, then
 * moves the files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "control/system/backup_parts.h"
#include "control/system/backup_stream.h"
#include "journal/shelf.h"

#define ASIDE "restore.tmp"
/* store_sqlite_restore makes the store from this copy. The store is moved last, so that a folder without a store is
 * incomplete. */
#define COPY "copy.db"
static const char *const store_files[] = {"acked", "acked.2", "reserve", "lock", "store.db", NULL};

static void path_make(struct str *to, const char *dir, const char *name)
{
    str_addf(to, "%s/%s", dir, name);
}

static bool folder_is_empty(const char *dir)
{
    bool empty = true;
    DIR *d = opendir(dir);

    if (!d)
        return true;
    for (const struct dirent *e; empty && (e = readdir(d));)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, "lost+found") == 0;
    (void)closedir(d);
    return empty;
}

static void folder_remove(const char *dir)
{
    DIR *d = opendir(dir);

    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d));) {
        CLEANUP(str) struct str path = {0};
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        path_make(&path, dir, e->d_name);
        if (unlink(path.at) < 0 && errno == EISDIR)
            folder_remove(path.at);
    }
    (void)closedir(d);
    (void)rmdir(dir);
}

/* Matches names such as "journal/000017.seg". */
static bool is_segment(const char *name)
{
    static const char prefix[] = SHELF_FOLDER "/";
    size_t len = sizeof prefix - 1, digits;

    if (strncmp(name, prefix, len) != 0)
        return false;
    digits = strspn(name + len, "0123456789");
    return digits > 0 && strcmp(name + len + digits, SHELF_ENDING) == 0;
}

/* Returns the path of an entry below the temporary folder; NULL: an unknown name. */
static const char *entry_place(const char *name)
{
    if (strcmp(name, BACKUP_STORE_NAME) == 0)
        return COPY;
    for (size_t i = 0; backup_files[i]; i++)
        if (strcmp(name, backup_files[i]) == 0)
            return backup_files[i];
    return is_segment(name) ? name : NULL;
}

static int bytes_copy(struct backup_stream *s, int fd, const char *path, uint64_t left, struct berth_err *err)
{
    CLEANUP(mem) unsigned char *piece = mem_alloc(BACKUP_CHUNK);
    int rc = 0;

    while (rc == 0 && left) {
        size_t len = left < BACKUP_CHUNK ? (size_t)left : BACKUP_CHUNK;
        rc = backup_stream_read(s, piece, len, err);
        for (size_t done = 0; rc == 0 && done < len;) {
            ssize_t n = write(fd, piece + done, len - done);
            if (n < 0 && errno != EINTR)
                rc = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
            done += n > 0 ? (size_t)n : 0;
        }
        left -= len;
    }
    if (rc == 0 && fsync(fd) < 0)
        rc = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
    sodium_memzero(piece, BACKUP_CHUNK);
    return rc;
}

static int entry_read(struct backup_stream *s, const char *aside, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    unsigned char len = 0, size[8] = {0};
    char name[BACKUP_NAME_MAX + 1] = "";
    uint64_t bytes = 0;
    int rc = backup_stream_read(s, &len, 1, err);

    if (rc == 0 && (len == 0 || len > BACKUP_NAME_MAX))
        rc = err_set(err, EBADMSG, "%s has an entry without a name; it was made by a newer berth, or it is damaged",
                     s->path);
    if (rc == 0)
        rc = backup_stream_read(s, name, len, err);
    if (rc == 0)
        rc = backup_stream_read(s, size, sizeof size, err);
    if (rc < 0)
        return rc;
    const char *place = entry_place(name);
    if (!place)
        return err_set(err, ENOTSUP, "%s has an entry that this berth does not know; use a newer berth", s->path);
    for (size_t i = 0; i < sizeof size; i++)
        bytes |= (uint64_t)size[i] << 8 * i;
    path_make(&path, aside, place);
    CLEANUP(backup_fd) int fd = open(path.at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? err_set(err, errno, "cannot write %s: %s", path.at, strerror(errno))
                  : bytes_copy(s, fd, path.at, bytes, err);
}

/* Unpacks all entries to the temporary folder, and verifies the end of the file. */
static int unpack(struct backup_stream *s, const char *aside, struct berth_err *err)
{
    int rc = backup_stream_done(s, err);

    while (rc == 0) {
        rc = entry_read(s, aside, err);
        if (rc == 0)
            rc = backup_stream_done(s, err);
    }
    return rc < 0 ? rc : 0;
}

static int folder_sync(const char *dir)
{
    CLEANUP(backup_fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int move(const char *aside, const char *dir, const char *name, struct berth_err *err)
{
    CLEANUP(str) struct str from = {0}, to = {0};

    path_make(&from, aside, name);
    path_make(&to, dir, name);
    return rename(from.at, to.at) == 0 || errno == ENOENT
               ? 0
               : err_set(err, errno, "cannot create %s: %s", to.at, strerror(errno));
}

/* Moves the verified files to the folder, the store last. */
static int put_in_place(const char *aside, const char *dir, struct berth_err *err)
{
    CLEANUP(str) struct str journal = {0};
    int rc = 0;

    path_make(&journal, aside, SHELF_FOLDER);
    if (!folder_is_empty(journal.at))
        rc = move(aside, dir, SHELF_FOLDER, err);
    for (size_t i = 0; rc == 0 && backup_files[i]; i++)
        rc = move(aside, dir, backup_files[i], err);
    for (size_t i = 0; rc == 0 && store_files[i]; i++)
        rc = move(aside, dir, store_files[i], err);
    if (rc == 0 && (rc = folder_sync(dir)) < 0)
        rc = err_set(err, -rc, "cannot sync %s: %s", dir, strerror(-rc));
    return rc;
}

static int restore_aside(int fd, const char *path, const struct backup_key *key, const char *aside,
                         struct berth_err *err)
{
    CLEANUP(str) struct str copy = {0}, journal = {0};
    struct backup_stream *s = mem_alloc(sizeof *s);
    int rc = 0;

    path_make(&copy, aside, COPY);
    path_make(&journal, aside, SHELF_FOLDER);
    if (mkdir(aside, 0700) < 0 || mkdir(journal.at, 0700) < 0)
        rc = err_set(err, errno, "cannot create the folder %s: %s", aside, strerror(errno));
    if (rc == 0)
        rc = backup_stream_open(s, fd, path, key, err);
    if (rc == 0)
        rc = unpack(s, aside, err);
    if (rc == 0)
        rc = store_sqlite_restore(copy.at, aside, err);
    sodium_memzero(s, sizeof *s);
    mem_free(s);
    return rc;
}

int backup_restore(const char *path, const struct backup_key *key, const char *dir, struct berth_err *err)
{
    CLEANUP(str) struct str aside = {0};
    CLEANUP(backup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
    bool made = mkdir(dir, 0700) == 0;
    if (!made && errno != EEXIST)
        return err_set(err, errno, "cannot create the folder %s: %s", dir, strerror(errno));
    if (!folder_is_empty(dir))
        return err_set(err, EEXIST, "the folder %s is not empty; choose a new one, or move its contents away", dir);
    path_make(&aside, dir, ASIDE);
    int rc = restore_aside(fd, path, key, aside.at, err);
    if (rc == 0)
        rc = put_in_place(aside.at, dir, err);
    folder_remove(aside.at);
    if (rc < 0 && made)
        (void)rmdir(dir);
    return rc;
}
