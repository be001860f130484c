/* log.c - log files of an instance with bounded size: "log" is the newest, then log.1, log.2, ... */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_FILES = 2, LOG_FILES_MAX = 100, LOG_BYTES_MIN = 1024 };

static int file_open(struct log_out *log, int flags)
{
    struct stat st;

    log->fd = openat(log->dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | flags, 0640);
    if (log->fd < 0)
        return -errno;
    log->bytes = fstat(log->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    return 0;
}

int log_open(struct log_out *log, const char *dir, uint64_t bytes_max, unsigned files)
{
    *log = (struct log_out){.dir = -1, .fd = -1};
    log->bytes_max = bytes_max == 0 ? 10 << 20 : bytes_max < LOG_BYTES_MIN ? LOG_BYTES_MIN : bytes_max;
    log->files = files == 0 ? LOG_FILES : files > LOG_FILES_MAX ? LOG_FILES_MAX : files;
    if (mkdir(dir, 0700) && errno != EEXIST)
        return -errno;
    log->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return log->dir < 0 ? -errno : file_open(log, 0);
}

static void rotate(struct log_out *log)
{
    char from[16] = "log", to[16];

    for (unsigned i = log->files - 1; i > 0; i--) {
        (void)snprintf(to, sizeof to, "log.%u", i);
        if (i > 1)
            (void)snprintf(from, sizeof from, "log.%u", i - 1);
        else
            (void)snprintf(from, sizeof from, "log");
        (void)renameat(log->dir, from, log->dir, to); /* some do not exist at first */
    }
    if (log->files == 1)
        (void)unlinkat(log->dir, "log", 0); /* readers keep the removed file open */
    close(log->fd);
    /* If the rename failed, the file is truncated, so that the size stays bounded. */
    if (file_open(log, O_TRUNC))
        log->bytes = 0;
}

static void put(struct log_out *log, const char *bytes, size_t len)
{
    if (log->fd < 0 && file_open(log, 0)) {
        log->lost += len;
        return;
    }
    if (log->lost > 0) {
        char note[64];
        int n = snprintf(note, sizeof note, "\n[berth: %" PRIu64 " bytes lost]\n", log->lost);

        if (fd_write(log->fd, note, (size_t)n) == 0) {
            log->lost = 0;
            log->bytes += (size_t)n;
        }
    }
    if (fd_write(log->fd, bytes, len))
        log->lost += len;
    log->bytes += len;
}

/* Returns how many bytes go into the current file: whole lines if possible. */
static size_t fitting(const struct log_out *log, const char *bytes, size_t len)
{
    size_t room = log->bytes < log->bytes_max ? (size_t)(log->bytes_max - log->bytes) : 0;
    const char *end;

    if (len <= room)
        return len;
    end = memrchr(bytes, '\n', room);
    if (end)
        return (size_t)(end - bytes) + 1;
    return log->bytes == 0 ? room : 0;
}

void log_put(struct log_out *log, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t n = fitting(log, bytes, len);

        if (n > 0)
            put(log, bytes, n);
        bytes += n;
        len -= n;
        if (len > 0)
            rotate(log);
    }
}
