/* log_test.c - tests the format of log lines for all kinds of values. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINES_MAX = 8192 };

static struct {
    char text[LINES_MAX];
    struct log log;
} to;

static int open_log(void **state)
{
    (void)state;
    memset(to.text, 0, sizeof to.text);
    to.log = (struct log){.out = fmemopen(to.text, sizeof to.text, "w"), .level = LEVEL_INFO};
    return to.log.out ? 0 : -1;
}

static int close_log(void **state)
{
    (void)state;
    return fclose(to.log.out);
}

static void a_line_has_time_level_event_and_fields(void **state)
{
    (void)state;
    log_write(&to.log, 1772366400250000000, LEVEL_WARN, "node.lost", LOG_TEXT("node", "n17"),
              LOG_NUMBER("silent_s", -31), LOG_TEXT("text", "no report"));
    log_write(&to.log, -1, LEVEL_ERROR, "bare");
    assert_string_equal(to.text, "time=2026-03-01T12:00:00.250Z level=warn event=node.lost node=n17 silent_s=-31 "
                                 "text=\"no report\"\n"
                                 "time=1969-12-31T23:59:59.999Z level=error event=bare\n");
}

static void values_are_quoted_where_needed(void **state)
{
    (void)state;
    static const struct {
        const char *value, *want;
    } rows[] = {
        {"plain-1.2/x:y",               "plain-1.2/x:y"                   },
        {"",                            "\"\""                            },
        {NULL,                          "\"\""                            },
        {"two words",                   "\"two words\""                   },
        {"a=b",                         "\"a=b\""                         },
        {"back\\slash",                 "\"back\\\\slash\""               },
        {"quo\"te",                     "\"quo\\\"te\""                   },
        {"x\nlevel=error event=forged", "\"x\\nlevel=error event=forged\""},
        {"\x1b[2J",                     "\"\\u001b[2J\""                  },
        {"caf\xc3\xa9",                 "\"caf\xc3\xa9\""                 },
        {"bad\xff",                     "\"bad\xef\xbf\xbd\""             },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rewind(to.log.out);
        log_write(&to.log, 0, LEVEL_INFO, "e", LOG_TEXT("v", rows[i].value), LOG_NUMBER("end", 1));
        char want[256];
        (void)snprintf(want, sizeof want, "time=1970-01-01T00:00:00.000Z level=info event=e v=%s end=1\n",
                       rows[i].want);
        assert_memory_equal(to.text, want, strlen(want));
        assert_ptr_equal(strchr(to.text, '\n'), to.text + strlen(want) - 1);
    }
}

static void lower_levels_and_no_file_write_nothing(void **state)
{
    (void)state;
    log_write(&to.log, 0, LEVEL_DEBUG, "quiet");
    assert_string_equal(to.text, "");
    to.log.level = LEVEL_DEBUG;
    log_write(&to.log, 0, LEVEL_DEBUG, "heard");
    assert_non_null(strstr(to.text, "level=debug event=heard\n"));
    log_write(&(struct log){0}, 0, LEVEL_ERROR, "nowhere");
}

static void long_text_is_cut_between_characters(void **state)
{
    (void)state;
    char text[LOG_TEXT_MAX + 100] = "x";
    for (size_t i = 1; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    log_write(&to.log, 0, LEVEL_INFO, "e", LOG_TEXT("v", text));
    const char *value = strstr(to.text, "v=\"") + 3;
    assert_int_equal(strcspn(value, "\""), LOG_TEXT_MAX - 1);
    assert_null(strstr(to.text, "\xef\xbf\xbd"));
}

static void level_names_are_read(void **state)
{
    (void)state;
    assert_int_equal(log_level_parse("debug"), LEVEL_DEBUG);
    assert_int_equal(log_level_parse("error"), LEVEL_ERROR);
    assert_int_equal(log_level_parse("loud"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_level_event_and_fields, open_log, close_log),
        cmocka_unit_test_setup_teardown(values_are_quoted_where_needed, open_log, close_log),
        cmocka_unit_test_setup_teardown(lower_levels_and_no_file_write_nothing, open_log, close_log),
        cmocka_unit_test_setup_teardown(long_text_is_cut_between_characters, open_log, close_log),
        cmocka_unit_test(level_names_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
