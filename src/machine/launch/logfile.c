/* logfile.c - reads a log while the shim writes and rotates it.
 *
 * The reader keeps the current file open, so a rename does not disturb it. At the end of the file it checks whether
 * `log` is another file now. If so, it reads the last bytes of its own file and continues with the next newer file,
 * which it finds by the present name of its own file; if that was removed, it continues with the oldest file, and bytes
 * are missing in between.
 *
 * A shim renames the oldest file first, and a file's number only grows. Therefore, a file that has the same number
 * before and after its neighbour was opened has the right neighbour, and a search from small to large numbers misses no
 * file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/launch.h"
#include "machine/launch/state_file.h"

enum { LOG_FILES_MAX = 100, BLOCK = 16384 };

struct logfile {
    int dir;
    int fd; /* -1: no file exists yet */
};

static const char *name_of(unsigned i, char buf[static 16])
{
    (void)snprintf(buf, 16, i ? "log.%u" : "log", i);
    return buf;
}

static int nth_open(const struct logfile *l, unsigned i)
{
    char name[16];
    int fd = openat(l->dir, name_of(i, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Returns the number of the oldest file; -1: there is none. */
static int oldest(const struct logfile *l)
{
    struct stat st;
    char name[16];
    int found = -1;

    for (int i = 0; i <= LOG_FILES_MAX; i++)
        if (fstatat(l->dir, name_of((unsigned)i, name), &st, AT_SYMLINK_NOFOLLOW) == 0)
            found = i;
    return found;
}

/* -ENOENT: there is no file. */
static int oldest_open(const struct logfile *l)
{
    for (;;) {
        int number = oldest(l), fd = number < 0 ? -ENOENT : nth_open(l, (unsigned)number);

        if (oldest(l) == number)
            return fd;
        if (fd >= 0)
            close(fd);
    }
}

/* Returns the present number of the open file; -1: it was removed. */
static int number_of(const struct logfile *l)
{
    struct stat ours, st;
    char name[16];

    if (fstat(l->fd, &ours))
        return -1;
    for (unsigned i = 0; i <= LOG_FILES_MAX; i++)
        if (fstatat(l->dir, name_of(i, name), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ours.st_ino)
            return (int)i;
    return -1;
}

/* ---- tail ------------------------------------------------------------------------------------------------------- */

/* Seeks to the start of the last `*lines` lines, or of the file, and subtracts the lines found from `*lines`. */
static int tail_seek(int fd, int64_t *lines)
{
    off_t at = lseek(fd, 0, SEEK_END), end = at;
    char block[BLOCK];

    if (at < 0)
        return -errno;
    while (at > 0) {
        size_t len = at < BLOCK ? (size_t)at : BLOCK;
        ssize_t n;

        at -= (off_t)len;
        n = pread(fd, block, len, at);
        if (n < 0)
            return -errno;
        for (ssize_t i = n - 1; i >= 0; i--) {
            /* A newline at the very end terminates the last line and starts none. */
            if (block[i] != '\n' || at + i + 1 == end)
                continue;
            if (--*lines == 0)
                return lseek(fd, at + i + 1, SEEK_SET) < 0 ? -errno : 0;
        }
    }
    if (end > 0)
        --*lines;
    return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static bool is_same(int a, int b)
{
    struct stat one, other;

    return a >= 0 && fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino;
}

/* Searches from the newest file to older ones until enough lines are found. */
static int tail_open(struct logfile *l, int64_t lines)
{
    int fd = -1;

    for (unsigned i = 0; i <= LOG_FILES_MAX; i++) {
        int older = nth_open(l, i), rc;

        if (older < 0 && i == 0)
            continue; /* in the middle of a rotation */
        if (older < 0)
            break;
        if (is_same(fd, older)) { /* renamed since it was opened */
            close(older);
            continue;
        }
        close_fd_cleanup(&fd);
        fd = older;
        if (lines == 0)
            return lseek(fd, 0, SEEK_END) < 0 ? -errno : fd;
        rc = tail_seek(fd, &lines);
        if (rc) {
            close(fd);
            return rc;
        }
        if (lines == 0)
            break;
    }
    return fd;
}

/* ---- reading ---- */

/* Opens the log directory of an instance, but no file in it. */
static int folder_open(const struct state_dir *p, uint64_t id, struct logfile **ret, struct berth_err *err)
{
    char path[STATE_PATH_MAX], name[24];
    int rc = state_dir_entry_path(p, "logs", str_u64(id, name), path), dir;

    if (rc)
        return err_set(err, -rc, "instance %s has no log", name);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_set(err, errno, "instance %s has no log", name);
    *ret = mem_zalloc(sizeof **ret);
    **ret = (struct logfile){.dir = dir, .fd = -1};
    return 0;
}

int logfile_open(const struct state_dir *p, uint64_t id, int64_t tail_lines, struct logfile **ret,
                 struct berth_err *err)
{
    struct logfile *l = NULL;
    int rc = folder_open(p, id, &l, err);

    if (!l)
        return rc;
    if (tail_lines >= 0) {
        l->fd = tail_open(l, tail_lines);
    } else {
        l->fd = oldest_open(l);
    }
    if (l->fd < 0)
        l->fd = -1; /* the first line creates it */
    *ret = l;
    return 0;
}

/* ---- cursors ---- */

/* Identifies a position. An inode number may be reused by a later file; the birth time distinguishes the files. */
struct log_cursor {
    uint64_t inode, born_ns, offset; /* inode 0: no file existed yet */
};

static struct log_cursor cursor_of(int fd)
{
    struct statx st = {0};
    struct log_cursor at = {0};
    off_t offset;

    if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st))
        return at;
    at.inode = st.stx_ino;
    if (st.stx_mask & STATX_BTIME)
        at.born_ns = (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
    offset = lseek(fd, 0, SEEK_CUR);
    at.offset = offset > 0 ? (uint64_t)offset : 0;
    return at;
}

static bool cursor_read(const char *text, struct log_cursor *ret)
{
    int end = -1;

    return strspn(text, "0123456789abcdef.") == strlen(text) && strlen(text) < LOGFILE_CURSOR_MAX &&
           sscanf(text, "%16" SCNx64 ".%16" SCNx64 ".%16" SCNx64 "%n", &ret->inode, &ret->born_ns, &ret->offset,
                  &end) == 3 &&
           end == (int)strlen(text) && ret->offset <= INT64_MAX;
}

/* Opens the file of the cursor at its offset. -ENOENT: it was removed. Searches from small to large numbers. */
static int cursor_open(const struct logfile *l, const struct log_cursor *wanted)
{
    for (unsigned i = 0; i <= LOG_FILES_MAX; i++) {
        CLEANUP(close_fd) int fd = nth_open(l, i);
        struct log_cursor found = cursor_of(fd);
        struct stat st;

        if (fd < 0 || found.inode != wanted->inode || found.born_ns != wanted->born_ns)
            continue;
        if (fstat(fd, &st) || (uint64_t)st.st_size < wanted->offset || lseek(fd, (off_t)wanted->offset, SEEK_SET) < 0)
            return -ENOENT;
        return take_fd(&fd);
    }
    return -ENOENT;
}

void logfile_cursor(const struct logfile *l, char ret[static LOGFILE_CURSOR_MAX])
{
    struct log_cursor at = cursor_of(l->fd);

    (void)snprintf(ret, LOGFILE_CURSOR_MAX, "%" PRIx64 ".%" PRIx64 ".%" PRIx64, at.inode, at.born_ns, at.offset);
}

int logfile_open_at(const struct state_dir *p, uint64_t id, const char *cursor, struct logfile **ret, bool *ret_gap,
                    struct berth_err *err)
{
    struct log_cursor wanted;
    struct logfile *l = NULL;
    bool gap = false;

    if (!cursor_read(cursor, &wanted))
        return err_set(err, EINVAL, "cursor: expected a cursor from an earlier answer");
    int rc = folder_open(p, id, &l, err);
    if (!l)
        return rc;
    if (wanted.inode)
        l->fd = cursor_open(l, &wanted);
    gap = wanted.inode && l->fd < 0;
    if (l->fd < 0)
        l->fd = oldest_open(l);
    if (l->fd < 0)
        l->fd = -1; /* the first line creates it */
    *ret = l;
    *ret_gap = gap;
    return 0;
}

void logfile_free(struct logfile *l)
{
    if (!l)
        return;
    close_fd_cleanup(&l->fd);
    close_fd_cleanup(&l->dir);
    mem_free(l);
}

/* Continues with the next newer file; false: this is the newest. */
static bool next(struct logfile *l)
{
    int number, fd;

    for (;;) {
        number = l->fd < 0 ? -1 : number_of(l);
        if (number == 0)
            return false;
        fd = number < 0 ? oldest_open(l) : nth_open(l, (unsigned)number - 1);
        if (number < 0 || number_of(l) == number)
            break;
        if (fd >= 0)
            close(fd);
    }
    if (fd < 0)
        return false; /* in the middle of a rotation: the next read finds the file */
    close_fd_cleanup(&l->fd);
    l->fd = fd;
    return true;
}

ssize_t logfile_read(struct logfile *l, void *buf, size_t size)
{
    for (int i = 0; i <= LOG_FILES_MAX; i++) {
        ssize_t n = l->fd < 0 ? 0 : read(l->fd, buf, size);
        bool rotated;

        if (n != 0)
            return n < 0 ? -errno : n;
        rotated = l->fd < 0 || number_of(l) != 0;
        if (!rotated)
            return 0;
        /* A rotated file is not written any more, so this reads the rest. */
        n = l->fd < 0 ? 0 : read(l->fd, buf, size);
        if (n != 0)
            return n < 0 ? -errno : n;
        if (!next(l))
            return 0;
    }
    return 0;
}
