#include "machine/net/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A range in which some ports are free on any machine. */
enum { START = 28100, COUNT = 200 };

static uint16_t find(struct port_request wish, int *fd)
{
    struct berth_err err;
    uint16_t port = 0;

    if (port_find(&wish, &port, fd, &err))
        fail_msg("%s", err.text);
    assert_in_range(port, wish.start, wish.start + wish.count - 1);
    return port;
}

static void first_come_first_served(void **state)
{
    (void)state;
    for (int udp = 0; udp < 2; udp++) {
        struct port_request wish = {
            .protocol = udp ? PORT_UDP : PORT_TCP, .start = START, .count = COUNT, .keep_socket = true};
        int first, second, none;
        uint16_t a = find(wish, &first), b = find(wish, &second);
        struct berth_err err;

        assert_true(b > a);
        assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
        /* A port bound for all addresses is taken for each single address, too. */
        wish.address = "127.0.0.1";
        wish.start = a;
        wish.count = 1;
        assert_int_equal(port_find(&wish, &b, &none, &err), -EADDRINUSE);
        close(first);
        wish.keep_socket = false;
        assert_int_equal(find(wish, &none), a);
        assert_int_equal(none, -1);
        /* It was closed again. */
        assert_int_equal(find(wish, &none), a);
        close(second);
    }
}

static void taken_ports_are_skipped(void **state)
{
    struct port_request wish = {.start = START, .count = COUNT};
    uint16_t taken[2];
    struct berth_err err;
    uint16_t port = 1;
    int fd;

    (void)state;
    taken[0] = find(wish, &fd);
    wish.taken = taken;
    wish.taken_len = 1;
    taken[1] = find(wish, &fd);
    assert_true(taken[1] > taken[0]);
    wish.taken_len = 2;
    wish.start = taken[1];
    wish.count = 1;
    assert_int_equal(port_find(&wish, &port, &fd, &err), -EADDRINUSE);
    assert_int_equal(port, 1);
    assert_non_null(strstr(err.text, "is free"));
}

/* A kept socket accepts connections, over IPv4 and IPv6 if the machine has both. */
static void kept_sockets_listen(void **state)
{
    const struct port_request wish = {.start = START, .count = COUNT, .keep_socket = true};
    int fd, client;
    uint16_t port = find(wish, &fd);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    (void)state;
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&v4, sizeof v4), 0);
    close(client);
    client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client >= 0) {
        if (connect(client, (struct sockaddr *)&v6, sizeof v6))
            assert_int_equal(errno, EADDRNOTAVAIL); /* no IPv6 on the loopback device */
        close(client);
    }
    close(fd);
}

static void invalid_addresses_and_ranges_are_rejected(void **state)
{
    static const struct port_request rows[] = {
        {.start = 0,              .count = 5},
        {              .start = UINT16_MAX,             .count = 2          },
        { .start = START, .count = 1,           .address = "localhost"},
        { .start = START, .count = 1,           .address = "1.2.3.4.5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct berth_err err;
        uint16_t port = 1;
        int fd = -7;

        assert_int_equal(port_find(&rows[i], &port, &fd, &err), -EINVAL);
        assert_int_equal(port, 1);
        assert_int_equal(fd, -7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(taken_ports_are_skipped),
        cmocka_unit_test(kept_sockets_listen),
        cmocka_unit_test(invalid_addresses_and_ranges_are_rejected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
