/* job_hold_test.c - a hold keeps a pending job from starting; a running job is stopped only if the request says so. */
#include "control/job/job_kit_test.h"

static void patch(struct job_kit *j, int want, int64_t job, const char *query, const char *body)
{
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld%s", (long long)job, query);
    CALL(&j->k, want, ALICE, "PATCH", url, body);
}

static void running_job_is_not_held(void **state)
{
    struct job_kit *j = *state;
    static const char *const says[] = {"state: starting", "state: running"};
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    kit_plan(&j->k);
    STATE(j, a, "starting");
    job_do(j, 409, ALICE, a, "hold"); /* its agent knows about it already */
    for (size_t i = 0; i < COUNT(says); i++) {
        tasks_say(j, a, says[i]);
        job_do(j, 409, ALICE, a, "hold");
        SAYS(&j->k, "has 1 of 1 tasks running, and a hold affects only pending jobs");
        SAYS(&j->k, "--stop");
        job_do(j, 409, ADMIN, a, "hold");
        job_do(j, 409, ALICE, a, "hold?stop=false");
        job_do(j, 400, ALICE, a, "hold?stop=please");
        patch(j, 409, a, "", "{hold: true}");
    }
    kit_plan(&j->k);
    STATE(j, a, "running");
    assert_null(kit_at(&j->k, "hold"));
}

static void running_job_is_held_with_stop(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    int64_t b = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    tasks_say(j, b, "state: running");
    job_do(j, 200, ALICE, a, "hold?stop=true");
    patch(j, 200, b, "?stop=true", "{hold: true}");
    kit_plan(&j->k);
    STATE(j, a, "stopping");
    job_do(j, 200, ALICE, a, "hold"); /* already held */
    tasks_say(j, a, "state: stopped");
    tasks_say(j, b, "state: stopped");
    STATE(j, a, "held");
    STATE(j, b, "held");
    job_do(j, 200, ALICE, a, "release");
    kit_plan(&j->k);
    STATE(j, a, "starting");
}

static void pending_job_is_held(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 8}}");
    int64_t b = submit(j, ALICE, "{command: [x], requests: {cpu: 8}}");
    int64_t early = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    job_do(j, 200, ALICE, early, "hold"); /* before any plan has seen it */
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    STATE(j, b, "pending");
    STATE(j, early, "held");
    job_do(j, 200, ALICE, b, "hold");
    tasks_say(j, a, "state: ended");
    STATE(j, b, "held");
    job_do(j, 200, ALICE, b, "release");
    kit_plan(&j->k);
    STATE(j, b, "starting");
}

/* A failed job that waits for its retry does not run, nor does a preempted one. */
static void job_waiting_for_its_retry_is_held(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: failed, exit: 1");
    STATE(j, a, "backing-off");
    job_do(j, 200, ALICE, a, "hold");
    STATE(j, a, "held");
}

static void array_with_running_tasks_needs_stop(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 4}, array: 0-9}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    job_do(j, 409, ALICE, a, "hold");
    SAYS(&j->k, "has 2 of 10 tasks running");
    job_do(j, 200, ALICE, a, "hold?stop=true");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, jobs_open, jobs_close)
    const struct CMUnitTest tests[] = {
        TEST(running_job_is_not_held),           TEST(running_job_is_held_with_stop),       TEST(pending_job_is_held),
        TEST(job_waiting_for_its_retry_is_held), TEST(array_with_running_tasks_needs_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
