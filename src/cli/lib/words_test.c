/* words_test.c - formatting of names and numbers, suggestions, and word wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/job/pods.h"
#include "cli/lib/cli.h"
#include "cli/lib/human.h"
#include "cli/lib/suggest.h"

static void pods_are_split_at_the_last_slash(void **state)
{
    static const struct {
        const char *text;
        size_t workload_len;
        uint32_t ordinal;
        bool is_pod;
    } rows[] = {
        {"web/3",            3, 3,          true },
        {"team/web/12",      8, 12,         true },
        {"web",              0, 0,          false},
        {"team/web",         0, 0,          false},
        {"web/",             0, 0,          false},
        {"/3",               0, 0,          false},
        {"web/3x",           0, 0,          false},
        {"web/-3",           0, 0,          false},
        {"web/4294967295",   3, UINT32_MAX, true },
        {"web/4294967296",   0, 0,          false},
        {"web/999999999999", 0, 0,          false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = 0;
        uint32_t ordinal = 0;
        assert_int_equal(pod_split(rows[i].text, &len, &ordinal), rows[i].is_pod);
        assert_int_equal(len, rows[i].workload_len);
        assert_int_equal(ordinal, rows[i].ordinal);
    }
}

static void ranges_are_short(void **state)
{
    static const struct {
        uint32_t at[8];
        size_t len, size;
        const char *want;
    } rows[] = {
        {{0},                      0, 16, ""           },
        {{7},                      1, 16, "7"          },
        {{0, 1, 2, 3},             4, 16, "0-3"        },
        {{0, 1, 3, 5, 6},          5, 16, "0-1,3,5-6"  },
        {{1, 3, 5, 7, 9, 11},      6, 12, "1,3,5,7,..."},
        {{1, 3, 5, 7, 9},          5, 10, "1,3,5,..."  },
        {{100000, 200000, 300000}, 3, 16, "100000,..." },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buf[64];
        assert_string_equal(ranges_print(rows[i].at, rows[i].len, buf, rows[i].size), rows[i].want);
        assert_true(strlen(buf) < rows[i].size);
    }
    char buf[32];
    assert_string_equal(bits_print(0, buf, sizeof buf), "");
    assert_string_equal(bits_print(0x8000000000000007u, buf, sizeof buf), "0-2,63");
}

static void numbers_are_readable(void **state)
{
    (void)state;
    assert_string_equal(show_count(0).text, "0");
    assert_string_equal(show_count(999).text, "999");
    assert_string_equal(show_count(1562).text, "1,562");
    assert_string_equal(show_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(show_seconds(0.0000031).text, "3.10 us");
    assert_string_equal(show_seconds(0.00021).text, "0.21 ms");
    assert_string_equal(show_seconds(0.0382).text, "38.2 ms");
    assert_string_equal(show_seconds(0.3).text, "300 ms");
    assert_string_equal(show_seconds(1.254).text, "1.25 s");
    assert_string_equal(show_bytes(512).text, "512 B");
    assert_string_equal(show_bytes((uint64_t)812 << 20).text, "812 MiB");
    assert_string_equal(show_bytes((uint64_t)3 << 29).text, "1.50 GiB");
    assert_string_equal(show_age(-5).text, "0s");
    assert_string_equal(show_age(119).text, "119s");
    assert_string_equal(show_age(120).text, "2m");
    assert_string_equal(show_age(7199).text, "119m");
    assert_string_equal(show_age(7200).text, "2h");
    assert_string_equal(show_age((int64_t)48 * 3600).text, "2d");
    assert_string_equal(show_age((int64_t)1000 * 86400).text, "2y");
}

static void nearest_names_are_suggested(void **state)
{
    static const char *const names[] = {"web", "webcam", "training", "trading", "db", "straining"};
    struct suggestions s;

    (void)state;
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(suggest_distance("abcd", "abdc"), 1);
    assert_int_equal(suggest_distance("", "abc"), 3);
    suggest_init(&s, "trainig");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        suggest_offer(&s, names[i]);
    assert_int_equal(s.len, 3);
    assert_string_equal(s.at[0], "training");
    suggest_init(&s, "we");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        suggest_offer(&s, names[i]);
    assert_int_equal(s.len, 2);
    assert_string_equal(s.at[0], "web");
    assert_string_equal(s.at[1], "webcam");
    suggest_init(&s, "zzz");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        suggest_offer(&s, names[i]);
    assert_int_equal(s.len, 0);
}

static void text_is_wrapped(void **state)
{
    char *text = NULL;
    size_t len = 0;
    struct cli cli = {.out = open_memstream(&text, &len), .width = 40};

    (void)state;
    assert_non_null(cli.out);
    cli_wrap(&cli, "one two three four five six seven eight nine ten\n\n  kept   as it is\nend", 2, 0);
    fclose(cli.out);
    assert_string_equal(text, "  one two three four five six seven\n"
                              "  eight nine ten\n\n"
                              "    kept   as it is\n"
                              "  end\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_split_at_the_last_slash),
        cmocka_unit_test(ranges_are_short),
        cmocka_unit_test(numbers_are_readable),
        cmocka_unit_test(nearest_names_are_suggested),
        cmocka_unit_test(text_is_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
