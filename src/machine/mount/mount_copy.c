/* mount_copy.c - copies a directory tree, for systems without overlayfs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/mount/mount_tree.h"

enum { DEPTH_MAX = 256 };

static void dir_cleanup(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static int content_copy(int from, int to)
{
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    for (;;) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0);
        if (n == 0)
            return 0;
        if (n < 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
            break;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
    enum { BLOCK = 1 << 17 };
    CLEANUP(mem) char *block = mem_alloc(BLOCK);
    for (;;) {
        ssize_t n = read(from, block, BLOCK);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        for (ssize_t done = 0; done < n;) {
            ssize_t m = write(to, block + done, (size_t)(n - done));
            if (m < 0 && errno != EINTR)
                return -errno;
            done += m > 0 ? m : 0;
        }
    }
}

/* The owner is set before the mode, because a change of owner clears mode bits. */
static int same_as(int fd, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 01777) < 0 || futimens(fd, times) < 0)
        return -errno;
    return 0;
}

static int file_copy(int from, const char *name, int to)
{
    CLEANUP(close_fd) int in = tree_open(from, name, O_RDONLY, 0);
    if (in < 0)
        return in;
    struct stat st;
    if (fstat(in, &st) < 0)
        return -errno;
    CLEANUP(close_fd) int out = tree_open(to, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (out < 0)
        return out;
    int rc = content_copy(in, out);
    return rc < 0 ? rc : same_as(out, &st);
}

static int link_copy(int from, const char *name, int to, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    if (symlinkat(target, to, name) < 0 || fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

static int copy_at(int from, int to, int depth);

static int entry_copy(int from, const char *name, int to, int depth)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(st.st_mode))
        return file_copy(from, name, to);
    if (S_ISLNK(st.st_mode))
        return link_copy(from, name, to, &st);
    if (!S_ISDIR(st.st_mode))
        return 0;
    CLEANUP(close_fd) int in = tree_open(from, name, O_RDONLY | O_DIRECTORY, 0);
    if (in == -EXDEV) /* a mount point: its content belongs to another file system and is not copied */
        return mkdirat(to, name, 0755) < 0 ? -errno : 0;
    if (in < 0)
        return in;
    CLEANUP(close_fd) int out = tree_folder(to, name, 0700);
    if (out < 0)
        return out;
    int rc = copy_at(in, out, depth + 1);
    return rc < 0 ? rc : same_as(out, &st);
}

static int copy_at(int from, int to, int depth)
{
    if (depth > DEPTH_MAX)
        return -ENAMETOOLONG;
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -errno;
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e)
            return -errno;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int rc = entry_copy(from, e->d_name, to, depth);
        if (rc < 0)
            return rc;
    }
}

int tree_copy(int from, int to)
{
    struct stat st;
    if (fstat(from, &st) < 0)
        return -errno;
    int rc = copy_at(from, to, 0);
    return rc < 0 ? rc : same_as(to, &st);
}
