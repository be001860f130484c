/* forecast_test.c - starts that a single plan cannot estimate, and the marking of guessed starts and ends. */
#include "control/api/kit_test.h"

#include "wire/text/moment.h"

#define ALICE "user:alice"
#define BOB "user:bob"
#define SECOND INT64_C(1000000000)

/* A cluster with one node of 8 cores. */
static void open_node(struct kit *k)
{
    kit_open(k);
    kit_add_users(k);
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{policy: fifo, preempt_min_run_s: 60}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, state: ready, allocatable: {cpu: 8, memory: 16Gi}}");
}

/* Returns the seconds until a time in the last answer, rounded; fails if the time is missing. */
static int64_t in_s(struct kit *k, const char *path)
{
    int64_t ns = 0;
    if (!kit_at(k, path) || timestamp_parse(kit_at(k, path), &ns, NULL) < 0)
        fail_msg("there is no time %s in %s", path, k->text);
    return (ns - k->now_ns + SECOND / 2) / SECOND;
}

static void starts_behind_domain_reservation(void **state)
{
    struct kit k;
    (void)state;
    open_node(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/domains", "{id: east, nodes: [n1], keep: {cpu: 4}}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: first, command: [x], requests: {cpu: 3}, time_limit: 10m}");
    kit_plan(&k);
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{name: second, command: [x], requests: {cpu: 2}, time_limit: 10m}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_string_equal(kit_text(&k, "items/0/id"), "2");
    assert_int_equal(in_s(&k, "items/0/start"), 600);
    assert_int_equal(in_s(&k, "items/0/end"), 1200);
    assert_string_equal(kit_text(&k, "items/0/node"), "n1");
    assert_null(kit_at(&k, "items/0/start_guess"));
    CALL(&k, 200, BOB, "GET", "/v1/jobs/2/why", NULL);
    assert_int_equal(in_s(&k, "start"), 600);
    kit_done(&k);
}

/* A running job may be preempted after a minute. */
static void starts_by_preemption(void **state)
{
    struct kit k;
    (void)state;
    open_node(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs",
         "{name: low, command: [x], requests: {cpu: 8}, priority: -5, time_limit: 30m}");
    kit_plan(&k);
    k.now_ns += 20 * SECOND;
    CALL(&k, 201, BOB, "POST", "/v1/jobs", "{name: high, command: [x], requests: {cpu: 8}, time_limit: 10m}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
    assert_string_equal(kit_text(&k, "items/0/id"), "2");
    assert_in_range(in_s(&k, "items/0/start"), 40, 70);
    assert_null(kit_at(&k, "items/0/start_guess"));
    CALL(&k, 200, BOB, "GET", "/v1/jobs/2/why?suggest=1", NULL);
    assert_in_range(in_s(&k, "start"), 40, 70);
    kit_done(&k);
}

static void guesses_are_marked(void **state)
{
    static const struct {
        const char *time; /* of the running job */
        bool guess;
    } rows[] = {
        {"",                 true },
        {", time_limit: 1h", false},
        {", estimate: 1h",   false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit k;
        char body[128];
        open_node(&k);
        (void)snprintf(body, sizeof body, "{name: first, command: [x], requests: {cpu: 8}%s}", rows[i].time);
        CALL(&k, 201, ALICE, "POST", "/v1/jobs", body);
        kit_plan(&k);
        CALL(&k, 201, BOB, "POST", "/v1/jobs", "{name: second, command: [x], requests: {cpu: 8}, time_limit: 1h}");
        kit_plan(&k);
        CALL(&k, 200, ADMIN, "GET", "/v1/queue", NULL);
        assert_int_equal(in_s(&k, "items/0/start"), 3600);
        assert_int_equal(json_is_true(kit_at(&k, "items/0/start_guess")), rows[i].guess);
        CALL(&k, 200, BOB, "GET", "/v1/jobs/2/why", NULL);
        assert_int_equal(json_is_true(kit_at(&k, "start_guess")), rows[i].guess);
        assert_int_equal(json_is_true(kit_at(&k, "standing/start_guess")), rows[i].guess);
        CALL(&k, 200, ADMIN, "GET", "/v1/holders?node=n1", NULL);
        assert_int_equal(in_s(&k, "items/0/until"), 3600);
        assert_int_equal(json_is_true(kit_at(&k, "items/0/until_guess")), rows[i].guess);
        /* The run time beyond an estimate is a guess; a limit is exact. */
        k.now_ns += 3600 * SECOND;
        CALL(&k, 200, ADMIN, "GET", "/v1/holders?node=n1", NULL);
        bool limited = strstr(rows[i].time, "limit");
        assert_int_equal(in_s(&k, "items/0/until"), limited ? 0 : 3600);
        assert_int_equal(json_is_true(kit_at(&k, "items/0/until_guess")), !limited);
        kit_done(&k);
    }
}

/* A dependent job is not in the order yet. A possible end of the other job is expected, a failure is not. */
static void starts_after_other_jobs(void **state)
{
    struct kit k;
    (void)state;
    open_node(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: first, command: [x], requests: {cpu: 2}, time_limit: 10m}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: second, command: [x], after: [{job: 1, when: ok}]}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: third, command: [x], after: [{job: 1, when: failed}]}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/2/why", NULL);
    assert_null(kit_at(&k, "standing"));
    assert_int_equal(in_s(&k, "start"), 600);
    assert_null(kit_at(&k, "start_guess"));
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/3/why", NULL);
    assert_null(kit_at(&k, "start"));
    kit_done(&k);
}

/* A job without a time limit has that of its queue. */
static void ends_follow_the_queue(void **state)
{
    struct kit k;
    (void)state;
    open_node(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/queues", "{id: short, time_limit: 5m}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{name: first, command: [x], queue: short, requests: {cpu: 8}}");
    kit_plan(&k);
    CALL(&k, 200, ADMIN, "GET", "/v1/holders?node=n1", NULL);
    assert_int_equal(in_s(&k, "items/0/until"), 300);
    assert_null(kit_at(&k, "items/0/until_guess"));
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_behind_domain_reservation),
        cmocka_unit_test(starts_by_preemption),
        cmocka_unit_test(guesses_are_marked),
        cmocka_unit_test(starts_after_other_jobs),
        cmocka_unit_test(ends_follow_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
