#include "control/api/rate_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000000000 };

static void burst_is_followed_by_the_rate_limit(void **state)
{
    (void)state;
    struct rate_limits *l = limits_new(0, 1);
    int64_t retry = 0, now = 5;
    for (int i = 0; i < 20; i++)
        assert_true(limit_take(l, "alice", 2, 20, 1, now, &retry));
    assert_int_equal(retry, 0);
    assert_false(limit_take(l, "alice", 2, 20, 1, now, &retry));
    assert_in_range(retry, SECOND / 2, SECOND / 2 + 2);

    /* Refused until the retry time, then exactly one request passes. */
    int64_t early = 0;
    assert_false(limit_take(l, "alice", 2, 20, 1, now + retry - 3, &early));
    assert_in_range(early, 1, 5);
    assert_true(limit_take(l, "alice", 2, 20, 1, now + retry, &early));
    assert_false(limit_take(l, "alice", 2, 20, 1, now + retry, &early));

    /* After a long idle time the bucket is full, not fuller. */
    now += 3600 * (int64_t)SECOND;
    for (int i = 0; i < 20; i++)
        assert_true(limit_take(l, "alice", 2, 20, 1, now, &retry));
    assert_false(limit_take(l, "alice", 2, 20, 1, now, &retry));
    limits_free(l);
}

static void cost_is_charged_completely_or_not_at_all(void **state)
{
    (void)state;
    struct rate_limits *l = limits_new(0, 1);
    int64_t retry = 0;
    assert_true(limit_take(l, "alice", 2, 20, 15, 0, &retry));
    assert_false(limit_take(l, "alice", 2, 20, 15, 0, &retry));
    assert_in_range(retry, INT64_C(5) * SECOND, INT64_C(5) * SECOND + 2);
    assert_true(limit_take(l, "alice", 2, 20, 5, 0, &retry));  /* a refused request takes nothing */
    assert_true(limit_take(l, "bob", 2, 20, 1000, 0, &retry)); /* counts as the burst */
    assert_false(limit_take(l, "bob", 2, 20, 1, 0, &retry));
    assert_true(limit_take(l, "bob", 2, 20, 1000, INT64_C(10) * SECOND, &retry));
    limits_free(l);
}

static void callers_do_not_share(void **state)
{
    (void)state;
    struct rate_limits *l = limits_new(0, 1);
    int64_t retry = 0;
    assert_true(limit_take(l, "alice", 1, 1, 1, 0, &retry));
    assert_false(limit_take(l, "alice", 1, 1, 1, 0, &retry));
    assert_true(limit_take(l, "bob", 1, 1, 1, 0, &retry));
    assert_true(limit_take(l, "", 1, 1, 1, 0, &retry));
    assert_false(limit_take(l, "", 1, 1, 1, 0, &retry));
    assert_int_equal(limits_len(l), 3);

    /* Names longer than the bound share a bucket: the limit gets stricter, never looser. */
    char a[2 * LIMIT_CALLER_MAX], b[2 * LIMIT_CALLER_MAX];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    a[sizeof a - 1] = b[sizeof b - 1] = '\0';
    b[sizeof b - 2] = 'y';
    assert_true(limit_take(l, a, 1, 1, 1, 0, &retry));
    assert_false(limit_take(l, b, 1, 1, 1, 0, &retry));
    limits_free(l);
}

static void extreme_rates_and_clocks(void **state)
{
    (void)state;
    struct rate_limits *l = limits_new(0, 1);
    int64_t retry = -7;
    for (int i = 0; i < 1000; i++)
        assert_true(limit_take(l, "free", 0, 0, 1, 0, &retry));
    assert_int_equal(limits_len(l), 0);
    assert_int_equal(retry, -7);

    assert_true(limit_take(l, "one", 1, 0, 1, 100, &retry)); /* a burst of 0 would refuse every request */
    assert_false(limit_take(l, "one", 1, 0, 1, 100, &retry));
    assert_false(limit_take(l, "one", 1, 0, 1, 50, &retry)); /* a clock that goes back adds nothing */
    assert_true(limit_take(l, "one", 1, 0, 1, 100 + SECOND + 1, &retry));

    assert_true(limit_take(l, "slow", 1e-9, 1, 1, 0, &retry));
    assert_false(limit_take(l, "slow", 1e-9, 1, 1, 0, &retry));
    assert_int_equal(retry, 3600 * (int64_t)SECOND);
    assert_false(limit_take(l, "slow", 1e-9, 1, 1, INT64_MAX / 64, &retry));
    limits_free(l);
    limits_free(NULL);
}

static void full_table_drops_longest_idle_caller(void **state)
{
    (void)state;
    struct rate_limits *l = limits_new(3, 9);
    int64_t retry;
    assert_true(limit_take(l, "a", 1, 1, 1, 0, &retry));
    assert_true(limit_take(l, "b", 1, 1, 1, 1, &retry));
    assert_true(limit_take(l, "c", 1, 1, 1, 2, &retry));
    assert_false(limit_take(l, "a", 1, 1, 1, 3, &retry)); /* a refused caller is not idle */
    assert_true(limit_take(l, "d", 1, 1, 1, 4, &retry));  /* b is dropped */
    assert_int_equal(limits_len(l), 3);
    assert_false(limit_take(l, "a", 1, 1, 1, 5, &retry));
    assert_false(limit_take(l, "c", 1, 1, 1, 5, &retry));
    assert_false(limit_take(l, "d", 1, 1, 1, 5, &retry));
    assert_true(limit_take(l, "b", 1, 1, 1, 6, &retry)); /* a is dropped */
    assert_true(limit_take(l, "a", 1, 1, 1, 7, &retry));
    assert_int_equal(limits_len(l), 3);
    limits_free(l);

    l = limits_new(1, 9);
    for (int i = 0; i < 10; i++) {
        assert_true(limit_take(l, i % 2 ? "a" : "b", 1, 1, 1, 0, &retry));
        assert_int_equal(limits_len(l), 1);
    }
    limits_free(l);
}

/* With many callers the table stays within its bound, and each caller is still limited. */
static void table_stays_bounded_with_many_callers(void **state)
{
    (void)state;
    struct rate_limits *l = limits_new(0, 3);
    int64_t retry;
    char who[32];
    for (int i = 0; i < 2 * LIMITS_MAX; i++) {
        (void)snprintf(who, sizeof who, "10.%d.%d.%d", i >> 16, (i >> 8) & 255, i & 255);
        assert_true(limit_take(l, who, 1, 1, 1, i, &retry));
        assert_false(limit_take(l, who, 1, 1, 1, i, &retry));
    }
    assert_int_equal(limits_len(l), LIMITS_MAX);
    limits_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(burst_is_followed_by_the_rate_limit),
        cmocka_unit_test(cost_is_charged_completely_or_not_at_all),
        cmocka_unit_test(callers_do_not_share),
        cmocka_unit_test(extreme_rates_and_clocks),
        cmocka_unit_test(full_table_drops_longest_idle_caller),
        cmocka_unit_test(table_stays_bounded_with_many_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
