/* record_test.c - tests writing of records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "journal/record.h"

static void a_record_is_one_line(void **state)
{
    (void)state;
    CLEANUP(str) struct str s = {0};
    struct journal_head head = {
        .kind = "POST /v1/jobs", .at_ns = 17, .who = "al\nice", .subject = "jobs/1", .token = "", .remote = NULL};

    journal_begin(&s, &head);
    journal_change(&s, "jobs/1", "{\"v\":1}", 7, false);
    journal_change(&s, "jobs/2", NULL, 0, true);
    journal_change(&s, "tokens/x", NULL, 99, false);
    journal_end(&s, "{\"cycle\":{\"n\":3}}", 17);
    assert_string_equal(str_text(&s),
                        "{\"j\":2,\"kind\":\"POST /v1/jobs\",\"at\":17,\"who\":\"al\\nice\",\"subject\":\"jobs/1\","
                        "\"changes\":[[\"jobs/1\",{\"v\":1}],[\"jobs/2\",null],[\"tokens/x\"]],\"cycle\":{\"n\":3}}");
}

static void kinds_are_distinguished(void **state)
{
    static const struct {
        const char *record;
        bool kube;
    } rows[] = {
        {"{\"j\":2,\"kind\":\"kube.plan\"}", true },
        {"{\"j\":2,\"kind\":\"kube\"}",      false},
        {"{\"j\":2,\"kind\":\"unit\"}",      false},
        {"{\"j\":2}",                        false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(journal_kind_has_prefix((struct bytes){rows[i].record, strlen(rows[i].record)}, JOURNAL_KUBE),
                         rows[i].kube);
}

static void record_with_only_a_head(void **state)
{
    (void)state;
    CLEANUP(str) struct str s = {0};
    struct journal_head head = {.kind = "sweep"};

    journal_begin(&s, &head);
    journal_end(&s, NULL, 0);
    assert_string_equal(str_text(&s), "{\"j\":2,\"kind\":\"sweep\",\"at\":0,\"changes\":[]}");
    str_clear(&s);
    journal_begin(&s, &head);
    journal_end(&s, "{}", 2);
    assert_string_equal(str_text(&s), "{\"j\":2,\"kind\":\"sweep\",\"at\":0,\"changes\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_one_line),
        cmocka_unit_test(kinds_are_distinguished),
        cmocka_unit_test(record_with_only_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
