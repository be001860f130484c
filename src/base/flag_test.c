/* flag_test.c - tests parsing of command-line options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/flag.h"

struct options {
    bool help, loud;
    const char *dir;
    uint64_t count;
};

static const struct flag flags[] = {
    {"dir",   FLAG_TEXT,   offsetof(struct options, dir),   "DIR", 0, 0, "where"     },
    {"count", FLAG_COUNT,  offsetof(struct options, count), "N",   1, 9, "how many"  },
    {"loud",  FLAG_SWITCH, offsetof(struct options, loud),  NULL,  0, 0, "say more"  },
    {"help",  FLAG_SWITCH, offsetof(struct options, help),  NULL,  0, 0, "print this"},
};
enum { FLAGS = sizeof flags / sizeof *flags };

static void flags_are_parsed_or_rejected(void **state)
{
    static const struct {
        char *argv[6];
        const char *error; /* NULL: no error */
        struct options want;
    } rows[] = {
        {{"p"},                            NULL,                                                 {0}                         },
        {{"p", "--dir", "x", "--count=3"}, NULL,                                                 {.dir = "x", .count = 3}    },
        {{"p", "--loud", "--dir=a=b"},     NULL,                                                 {.loud = true, .dir = "a=b"}},
        {{"p", "-h"},                      NULL,                                                 {.help = true}              },
        {{"p", "--count", "10"},           "--count takes a whole number from 1 to 9, not '10'", {0}                         },
        {{"p", "--count", "-1"},           "--count takes a whole number from 1 to 9, not '-1'", {0}                         },
        {{"p", "--dir"},                   "--dir needs a value: DIR",                           {0}                         },
        {{"p", "--dir="},                  "--dir needs a value: DIR",                           {0}                         },
        {{"p", "--loud=yes"},              "--loud takes no value",                              {0}                         },
        {{"p", "--lou"},                   "unknown option --lou; see 'p --help'",               {0}                         },
        {{"p", "word"},                    "p takes only options, not 'word'; see 'p --help'",   {0}                         },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct options got = {0};
        struct berth_err err = {0};
        int argc = 0;
        while (rows[i].argv[argc])
            argc++;
        int rc = flags_read("p", flags, FLAGS, argc, rows[i].argv, &got, &err);
        if (rows[i].error) {
            assert_true(rc < 0);
            assert_string_equal(err.text, rows[i].error);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(got.help, rows[i].want.help);
        assert_int_equal(got.loud, rows[i].want.loud);
        assert_int_equal(got.count, rows[i].want.count);
        assert_string_equal(got.dir ? got.dir : "", rows[i].want.dir ? rows[i].want.dir : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_parsed_or_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
