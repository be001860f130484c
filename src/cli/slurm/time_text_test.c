/* time_text_test.c - durations, times and ranges in the forms of batch systems. */
#include "cli/slurm/time_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static void durations_are_parsed(void **state)
{
    static const struct {
        const char *text;
        int64_t bare_s;
        const char *want; /* NULL: rejected */
    } rows[] = {
        {"90",          1,  "1m30s" },
        {"90",          60, "1h30m" }, /* Slurm's minutes */
        {"30m",         1,  "30m"   },
        {"1h30m",       60, "1h30m" },
        {"2d",          1,  "2d"    },
        {"1-12",        60, "1d12h" },
        {"1-12:00:00",  1,  "1d12h" },
        {"0-00:00:05",  1,  "5s"    },
        {"10:30",       60, "10m30s"},
        {"26:00:01",    60, "1d2h1s"},
        {"250ms",       1,  "1s"    }, /* rounded up */
        {"0",           1,  NULL    },
        {"",            1,  NULL    },
        {"-5",          1,  NULL    },
        {"1-",          1,  NULL    },
        {"1:2:3:4",     1,  NULL    },
        {"5 minutes",   1,  NULL    },
        {"9999d",       1,  NULL    },
        {"99999999999", 1,  NULL    },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[SPAN_TEXT_MAX] = "?";
        struct berth_err err;
        int rc = duration_text_read(rows[i].text, rows[i].bare_s, text, &err);
        if (rc != (rows[i].want ? 0 : -EINVAL))
            fail_msg("'%s': %d %s", rows[i].text, rc, text);
        if (rows[i].want)
            assert_string_equal(text, rows[i].want);
    }
}

static void times_are_parsed(void **state)
{
    /* Tuesday, 10 March 2026, 14:00 UTC */
    const int64_t now_ns = INT64_C(1773151200) * 1000000000;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"now",                       "2026-03-10T14:00:00Z"},
        {"+2h",                       "2026-03-10T16:00:00Z"},
        {"now+1hour",                 "2026-03-10T15:00:00Z"},
        {"now+90",                    "2026-03-10T14:01:30Z"},
        {"now+2days",                 "2026-03-12T14:00:00Z"},
        {"18:30",                     "2026-03-10T18:30:00Z"},
        {"09:15:30",                  "2026-03-11T09:15:30Z"}, /* the next occurrence */
        {"midnight",                  "2026-03-11T00:00:00Z"},
        {"noon",                      "2026-03-11T12:00:00Z"},
        {"today",                     "2026-03-10T00:00:00Z"},
        {"tomorrow",                  "2026-03-11T00:00:00Z"},
        {"2026-04-01",                "2026-04-01T00:00:00Z"},
        {"2026-04-01T07:30",          "2026-04-01T07:30:00Z"},
        {"2026-04-01T07:30:15",       "2026-04-01T07:30:15Z"},
        {"2026-04-01T07:30:15Z",      "2026-04-01T07:30:15Z"},
        {"2026-04-01T07:30:00+02:00", "2026-04-01T05:30:00Z"},
        {"soon",                      NULL                  },
        {"",                          NULL                  },
        {"25:00",                     NULL                  },
        {"+",                         NULL                  },
        {"2026-13-01",                NULL                  },
    };

    (void)state;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[SPAN_TEXT_MAX] = "?";
        struct berth_err err;
        int rc = time_text_read(rows[i].text, now_ns, text, &err);
        if (rc != (rows[i].want ? 0 : -EINVAL))
            fail_msg("'%s': %d %s", rows[i].text, rc, text);
        if (rows[i].want)
            assert_string_equal(text, rows[i].want);
    }
}

static void past_times_are_parsed(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: rejected */
    } rows[] = {
        {"-10m",                 "2026-03-10T18:36:40Z"},
        {"-90",                  "2026-03-10T18:45:10Z"},
        {"-1h30m",               "2026-03-10T17:16:40Z"},
        {"now-2hours",           "2026-03-10T16:46:40Z"},
        {"now",                  "2026-03-10T18:46:40Z"},
        {"10m",                  "2026-03-10T18:36:40Z"},
        {"7d",                   "2026-03-03T18:46:40Z"},
        {"18:30",                "2026-03-10T18:30:00Z"},
        {"18:46:40",             "2026-03-10T18:46:40Z"},
        {"19:00",                "2026-03-09T19:00:00Z"},
        {"noon",                 "2026-03-10T12:00:00Z"},
        {"midnight",             "2026-03-10T00:00:00Z"},
        {"today",                "2026-03-10T00:00:00Z"},
        {"yesterday",            "2026-03-09T00:00:00Z"},
        {"2026-03-01",           "2026-03-01T00:00:00Z"},
        {"2026-03-01T12:00",     "2026-03-01T12:00:00Z"},
        {"2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"},
        {"-",                    NULL                  },
        {"-10x",                 NULL                  },
        {"-100000d",             NULL                  },
        {"",                     NULL                  },
        {"last week",            NULL                  },
    };
    const int64_t now_ns = INT64_C(1773168400) * 1000000000;

    (void)state;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[SPAN_TEXT_MAX] = "?";
        struct berth_err err;
        int rc = past_time_read(rows[i].text, now_ns, text, &err);
        if (rc != (rows[i].want ? 0 : -EINVAL))
            fail_msg("'%s': %d %s", rows[i].text, rc, text);
        if (rows[i].want)
            assert_string_equal(text, rows[i].want);
    }
}

static void ranges_are_parsed(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"0-99",     "0-99"    },
        {"0-99%10",  "0-99%10" },
        {"1-9:2",    "1-9:2"   },
        {"1-10:3%2", "1-10:3%2"},
        {"0-10:3",   "0-9:3"   },
        {"7",        "7-7"     },
        {"1,3,5",    "1-5:2"   },
        {"1,3,5%2",  "1-5:2%2" },
        {"1-3,4-6",  "1-6"     },
        {"1-3,5-6",  NULL      },
        {"1,2,3",    "1-3"     },
        {"1,2,4",    NULL      },
        {"3,2,1",    NULL      },
        {"5-1",      NULL      },
        {"a-b",      NULL      },
        {"0-9%0",    NULL      },
        {"0-9:0",    NULL      },
        {"",         NULL      },
        {"0-9,",     NULL      },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[RANGE_TEXT_MAX] = "?";
        struct berth_err err;
        int rc = range_read(rows[i].text, text, &err);
        if (rc != (rows[i].want ? 0 : -EINVAL))
            fail_msg("'%s': %d %s", rows[i].text, rc, text);
        if (rows[i].want)
            assert_string_equal(text, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_parsed),
        cmocka_unit_test(times_are_parsed),
        cmocka_unit_test(past_times_are_parsed),
        cmocka_unit_test(ranges_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
