/* address_test.c - tests which addresses are public, and which addresses a range contains. */
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage made = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&made;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&made;

    made.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    if (made.ss_family == AF_INET6)
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    else
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    return made;
}

static void only_public_addresses_are_public(void **state)
{
    static const struct {
        const char *text;
        bool want;
    } rows[] = {
        {"8.8.8.8",                true },
        {"1.1.1.1",                true },
        {"172.15.255.255",         true },
        {"172.32.0.1",             true },
        {"192.167.1.1",            true },
        {"100.63.0.1",             true },
        {"2606:4700::1111",        true },
        {"2a00:1450::1",           true },
        {"::ffff:8.8.8.8",         true },
        {"64:ff9b::8.8.8.8",       true },
        {"0.0.0.0",                false},
        {"0.1.2.3",                false},
        {"10.255.0.1",             false},
        {"100.64.0.1",             false},
        {"127.0.0.1",              false},
        {"127.255.255.254",        false},
        {"169.254.169.254",        false},
        {"172.16.0.1",             false},
        {"172.31.255.255",         false},
        {"192.0.2.7",              false},
        {"192.168.1.1",            false},
        {"198.19.0.1",             false},
        {"203.0.113.9",            false},
        {"224.0.0.1",              false},
        {"255.255.255.255",        false},
        {"::",                     false},
        {"::1",                    false},
        {"::7f00:1",               false}, /* IPv4-compatible */
        {"::ffff:127.0.0.1",       false},
        {"::ffff:169.254.169.254", false},
        {"::ffff:0:7f00:1",        false}, /* SIIT */
        {"64:ff9b::127.0.0.1",     false},
        {"64:ff9b::10.0.0.1",      false},
        {"64:ff9b:1::8.8.8.8",     false},
        {"2002:7f00:1::",          false}, /* 6to4 of 127.0.0.1 */
        {"2001::1",                false}, /* Teredo */
        {"2001:db8::1",            false},
        {"fc00::1",                false},
        {"fdff::1",                false},
        {"fe80::1",                false},
        {"fec0::1",                false},
        {"ff02::1",                false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sockaddr_storage address = address_of(rows[i].text);
        if (address_is_public((const struct sockaddr *)&address) != rows[i].want)
            fail_msg("%s: public should be %d", rows[i].text, rows[i].want);
    }
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    assert_false(address_is_public((const struct sockaddr *)&local));
}

static void ranges_contain_their_addresses(void **state)
{
    static const struct {
        const char *range, *address;
        int want; /* -1: the text is not a range */
    } rows[] = {
        {"10.1.0.0/16",       "10.1.200.3",        1 },
        {"10.1.0.0/16",       "10.2.0.1",          0 },
        {"10.1.0.0/15",       "10.0.0.1",          1 },
        {"127.0.0.1",         "127.0.0.1",         1 },
        {"127.0.0.1",         "::ffff:127.0.0.1",  1 },
        {"127.0.0.1",         "127.0.0.2",         0 },
        {"0.0.0.0/0",         "10.1.1.1",          1 },
        {"0.0.0.0/0",         "fd00::1",           0 },
        {"fd00::/8",          "fd12::1",           1 },
        {"fd00::/8",          "fe12::1",           0 },
        {"::1",               "::1",               1 },
        {"10.0.0.1",          "64:ff9b::10.0.0.1", 1 },
        {"10.0.0.0/33",       "10.0.0.1",          -1},
        {"fd00::/129",        "fd00::1",           -1},
        {"10.0.0.0/",         "10.0.0.1",          -1},
        {"10.0.0.0/-1",       "10.0.0.1",          -1},
        {"10.0.0/8",          "10.0.0.1",          -1},
        {"",                  "10.0.0.1",          -1},
        {"https://a.example", "10.0.0.1",          -1},
        {"10.0.0.0/8888",     "10.0.0.1",          -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sockaddr_storage address = address_of(rows[i].address);
        struct address_range range;
        int got = !address_range_parse(rows[i].range, strlen(rows[i].range), &range)
                      ? -1
                      : address_range_has(&range, (const struct sockaddr *)&address);
        if (got != rows[i].want)
            fail_msg("%s, %s: %d", rows[i].range, rows[i].address, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_public_addresses_are_public),
        cmocka_unit_test(ranges_contain_their_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
