/* clock_test.c - jumps of the wall clock: decisions follow the steady clock, expiry the wall clock, and an alarm is
 * raised.
 */
#include "control/api/kit_test.h"
#include "control/state/clock.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

static void jump(struct kit *k, int64_t by_ns)
{
    k->now_ns += by_ns;
    k->jumped_ns += by_ns;
}

/* Returns how far the clock of decisions advances in this many seconds. */
static int64_t decision_clock_advance_ns(struct kit *k, int64_t seconds)
{
    int64_t before_ns = control_now_ns(k->control);
    kit_sleep(k, seconds);
    return control_now_ns(k->control) - before_ns;
}

static bool has_clock_alarm(struct kit *k)
{
    CALL(k, 200, ADMIN, "GET", "/v1/alarms", NULL);
    return strstr(k->text, "clock");
}

static void decision_clock_is_slewed(void **state)
{
    (void)state;
    static const struct {
        int64_t jump_ns, least, most; /* thousandths of the elapsed time */
    } rows[] = {
        {0,           1000, 1000},
        {SECOND,      1000, 1020}, /* a small step is applied at once: 1 s of 100 */
        {-SECOND,     980,  1000},
        {3 * SECOND,  1000, 1100},
        {20 * DAY,    1000, 1100},
        {4000 * DAY,  1000, 1100},
        {-3 * SECOND, 900,  1000},
        {-20 * DAY,   900,  1000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit k;
        kit_open(&k);
        kit_sleep(&k, 2);
        (void)control_now_ns(k.control);
        jump(&k, rows[i].jump_ns);
        int64_t went = decision_clock_advance_ns(&k, 100) / (100 * SECOND / 1000);
        if (went < rows[i].least || went > rows[i].most)
            fail_msg("jump of %lld s: %lld thousandths", (long long)(rows[i].jump_ns / SECOND), (long long)went);
        bool apart = rows[i].jump_ns > 30 * SECOND || rows[i].jump_ns < -30 * SECOND;
        assert_int_equal(has_clock_alarm(&k), apart);
        jump(&k, -rows[i].jump_ns);
        kit_sleep(&k, 200);
        assert_false(has_clock_alarm(&k)); /* cleared some time after the clock is corrected */
        int64_t gap_ns = control_now_ns(k.control) - k.now_ns;
        assert_true(gap_ns >= -2 * SECOND && gap_ns <= 2 * SECOND);
        kit_done(&k);
    }
}

/* A job with 30 of its 60 minutes left keeps them. */
static void time_limits_follow_steady_clock(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&k, 200, "node:n1", "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: j, command: [x], time_limit: 1h, requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, "node:n1", "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 2, instances: [{id: 1, state: running}]}");
    jump(&k, 20 * DAY);
    for (int i = 0; i < 20; i++) {
        char report[80];
        kit_sleep(&k, 20); /* within the lease */
        (void)snprintf(report, sizeof report, "{epoch: 1, seq: %d, instances: [{id: 1, state: running}]}", i + 3);
        CALL(&k, 200, "node:n1", "POST", "/v1/nodes/n1/report", report);
    }
    CALL(&k, 200, ADMIN, "GET", "/v1/instances/1", NULL);
    assert_string_equal(kit_text(&k, "state"), "running");
    kit_done(&k);
}

/* A token that expired because of a wrong clock is valid again when the clock is corrected. */
static void corrected_clock_restores_expired_tokens(void **state)
{
    (void)state;
    struct kit k;
    kit_open(&k);
    k.serial = "01";
    k.until_ns = k.now_ns + 14 * DAY;
    CALL(&k, 200, ADMIN, "GET", "/v1/whoami", NULL);
    jump(&k, 20 * DAY);
    kit_sleep(&k, 14);
    CALL(&k, 401, ADMIN, "GET", "/v1/whoami", NULL);
    jump(&k, -20 * DAY);
    CALL(&k, 200, ADMIN, "GET", "/v1/whoami", NULL);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decision_clock_is_slewed),
        cmocka_unit_test(time_limits_follow_steady_clock),
        cmocka_unit_test(corrected_clock_restores_expired_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
