/* vm_qmp.c - QMP client (QEMU Machine Protocol) that sends a power-down. */
#include "machine/vm/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/mount/mount_tree.h"

enum { ANSWER_MS = 2000, LINE_MAX_BYTES = 16 << 10 };

/* Opens the socket safely: the instance owns the directory, so the name may have become a link or another file. */
static int qmp_connect(const struct state_dir *p, uint64_t id)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct stat st;
    CLEANUP(close_fd) int folder = tree_open_instance(p, id);
    CLEANUP(close_fd) int at = folder < 0 ? folder : tree_open(folder, "bundle/qmp", O_PATH | O_NOFOLLOW, 0);
    if (at < 0)
        return at;
    if (fstat(at, &st) < 0 || !S_ISSOCK(st.st_mode))
        return -ENOTSOCK;
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d", at);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    return take_fd(&fd);
}

static int64_t clock_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads lines until one contains this word, or until the deadline. */
static int line_await(int fd, const char *word, int64_t until_ms)
{
    char line[LINE_MAX_BYTES];
    size_t len = 0;
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = until_ms - clock_ms();
        if (left <= 0 || poll(&ready, 1, (int)left) == 0)
            return -ETIMEDOUT;
        ssize_t n = read(fd, line + len, 1);
        if (n == 0)
            return -EPIPE;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (n < 0)
            continue;
        if (line[len] != '\n') {
            len += len < sizeof line - 1;
            continue;
        }
        line[len] = '\0';
        len = 0;
        if (strstr(line, "\"error\""))
            return -EPROTO;
        if (strstr(line, word))
            return 0;
    }
}

static int qmp_send(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text) ? 0 : -EPIPE;
}

int vm_power_down(const struct state_dir *p, uint64_t id)
{
    CLEANUP(close_fd) int fd = qmp_connect(p, id);
    int64_t until = clock_ms() + ANSWER_MS;
    if (fd < 0)
        return fd;
    int rc = line_await(fd, "\"QMP\"", until);
    rc = rc ? rc : qmp_send(fd, "{\"execute\":\"qmp_capabilities\"}\n");
    rc = rc ? rc : line_await(fd, "\"return\"", until);
    rc = rc ? rc : qmp_send(fd, "{\"execute\":\"system_powerdown\"}\n");
    return rc ? rc : line_await(fd, "\"return\"", until);
}
