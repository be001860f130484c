#include "machine/launch/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

void close_fd_cleanup(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

int fd_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

enum { NAME_NEW_MAX = 256 };

static int new_open(int dir, const char *name, char new[static NAME_NEW_MAX])
{
    int fd;

    if (snprintf(new, NAME_NEW_MAX, "%s.new", name) >= NAME_NEW_MAX)
        return -ENAMETOOLONG;
    fd = openat(dir, new, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

void file_reserve(int dir, const char *name, size_t len)
{
    static const char zeros[512];
    char new[NAME_NEW_MAX];
    CLEANUP(close_fd) int fd = new_open(dir, name, new);

    for (size_t n; fd >= 0 && len > 0; len -= n) {
        n = len < sizeof zeros ? len : sizeof zeros;
        if (fd_write(fd, zeros, n))
            return;
    }
}

int file_write(int dir, const char *name, const void *bytes, size_t len, bool durable)
{
    char new[NAME_NEW_MAX];
    CLEANUP(close_fd) int fd = new_open(dir, name, new);
    int rc;

    if (fd < 0)
        return fd;
    rc = fd_write(fd, bytes, len);
    /* Truncated after the write, so that reserved space is overwritten instead of released first. */
    if (rc == 0 && ftruncate(fd, (off_t)len))
        rc = -errno;
    if (rc == 0 && durable && fdatasync(fd))
        rc = -errno;
    if (rc == 0 && renameat(dir, new, dir, name))
        rc = -errno;
    if (rc) {
        unlinkat(dir, new, 0);
        return rc;
    }
    return durable && fsync(dir) ? -errno : 0;
}

int fd_read(int fd, char **ret, size_t *ret_len)
{
    size_t len = 0, cap = 4096;
    CLEANUP(mem) char *text = mem_alloc(cap);

    for (;;) {
        ssize_t n = read(fd, text + len, cap - len - 1);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > FILE_BYTES_MAX)
            return -EFBIG;
        if (len + 1 == cap) {
            cap *= 2;
            text = mem_resize(text, cap, 1);
        }
    }
    text[len] = 0;
    *ret = take_ptr(&text);
    if (ret_len)
        *ret_len = len;
    return 0;
}

int file_read(int dir, const char *name, char **ret, size_t *ret_len)
{
    CLEANUP(close_fd) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd_read(fd, ret, ret_len);
}

/* Reads a short file of /proc; files in /proc do not report their size. */
static int read_short(const char *path, char *buf, size_t size)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

    if (n < 0)
        return -errno;
    buf[n] = 0;
    return 0;
}

int boot_id(char ret[static BOOT_ID_MAX])
{
    int rc = read_short("/proc/sys/kernel/random/boot_id", ret, BOOT_ID_MAX);

    if (rc)
        return rc;
    ret[strcspn(ret, "\n")] = 0;
    return 0;
}

int64_t boottime_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int process_start(pid_t pid, uint64_t *ret)
{
    char path[64], text[1024];
    const char *at;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_short(path, text, sizeof text))
        return -ESRCH;
    /* The second field is a name in parentheses that may contain any character; the start time is field 22. */
    at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return -ESRCH;
    *ret = strtoull(at + 1, NULL, 10);
    return 0;
}

int process_open(pid_t pid, uint64_t start)
{
    CLEANUP(close_fd) int fd = pid > 0 ? pidfd_open(pid, 0) : -1;
    struct pollfd hangup = {.fd = fd, .events = POLLIN};
    uint64_t now;

    if (fd < 0 || process_start(pid, &now) || now != start || poll(&hangup, 1, 0) != 0)
        return -ESRCH;
    return take_fd(&fd);
}

/* The text contains the time twice, so that a reader detects a concurrent write. */
size_t contact_time_text(const char *boot, int64_t at_ns, char ret[static CONTACT_TIME_TEXT_MAX])
{
    int n = snprintf(ret, CONTACT_TIME_TEXT_MAX, "%020" PRId64 " %s %020" PRId64 "\n", at_ns, boot, at_ns);

    return (size_t)n;
}

int64_t contact_time_read(const char *path)
{
    char boot[BOOT_ID_MAX], text[CONTACT_TIME_TEXT_MAX], want[CONTACT_TIME_TEXT_MAX];

    if (boot_id(boot))
        return 0;
    for (int i = 0; i < 10; i++) {
        int64_t at;

        if (read_short(path, text, sizeof text))
            return 0;
        at = strtoll(text, NULL, 10);
        contact_time_text(boot, at, want);
        if (strcmp(text, want) == 0)
            return at;
    }
    return 0;
}
