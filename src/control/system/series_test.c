/* series_test.c - time series: points at the right times, means of five minutes, bounded length. */
#include "control/api/kit_test.h"

#include "control/control_parts.h"

static double last_of(const struct kit *k, const char *path)
{
    const json_t *list = kit_at(k, path);
    assert_true(json_array_size(list) > 0);
    return json_real_value(json_array_get(list, json_array_size(list) - 1));
}

static size_t points(const struct kit *k)
{
    size_t len = json_array_size(kit_at(k, "at"));
    assert_int_equal(json_array_size(kit_at(k, "gpu/held")), len);
    assert_int_equal(json_array_size(kit_at(k, "longest_wait_s")), len);
    return len;
}

/* Advances the clock by ten seconds at a time, so that each tick makes a point. */
static void pass(struct kit *k, size_t ticks)
{
    for (size_t i = 0; i < ticks; i++) {
        k->now_ns += SERIES_FINE_S * INT64_C(1000000000);
        k->steady_ns += SERIES_FINE_S * INT64_C(1000000000);
        control_tick(k->control);
    }
}

static void series_has_a_point_every_ten_seconds(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    kit_sleep(&k, 31);
    CALL(&k, 200, "user:alice", "GET", "/v1/series", NULL);
    assert_int_equal(points(&k), 4);
    assert_int_equal(kit_number(&k, "every_s"), 10);
    assert_int_equal(kit_number(&k, "at/3") - kit_number(&k, "at/0"), 30);
    assert_true(last_of(&k, "nodes") == 0 && last_of(&k, "waiting") == 0 && last_of(&k, "median_wait_s") == 0);

    /* One job holds half of a node; three wait for a node that does not exist, since 40, 30 and 10 seconds. */
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: n1, state: ready, allocatable: {cpu: 8, memory: 16Gi}, gpus: [{count: 2}]}");
    CALL(&k, 201, "user:alice", "POST", "/v1/jobs", "{command: [x], gpu: 1, requests: {cpu: 4, memory: 4Gi}}");
    CALL(&k, 201, "user:alice", "POST", "/v1/jobs", "{command: [x], gpu: 8}");
    kit_plan(&k);
    pass(&k, 1);
    CALL(&k, 201, "user:alice", "POST", "/v1/jobs", "{command: [x], gpu: 8}");
    kit_plan(&k);
    pass(&k, 2);
    CALL(&k, 201, "user:bob", "POST", "/v1/jobs", "{command: [x], gpu: 8}");
    kit_plan(&k);
    pass(&k, 1);
    CALL(&k, 200, "user:bob", "GET", "/v1/series?span=hour", NULL);
    assert_int_equal(points(&k), 8);
    assert_true(last_of(&k, "nodes") == 1 && last_of(&k, "ready") == 1 && last_of(&k, "waiting") == 3);
    assert_true(last_of(&k, "gpu/there") == 2 && last_of(&k, "gpu/held") == 1);
    assert_true(last_of(&k, "cpu/there") == 8 && last_of(&k, "cpu/held") == 4);
    assert_true(last_of(&k, "memory/held") == 4.0 * (1 << 30));
    double median = last_of(&k, "median_wait_s"), longest = last_of(&k, "longest_wait_s");
    assert_true(median >= 30 && median < 31 && longest >= 40 && longest < 41);

    /* A cordoned node has no capacity, but its allocation still counts. */
    CALL(&k, 200, ADMIN, "POST", "/v1/nodes/n1/cordon", NULL);
    pass(&k, 1);
    CALL(&k, 200, "user:bob", "GET", "/v1/series", NULL);
    assert_true(last_of(&k, "ready") == 0 && last_of(&k, "gpu/there") == 0 && last_of(&k, "gpu/held") == 1);

    CALL(&k, 400, ADMIN, "GET", "/v1/series?span=year", NULL);
    SAYS(&k, "hour or week");
    CALL(&k, 401, "", "GET", "/v1/series", NULL);
    kit_done(&k);
}

/* There is no node in the first half of five minutes, and one node in the second half. */
static void five_minutes_are_a_mean(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    k.now_ns -= k.now_ns % (SERIES_COARSE_S * INT64_C(1000000000));
    /* the next tick begins a period of five minutes */
    k.now_ns += (SERIES_COARSE_S - SERIES_FINE_S) * INT64_C(1000000000);
    pass(&k, 15);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, state: ready, allocatable: {cpu: 8}}");
    pass(&k, 15);
    CALL(&k, 200, ADMIN, "GET", "/v1/series?span=week", NULL);
    assert_int_equal(points(&k), 1); /* the unfinished period */
    assert_true(last_of(&k, "cpu/there") == 4 && last_of(&k, "nodes") == 0.5);
    pass(&k, 1);
    CALL(&k, 200, ADMIN, "GET", "/v1/series?span=week", NULL);
    assert_int_equal(points(&k), 2);
    assert_int_equal(kit_number(&k, "every_s"), SERIES_COARSE_S);
    assert_true(json_real_value(kit_at(&k, "cpu/there/0")) == 4 && last_of(&k, "cpu/there") == 8);
    kit_done(&k);
}

/* After more than an hour and more than a week, the oldest points are dropped, and the order is kept. */
static void series_length_is_bounded(void **state)
{
    static const struct {
        const char *path;
        size_t kept;
        int64_t every_s;
    } rows[] = {
        {"/v1/series?span=hour", SERIES_FINE_LEN,       SERIES_FINE_S  },
        {"/v1/series?span=week", SERIES_COARSE_LEN + 1, SERIES_COARSE_S}, /* and the unfinished period */
    };
    struct kit k;
    (void)state;
    kit_open(&k);
    for (size_t i = 0; i < (SERIES_COARSE_LEN + 20) * (SERIES_COARSE_S / SERIES_FINE_S); i++) {
        k.now_ns += SERIES_FINE_S * INT64_C(1000000000);
        k.steady_ns += SERIES_FINE_S * INT64_C(1000000000);
        series_step(k.control->series, k.steady_ns);
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&k, 200, ADMIN, "GET", rows[i].path, NULL);
        size_t len = points(&k);
        const json_t *at = kit_at(&k, "at");
        assert_int_equal(len, rows[i].kept);
        for (size_t p = 1; p + 1 < len; p++)
            assert_int_equal(json_integer_value(json_array_get(at, p)) - json_integer_value(json_array_get(at, p - 1)),
                             rows[i].every_s);
        assert_int_equal(json_integer_value(json_array_get(at, len - 1)), k.now_ns / 1000000000);
    }
    /* A restarted daemon starts with empty series, and reports since when. */
    kit_restart(&k);
    pass(&k, 1);
    CALL(&k, 200, ADMIN, "GET", "/v1/series?span=week", NULL);
    assert_int_equal(points(&k), 1);
    assert_true(*kit_text(&k, "since"));
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_has_a_point_every_ten_seconds),
        cmocka_unit_test(five_minutes_are_a_mean),
        cmocka_unit_test(series_length_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
