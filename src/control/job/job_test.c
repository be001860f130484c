/* job_test.c - the life cycle of jobs: dependencies, ends, arrays, sets, deadlines, requeue. */
#include "control/job/job_kit_test.h"

static void ended_job_is_marked(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 1}}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    STATE(j, a, "running");
    assert_string_not_equal(kit_text(&j->k, "started"), "");
    assert_string_equal(kit_text(&j->k, "finished"), "");
    tasks_say(j, a, "state: ended");
    STATE(j, a, "ended");
    assert_string_not_equal(kit_text(&j->k, "finished"), "");
    assert_true(json_is_true(kit_at(&j->k, "ended")));
    assert_int_equal(kit_number(&j->k, "generation"), 1);
    job_do(j, 409, ALICE, a, "hold");
    SAYS(&j->k, "has ended; submit or requeue it");
}

static void invalid_job_is_rejected(void **state)
{
    struct job_kit *j = *state;
    static const struct {
        const char *who, *body, *words;
    } rows[] = {
        {ALICE, "{after: [99]}",                                    "after[0]: job 99 does not exist"                   },
        {BOB,   "{after: [1]}",                                     "after[0]: job 1 does not exist"                    },
        {ALICE, "{after: [0]}",                                     "after[0]: expected the number of a job"            },
        {ALICE, "{singleton: true}",                                "singleton: needs a job name"                       },
        {ALICE, "{deadline: '2020-01-01T00:00:00Z'}",               "deadline: expected a time in the future; this was "},
        {ALICE, "{deadline: '2026-03-01T12:30:00Z', estimate: 1h}", "deadline: is in 30m, but the job needs 1h"         },
        {ALICE, "{deadline: '2026-03-01T12:30:00Z'}",               "deadline: needs an estimate or a time_limit"       },
        {ALICE, "{estimate: 2h, time_limit: 1h}",                   "estimate: 2h is more than the time limit, 1h"      },
        {ALICE, "{array: 0-9, gang: true}",                         "gang: cannot be combined with an array"            },
        {ALICE, "{roles: []}",                                      "roles: expected a list of 1 to 32"                 },
        {ALICE, "{roles: [{name: a}, {name: a}]}",                  "roles[1]: name: a is listed twice"                 },
        {ALICE, "{roles: [{replicas: 2}]}",                         "roles[0]: name: missing"                           },
        {ALICE, "{roles: [{name: a, min: 5}]}",                     "roles[0]: min: 5 exceeds the number"               },
        {ALICE, "{array: 0-3, roles: [{name: a}]}",                 "array: not allowed with roles"                     },
    };
    submit(j, ALICE, "{command: [x]}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&j->k, 400, rows[i].who, "POST", "/v1/jobs", rows[i].body);
        SAYS(&j->k, rows[i].words);
    }
    CALL(&j->k, 400, ALICE, "POST", "/v1/apps", "{name: a, command: [x], time_limit: 1h}");
    SAYS(&j->k, "time_limit: is only for jobs");
    CALL(&j->k, 200, ALICE, "GET", "/v1/jobs", NULL);
    assert_int_equal(json_array_size(kit_at(&j->k, "items")), 1);
    CALL(&j->k, 400, ALICE, "PATCH", "/v1/jobs/1", "{after: [1]}");
    SAYS(&j->k, "after[0]: job 1 is not earlier");
    char later[64];
    (void)snprintf(later, sizeof later, "{after: [%lld]}", (long long)submit(j, ALICE, "{command: [x]}"));
    CALL(&j->k, 400, ALICE, "PATCH", "/v1/jobs/1", later);
    SAYS(&j->k, "is not earlier; a job waits only for earlier jobs");
}

/* A waiting job starts, fails or keeps waiting, by the end of the job it depends on. */
static void waiting_job_starts_or_fails(void **state)
{
    struct job_kit *j = *state;
    static const struct {
        const char *when, *end, *want, *words;
    } rows[] = {
        {"ok",     "state: ended",           "running", ""                                             },
        {"ok",     "state: failed, exit: 3", "failed",
         "the dependency on job %lld to succeed cannot be met: that job has failed"                    },
        {"failed", "state: failed, exit: 3", "running", ""                                             },
        {"failed", "state: ended",           "failed",  "to fail cannot be met: that job has succeeded"},
        {"ended",  "state: ended",           "running", ""                                             },
        {"ended",  "state: failed, exit: 3", "running", ""                                             },
        {"ok",     "cancel",                 "failed",  "that job was cancelled"                       },
        {"failed", "cancel",                 "running", ""                                             },
        {"ok",     "delete",                 "failed",  "that job was deleted"                         },
        {"ended",  "delete",                 "running", ""                                             },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[160], words[160], url[64];
        int64_t a = submit(j, ALICE, "{command: [x], retries: 0, requests: {cpu: 1}}");
        (void)snprintf(body, sizeof body, "{command: [y], requests: {cpu: 1}, after: [{job: %lld, when: %s}]}",
                       (long long)a, rows[i].when);
        int64_t b = submit(j, ALICE, body);
        kit_plan(&j->k);
        tasks_say(j, a, "state: running");
        STATE(j, b, "waiting");
        SAYS(&j->k, "waits for job");
        if (strcmp(rows[i].end, "cancel") == 0) {
            job_do(j, 200, ALICE, a, "cancel");
            kit_plan(&j->k);
            STATE(j, b, "waiting"); /* until that job has stopped */
            tasks_say(j, a, "state: stopped");
        } else if (strcmp(rows[i].end, "delete") == 0) {
            (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)a);
            CALL(&j->k, 204, ALICE, "DELETE", url, NULL);
            kit_plan(&j->k);
        } else {
            tasks_say(j, a, rows[i].end);
        }
        if (strcmp(rows[i].want, "running") == 0)
            tasks_say(j, b, "state: running");
        STATE(j, b, rows[i].want);
        (void)snprintf(words, sizeof words, rows[i].words, (long long)a);
        SAYS(&j->k, words);
        if (strcmp(rows[i].want, "running") == 0)
            tasks_say(j, b, "state: ended");
    }
}

static void job_waits_until_another_has_started(void **state)
{
    struct job_kit *j = *state;
    char body[160];
    int64_t a = submit(j, ALICE, "{command: [x], hold: true}");
    (void)snprintf(body, sizeof body, "{command: [y], after: {job: %lld, when: started}}", (long long)a);
    int64_t b = submit(j, ALICE, body);
    kit_plan(&j->k);
    STATE(j, b, "waiting");
    job_do(j, 200, ALICE, a, "release");
    kit_plan(&j->k);
    STATE(j, b, "waiting");
    kit_restart(&j->k); /* dependencies are read from the documents */
    tasks_say(j, a, "state: running");
    STATE(j, b, "starting");
}

static void singleton_waits_for_earlier_jobs(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{name: s, command: [x], singleton: true}");
    int64_t b = submit(j, ALICE, "{name: s, command: [x], singleton: true}");
    int64_t other = submit(j, BOB, "{name: s, command: [x], singleton: true}");
    kit_plan(&j->k);
    STATE(j, a, "starting");
    STATE(j, other, "starting");
    STATE(j, b, "waiting");
    SAYS(&j->k, "of the same name to end");
    tasks_say(j, a, "state: ended");
    STATE(j, b, "starting");
}

/* Many waiting jobs are handled in several transactions, and a job with that many dependents is not deleted at once. */
static void many_waiting_jobs_need_several_transactions(void **state)
{
    enum { WAITERS = 1100 };
    struct job_kit *j = *state;
    char body[64], url[64];
    int64_t a = submit(j, ALICE, "{command: [x], hold: true}"), last = 0;
    (void)snprintf(body, sizeof body, "{command: [y], hold: true, after: [%lld]}", (long long)a);
    for (int i = 0; i < WAITERS; i++)
        last = submit(j, ALICE, body);
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)a);
    CALL(&j->k, 409, ALICE, "DELETE", url, NULL);
    SAYS(&j->k, "cancel it first");
    STATE(j, last, "held");
    job_do(j, 200, ALICE, a, "cancel");
    kit_plan(&j->k);
    for (int64_t n = a + 1; n <= last; n++)
        STATE(j, n, "failed");
    CALL(&j->k, 204, ALICE, "DELETE", url, NULL);
}

/* Submits more jobs than fit into one transaction; returns the last. */
static int64_t submit_large(struct job_kit *j, const char *fields)
{
    enum { LEN = 20, LARGE = 500000 };
    CLEANUP(str) struct str body = {0};
    int64_t last = 0;
    str_addf(&body, "{command: [y], hold: true, %s, env: {", fields);
    for (int i = 0; body.len < LARGE; i++)
        str_addf(&body, "%sE%d: %01000d", i ? ", " : "", i, i);
    str_add(&body, "}}");
    for (int i = 0; i < LEN; i++) {
        j->k.now_ns += 1000000000; /* the rate limit allows one of these requests per second */
        j->k.steady_ns += 1000000000;
        last = submit(j, ALICE, body.at);
    }
    return last;
}

/* Large waiting jobs are handled in several transactions, too, because the size of a record is bounded. */
static void large_waiting_jobs_need_several_transactions(void **state)
{
    struct job_kit *j = *state;
    char after[64];
    int64_t a = submit(j, ALICE, "{command: [x], hold: true}");
    (void)snprintf(after, sizeof after, "after: [%lld]", (long long)a);
    int64_t last = submit_large(j, after);
    job_do(j, 200, ALICE, a, "cancel");
    kit_plan(&j->k);
    for (int64_t n = a + 1; n <= last; n++)
        STATE(j, n, "failed");
}

static void deadlines_of_large_jobs_pass(void **state)
{
    struct job_kit *j = *state;
    int64_t last = submit_large(j, "deadline: '2026-03-01T12:00:30Z', estimate: 10s");
    kit_sleep(&j->k, 25);
    for (int64_t n = 1; n <= last; n++)
        STATE(j, n, "failed");
}

/* A job whose document cannot grow any more in the store delays no other job. */
static void unwritable_job_delays_only_itself(void **state)
{
    enum { WAITERS = 3 };
    struct job_kit *j = *state;
    char body[64], id[24];
    int64_t a = submit(j, ALICE, "{command: [x], hold: true}"), all[WAITERS];
    (void)snprintf(body, sizeof body, "{command: [y], hold: true, after: [%lld]}", (long long)a);
    for (int i = 0; i < WAITERS; i++)
        all[i] = submit(j, ALICE, body);
    (void)snprintf(id, sizeof id, "%lld", (long long)all[WAITERS / 2]);
    const struct object *job = state_find(control_state(j->k.control), KIND_JOB, id);
    CLEANUP(str) struct str doc = {0};
    str_add_bytes(&doc, job->doc.at, job->doc.len - 1);
    str_add(&doc, ",\"env\":{\"E\":\"\"");
    for (int i = 0; doc.len < STORE_VALUE_MAX - 100; i++)
        str_addf(&doc, ",\"E%d\":\"%0*d\"", i, doc.len < STORE_VALUE_MAX - 60000 ? 50000 : 60, i);
    str_add(&doc, "}}");
    kit_put(&j->k, KIND_JOB, id, doc.at);
    kit_plan(&j->k);
    job_do(j, 200, ALICE, a, "cancel");
    kit_sleep(&j->k, 2);
    for (int i = 0; i < WAITERS; i++)
        STATE(j, all[i], i == WAITERS / 2 ? "held" : "failed");
}

static void one_job_of_a_name_runs_at_a_time(void **state)
{
    struct job_kit *j = *state;
    int64_t all[4];
    for (size_t i = 0; i < COUNT(all); i++)
        all[i] = submit(j, ALICE, "{name: s, command: [x], singleton: true}");
    kit_plan(&j->k);
    STATE(j, all[0], "starting");
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)all[1]);
    /* the renamed job waits for no job of the name, and none waits for it */
    CALL(&j->k, 200, ALICE, "PATCH", url, "{name: other}");
    kit_plan(&j->k);
    STATE(j, all[1], "starting");
    STATE(j, all[2], "waiting");
    CALL(&j->k, 200, ALICE, "PATCH", url, "{display: mine}");
    tasks_say(j, all[0], "state: ended");
    STATE(j, all[2], "starting");
    STATE(j, all[3], "waiting");
    job_do(j, 200, ALICE, all[0], "requeue"); /* the oldest job is back: the youngest waits for it, too */
    tasks_say(j, all[2], "state: ended");
    STATE(j, all[3], "waiting");
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)all[0]);
    CALL(&j->k, 204, ALICE, "DELETE", url, NULL);
    kit_plan(&j->k);
    STATE(j, all[3], "starting");
}

static void renamed_job_frees_its_name(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{name: s, command: [x]}");
    int64_t b = submit(j, ALICE, "{name: s, command: [x], singleton: true}");
    kit_plan(&j->k);
    STATE(j, a, "starting");
    STATE(j, b, "waiting");
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)a);
    CALL(&j->k, 200, ALICE, "PATCH", url, "{name: other}");
    kit_plan(&j->k);
    STATE(j, b, "starting");
}

static void set_does_not_wait_for_itself(void **state)
{
    static const char set[] = "{name: s, command: [x], singleton: true, requests: {cpu: 1}, "
                              "roles: [{name: d}, {name: w}]}";
    struct job_kit *j = *state;
    int64_t first = submit(j, ALICE, set), second = submit(j, ALICE, set), third = submit(j, ALICE, set);
    kit_plan(&j->k);
    STATE(j, first, "starting");
    STATE(j, first + 1, "starting");
    STATE(j, second, "waiting");
    STATE(j, second + 1, "waiting");
    tasks_say(j, first, "state: ended");
    STATE(j, second, "waiting"); /* waits for the other role */
    STATE(j, second + 1, "waiting");
    tasks_say(j, first + 1, "state: ended");
    STATE(j, second, "starting");
    STATE(j, second + 1, "starting");
    tasks_say(j, second, "state: ended");
    STATE(j, third, "waiting");
    STATE(j, third + 1, "waiting");
}

static void restart_keeps_dependencies(void **state)
{
    struct job_kit *j = *state;
    char body[160];
    int64_t a = submit(j, ALICE, "{command: [x], retries: 0}");
    (void)snprintf(body, sizeof body, "{command: [y], after: [%lld]}", (long long)a);
    int64_t b = submit(j, ALICE, body);
    kit_plan(&j->k);
    kit_restart(&j->k);
    kit_plan(&j->k);
    STATE(j, b, "waiting");
    tasks_say(j, a, "state: ended");
    STATE(j, b, "starting");
    assert_true(json_is_true(kit_at(&j->k, "met")));
}

static void met_dependency_outlives_its_record(void **state)
{
    struct job_kit *j = *state;
    char body[160], url[64];
    int64_t a = submit(j, ALICE, "{command: [x]}"), b = submit(j, ALICE, "{command: [x], hold: true}");
    (void)snprintf(body, sizeof body, "{command: [y], after: [%lld, %lld]}", (long long)a, (long long)b);
    int64_t both = submit(j, ALICE, body);
    (void)snprintf(body, sizeof body, "{command: [y], after: [{job: %lld, when: failed}, %lld]}", (long long)b,
                   (long long)a);
    int64_t bad = submit(j, ALICE, body);
    kit_plan(&j->k);
    tasks_say(j, a, "state: ended");
    STATE(j, both, "waiting");
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)a);
    CALL(&j->k, 204, ALICE, "DELETE", url, NULL);
    kit_plan(&j->k);
    STATE(j, both, "waiting");
    STATE(j, bad, "waiting");
    job_do(j, 200, ALICE, b, "release");
    kit_plan(&j->k);
    tasks_say(j, b, "state: ended");
    STATE(j, both, "starting");
    STATE(j, bad, "failed");
}

static void array_is_one_record(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], array: '10-16:2%3', retries: 0, requests: {cpu: 1}}");
    job_get(j, a);
    assert_int_equal(kit_number(&j->k, "status/replicas"), 4);
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    job_get(j, a);
    assert_int_equal(kit_number(&j->k, "status/running"), 3); /* of four: the array's own limit */
    tasks_say(j, a, "state: failed, exit: 7");                /* every task fails on its own */
    tasks_say(j, a, "state: running");
    STATE(j, a, "running");
    assert_string_equal(kit_text(&j->k, "finished"), "");
    tasks_say(j, a, "state: ended");
    STATE(j, a, "failed");
    SAYS(&j->k, "3 of 4 tasks have failed");
    CALL(&j->k, 200, ALICE, "GET", "/v1/instances", NULL);
    SAYS(&j->k, "\"failed\":true");
    SAYS(&j->k, "\"exit\":7");
}

static void large_array_is_a_small_transaction(void **state)
{
    struct job_kit *j = *state;
    uint64_t before = state_revision(control_state(j->k.control));
    int64_t a = submit(j, ALICE, "{command: [x], hold: true, array: 0-9999}");
    assert_int_equal(state_revision(control_state(j->k.control)), before + 1);
    job_get(j, a);
    assert_int_equal(kit_number(&j->k, "status/replicas"), 10000);
    assert_true(strlen(j->k.text) < 1500);
}

static void set_starts_and_ends_together(void **state)
{
    struct job_kit *j = *state;
    uint64_t before = state_revision(control_state(j->k.control));
    CALL(&j->k, 200, ALICE, "POST", "/v1/jobs?dry_run=true",
         "{command: [x], roles: [{name: d}, {name: w, replicas: 2}]}");
    int64_t d =
        submit(j, ALICE, "{name: n, command: [x], requests: {cpu: 3}, roles: [{name: d}, {name: w, replicas: 2}]}");
    assert_int_equal(state_revision(control_state(j->k.control)), before + 1);
    assert_int_equal(json_array_size(kit_at(&j->k, "ids")), 2);
    int64_t w = kit_number(&j->k, "ids/1");
    kit_plan(&j->k); /* nine cores are needed and eight exist: no role is placed */
    STATE(j, d, "pending");
    STATE(j, w, "pending");
    assert_int_equal(kit_number(&j->k, "of"), d);
    assert_string_equal(kit_text(&j->k, "role"), "w");
    assert_string_equal(kit_text(&j->k, "name"), "n");
    job_do(j, 200, ALICE, w, "hold");
    STATE(j, d, "held");
    job_do(j, 200, ALICE, d, "release");
    STATE(j, w, "pending");
    job_do(j, 200, ALICE, d, "cancel");
    kit_plan(&j->k);
    STATE(j, w, "ended");
    assert_true(json_is_true(kit_at(&j->k, "cancelled")));
}

static void failed_job_fails_its_whole_set(void **state)
{
    struct job_kit *j = *state;
    int64_t d = submit(j, ALICE, "{command: [x], retries: 0, roles: [{name: d}, {name: w, replicas: 2}]}");
    int64_t w = kit_number(&j->k, "ids/1");
    kit_plan(&j->k);
    tasks_say(j, d, "state: failed, exit: 1");
    tasks_say(j, w, "state: stopped");
    STATE(j, w, "failed");
    SAYS(&j->k, "of the set has failed");
}

static void unstartable_job_fails_its_whole_set(void **state)
{
    static const struct {
        const char *roles, *error;
        int64_t never, sleep_s; /* never: the role that never starts */
    } rows[] = {
        {"{name: d}, {name: w, requests: {cpu: 9}, deadline: '2026-03-01T12:00:30Z', estimate: 10s}", "its deadline", 1,
         25                                                                                                               },
        {"{name: d, after: [%lld]}, {name: w}",                                                       "has failed",   0, 0},
        {"{name: d}, {name: w, after: [%lld]}",                                                       "has failed",   1, 0},
    };
    struct job_kit *j = *state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char roles[160], body[320];
        int64_t a = submit(j, ALICE, "{command: [x], retries: 0, requests: {cpu: 1}}");
        (void)snprintf(roles, sizeof roles, rows[i].roles, (long long)a);
        (void)snprintf(body, sizeof body, "{command: [x], requests: {cpu: 1}, roles: [%s]}", roles);
        int64_t set = submit(j, ALICE, body);
        kit_plan(&j->k);
        tasks_say(j, a, "state: failed, exit: 1");
        kit_sleep(&j->k, rows[i].sleep_s);
        STATE(j, set + rows[i].never, "failed");
        SAYS(&j->k, rows[i].error);
        job_get(j, set + 1 - rows[i].never); /* this role may have started, and is stopping */
        assert_true(json_is_true(kit_at(&j->k, "failed")));
        SAYS(&j->k, "of the set has failed");
    }
}

static void deadlines_pass(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 9}, deadline: '2026-03-01T12:00:30Z', estimate: 10s}");
    int64_t b = submit(j, ALICE, "{command: [x], requests: {cpu: 1}, deadline: '2026-03-01T12:00:30Z', estimate: 10s}");
    kit_plan(&j->k);
    tasks_say(j, b, "state: running");
    kit_sleep(&j->k, 15);
    STATE(j, a, "pending");
    kit_sleep(&j->k, 10);
    STATE(j, a, "failed");
    SAYS(&j->k, "the job could not start in time to end by its deadline");
    CALL(&j->k, 200, ADMIN, "GET", "/v1/jobs", NULL);
    STATE(j, b, "running");
}

static void requeued_job_runs_again(void **state)
{
    struct job_kit *j = *state;
    static const char *const ends[] = {"state: ended", "state: failed, exit: 1", "cancel", "running"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        int64_t a = submit(j, ALICE, "{command: [x], retries: 0, requests: {cpu: 1}}");
        kit_plan(&j->k);
        tasks_say(j, a, "state: running");
        if (strcmp(ends[i], "cancel") == 0) {
            job_do(j, 200, ALICE, a, "cancel");
            kit_plan(&j->k);
            tasks_say(j, a, "state: stopped");
        } else if (strcmp(ends[i], "running") != 0) {
            tasks_say(j, a, ends[i]);
        }
        job_do(j, 404, BOB, a, "requeue");
        job_do(j, 200, ALICE, a, "requeue");
        kit_plan(&j->k);
        if (strcmp(ends[i], "running") == 0) {
            STATE(j, a, "stopping");
            tasks_say(j, a, "state: stopped");
        }
        STATE(j, a, "starting");
        assert_int_equal(kit_number(&j->k, "attempt"), 1);
        assert_string_equal(kit_text(&j->k, "finished"), "");
        tasks_say(j, a, "state: running");
        tasks_say(j, a, "state: ended");
        STATE(j, a, "ended");
    }
}

static void only_operators_release_their_hold(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x]}");
    job_do(j, 200, ALICE, a, "hold");
    job_do(j, 200, ALICE, a, "release");
    job_do(j, 200, ADMIN, a, "hold");
    job_do(j, 403, ALICE, a, "release");
    SAYS(&j->k, "held by an operator");
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)a);
    CALL(&j->k, 403, ALICE, "PATCH", url, "{hold: false}");
    STATE(j, a, "held");
    job_do(j, 200, ADMIN, a, "release");
    job_do(j, 200, ALICE, a, "hold");
    job_do(j, 200, ALICE, a, "release");
}

static void elastic_jobs_start_with_min(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], min: 2, max: 6, requests: {cpu: 2}}");
    kit_plan(&j->k);
    job_get(j, a);
    assert_int_equal(kit_number(&j->k, "status/placed"), 4);
    assert_int_equal(kit_number(&j->k, "status/replicas"), 6);
}

static void records_are_deleted_in_the_end(void **state)
{
    struct job_kit *j = *state;
    CALL(&j->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{job_keep_s: 60}");
    int64_t a = submit(j, ALICE, "{command: [x]}");
    int64_t b = submit(j, ALICE, "{command: [x], hold: true}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: ended");
    for (int i = 0; i < 5; i++) {
        char heard[64];
        (void)snprintf(heard, sizeof heard, "{epoch: 1, seq: %d}", ++j->seq);
        CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", heard);
        if (i == 1)
            STATE(j, a, "ended");
        kit_sleep(&j->k, 25);
    }
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)a);
    kit_sleep(&j->k, 60);
    CALL(&j->k, 404, ALICE, "GET", url, NULL);
    STATE(j, b, "held");
    CALL(&j->k, 200, ADMIN, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(&j->k, "items")), 0);
}

/* Advances the clock while the node keeps reporting. */
static void wait_for(struct job_kit *j, int seconds)
{
    for (int i = 0; i < seconds; i += 10) {
        char heard[64];
        (void)snprintf(heard, sizeof heard, "{epoch: 1, seq: %d}", ++j->seq);
        CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", heard);
        kit_sleep(&j->k, 10);
    }
}

static void job_beyond_its_time_limit_fails(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], time_limit: 90s, retries: 5, requests: {cpu: 1}}");
    int64_t b = submit(j, ALICE, "{command: [x], time_limit: 90s, retries: 5, requests: {cpu: 1}, array: 0-1}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    tasks_say(j, b, "state: running");
    wait_for(j, 60);
    STATE(j, a, "running");
    wait_for(j, 40);
    STATE(j, a, "stopping");
    tasks_say(j, a, "state: stopped");
    STATE(j, a, "failed");
    SAYS(&j->k, "exceeded its time limit of 1m30s");
    STATE(j, b, "stopping");
    tasks_say(j, b, "state: stopped");
    STATE(j, b, "failed");
    SAYS(&j->k, "2 of 2 tasks have failed");
    CALL(&j->k, 200, ALICE, "GET", "/v1/instances", NULL);
    SAYS(&j->k, "exceeded its time limit of 1m30s");
}

static void preempted_job_waits_or_is_cancelled(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requests: {cpu: 4}}");
    int64_t b = submit(j, ALICE, "{command: [x], requests: {cpu: 4}, preempt: cancel}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    tasks_say(j, b, "state: running");
    wait_for(j, 120);
    int64_t c = submit(j, ALICE, "{command: [x], requests: {cpu: 8}, priority: 5}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: stopped");
    STATE(j, a, "pending");
    assert_true(json_number_value(kit_at(&j->k, "attained")) >= 120);
    tasks_say(j, b, "state: stopped");
    STATE(j, b, "ended");
    assert_true(json_is_true(kit_at(&j->k, "cancelled")));
    char words[80];
    (void)snprintf(words, sizeof words, "job %lld needed its resources", (long long)c);
    SAYS(&j->k, words);
    STATE(j, c, "starting");
    CALL(&j->k, 200, ALICE, "GET", "/v1/events", NULL);
    SAYS(&j->k, "Preempted");
    tasks_say(j, c, "state: running");
    tasks_say(j, c, "state: ended");
    STATE(j, a, "starting"); /* a preemption uses up no retries */
}

static void job_without_requeue_does_not_run_again(void **state)
{
    struct job_kit *j = *state;
    int64_t a = submit(j, ALICE, "{command: [x], requeue: false, fence: 1s}");
    int64_t b = submit(j, ALICE, "{command: [x], fence: 1s}");
    int64_t c = submit(j, ALICE, "{command: [x], requeue: false}");
    kit_plan(&j->k);
    tasks_say(j, a, "state: running");
    tasks_say(j, b, "state: running");
    tasks_say(j, c, "state: failed, exit: 1");
    STATE(j, c, "failed");
    kit_sleep(&j->k, 60); /* the node is lost */
    STATE(j, a, "failed");
    SAYS(&j->k, "node n1 was lost, and the job is not requeued");
    STATE(j, b, "pending");
}

/* ---- random dependencies ---------------------------------------------------------------------------------------- */

enum { MANY = 30 };

struct random_jobs {
    int64_t job[MANY];
    int after[MANY][2]; /* indices of earlier jobs; -1: none */
    bool ok[MANY][2];   /* true: that job must succeed; false: it must end */
};

static uint64_t next_random(uint64_t *seed)
{
    return (*seed = *seed * 6364136223846793005u + 1442695040888963407u) >> 33;
}

static void random_jobs_submit(struct job_kit *j, struct random_jobs *t, uint64_t *seed)
{
    for (int i = 0; i < MANY; i++) {
        char body[240];
        size_t at = (size_t)snprintf(body, sizeof body, "{command: [x], retries: 0, requests: {cpu: 1}, after: [");
        for (int d = 0; d < 2; d++) {
            t->after[i][d] = i && next_random(seed) % 3 ? (int)(next_random(seed) % (uint64_t)i) : -1;
            t->ok[i][d] = next_random(seed) % 2;
            if (t->after[i][d] >= 0)
                at += (size_t)snprintf(body + at, sizeof body - at, "{job: %lld, when: %s}, ",
                                       (long long)t->job[t->after[i][d]], t->ok[i][d] ? "ok" : "ended");
        }
        (void)snprintf(body + at, sizeof body - at, "]}");
        t->job[i] = submit(j, ALICE, body);
    }
}

/* Ends some running jobs, with or without success, and checks that no job started too early. Returns the number of
 * unfinished jobs. */
static int random_jobs_step(struct job_kit *j, const struct random_jobs *t, uint64_t *seed)
{
    int open = 0;
    bool over[MANY], well[MANY], starts[MANY];
    for (int i = 0; i < MANY; i++) {
        job_get(j, t->job[i]);
        well[i] = json_is_true(kit_at(&j->k, "ended"));
        over[i] = *kit_text(&j->k, "finished");
        bool begun = kit_number(&j->k, "status/placed") > 0 || well[i];
        for (int d = 0; d < 2; d++) {
            int on = t->after[i][d];
            if (begun && on >= 0 && !(t->ok[i][d] ? well[on] : over[on]))
                fail_msg("job %lld began before job %lld was over", (long long)t->job[i], (long long)t->job[on]);
            if (over[i] && well[i] && on >= 0 && t->ok[i][d] && !well[on])
                fail_msg("job %lld ended although job %lld has not", (long long)t->job[i], (long long)t->job[on]);
        }
        open += !over[i];
        starts[i] = strcmp(kit_text(&j->k, "status/state"), "starting") == 0;
    }
    for (int i = 0; i < MANY; i++)
        if (starts[i] && next_random(seed) % 2)
            tasks_say(j, t->job[i], next_random(seed) % 4 ? "state: ended" : "state: failed, exit: 1");
    return open;
}

static void waiting_job_never_starts_too_early(void **state)
{
    struct job_kit *j = *state;
    for (uint64_t run = 1; run <= 3; run++) {
        struct random_jobs t;
        uint64_t seed = run;
        int open = MANY;
        random_jobs_submit(j, &t, &seed);
        kit_plan(&j->k);
        for (int turn = 0; turn < 60 && open; turn++) {
            open = random_jobs_step(j, &t, &seed);
            if (turn % 5 == 4)
                kit_restart(&j->k);
            kit_plan(&j->k);
        }
        if (open)
            fail_msg("seed %llu: %d jobs never end", (unsigned long long)run, open);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, jobs_open, jobs_close)
    const struct CMUnitTest tests[] = {
        TEST(ended_job_is_marked),
        TEST(invalid_job_is_rejected),
        TEST(waiting_job_starts_or_fails),
        TEST(job_waits_until_another_has_started),
        TEST(singleton_waits_for_earlier_jobs),
        TEST(many_waiting_jobs_need_several_transactions),
        TEST(large_waiting_jobs_need_several_transactions),
        TEST(deadlines_of_large_jobs_pass),
        TEST(unwritable_job_delays_only_itself),
        TEST(one_job_of_a_name_runs_at_a_time),
        TEST(renamed_job_frees_its_name),
        TEST(set_does_not_wait_for_itself),
        TEST(restart_keeps_dependencies),
        TEST(met_dependency_outlives_its_record),
        TEST(array_is_one_record),
        TEST(large_array_is_a_small_transaction),
        TEST(set_starts_and_ends_together),
        TEST(failed_job_fails_its_whole_set),
        TEST(unstartable_job_fails_its_whole_set),
        TEST(deadlines_pass),
        TEST(requeued_job_runs_again),
        TEST(only_operators_release_their_hold),
        TEST(elastic_jobs_start_with_min),
        TEST(records_are_deleted_in_the_end),
        TEST(job_beyond_its_time_limit_fails),
        TEST(preempted_job_waits_or_is_cancelled),
        TEST(job_without_requeue_does_not_run_again),
        TEST(waiting_job_never_starts_too_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
