/* unified_test.c - differences have the format of diff(1), and turn the old text into the new text. */
#include "cli/lib/unified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"

static void format_matches_diff_u(void **state)
{
    static const struct {
        const char *old_text, *new_text, *want;
    } rows[] = {
        {"",                               "",                               ""                             },
        {"a\nb\n",                         "a\nb\n",                         ""                             },
        {"",                               "a\n",                            "@@ -0,0 +1,1 @@\n+a\n"        },
        {"a\n",                            "",                               "@@ -1,1 +0,0 @@\n-a\n"        },
        {"a\n",                            "b\n",                            "@@ -1,1 +1,1 @@\n-a\n+b\n"    },
        {"a\nb\nc\n",                      "a\nc\n",                         "@@ -1,3 +1,2 @@\n a\n-b\n c\n"},
        {"1\n2\n3\n4\n5\nx\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\ny\n6\n7\n8\n9\n",
         "@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-x\n+y\n 6\n 7\n 8\n"                                                },
        {"x\n1\n2\n3\n4\n5\n6\ny\n",       "X\n1\n2\n3\n4\n5\n6\nY\n",
         "@@ -1,8 +1,8 @@\n-x\n+X\n 1\n 2\n 3\n 4\n 5\n 6\n-y\n+Y\n"                                        },
        {"x\n1\n2\n3\n4\n5\n6\n7\ny\n",    "X\n1\n2\n3\n4\n5\n6\n7\nY\n",
         "@@ -1,4 +1,4 @@\n-x\n+X\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-y\n+Y\n"                       },
        {"a\nb",                           "a\nb\nc",                        "@@ -1,2 +1,3 @@\n a\n b\n+c\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(str) struct str text = {0};
        bool differs = unified_diff(&text, "old", "new", rows[i].old_text, rows[i].new_text);
        assert_int_equal(differs, rows[i].want[0] != '\0');
        const char *hunks = str_text(&text);
        if (differs) {
            static const char head[] = "--- old\n+++ new\n";
            assert_memory_equal(hunks, head, sizeof head - 1);
            hunks += sizeof head - 1;
        }
        if (strcmp(hunks, rows[i].want) != 0)
            fail_msg("row %zu:\n%s", i, hunks);
    }
}

/* Applies the hunks to the old text and checks every context line. Returns the number of edits. */
static size_t patch(const char *old_text, const char *diff, struct str *to)
{
    size_t edits = 0, line = 0;

    diff = strchr(strchr(diff, '\n') + 1, '\n') + 1; /* after the header */
    while (*diff) {
        size_t from, from_len, into, into_len;
        int taken = 0;
        if (sscanf(diff, "@@ -%zu,%zu +%zu,%zu @@%n", &from, &from_len, &into, &into_len, &taken) == 4 && taken) {
            for (size_t want = from_len ? from - 1 : from; line < want; line++) {
                size_t len = strcspn(old_text, "\n") + 1;
                str_add_bytes(to, old_text, len);
                old_text += len;
            }
            diff += taken + 1;
            continue;
        }
        size_t len = strcspn(diff, "\n") + 1;
        if (diff[0] != '+') {
            assert_memory_equal(diff + 1, old_text, len - 1);
            old_text += len - 1;
            line++;
        }
        if (diff[0] != '-')
            str_add_bytes(to, diff + 1, len - 1);
        edits += diff[0] != ' ';
        diff += len;
    }
    str_add(to, old_text);
    return edits;
}

/* Returns the least number of edits, by the table of common subsequences. */
static size_t least_edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t table[64][64] = {0};

    for (size_t i = a_len; i-- > 0;)
        for (size_t j = b_len; j-- > 0;)
            table[i][j] = a[2 * i] == b[2 * j]                ? table[i + 1][j + 1] + 1
                          : table[i + 1][j] > table[i][j + 1] ? table[i + 1][j]
                                                              : table[i][j + 1];
    return a_len + b_len - 2 * table[0][0];
}

static void patch_gives_the_new_text(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        CLEANUP(str) struct str a = {0}, b = {0}, diff = {0}, patched = {0};
        uint64_t r = hash_u64(seed + 1);
        size_t a_len = r % 40, b_len = r / 64 % 40, letters = 2 + r / 4096 % 5;
        for (size_t i = 0; i < a_len; i++)
            str_addf(&a, "%c\n", (char)('a' + hash_pair(r, i) % letters));
        for (size_t i = 0; i < b_len; i++)
            str_addf(&b, "%c\n", (char)('a' + hash_pair(r + 1, i) % letters));
        if (!unified_diff(&diff, "a", "b", str_text(&a), str_text(&b))) {
            assert_string_equal(str_text(&a), str_text(&b));
            continue;
        }
        size_t edits = patch(str_text(&a), str_text(&diff), &patched);
        if (strcmp(str_text(&patched), str_text(&b)) != 0)
            fail_msg("seed %llu:\n%s", (unsigned long long)seed, str_text(&diff));
        assert_int_equal(edits, least_edits(str_text(&a), a_len, str_text(&b), b_len));
    }
}

static void too_many_edits_replace_all_lines(void **state)
{
    CLEANUP(str) struct str a = {0}, b = {0}, diff = {0}, patched = {0};

    (void)state;
    str_add(&a, "head\n");
    str_add(&b, "head\n");
    for (int i = 0; i < 3000; i++) {
        str_addf(&a, "a%d\n", i);
        str_addf(&b, "b%d\n", i);
    }
    assert_true(unified_diff(&diff, "a", "b", str_text(&a), str_text(&b)));
    assert_int_equal(patch(str_text(&a), str_text(&diff), &patched), 6000);
    assert_string_equal(str_text(&patched), str_text(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_matches_diff_u),
        cmocka_unit_test(patch_gives_the_new_text),
        cmocka_unit_test(too_many_edits_replace_all_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
