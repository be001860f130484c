/* last_end_test.c - how instances end, what follows, and what is still known about them afterwards. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define N1 "node:n1"

struct scene {
    struct kit k;
    int seq;
};

static int open_scene(void **state)
{
    struct scene *s = mem_zalloc(sizeof *s);
    kit_open(&s->k);
    kit_add_users(&s->k);
    CALL(&s->k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 64, memory: 8Gi}}");
    *state = s;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *s = *state;
    kit_done(&s->k);
    mem_free(s);
    return 0;
}

/* Reports an instance as the agent. */
static void say(struct scene *s, int64_t id, const char *words)
{
    char body[512];
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [{id: %lld, %s}]}", ++s->seq, (long long)id,
                   words);
    CALL(&s->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
}

/* Waits until the workload's first pod has an instance again and returns its number; 0: it gets none. */
static int64_t next_one(struct scene *s, const char *url)
{
    for (int i = 0; i < 40; i++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d}", ++s->seq);
        CALL(&s->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
        kit_sleep(&s->k, 10);
        CALL(&s->k, 200, ALICE, "GET", url, NULL);
        if (kit_number(&s->k, "status/placed") > 0)
            return kit_number(&s->k, "status/instances/0/id");
    }
    return 0;
}

static void restart_policy_is_followed(void **state)
{
    static const struct {
        const char *kind, *policy, *words; /* words: the report of each end */
        int tries;                         /* 0: unlimited */
        const char *state;                 /* state afterwards */
    } rows[] = {
        {"apps", "",                                       "state: failed",                 0, NULL    },
        {"apps", "",                                       "state: ended",                  0, NULL    },
        {"apps", "restart_policy: on-failure",             "state: failed",                 0, NULL    },
        {"apps", "restart_policy: on-failure",             "state: ended, exit: 0",         1, "ended" },
        {"apps", "restart_policy: never",                  "state: ended, exit: 0",         1, "ended" },
        {"apps", "restart_policy: never",                  "state: failed, exit: 3",        1, "failed"},
        {"jobs", "",                                       "state: failed, exit: 3",        4, "failed"},
        {"jobs", "retries: 1",                             "state: failed, exit: 3",        2, "failed"},
        {"jobs", "retries: 0",                             "state: failed, exit: 3",        1, "failed"},
        {"jobs", "restart_policy: never",                  "state: failed, exit: 3",        1, "failed"},
        {"jobs", "restart_policy: on-failure, retries: 2", "state: failed, error: no disk", 3, "failed"},
        {"jobs", "",                                       "state: ended, exit: 0",         1, "ended" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)state;
        void *made = NULL;
        (void)open_scene(&made);
        struct scene *s = made;
        char url[64], body[128];
        (void)snprintf(url, sizeof url, "/v1/%s", rows[i].kind);
        (void)snprintf(body, sizeof body, "{name: web, requests: {cpu: 1}, %s}", rows[i].policy);
        CALL(&s->k, 201, ALICE, "POST", url, body);
        (void)snprintf(url, sizeof url, "/v1/%s/%s", rows[i].kind, rows[i].kind[0] == 'a' ? "web" : "1");
        int tries = 0;
        for (int64_t id; tries < 6 && (id = next_one(s, url)) > 0; tries++) {
            say(s, id, "state: running"); /* an instance that ran for a while counts, too */
            say(s, id, rows[i].words);
        }
        if (tries != (rows[i].tries ? rows[i].tries : 6))
            fail_msg("row %zu: %d tries", i, tries);
        CALL(&s->k, 200, ALICE, "GET", url, NULL);
        if (rows[i].state && strcmp(kit_text(&s->k, "status/state"), rows[i].state) != 0)
            fail_msg("row %zu: %s", i, s->k.text);
        (void)close_scene(&made);
    }
}

static void failed_job_is_final(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->k;
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{replicas: 2, retries: 0, requests: {cpu: 1}}");
    kit_plan(k);
    say(s, 1, "state: running");
    say(s, 2, "state: failed, exit: 137, error: out of memory");
    CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    assert_true(json_is_true(kit_at(k, "failed")));
    assert_string_equal(kit_text(k, "error"), "out of memory");
    assert_int_equal(kit_number(k, "generation"), 1);
    kit_plan(k);
    CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    assert_string_equal(kit_text(k, "status/state"), "stopping"); /* the other instance is told to stop */
    say(s, 1, "state: stopped, exit: 143");
    CALL(k, 200, ALICE, "GET", "/v1/jobs?state=failed", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
    CALL(k, 200, ALICE, "GET", "/v1/why/job/1", NULL);
    SAYS(k, "Failed, no further attempts: out of memory.");
    kit_restart(k);
    kit_sleep(k, 700);
    CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    assert_string_equal(kit_text(k, "status/state"), "failed");
    assert_int_equal(kit_number(k, "status/last/0/instance"), 1);
    assert_string_equal(kit_text(k, "status/last/0/state"), "stopped");
    assert_int_equal(kit_number(k, "status/last/1/instance"), 2);
    assert_int_equal(kit_number(k, "status/last/1/exit"), 137);
    assert_string_equal(kit_text(k, "status/last/1/error"), "out of memory");
    assert_string_equal(kit_text(k, "status/last/1/node"), "n1");
    /* The outcome is final. */
    CALL(k, 409, ALICE, "POST", "/v1/jobs/1/release", NULL);
    CALL(k, 409, ALICE, "PATCH", "/v1/jobs/1", "{retries: 5}");
    SAYS(k, "has failed; submit or requeue");
    CALL(k, 204, ALICE, "DELETE", "/v1/jobs/1", NULL);
    assert_null(state_find(control_state(k->control), KIND_LAST_END, "1"));
}

static void ended_app_can_be_started_again(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->k;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, restart_policy: never, requests: {cpu: 1}}");
    kit_plan(k);
    say(s, 1, "state: failed, exit: 2");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_string_equal(kit_text(k, "status/state"), "failed");
    assert_string_equal(kit_text(k, "error"), "exit code 2");
    CALL(k, 409, ALICE, "POST", "/v1/apps/web/restart", NULL);
    CALL(k, 200, ALICE, "POST", "/v1/apps/web/start", NULL);
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_null(kit_at(k, "failed"));
    assert_null(kit_at(k, "error"));
    assert_int_equal(next_one(s, "/v1/apps/web"), 2);
}

/* An instance that was told to stop has not failed, whatever it reports. */
static void stopped_instance_has_not_failed(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->k;
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{retries: 0, requests: {cpu: 1}}");
    kit_plan(k);
    say(s, 1, "state: running");
    CALL(k, 200, ALICE, "POST", "/v1/jobs/1/hold?stop=true", NULL);
    kit_plan(k);
    say(s, 1, "state: failed, exit: 143");
    CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    assert_string_equal(kit_text(k, "status/state"), "held");
    assert_null(kit_at(k, "failed"));
}

static void reported_details_are_shown(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->k;
    static const struct {
        const char *words;
        bool changes;
        int64_t progress;
    } rows[] = {
        {"state: running, progress: 100, note: reading, unenforced: [io]",                 true,  100 },
        {"state: running, progress: 109, note: reading, unenforced: [io]",                 false, 100 },
        {"state: running, progress: 110, note: reading, unenforced: [io]",                 true,  110 },
        {"state: running, progress: 995, note: writing, over: [memory]",                   true,  995 },
        {"state: running, progress: 1000, note: writing, over: [memory]",                  true,  1000},
        {"state: running, progress: 999, note: writing, over: [memory]",                   false, 1000},
        {"state: running, note: writing, unenforced: [cpu, io], exclusive: {card: card1}", true,  1000},
    };
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{replicas: 4, requests: {cpu: 1}}");
    kit_plan(k);
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t revision = state_revision(control_state(k->control));
        say(s, 1, rows[i].words);
        if ((state_revision(control_state(k->control)) > revision) != rows[i].changes)
            fail_msg("row %zu", i);
        CALL(k, 200, ALICE, "GET", "/v1/instances/1", NULL);
        assert_int_equal(kit_number(k, "progress"), rows[i].progress);
    }
    assert_null(kit_at(k, "over"));
    assert_string_equal(kit_text(k, "unenforced/1"), "io");
    assert_string_equal(kit_text(k, "exclusive/card"), "card1");
    say(s, 2, "state: ended, exit: 0");
    say(s, 3, "state: running, progress: 500");
    CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    assert_int_equal(kit_number(k, "status/progress"), 625); /* (1000 + 1000 + 500 + 0) / 4 */
    assert_string_equal(kit_text(k, "status/note"), "writing");
    assert_string_equal(kit_text(k, "status/unenforced"), "cpu, io");
    CALL(k, 200, ALICE, "GET", "/v1/instances/2", NULL);
    assert_int_equal(kit_number(k, "exit"), 0);
}

static void last_ends_are_bounded(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->k;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, replicas: 12, requests: {cpu: 1}}");
    kit_plan(k);
    CALL(k, 200, ALICE, "POST", "/v1/apps/web/stop", NULL);
    kit_plan(k);
    for (int id = 1; id <= 12; id++)
        say(s, id, "state: stopped, exit: 0");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_int_equal(json_array_size(kit_at(k, "status/last")), 8);
    assert_int_equal(kit_number(k, "status/last/0/instance"), 12);
    /* An instance that stops after its workload was deleted leaves no record. */
    CALL(k, 200, ALICE, "POST", "/v1/apps/web/start", NULL);
    kit_plan(k);
    CALL(k, 204, ALICE, "DELETE", "/v1/apps/web", NULL);
    kit_plan(k);
    say(s, 13, "state: stopped");
    assert_null(state_find(control_state(k->control), KIND_LAST_END, "web.alice"));
    kit_put(k, KIND_LAST_END, "gone.alice", "{v: 1, items: []}");
    kit_sleep(k, 120);
    assert_null(state_find(control_state(k->control), KIND_LAST_END, "gone.alice"));
}

/* While all pods of a started app are stopping, its state is "stopping". */
static void app_with_only_stopping_pods_is_stopping(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->k;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, requests: {cpu: 40}}");
    kit_plan(k);
    say(s, 1, "state: running");
    say(s, 1, "state: stopping");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_string_equal(kit_text(k, "status/state"), "stopping");
    assert_string_equal(kit_text(k, "status/reason"), "stopping");
    SAYS(k, "new pod starts");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restart_policy_is_followed),
        CASE(failed_job_is_final),
        CASE(ended_app_can_be_started_again),
        CASE(stopped_instance_has_not_failed),
        CASE(reported_details_are_shown),
        CASE(last_ends_are_bounded),
        CASE(app_with_only_stopping_pods_is_stopping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
