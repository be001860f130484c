/* image_fetch.c - fetches untrusted data by unprivileged programs, and takes over the results file by file. */
#include "machine/image/image_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/image/image_parts.h"
#include "machine/launch/state_file.h"
#include "machine/mount/mount_tree.h"
#include "net/tls/tls.h"

void fetch_cleanup(struct image_fetch *f)
{
    close_fd_cleanup(&f->folder);
    close_fd_cleanup(&f->secrets);
}

/* ---- the fetch directory ---------------------------------------------------------------------------------------- */

/* Creates the directory for the fetch user. Parent directories let that user pass without listing them: instance_dir.c,
 * and `tmp` here. */
static int folder_make(int tmp, struct image_fetch *f)
{
    char link[64];
    if (f->other && fchmod(tmp, 0711) < 0)
        return -errno;
    f->folder = tree_folder(tmp, "fetch", 0700);
    if (f->folder < 0)
        return f->folder;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", f->folder);
    ssize_t n = readlink(link, f->path, sizeof f->path - 1);
    if (n < 0 || (size_t)n >= sizeof f->path - 1)
        return n < 0 ? -errno : -ENAMETOOLONG;
    f->path[n] = '\0';
    return 0;
}

int fetch_begin(const struct state_dir *p, int tmp, struct image_fetch *ret, struct berth_err *err)
{
    CLEANUP(fetch) struct image_fetch f = {.folder = -1, .secrets = -1, .uid = geteuid(), .gid = getegid()};
    f.other = state_dir_fetcher(p, &f.uid, &f.gid);
    int rc = folder_make(tmp, &f);
    if (rc < 0)
        return err_set(err, -rc, "cannot create a folder for the download: %s", strerror(-rc));
    *ret = f;
    f.folder = -1;
    return 0;
}

/* Copies the credentials into a sealed memory file, which the fetch user can neither lock nor change for the next
 * program. */
static int secrets_copy(const char *path)
{
    CLEANUP(close_fd) int from = open(path, O_RDONLY | O_CLOEXEC);
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    int rc = from < 0 ? -errno : fd_read(from, &text, &len);
    if (rc < 0 || !text)
        return rc < 0 ? rc : -EIO;
    CLEANUP(close_fd) int fd = memfd_create("registries", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    rc = fd < 0 ? -errno : fd_write(fd, text, len);
    explicit_bzero(text, len);
    if (rc == 0 &&
        (fchmod(fd, 0444) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0))
        rc = -errno;
    return rc < 0 ? rc : take_fd(&fd);
}

int fetch_secrets(struct image_fetch *f, const char *path, char ret[static STATE_PATH_MAX])
{
    if (!f->other) {
        if (access(path, R_OK) < 0)
            return -errno;
        return snprintf(ret, STATE_PATH_MAX, "%s", path) < STATE_PATH_MAX ? 0 : -ENAMETOOLONG;
    }
    int fd = f->secrets < 0 ? secrets_copy(path) : take_fd(&f->secrets);
    if (fd < 0)
        return fd;
    f->secrets = fd;
    (void)snprintf(ret, STATE_PATH_MAX, "/proc/self/fd/%d", TOOL_GIVEN_FD);
    return 0;
}

int fetch_run(struct image_fetch *f, const struct tool *tool, struct str *ret_out, struct berth_err *err)
{
    const struct tool_user user = {.uid = f->uid, .gid = f->gid, .home = f->path, .given = f->secrets};
    struct tool t = *tool;
    t.dir = f->folder;
    if (!f->other)
        return tool_run(&t, ret_out, err);
    t.user = &user;
    if (fchown(f->folder, f->uid, f->gid) < 0)
        return err_set(err, errno,
                       "%s: cannot change the owner of a folder to UID %u: %s; choose another with --network-user",
                       t.what, (unsigned)f->uid, strerror(errno));
    int rc = tool_run(&t, ret_out, err);
    /* From now on processes with that uid cannot open the directory by name. */
    if ((fchown(f->folder, geteuid(), getegid()) < 0 || fchmod(f->folder, 0700) < 0) && rc == 0)
        rc = err_set(err, errno, "%s: cannot take over the downloaded files: %s", t.what, strerror(errno));
    return rc;
}

/* ---- the results ------------------------------------------------------------------------------------------------ */

/* Opens a file that the fetch user created. A hard link is rejected: it may name a foreign file, or be a second name
 * for this one. */
static int own_open(const struct image_fetch *f, const char *path)
{
    struct stat st;
    CLEANUP(close_fd) int fd = tree_open(f->folder, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fd == -ELOOP || fd == -ENXIO || fd == -EXDEV ? -EINVAL : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != f->uid || st.st_nlink != 1)
        return -EINVAL;
    return take_fd(&fd);
}

/* Tells whether no process has the file open or mapped for writing. The kernel grants a read lease only then; false if
 * the file system does not support leases. */
static bool has_no_writers(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return false;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}

/* Moves the file by name, then checks that the result is the open file, because the name may refer to another file by
 * then. */
static int move(const struct image_fetch *f, const char *path, int fd, int to, const char *name)
{
    struct stat is, want;
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    CLEANUP(close_fd) int from = tree_open(f->folder, above, O_RDONLY | O_DIRECTORY, 0);
    if (from < 0)
        return -EINVAL;
    if (renameat2(from, slash ? slash + 1 : path, to, name, RENAME_NOREPLACE) < 0)
        return -errno;
    if (fstat(fd, &want) < 0 || fstatat(to, name, &is, AT_SYMLINK_NOFOLLOW) < 0 || is.st_dev != want.st_dev ||
        is.st_ino != want.st_ino) {
        (void)tree_remove(to, name);
        return -EINVAL;
    }
    return 0;
}

static int copy_make(int to, const char *name, uint64_t size)
{
    struct statvfs v;
    if (fstatvfs(to, &v) < 0)
        return -errno;
    if ((uint64_t)v.f_bavail * v.f_frsize < size + spare_bytes(to))
        return -ENOSPC;
    int fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int fetch_take(const struct image_fetch *f, const char *path, uint64_t size, const char *digest, int to,
               const char *name)
{
    char sum[SHA256_TEXT_MAX];
    uint64_t len = 0;
    struct stat st;
    CLEANUP(close_fd) int fd = own_open(f, path), copy = -1;
    if (fd < 0)
        return fd;
    /* 0600 also disables ACL entries of the fetch user: the group bits are the ACL's mask. */
    if ((f->other && fchown(fd, geteuid(), getegid()) < 0) || fchmod(fd, 0600) < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (size != UINT64_MAX && (uint64_t)st.st_size != size)
        return -EBADMSG;
    int rc = 0;
    if (has_no_writers(fd))
        rc = move(f, path, fd, to, name);
    else if ((copy = copy_make(to, name, (uint64_t)st.st_size)) < 0)
        rc = copy;
    if (rc < 0)
        return rc;
    rc = sha256_fd(fd, copy, (uint64_t)st.st_size, sum, &len, NULL); /* bounded by this size if the file grows */
    if (rc == -EFBIG || (rc == 0 && (len != (uint64_t)st.st_size || strcmp(sum, digest + strlen("sha256:")) != 0)))
        rc = -EBADMSG;
    if (rc < 0)
        (void)unlinkat(to, name, 0);
    return rc;
}

/* The file is read only once, so later changes by the fetch user have no effect. */
int fetch_read(const struct image_fetch *f, const char *path, size_t max, char **ret, size_t *ret_len)
{
    struct stat st;
    CLEANUP(close_fd) int fd = own_open(f, path);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < 0 || (uint64_t)st.st_size > max)
        return -EFBIG;
    return fd_read(fd, ret, ret_len);
}
