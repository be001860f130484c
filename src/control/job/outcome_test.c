/* outcome_test.c - outcomes of jobs: succeeded, failed, cancelled, timed out, out of memory, node lost, preempted. */
#include "control/job/job_kit_test.h"
#include "control/job/outcome.h"

#define OUTCOME(j, job, want)                                                                                          \
    do {                                                                                                               \
        job_get(j, job);                                                                                               \
        if (strcmp(kit_text(&(j)->k, "status/outcome"), want) != 0)                                                    \
            fail_msg("job %lld: expected the outcome \"%s\": %s", (long long)(job), want, (j)->k.text);                \
    } while (0)

/* Advances the clock while the node keeps reporting. */
static void time_passes(struct job_kit *j, int seconds)
{
    for (int i = 0; i < seconds; i += 10) {
        char heard[64];
        (void)snprintf(heard, sizeof heard, "{epoch: 1, seq: %d}", ++j->seq);
        CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", heard);
        kit_sleep(&j->k, 10);
    }
}

/* Checks that the list filtered by `outcome` contains the job, and the list filtered by `other` does not. */
static void listed_by(struct job_kit *j, int64_t job, const char *outcome, const char *other)
{
    char url[64], id[32];
    (void)snprintf(id, sizeof id, "\"id\":%lld,", (long long)job);
    (void)snprintf(url, sizeof url, "/v1/jobs?state=%s", outcome);
    CALL(&j->k, 200, ADMIN, "GET", url, NULL);
    SAYS(&j->k, id);
    (void)snprintf(url, sizeof url, "/v1/jobs?state=%s", other);
    CALL(&j->k, 200, ADMIN, "GET", url, NULL);
    assert_null(strstr(j->k.text, id));
}

static void outcome_follows_the_report(void **state)
{
    struct job_kit *j = *state;
    static const struct {
        const char *said, *outcome, *word;
    } rows[] = {
        {"state: ended",                               "succeeded",     "ended" },
        {"state: failed, exit: 3",                     "failed",        "failed"},
        {"state: failed, exit: 137",                   "failed",        "failed"},
        {"state: failed, exit: 137, oom_killed: true", "out-of-memory", "failed"},
        {"state: failed, exit: 1, oom_killed: true",   "out-of-memory", "failed"},
        {"state: ended, oom_killed: false",            "succeeded",     "ended" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t a = submit(j, ALICE, "{command: [x], retries: 0, requests: {cpu: 1}}");
        kit_plan(&j->k);
        tasks_say(j, a, "state: running");
        OUTCOME(j, a, "");
        tasks_say(j, a, rows[i].said);
        STATE(j, a, rows[i].word);
        OUTCOME(j, a, rows[i].outcome);
        assert_string_equal(kit_text(&j->k, "outcome"), rows[i].outcome);
        if (strcmp(rows[i].word, "failed") == 0)
            assert_string_equal(kit_text(&j->k, "status/last/0/outcome"), rows[i].outcome);
        else
            assert_string_equal(kit_text(&j->k, "status/instances/0/outcome"), "succeeded");
        listed_by(j, a, rows[i].outcome, "cancelled");
    }
}

static void last_retry_decides_the_outcome(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], retries: 1, requests: {cpu: 1}}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: failed, exit: 137, oom_killed: true");
    STATE(j, a, "backing-off");
    OUTCOME(j, a, "");
    assert_string_equal(kit_text(&j->k, "status/last/0/outcome"), "out-of-memory");
    time_passes(j, 20);
    tasks_say(j, a, "state: failed, exit: 2");
    OUTCOME(j, a, "failed");
}

static void job_is_cancelled_when_it_has_stopped(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    int64_t b = submit(j, ALICE, "{command: [x], hold: true}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    job_do(j, 200, ALICE, a, "cancel");
    job_do(j, 200, ALICE, b, "cancel");
    OUTCOME(j, b, "cancelled"); /* at once: the job has no instance */
    kit_plan(&j->k);
    STATE(j, a, "stopping");
    OUTCOME(j, a, "");
    tasks_say(j, a, "state: stopped");
    OUTCOME(j, a, "cancelled");
    listed_by(j, a, "cancelled", "succeeded");
}

static void exceeded_time_limit_is_timed_out(void **state)
{
    struct job_kit *j = *state;
    int64_t one = submit(j, ALICE, "{command: [x], time_limit: 90s, retries: 5, requests: {cpu: 1}}");
    int64_t array = submit(j, ALICE, "{command: [x], time_limit: 90s, retries: 0, requests: {cpu: 1}, array: 0-1}");
    kit_plan(&j->k);
    tasks_say(j, one, "state: running");
    tasks_say(j, array, "state: running");
    time_passes(j, 100);
    STATE(j, one, "stopping");
    tasks_say(j, one, "state: stopped");
    OUTCOME(j, one, "timed-out");
    assert_string_equal(kit_text(&j->k, "status/last/0/outcome"), "timed-out");
    tasks_say(j, array, "state: failed, exit: 143"); /* whatever exit code the stopped task reports */
    OUTCOME(j, array, "timed-out");
    assert_string_equal(kit_text(&j->k, "status/instances/0/outcome"), "timed-out");
}

static void array_has_the_outcome_its_failed_tasks_share(void **state)
{
    struct job_kit *j = *state;
    static const struct {
        const char *first, *second, *want;
    } rows[] = {
        {"state: ended",                               "state: ended",                               "succeeded"    },
        {"state: ended",                               "state: failed, exit: 137, oom_killed: true", "out-of-memory"},
        {"state: failed, exit: 137, oom_killed: true", "state: failed, exit: 137, oom_killed: true", "out-of-memory"},
        {"state: failed, exit: 1",                     "state: failed, exit: 137, oom_killed: true", "failed"       },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[256];
        int64_t a = submit(j, ALICE, "{command: [x], retries: 0, requests: {cpu: 1}, array: 0-1}");
        kit_plan(&j->k);
        tasks_say(j, a, "state: running");
        job_get(j, a);
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [{id: %lld, %s}, {id: %lld, %s}]}", ++j->seq,
                       (long long)kit_number(&j->k, "status/instances/0/id"), rows[i].first,
                       (long long)kit_number(&j->k, "status/instances/1/id"), rows[i].second);
        CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
        kit_plan(&j->k);
        OUTCOME(j, a, rows[i].want);
    }
}

static void outcome_of_preempted_job_is_preempted(void **state)
{
    struct job_kit *j = *state;
    int64_t again = submit(j, ALICE, "{command: [x], requests: {cpu: 2}}");
    int64_t cancel = submit(j, ALICE, "{command: [x], requests: {cpu: 2}, preempt: cancel}");
    int64_t never = submit(j, ALICE, "{command: [x], requests: {cpu: 2}, requeue: false}");
    kit_plan(&j->k);
    tasks_say(j, again, "state: running");
    tasks_say(j, cancel, "state: running");
    tasks_say(j, never, "state: running");
    time_passes(j, 120);
    (void)submit(j, ALICE, "{command: [x], requests: {cpu: 8}, priority: 5}");
    kit_plan(&j->k);
    tasks_say(j, again, "state: stopped");
    tasks_say(j, cancel, "state: stopped");
    tasks_say(j, never, "state: stopped");
    OUTCOME(j, cancel, "preempted");
    OUTCOME(j, never, "preempted");
    OUTCOME(j, again, ""); /* it waits for its next run */
    assert_string_equal(kit_text(&j->k, "status/last/0/outcome"), "preempted");
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/why/jobs/%lld", (long long)cancel);
    CALL(&j->k, 200, ALICE, "GET", url, NULL);
    SAYS(&j->k, "Preempted: job");
}

static void outcome_of_job_on_lost_node_is_node_lost(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requeue: false, fence: 1s}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    kit_sleep(&j->k, 60);
    OUTCOME(j, a, "node-lost");
    job_do(j, 409, ALICE, a, "cancel");
    SAYS(&j->k, "has already ended: node-lost");
}

static void cancel_of_an_ended_job_names_its_outcome(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    int64_t b = submit(j, ALICE, "{command: [x], hold: true}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: ended");
    job_do(j, 409, ALICE, a, "cancel");
    SAYS(&j->k, "has already ended: succeeded");
    job_do(j, 200, ALICE, b, "cancel");
    job_do(j, 200, ALICE, b, "cancel"); /* a client may repeat the request */
    /* A set is cancelled by the number of any of its jobs, even of an ended one. */
    int64_t set = submit(j, ALICE, "{command: [x], requests: {cpu: 1}, roles: [{name: a}, {name: b}]}");
    kit_plan(&j->k);
    tasks_say(j, set, "state: ended");
    OUTCOME(j, set, "succeeded");
    job_do(j, 200, ALICE, set, "cancel");
    kit_plan(&j->k);
    tasks_say(j, set + 1, "state: stopped");
    OUTCOME(j, set + 1, "cancelled");
    OUTCOME(j, set, "succeeded");
}

static void requeued_job_has_no_outcome(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], retries: 0, requests: {cpu: 1}}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: failed, exit: 3");
    job_do(j, 200, ALICE, a, "requeue");
    OUTCOME(j, a, "");
    assert_null(kit_at(&j->k, "outcome"));
    CALL(&j->k, 201, ALICE, "POST", "/v1/apps", "{name: web, restart_policy: never, requests: {cpu: 1}}");
    kit_plan(&j->k);
    CALL(&j->k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    char body[160];
    (void)snprintf(body, sizeof body,
                   "{epoch: 1, seq: %d, instances: [{id: %lld, state: failed, exit: 137, oom_killed: true}]}", ++j->seq,
                   (long long)kit_number(&j->k, "status/instances/0/id"));
    CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
    CALL(&j->k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_string_equal(kit_text(&j->k, "status/outcome"), "out-of-memory");
    CALL(&j->k, 200, ALICE, "POST", "/v1/apps/web/start", NULL);
    CALL(&j->k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_null(kit_at(&j->k, "status/outcome"));
    assert_null(kit_at(&j->k, "outcome"));
}

/* Documents of an earlier version, which stored no outcome. */
static void old_documents_get_outcomes_from_marks(void **state)
{
    struct job_kit *j = *state;
    static const struct {
        const char *id, *mark, *want;
    } rows[] = {
        {"901", "cancelled", "cancelled"},
        {"902", "failed",    "failed"   },
        {"903", "ended",     "succeeded"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char doc[200];
        (void)snprintf(doc, sizeof doc,
                       "{v: 1, id: %s, owner: alice, group: red, generation: 1, %s: true, "
                       "finished: '2026-03-01T11:00:00Z'}",
                       rows[i].id, rows[i].mark);
        kit_put(&j->k, KIND_JOB, rows[i].id, doc);
        kit_plan(&j->k);
        OUTCOME(j, strtoll(rows[i].id, NULL, 10), rows[i].want);
        assert_null(kit_at(&j->k, "outcome"));
    }
    job_do(j, 409, ALICE, 903, "cancel");
    job_do(j, 200, ALICE, 901, "cancel");
}

/* Clients cannot set the outcome. */
static void clients_cannot_set_the_outcome(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], hold: true, outcome: succeeded}");
    OUTCOME(j, a, "");
    assert_null(kit_at(&j->k, "outcome"));
}

static void a_node_counts_live_instances(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}, array: 0-3}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    CALL(&j->k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(&j->k, "status/instances"), 4);
    tasks_say(j, a, "state: ended");
    CALL(&j->k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(&j->k, "status/instances"), 0);
    CALL(&j->k, 200, ADMIN, "GET", "/v1/why/nodes/n1", NULL);
    SAYS(&j->k, "0 instances are on this node");
    CALL(&j->k, 200, ADMIN, "GET", "/v1/instances?node=n1", NULL); /* the records belong to the job */
    assert_int_equal(json_array_size(kit_at(&j->k, "items")), 4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, jobs_open, jobs_close)
    const struct CMUnitTest tests[] = {
        TEST(outcome_follows_the_report),
        TEST(last_retry_decides_the_outcome),
        TEST(job_is_cancelled_when_it_has_stopped),
        TEST(exceeded_time_limit_is_timed_out),
        TEST(array_has_the_outcome_its_failed_tasks_share),
        TEST(outcome_of_preempted_job_is_preempted),
        TEST(outcome_of_job_on_lost_node_is_node_lost),
        TEST(cancel_of_an_ended_job_names_its_outcome),
        TEST(requeued_job_has_no_outcome),
        TEST(old_documents_get_outcomes_from_marks),
        TEST(clients_cannot_set_the_outcome),
        TEST(a_node_counts_live_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
