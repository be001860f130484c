/* forecast_text_test.c - times in words: estimates are marked, rounded to minutes, and never "now" or "0s". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cli/job/forecast_text.h"
#include "wire/doc/api.h"

#define SECOND INT64_C(1000000000)
#define NOW (INT64_C(1772366400) * SECOND)

static void estimates_are_marked(void **state)
{
    static const struct {
        int64_t in_ms;
        bool guess;
        const char *expected, *left;
    } rows[] = {
        {0,          false, "now",       "0s"  },
        {200,        false, "now",       "1s"  },
        {1500,       false, "now",       "2s"  },
        {59000,      false, "in 59s",    "59s" },
        {25 * 60000, false, "in 25m",    "25m" },
        {90 * 60000, false, "in 1h30m",  "90m" },
        {-120000,    false, "2m ago",    "0s"  },
        {0,          true,  "in ~1m",    "~1m" },
        {200,        true,  "in ~1m",    "~1m" },
        {-120000,    true,  "in ~1m",    "~1m" },
        {25 * 60000, true,  "in ~25m",   "~25m"},
        {90 * 60000, true,  "in ~1h30m", "~90m"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char at[TIMESTAMP_MAX], buf[WHEN_TEXT_MAX];
        json_t *of = json_pack("{s:s}", "until", timestamp_text(NOW + rows[i].in_ms * 1000000, at));
        if (rows[i].guess)
            (void)json_object_set_new(of, "until_guess", json_true());
        assert_string_equal(expected_text(of, "until", NOW, buf), rows[i].expected);
        assert_string_equal(time_left_text(of, "until", NOW, buf), rows[i].left);
        assert_string_equal(expected_text(of, "start", NOW, buf), "");
        assert_string_equal(time_left_text(of, "start", NOW, buf), "");
        json_decref(of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
