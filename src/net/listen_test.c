/* listen_test.c - tests parsing of listen addresses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/listen.h"

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host; /* NULL: rejected */
        uint16_t port;
    } rows[] = {
        {"127.0.0.1:80",                                     "127.0.0.1", 80   },
        {"127.0.0.1",                                        "127.0.0.1", 3980 },
        {":81",                                              "127.0.0.1", 81   },
        {"[::1]:82",                                         "::1",       82   },
        {"[::1]",                                            "::1",       3980 },
        {"0.0.0.0:65535",                                    "0.0.0.0",   65535},
        {"localhost:80",                                     NULL,        0    },
        {"::1",                                              NULL,        0    },
        {"[::1",                                             NULL,        0    },
        {"[::1]80",                                          NULL,        0    },
        {"[127.0.0.1]:80",                                   NULL,        0    },
        {"127.0.0.1:",                                       NULL,        0    },
        {"127.0.0.1:65536",                                  NULL,        0    },
        {"127.0.0.1:-1",                                     NULL,        0    },
        {"127.0.0.1:80:90",                                  NULL,        0    },
        {"127.1:80",                                         NULL,        0    },
        {"",                                                 "127.0.0.1", 3980 },
        {"[1111:2222:3333:4444:5555:6666:7777:8888:9999]:1", NULL,        0    },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char host[LISTEN_HOST_MAX] = "?";
        uint16_t port = 1;
        int rc = listen_parse(rows[i].text, 3980, host, &port, NULL);
        if (rc != (rows[i].host ? 0 : -EINVAL))
            fail_msg("'%s' gives %d", rows[i].text, rc);
        assert_string_equal(host, rows[i].host ? rows[i].host : "?");
        assert_int_equal(port, rows[i].host ? rows[i].port : 1);
    }
}

static void loopback_hosts_are_recognized(void **state)
{
    (void)state;
    static const char *const here[] = {"127.0.0.1", "127.8.9.1", "::1"};
    static const char *const elsewhere[] = {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "::ffff:10.0.0.1", "x"};

    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        assert_true(host_is_loopback(here[i]));
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        assert_false(host_is_loopback(elsewhere[i]));
}

static void loopback_urls(void **state)
{
    (void)state;
    static const char *const here[] = {"http://127.0.0.1",    "http://127.8.9.1:80/v1", "http://localhost",
                                       "http://LocalHost:80", "http://[::1]",           "http://[::1]:8080/x",
                                       "http://127.0.0.1?x@y"};
    static const char *const elsewhere[] = {"http://127.example.com",
                                            "http://localhost.example.com",
                                            "http://localhostile",
                                            "http://[::1].example.com",
                                            "http://[::1",
                                            "http://127.0.0.1@example.com",
                                            "http://localhost:x@example.com/",
                                            "http://127.1",
                                            "http://",
                                            "127.0.0.1",
                                            "http://10.0.0.1",
                                            "http://[localhost]"};

    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (!url_is_loopback(here[i]))
            fail_msg("'%s' is on this machine", here[i]);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (url_is_loopback(elsewhere[i]))
            fail_msg("'%s' is not on this machine", elsewhere[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(loopback_hosts_are_recognized),
        cmocka_unit_test(loopback_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
