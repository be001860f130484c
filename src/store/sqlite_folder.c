/* sqlite_folder.c - the directory of a store: its lock, and atomic creation of files. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "store/sqlite.h"

static void close_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Syncs the parent directory of a path. Only then is a new name durable. */
static int sync_parent(const char *path)
{
    CLEANUP(mem) char *copy = mem_strdup(path);
    CLEANUP(close) int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int directory_create(const char *dir, struct berth_err *err)
{
    if (mkdir(dir, 0700) < 0) {
        if (errno == EEXIST)
            return 0;
        return err_set(err, errno, "cannot create the folder %s: %s", dir, strerror(errno));
    }
    int rc = sync_parent(dir);
    return rc < 0 ? err_set(err, -rc, "cannot sync the folder that holds %s: %s", dir, strerror(-rc)) : 0;
}

int folder_open(const char *dir, bool create, struct store_folder *ret, struct berth_err *err)
{
    int rc = create ? directory_create(dir, err) : 0;
    if (rc < 0)
        return rc;
    /* Absolute, because the process may change its working directory before it reconnects. */
    char *path = realpath(dir, NULL);
    if (!path)
        return err_set(err, errno, "cannot open the folder %s: %s", dir, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        rc = err_set(err, errno, "cannot open the folder %s: %s", dir, strerror(errno));
        free(path);
        return rc;
    }
    *ret = (struct store_folder){
        .path = mem_strdup(path), .fd = fd, .lock_fd = -1, .acked_fd = {-1, -1}
    };
    free(path);
    return 0;
}

void folder_done(struct store_folder *f)
{
    if (!f->path)
        return;
    for (size_t i = 0; i < ACKED_COPIES; i++)
        close_cleanup(&f->acked_fd[i]);
    close_cleanup(&f->lock_fd);
    close_cleanup(&f->fd);
    mem_free(f->path);
    *f = (struct store_folder){
        .fd = -1, .lock_fd = -1, .acked_fd = {-1, -1}
    };
}

char *folder_path(const struct store_folder *f, const char *name)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/%s", f->path, name);
    return str_take(&path);
}

bool folder_has(const struct store_folder *f, const char *name)
{
    return faccessat(f->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int folder_lock(struct store_folder *f, struct berth_err *err)
{
    CLEANUP(close) int fd = openat(f->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot open %s/lock: %s", f->path, strerror(errno));
    char text[32] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_set(err, errno, "cannot lock %s/lock: %s", f->path, strerror(errno));
        ssize_t len = pread(fd, text, sizeof text - 1, 0);
        text[len > 0 ? strcspn(text, "\n") : 0] = 0;
        return err_set(err, EBUSY, "the store in %s is in use by process %s; stop it first, or choose another folder",
                       f->path, *text ? text : "(unknown)");
    }
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* The pid is informational: the lock works without it on a full disk. */
    if (ftruncate(fd, 0) < 0 || (pwrite(fd, text, (size_t)len, 0) != len && errno != ENOSPC))
        return err_set(err, errno, "cannot write %s/lock: %s", f->path, strerror(errno));
    f->lock_fd = take_fd(&fd);
    return 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

void folder_file_remove_side_files(const char *path)
{
    static const char *const endings[] = {"-journal", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        CLEANUP(str) struct str name = {0};
        str_addf(&name, "%s%s", path, endings[i]);
        (void)unlink(name.at);
    }
}

void folder_file_remove(const char *path)
{
    (void)unlink(path);
    folder_file_remove_side_files(path);
}

int folder_file_create(const char *path, struct berth_err *err)
{
    folder_file_remove(path);
    CLEANUP(close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_set(err, errno, "cannot create %s: %s", path, strerror(errno)) : 0;
}

static int rename_noreplace(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* File systems without RENAME_NOREPLACE have links, which also never replace a file. */
    if (link(from, to) < 0)
        return -errno;
    (void)unlink(from);
    return 0;
}

int folder_file_publish(const char *from, const char *to, struct berth_err *err)
{
    CLEANUP(close) int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_set(err, errno, "cannot sync %s: %s", from, strerror(errno));
    int rc = rename_noreplace(from, to);
    if (rc == -EEXIST)
        return err_set(err, EEXIST, "%s already exists; choose another name or move it away", to);
    if (rc < 0)
        return err_set(err, -rc, "cannot rename %s to %s: %s", from, to, strerror(-rc));
    rc = sync_parent(to);
    return rc < 0 ? err_set(err, -rc, "cannot sync the folder of %s: %s", to, strerror(-rc)) : 0;
}
