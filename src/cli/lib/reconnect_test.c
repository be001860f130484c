/* reconnect_test.c - how long a verb tries to reconnect. */
#include "cli/lib/reconnect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

static void pauses_grow_until_the_time_limit(void **state)
{
    struct reconnect r = {0};
    int64_t now_ns = 5 * MS, lost_ns = now_ns, total_ns = 0;
    static const int64_t first_ms[] = {250, 500, 1000, 2000, 4000, 5000, 5000};
    (void)state;

    for (size_t i = 0; i < sizeof first_ms / sizeof *first_ms; i++) {
        int64_t pause_ns = reconnect_pause_ns(&r, now_ns);
        assert_int_equal(pause_ns, first_ms[i] * MS);
        now_ns += pause_ns;
    }
    for (int64_t pause_ns; (pause_ns = reconnect_pause_ns(&r, now_ns)) >= 0; now_ns += pause_ns) {
        assert_in_range(pause_ns, 1, 5000 * MS);
        total_ns = now_ns + pause_ns - lost_ns;
    }
    assert_int_equal(total_ns, RECONNECT_S_MAX * 1000 * MS);
    assert_true(reconnect_pause_ns(&r, now_ns + 1) < 0);
}

static void an_answer_resets_the_pauses(void **state)
{
    struct reconnect_notice notice = RECONNECT_NOTICE_INIT;
    struct reconnect r = {.notice = &notice};
    (void)state;

    notice.away = 1;
    assert_int_equal(reconnect_pause_ns(&r, 1), 250 * MS);
    assert_int_equal(reconnect_pause_ns(&r, 2), 500 * MS);
    reconnect_done(&r);
    reconnect_done(&r); /* a second call has no effect */
    assert_int_equal(notice.away, 0);
    assert_int_equal(reconnect_pause_ns(&r, RECONNECT_S_MAX * 2000 * MS), 250 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_until_the_time_limit),
        cmocka_unit_test(an_answer_resets_the_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
