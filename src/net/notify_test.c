/* notify_test.c - tests messages to systemd, and the watchdog interval. */
#include "net/notify.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* Creates a socket with this name that receives messages. */
static int listener(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0 && len < sizeof at.sun_path);
    memcpy(at.sun_path, name, len);
    if (*name == '@')
        at.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
    return fd;
}

static void hears(int fd, const char *want)
{
    char text[64] = "";
    ssize_t len = recv(fd, text, sizeof text - 1, 0);

    assert_int_equal(len, strlen(want));
    assert_string_equal(text, want);
}

static void message_reaches_path_socket(void **state)
{
    (void)state;
    char dir[] = "/tmp/berth-notify-XXXXXX", path[64];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/socket", dir);
    int fd = listener(path);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    assert_int_equal(notify_send("READY=1"), 0);
    assert_int_equal(notify_send("STOPPING=1"), 0);
    hears(fd, "READY=1");
    hears(fd, "STOPPING=1");
    (void)close(fd);
    assert_int_equal(notify_send("READY=1"), -ECONNREFUSED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(notify_send("READY=1"), -ENOENT);
    assert_int_equal(rmdir(dir), 0);
}

static void message_reaches_abstract_socket(void **state)
{
    (void)state;
    char name[64];

    (void)snprintf(name, sizeof name, "@berth-notify-test-%d", (int)getpid());
    int fd = listener(name);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    assert_int_equal(notify_send("WATCHDOG=1"), 0);
    hears(fd, "WATCHDOG=1");
    (void)close(fd);
}

static void missing_socket_is_reported(void **state)
{
    (void)state;
    char longer[200];

    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_int_equal(notify_send("READY=1"), 1);
    assert_int_equal(setenv("NOTIFY_SOCKET", "", 1), 0);
    assert_int_equal(notify_send("READY=1"), 1);
    assert_int_equal(setenv("NOTIFY_SOCKET", "relative", 1), 0);
    assert_int_equal(notify_send("READY=1"), -EINVAL);
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(setenv("NOTIFY_SOCKET", longer, 1), 0);
    assert_int_equal(notify_send("READY=1"), -EINVAL);
}

static void watchdog_interval_is_read_from_environment(void **state)
{
    (void)state;
    char own[24];

    (void)snprintf(own, sizeof own, "%d", (int)getpid());
    static const struct {
        const char *usec;
        int pid; /* 0: not set, 1: this process, 2: another process */
        int64_t want_ns;
    } rows[] = {
        {NULL,                  0, 0         },
        {"2000000",             0, 2000000000},
        {"2000000",             1, 2000000000},
        {"2000000",             2, 0         },
        {"0",                   0, 0         },
        {"-1",                  0, 0         },
        {"soon",                0, 0         },
        {"9223372036854775807", 0, 0         },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)unsetenv("WATCHDOG_USEC");
        (void)unsetenv("WATCHDOG_PID");
        if (rows[i].usec)
            assert_int_equal(setenv("WATCHDOG_USEC", rows[i].usec, 1), 0);
        if (rows[i].pid)
            assert_int_equal(setenv("WATCHDOG_PID", rows[i].pid == 1 ? own : "1", 1), 0);
        assert_int_equal(notify_watchdog_ns(), rows[i].want_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_reaches_path_socket),
        cmocka_unit_test(message_reaches_abstract_socket),
        cmocka_unit_test(missing_socket_is_reported),
        cmocka_unit_test(watchdog_interval_is_read_from_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
