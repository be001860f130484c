/* cron_test.c - schedules create jobs when due, exactly once, also after downtime of the daemon. */
#include "control/job/job_kit_test.h"

/* The kit's clock starts at 2026-03-01T12:00:00Z. */

static size_t jobs_len(struct job_kit *j, const char *cron)
{
    char url[80];
    (void)snprintf(url, sizeof url, "/v1/crons/%s", cron);
    CALL(&j->k, 200, ADMIN, "GET", url, NULL);
    return json_array_size(kit_at(&j->k, "jobs"));
}

/* Advances the clock while the node keeps reporting. */
static void wait_for(struct job_kit *j, int seconds)
{
    for (int i = 0; i < seconds; i += 20) {
        char heard[64];
        (void)snprintf(heard, sizeof heard, "{epoch: 1, seq: %d}", ++j->seq);
        CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", heard);
        kit_sleep(&j->k, 20);
    }
}

static void job_is_created_at_each_time(void **state)
{
    struct job_kit *j = *state;
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons", "{name: c, schedule: '*/5 * * * *', job: {command: [x]}}");
    CALL(&j->k, 200, ALICE, "GET", "/v1/crons/c", NULL);
    assert_string_equal(kit_text(&j->k, "status/next"), "2026-03-01T12:05:00Z");
    wait_for(j, 280);
    assert_int_equal(jobs_len(j, "c.alice"), 0);
    wait_for(j, 40);
    assert_int_equal(jobs_len(j, "c.alice"), 1);
    wait_for(j, 300);
    assert_int_equal(jobs_len(j, "c.alice"), 2);
    job_get(j, kit_number(&j->k, "jobs/1"));
    assert_string_equal(kit_text(&j->k, "owner"), "alice");
    assert_string_equal(kit_text(&j->k, "group"), "red");
    assert_string_equal(kit_text(&j->k, "cron"), "c.alice");
    assert_string_equal(kit_text(&j->k, "name"), "c");
    CALL(&j->k, 200, ALICE, "PATCH", "/v1/crons/c", "{suspended: true}");
    wait_for(j, 600);
    CALL(&j->k, 200, ALICE, "PATCH", "/v1/crons/c", "{suspended: null}");
    wait_for(j, 20);
    assert_int_equal(jobs_len(j, "c.alice"), 2); /* times during the suspension are skipped */
    wait_for(j, 300);
    assert_int_equal(jobs_len(j, "c.alice"), 3);
}

static void crash_neither_loses_nor_repeats_a_job(void **state)
{
    struct job_kit *j = *state;
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons", "{name: c, schedule: '* * * * *', job: {command: [x]}}");
    for (int i = 1; i <= 4; i++) {
        wait_for(j, 60);
        kit_restart(&j->k);
        kit_plan(&j->k);
        assert_int_equal(jobs_len(j, "c.alice"), i);
    }
    j->k.now_ns += INT64_C(3600) * 1000000000; /* the daemon was down for an hour */
    kit_restart(&j->k);
    kit_sleep(&j->k, 2);
    assert_int_equal(jobs_len(j, "c.alice"), 5);
    kit_sleep(&j->k, 10);
    assert_int_equal(jobs_len(j, "c.alice"), 5);
}

static void overlap_policy_is_followed(void **state)
{
    struct job_kit *j = *state;
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons", "{name: a, schedule: '* * * * *', job: {command: [x]}}");
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons",
         "{name: s, schedule: '* * * * *', overlap: skip, job: {command: [x]}}");
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons",
         "{name: r, schedule: '* * * * *', overlap: replace, job: {command: [x], requests: {cpu: 100}}}");
    wait_for(j, 60);
    wait_for(j, 60);
    wait_for(j, 60);
    assert_int_equal(jobs_len(j, "a.alice"), 3);
    assert_int_equal(jobs_len(j, "s.alice"), 1);
    assert_int_equal(jobs_len(j, "r.alice"), 3);
    int64_t first = kit_number(&j->k, "jobs/0"), second = kit_number(&j->k, "jobs/1"),
            last = kit_number(&j->k, "jobs/2");
    STATE(j, first, "ended");
    STATE(j, second, "ended");
    SAYS(&j->k, "replaced by the next job of the schedule");
    STATE(j, last, "pending");
}

static void old_job_records_are_deleted(void **state)
{
    struct job_kit *j = *state;
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons", "{name: c, schedule: '* * * * *', keep: 2, job: {command: [x]}}");
    for (int i = 0; i < 5; i++) {
        wait_for(j, 60);
        (void)jobs_len(j, "c.alice");
        size_t len = json_array_size(kit_at(&j->k, "jobs"));
        tasks_say(j, json_integer_value(json_array_get(kit_at(&j->k, "jobs"), len - 1)), "state: ended");
    }
    assert_int_equal(jobs_len(j, "c.alice"), 3); /* two, and the job that was open when the last one was created */
    CALL(&j->k, 200, ALICE, "GET", "/v1/jobs", NULL);
    assert_int_equal(json_array_size(kit_at(&j->k, "items")), 3);
    CALL(&j->k, 200, ALICE, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&j->k, "items")), 3);
}

static void failed_creation_is_reported(void **state)
{
    struct job_kit *j = *state;
    CALL(&j->k, 201, ALICE, "POST", "/v1/volumes", "{id: data}");
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons",
         "{name: c, schedule: '* * * * *', job: {command: [x], volumes: [data]}}");
    CALL(&j->k, 204, ALICE, "DELETE", "/v1/volumes/data", NULL);
    wait_for(j, 60);
    assert_int_equal(jobs_len(j, "c.alice"), 0);
    SAYS(&j->k, "there is no volume");
    CALL(&j->k, 201, ALICE, "POST", "/v1/volumes", "{id: data}");
    wait_for(j, 60);
    assert_int_equal(jobs_len(j, "c.alice"), 1);
    assert_null(kit_at(&j->k, "error"));
}

static void invalid_schedule_is_rejected(void **state)
{
    struct job_kit *j = *state;
    static const struct {
        int status;
        const char *who, *body, *words;
    } rows[] = {
        {400, ALICE, "{name: c, job: {command: [x]}}",                                   "schedule: missing"        },
        {400, ALICE, "{name: c, schedule: '* * * * *'}",                                 "job: missing"             },
        {400, ALICE, "{name: c, schedule: '* *', job: {command: [x]}}",                  "schedule: "               },
        {400, ALICE, "{name: c, schedule: '0 0 30 2 *', job: {command: [x]}}",           "this date does not exist" },
        {400, ALICE, "{name: c, schedule: '@daily', job: {command: x}}",                 "job: command: expected"   },
        {400, ALICE, "{name: c, schedule: '@daily', job: {owner: bob}}",                 "job: owner: not allowed"  },
        {400, ALICE, "{name: c, schedule: '@daily', overlap: no, job: {}}",              "overlap: expected"        },
        {400, ALICE, "{name: c, schedule: '@daily', keep: -1, job: {}}",                 "keep: expected"           },
        {403, ALICE, "{name: c, owner: bob, schedule: '@daily', job: {command: [x]}}",   "may not create crons"     },
        {403, ALICE, "{name: c, schedule: '@daily', job: {command: [x], rootfs: /srv}}", "rootfs: folders of a node"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&j->k, rows[i].status, rows[i].who, "POST", "/v1/crons", rows[i].body);
        SAYS(&j->k, rows[i].words);
    }
    CALL(&j->k, 201, ALICE, "POST", "/v1/crons", "{name: c, schedule: '@daily', job: {command: [x]}}");
    CALL(&j->k, 404, BOB, "GET", "/v1/crons/c.alice", NULL);
    CALL(&j->k, 404, BOB, "DELETE", "/v1/crons/c.alice", NULL);
    CALL(&j->k, 204, ALICE, "DELETE", "/v1/crons/c", NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, jobs_open, jobs_close)
    const struct CMUnitTest tests[] = {
        TEST(job_is_created_at_each_time), TEST(crash_neither_loses_nor_repeats_a_job),
        TEST(overlap_policy_is_followed),  TEST(old_job_records_are_deleted),
        TEST(failed_creation_is_reported), TEST(invalid_schedule_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
