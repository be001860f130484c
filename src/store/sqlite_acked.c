/* sqlite_acked.c - the mark of the last acknowledged revision, with its checksum, in two files.
 *
 * The mark is overwritten in place after each commit, without sync. Old and new mark fit one sector, so a power failure
 * leaves one of them. The files are created atomically (written under another name, synced, renamed), so an empty or
 * torn file is damage. The two files are written one after another, so a reader always finds one that is not being
 * written.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/sqlite.h"

/* Revision and its hash, with a fixed length, so that one write replaces the mark. */
#define ACKED_FORMAT "%020" PRIu64 " %016" PRIx64 "\n"
enum { ACKED_LEN = 38, ACKED_SEED = 0xac };
static const char *const names[ACKED_COPIES] = {"acked", "acked.2"};

static void close_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static void acked_text(uint64_t revision, char ret[static ACKED_LEN + 1])
{
    (void)snprintf(ret, ACKED_LEN + 1, ACKED_FORMAT, revision, hash_pair(ACKED_SEED, revision));
}

enum copy { COPY_ABSENT, COPY_BAD, COPY_GOOD };

static enum copy copy_read(const struct store_folder *f, size_t i, uint64_t *ret)
{
    char text[ACKED_LEN + 2] = "", again[ACKED_LEN + 1];
    CLEANUP(close) int fd = openat(f->fd, names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return errno == ENOENT ? COPY_ABSENT : COPY_BAD;
    if (pread(fd, text, ACKED_LEN + 1, 0) != ACKED_LEN)
        return COPY_BAD;
    uint64_t revision = strtoull(text, NULL, 10);
    acked_text(revision, again);
    if (strcmp(text, again) != 0)
        return COPY_BAD;
    *ret = revision;
    return COPY_GOOD;
}

/* Returns false if all existing copies are damaged. */
static bool copies_read(const struct store_folder *f, uint64_t *ret)
{
    bool good = false, bad = false;

    *ret = 0;
    for (size_t i = 0; i < ACKED_COPIES; i++) {
        uint64_t revision = 0;
        enum copy copy = copy_read(f, i, &revision);
        good = good || copy == COPY_GOOD;
        bad = bad || copy == COPY_BAD;
        *ret = revision > *ret ? revision : *ret;
    }
    return good || !bad;
}

int folder_acked(const struct store_folder *f, uint64_t *ret, struct berth_err *err)
{
    enum { TRIES = 5, PAUSE_NS = 2000000 };

    /* Another process may be writing the marks, so a read may see half of one. */
    for (int i = 0; i < TRIES; i++) {
        if (copies_read(f, ret))
            return 0;
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return err_set(err, EBADMSG,
                   "the checksums of %s/%s and its copy %s are wrong, so the last acknowledged revision is "
                   "unknown; restore a backup, or remove both files to continue with the present contents of the "
                   "store",
                   f->path, names[0], names[1]);
}

/* Creates a new mark file atomically. Returns -1 if that is currently impossible. */
static int copy_make(struct store_folder *f, size_t i, const char *text)
{
    static const char aside[] = "acked.new";
    int fd = openat(f->fd, aside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return -1;
    if (pwrite(fd, text, ACKED_LEN, 0) == ACKED_LEN && fsync(fd) == 0 && renameat(f->fd, aside, f->fd, names[i]) == 0)
        return fd;
    (void)unlinkat(f->fd, aside, 0);
    close(fd);
    return -1;
}

void folder_set_acked(struct store_folder *f, uint64_t revision)
{
    char text[ACKED_LEN + 1];

    acked_text(revision, text);
    for (size_t i = 0; i < ACKED_COPIES; i++) {
        if (f->acked_fd[i] < 0) {
            f->acked_fd[i] = copy_make(f, i, text);
            if (f->acked_fd[i] >= 0)
                continue;
            f->acked_fd[i] = openat(f->fd, names[i], O_RDWR | O_CLOEXEC | O_NOFOLLOW); /* also works on a full disk */
        }
        ssize_t written = pwrite(f->acked_fd[i], text, ACKED_LEN, 0);
        (void)written;
    }
}

int folder_reset_acked(struct store_folder *f, uint64_t revision, struct berth_err *err)
{
    uint64_t is = 0;
    int rc = 0;

    folder_set_acked(f, revision);
    for (size_t i = 0; rc == 0 && i < ACKED_COPIES; i++)
        if (f->acked_fd[i] < 0 || fsync(f->acked_fd[i]) < 0)
            rc = err_set(err, errno, "cannot write %s/%s: %s", f->path, names[i], strerror(errno));
    if (rc == 0 && fsync(f->fd) < 0)
        rc = err_set(err, errno, "cannot sync %s: %s", f->path, strerror(errno));
    if (rc == 0)
        rc = folder_acked(f, &is, err);
    return rc == 0 && is != revision ? err_set(err, EIO, "cannot write %s/%s", f->path, names[0]) : rc;
}
