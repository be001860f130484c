/* words_test.c - quoting and suggestions. */
#include "wire/text/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static const char *candidate(const void *ctx, size_t i)
{
    return ((const char *const *)ctx)[i];
}

static void nearest_words_are_suggested(void **state)
{
    (void)state;
    static const char *const names[] = {"replicas", "priority", "max_per_node", "node", "near", "gpu", NULL};
    static const struct {
        const char *word, *want;
    } rows[] = {
        {"replicsa",     "replicas"    },
        {"Replicas",     "replicas"    },
        {"maxPerNode",   "max_per_node"},
        {"max-per-node", "max_per_node"},
        {"prority",      "priority"    },
        {"gpus",         "gpu"         },
        {"xyz",          NULL          },
        {"nodes",        "node"        },
        {"",             NULL          },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = suggest(rows[i].word, candidate, names);
        if ((got == NULL) != (rows[i].want == NULL) || (got && strcmp(got, rows[i].want) != 0))
            fail_msg("%s: %s", rows[i].word, got ? got : "nothing");
    }
    char huge[1000];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    assert_null(suggest(huge, candidate, names));
    const char *const long_names[] = {huge, NULL};
    assert_null(suggest("a", candidate, long_names));
}

static void quotes_end_between_characters(void **state)
{
    (void)state;
    char buf[QUOTE_MAX];
    assert_string_equal(quote("web", buf), "\"web\"");
    assert_string_equal(shorten("web", buf), "web");
    CLEANUP(str) struct str s = {0};
    for (int shift = 0; shift < 4; shift++) {
        str_clear(&s);
        for (int i = 0; i < shift; i++)
            str_add_char(&s, 'x');
        for (int i = 0; i < 40; i++)
            str_add(&s, "\xf0\x9f\x9a\xa2"); /* a ship */
        quote(s.at, buf);
        assert_true(str_utf8_valid(buf, strlen(buf)));
        assert_non_null(strstr(buf, "...\""));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_words_are_suggested),
        cmocka_unit_test(quotes_end_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
