/* notify.c - messages to systemd over a datagram socket. */
#include "net/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

int notify_send(const char *state)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;

    if (len == 0)
        return 1;
    if ((*path != '/' && *path != '@') || len >= sizeof to.sun_path)
        return -EINVAL;
    memcpy(to.sun_path, path, len);
    if (*path == '@')
        to.sun_path[0] = '\0'; /* an abstract socket name: the length counts, and there is no NUL at the end */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to, to_len);
    int rc = sent < 0 ? -errno : 0;
    (void)close(fd);
    return rc;
}

int64_t notify_watchdog_ns(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t n;

    if (!usec || !str_parse_i64(usec, &n) || n <= 0 || n > INT64_MAX / 1000)
        return 0;
    int64_t whose;
    if (pid && (!str_parse_i64(pid, &whose) || whose != getpid()))
        return 0; /* the watchdog applies to another process of the service */
    return n * 1000;
}
