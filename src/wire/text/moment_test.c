/* moment_test.c - durations and times. */
#include "wire/text/moment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "wire/doc/api.h"

#define S ((int64_t)1000000000)
#define REFUSED INT64_MIN

struct row {
    const char *json;
    int64_t want;
};

static void rows_parse(const struct row *rows, size_t len, int (*parse)(const json_t *, int64_t *, struct berth_err *))
{
    for (size_t i = 0; i < len; i++) {
        json_t *value = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
        int64_t got = REFUSED;
        struct berth_err err = {0};
        int rc = parse(value, &got, &err);
        if (got != rows[i].want || (rc < 0) != (rows[i].want == REFUSED) || rc != -err.code)
            fail_msg("%s: %d, %lld, %s", rows[i].json, rc, (long long)got, err.text);
        json_decref(value);
    }
}

static void durations_are_parsed(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"\"30s\"",            30 * S        },
        {"\"10m\"",            600 * S       },
        {"\"2h\"",             7200 * S      },
        {"\"30d\"",            30 * 86400 * S},
        {"\"1w\"",             7 * 86400 * S },
        {"\"250ms\"",          S / 4         },
        {"\"1h30m\"",          5400 * S      },
        {"\"1.5h\"",           5400 * S      },
        {"\"0s\"",             0             },
        {"45",                 45 * S        },
        {"0.5",                S / 2         },
        {"\"45\"",             45 * S        },
        {"\"\"",               REFUSED       },
        {"\"-5s\"",            REFUSED       },
        {"-5",                 REFUSED       },
        {"\"5x\"",             REFUSED       },
        {"\"s\"",              REFUSED       },
        {"\"5s3\"",            REFUSED       },
        {"\"5s 3m\"",          REFUSED       },
        {"\"100000000d\"",     REFUSED       },
        {"true",               REFUSED       },
        {"1e300",              REFUSED       },
        {"\"200000d200000d\"", REFUSED       },
    };
    rows_parse(rows, sizeof rows / sizeof *rows, duration_parse);
}

static void timestamps_are_parsed(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"\"1970-01-01T00:00:00Z\"",            0                         },
        {"\"2026-03-01T12:00:00Z\"",            1772366400 * S            },
        {"\"2026-03-01t12:00:00z\"",            1772366400 * S            },
        {"\"2026-03-01 12:00:00Z\"",            1772366400 * S            },
        {"\"2026-03-01T13:00:00+01:00\"",       1772366400 * S            },
        {"\"2026-03-01T06:30:00-05:30\"",       1772366400 * S            },
        {"\"2026-03-01T12:00:00.25Z\"",         1772366400 * S + S / 4    },
        {"\"2026-03-01T12:00:00.1234567899Z\"", 1772366400 * S + 123456789},
        {"\"2000-02-29T00:00:00Z\"",            951782400 * S             },
        {"\"1969-12-31T23:59:59Z\"",            -S                        },
        {"\"2016-12-31T23:59:60Z\"",            1483228800 * S            },
        {"1700000000",                          1700000000 * S            },
        {"1700000000.5",                        1700000000 * S + S / 2    },
        {"\"1700000000\"",                      1700000000 * S            },
        {"-1",                                  -S                        },
        {"\"2100-02-29T00:00:00Z\"",            REFUSED                   },
        {"\"2026-13-01T00:00:00Z\"",            REFUSED                   },
        {"\"2026-00-01T00:00:00Z\"",            REFUSED                   },
        {"\"2026-01-32T00:00:00Z\"",            REFUSED                   },
        {"\"2026-01-01T24:00:00Z\"",            REFUSED                   },
        {"\"2026-01-01T00:60:00Z\"",            REFUSED                   },
        {"\"2026-01-01T00:00:61Z\"",            REFUSED                   },
        {"\"2026-01-01T00:00:00\"",             REFUSED                   },
        {"\"2026-01-01T00:00:00.Z\"",           REFUSED                   },
        {"\"2026-01-01T00:00:00+24:00\"",       REFUSED                   },
        {"\"2026-01-01\"",                      REFUSED                   },
        {"\"9999-01-01T00:00:00Z\"",            REFUSED                   },
        {"\"0001-01-01T00:00:00Z\"",            REFUSED                   },
        {"\"soon\"",                            REFUSED                   },
        {"\"\"",                                REFUSED                   },
        {"false",                               REFUSED                   },
        {"1e12",                                REFUSED                   },
    };
    rows_parse(rows, sizeof rows / sizeof *rows, timestamp_parse);
}

/* Every day of 300 years, compared with the C library. */
static void days_match_the_c_library(void **state)
{
    (void)state;
    for (int64_t day = -100000 + 20000; day < 100000; day += 1) {
        time_t at = (time_t)(day * 86400 + 3661);
        struct tm tm;
        assert_non_null(gmtime_r(&at, &tm));
        char text[64];
        assert_true(strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
        int64_t got = 0;
        if (timestamp_parse_text(text, &got, NULL) != 0 || got != at * S)
            fail_msg("%s: %lld", text, (long long)got);
    }
}

static void timestamps_round_trip(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {0,                 "1970-01-01T00:00:00Z"          },
        {250000000,         "1970-01-01T00:00:00.25Z"       },
        {-1,                "1969-12-31T23:59:59.999999999Z"},
        {1772366400 * S,    "2026-03-01T12:00:00Z"          },
        {951782400 * S + 1, "2000-02-29T00:00:00.000000001Z"},
        {INT64_MAX,         "2262-04-11T23:47:16.854775807Z"},
        {INT64_MIN,         "1677-09-21T00:12:43.145224192Z"},
        {-86400 * S,        "1969-12-31T00:00:00Z"          },
    };
    char buf[TIMESTAMP_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t back = 0;
        assert_string_equal(timestamp_text(rows[i].ns, buf), rows[i].text);
        assert_int_equal(timestamp_parse_text(buf, &back, NULL), 0);
        assert_true(back == rows[i].ns);
    }
    for (int64_t day = -80000; day < 100000; day++) {
        int64_t back = 0, ns = day * 86400 * S + 12345678901;
        assert_int_equal(timestamp_parse_text(timestamp_text(ns, buf), &back, NULL), 0);
        assert_true(back == ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_parsed),
        cmocka_unit_test(timestamps_are_parsed),
        cmocka_unit_test(days_match_the_c_library),
        cmocka_unit_test(timestamps_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
