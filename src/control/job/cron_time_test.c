/* cron_time_test.c - cron expressions: meaning, next time, rejected expressions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "berth.h"
#include "control/job/cron_time.h"
#include "wire/doc/api.h"
#include "wire/text/moment.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static void next_time_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text, *after, *next;
    } rows[] = {
        {"* * * * *",           "2026-03-01T12:00:00Z",    "2026-03-01T12:01:00Z"},
        {"* * * * *",           "2026-03-01T12:00:59.99Z", "2026-03-01T12:01:00Z"},
        {"*/15 * * * *",        "2026-03-01T12:45:00Z",    "2026-03-01T13:00:00Z"},
        {"5/20 * * * *",        "2026-03-01T12:26:00Z",    "2026-03-01T12:45:00Z"},
        {"10-20/5 8 * * *",     "2026-03-01T08:15:00Z",    "2026-03-01T08:20:00Z"},
        {"30 3 * * *",          "2026-03-01T03:30:00Z",    "2026-03-02T03:30:00Z"},
        {"0 0 31 * *",          "2026-03-31T00:00:00Z",    "2026-05-31T00:00:00Z"},
        {"0 0 29 2 *",          "2026-03-01T00:00:00Z",    "2028-02-29T00:00:00Z"},
        {"0 0 29 2 *",          "2096-03-01T00:00:00Z",    "2104-02-29T00:00:00Z"},
        {"0 12 * * mon-fri",    "2026-11-13T12:00:00Z",    "2026-11-16T12:00:00Z"},
        {"0 12 * * 7",          "2026-11-13T12:00:00Z",    "2026-11-15T12:00:00Z"},
        {"0 12 * * SUN",        "2026-11-13T12:00:00Z",    "2026-11-15T12:00:00Z"},
        {"0 0 13 * fri",        "2026-11-13T00:00:00Z",    "2026-11-20T00:00:00Z"}, /* one matching day suffices */
        {"0 0 13 * fri",        "2026-12-11T00:00:00Z",    "2026-12-13T00:00:00Z"},
        {"0 0 */2 * fri",       "2026-11-13T00:00:00Z",    "2026-11-27T00:00:00Z"}, /* both: one field has a star */
        {"0 0 1 jan,jul *",     "2026-01-01T00:00:00Z",    "2026-07-01T00:00:00Z"},
        {"59 23 31 12 *",       "2026-12-31T23:59:00Z",    "2027-12-31T23:59:00Z"},
        {"@hourly",             "2026-03-01T12:00:00Z",    "2026-03-01T13:00:00Z"},
        {"@daily",              "2028-02-28T12:00:00Z",    "2028-02-29T00:00:00Z"},
        {"@weekly",             "2026-11-13T12:00:00Z",    "2026-11-15T00:00:00Z"},
        {"@monthly",            "2026-12-01T00:00:00Z",    "2027-01-01T00:00:00Z"},
        {"@yearly",             "2026-01-01T00:00:00Z",    "2027-01-01T00:00:00Z"},
        {"0 0 30 2 *",          "2026-01-01T00:00:00Z",    NULL                  },
        {"  1,2,3\t4  5 6 *  ", "2026-06-05T04:02:30Z",    "2026-06-05T04:03:00Z"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cron_time t;
        struct berth_err err = {0};
        int64_t after_ns = 0;
        char text[TIMESTAMP_MAX];
        assert_int_equal(timestamp_parse_text(rows[i].after, &after_ns, &err), 0);
        if (cron_parse(rows[i].text, &t, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.text);
        int64_t next_ns = cron_next(&t, after_ns);
        const char *next = next_ns == BERTH_NEVER_NS ? NULL : timestamp_text(next_ns, text);
        if (rows[i].next ? !next || strcmp(next, rows[i].next) != 0 : next != NULL)
            fail_msg("%s after %s: %s", rows[i].text, rows[i].after, next ? next : "never");
    }
}

static void error_names_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"",               "has 0 fields"                         },
        {"* * * *",        "has 4 fields"                         },
        {"* * * * * *",    "has more than five fields"            },
        {"60 * * * *",     "\"60\" is not a valid minute"         },
        {"* 24 * * *",     "\"24\" is not a valid hour"           },
        {"* * 0 * *",      "\"0\" is not a valid day of the month"},
        {"* * * 13 *",     "\"13\" is not a valid month"          },
        {"* * * * 8",      "\"8\" is not a valid day of the week" },
        {"*/0 * * * *",    "\"*/0\" is not a valid minute"        },
        {"5-1 * * * *",    "\"5-1\" is not a valid minute"        },
        {"1,,2 * * * *",   "is not a valid minute"                },
        {"1, * * * *",     "is not a valid minute"                },
        {"mon * * * *",    "\"mon\" is not a valid minute"        },
        {"* * * * monday", "is not a valid day of the week"       },
        {"-1 * * * *",     "is not a valid minute"                },
        {"@often",         "\"@often\" is unknown"                },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cron_time t;
        struct berth_err err = {0};
        int rc = cron_parse(rows[i].text, &t, &err);
        if (rc >= 0 || !strstr(err.text, rows[i].words))
            fail_msg("%s: %d, %s", rows[i].text, rc, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_time_is_found),
        cmocka_unit_test(error_names_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
