/* cap_test.c - built-in caps per user: rejected requests and their messages, and what remains possible at a cap. */
#include "control/api/kit_test.h"
#include "control/api/request.h"
#include "control/tenant/cap.h"
#include "core/model/cluster.h"

#define ALICE "user:alice" /* in group red */
#define BOB "user:bob"     /* in group blue */
#define CAROL "user:carol" /* manager of group red */

static void caps_set(struct kit *k, const char *settings)
{
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", settings);
}

static int64_t use(struct kit *k, const char *user, enum cap cap)
{
    return cap_book_use(state_caps(control_state(k->control)), user).of[cap];
}

/* One request with its status and message. A rejected request changes nothing, and its dry run is rejected as well. */
struct row {
    const char *who, *method, *url, *body;
    int status;
    const char *words;
};

static void rows_call(struct kit *k, const struct row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t before = state_revision(control_state(k->control));
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        if (rows[i].status >= 400) {
            SAYS(k, rows[i].words);
            assert_int_equal(state_revision(control_state(k->control)), before);
        }
    }
}

static void replicas_of_one_user_are_bounded(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    static const struct row rows[] = {
        {ALICE, "PUT",    "/v1/apps/huge",             "{replicas: 3000000}",      403,
         "replicas: 3000000 exceed the limit of one app, 100000"                                                         },
        {ADMIN, "PUT",    "/v1/apps/huge",             "{replicas: 3000000}",      403, "setting replicas_max"           },
        {ALICE, "PUT",    "/v1/apps/big",              "{replicas: 10001}",        403,
         "cap instances: user alice has 0 of 10000 replicas of apps and vms, and this request needs 10001 more"          },
        {ALICE, "PUT",    "/v1/apps/big?dry_run=true", "{replicas: 10001}",        403, "raise the setting cap_instances"},
        {ALICE, "PUT",    "/v1/apps/big",              "{replicas: 9999}",         201, ""                               },
        {ALICE, "POST",   "/v1/apps/big/scale",        "{replicas: 10001}",        403, "needs 2 more"                   },
        {ALICE, "POST",   "/v1/apps/big/scale",        "{replicas: 10000}",        200, ""                               },
        {ALICE, "PUT",    "/v1/apps/more",             "{replicas: 1}",            403, "has 10000 of 10000"             },
        {CAROL, "PUT",    "/v1/apps/more.alice",       "{replicas: 1}",            403, "user alice has 10000"           },
        {ALICE, "POST",   "/v1/apps/big/stop",         NULL,                       200, ""                               },
        {BOB,   "PUT",    "/v1/apps/more",             "{replicas: 1}",            201, ""                               },
        {ADMIN, "PUT",    "/v1/apps/more.alice",       "{replicas: 1}",            201, ""                               },
        {ALICE, "POST",   "/v1/apps/big/scale",        "{replicas: 9990}",         200, ""                               },
        {ALICE, "PUT",    "/v1/vms/guest",             "{image: g, replicas: 10}", 403, "needs 10 more"                  },
        {ALICE, "DELETE", "/v1/apps/big",              NULL,                       204, ""                               },
        {ALICE, "PUT",    "/v1/vms/guest",             "{image: g, replicas: 10}", 201, ""                               },
    };
    rows_call(&k, rows, COUNT(rows));
    assert_int_equal(use(&k, "alice", CAP_INSTANCES), 11);
    kit_restart(&k);
    assert_int_equal(use(&k, "alice", CAP_INSTANCES), 11);
    kit_done(&k);
}

static void tasks_of_jobs_are_bounded(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    caps_set(&k, "{cap_jobs: 10}");
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{array: 0-8}");
    char cancel[64];
    (void)snprintf(cancel, sizeof cancel, "/v1/jobs/%d/cancel", (int)kit_number(&k, "id"));
    static const struct row rows[] = {
        {ALICE, "POST", "/v1/jobs",                            "{array: 0-10}",                           403, "cap jobs"    },
        {ALICE, "POST", "/v1/jobs?dry_run=true&forecast=true", "{array: 0-10}",                           403, "cap jobs"    },
        {ALICE, "POST", "/v1/txn",
         "{changes: [{op: put, kind: job, object: {name: a}}, {op: put, kind: job, object: {name: b}}]}", 403,
         "user alice has 9 of 10 tasks of unfinished jobs, and this request needs 2 more"                                    },
        {ALICE, "POST", "/v1/jobs",                            "{roles: [{name: a}, {name: b}]}",         403, "needs 2 more"},
        {ALICE, "POST", "/v1/jobs",                            "{}",                                      201, ""            },
        {ALICE, "POST", "/v1/jobs",                            "{}",                                      403, "cancel them" },
        {BOB,   "POST", "/v1/jobs",                            "{}",                                      201, ""            },
    };
    rows_call(&k, rows, COUNT(rows));
    CALL(&k, 200, ALICE, "POST", cancel, NULL);
    kit_plan(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{}"); /* cancelled jobs have ended */
    assert_int_equal(use(&k, "alice", CAP_JOBS), 2);
    kit_done(&k);
}

static void stored_bytes_are_bounded(void **state)
{
    struct kit k;
    static char body[400 * 1024];
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    caps_set(&k, "{cap_stored_mb: 1}");
    int len =
        snprintf(body, sizeof body, "{env: {A: \"%0*d\", B: \"%0*d\", C: \"%0*d\"}}", 100000, 0, 100000, 0, 100000, 0);
    assert_true(len > 0 && (size_t)len < sizeof body);
    for (int i = 0; i < 3; i++)
        CALL(&k, 201, ALICE, "POST", "/v1/jobs", body);
    CALL(&k, 403, ALICE, "POST", "/v1/jobs", body);
    SAYS(
        &k,
        "cap stored_mb: user alice has 0 of 1 MiB of stored documents, and this request needs 1 more; delete finished jobs");
    CALL(&k, 403, ALICE, "POST", "/v1/jobs?dry_run=true", body);
    CALL(&k, 201, BOB, "POST", "/v1/jobs", body);

    /* At the cap, requests that reduce use still succeed. */
    caps_set(&k, "{cap_exceptions: 'user/alice:stored_mb=2,group/red:stored_mb=5'}");
    while (kit_call(&k, ALICE, "POST", "/v1/jobs", body) == 201)
        continue;
    CALL(&k, 200, ALICE, "POST", "/v1/jobs/1/cancel", NULL);
    CALL(&k, 204, ALICE, "DELETE", "/v1/jobs/2", NULL);
    assert_true(use(&k, "alice", CAP_STORED) < 2 << 20);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", body);
    kit_done(&k);
}

static void tokens_are_bounded_and_exceptions_hold(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    caps_set(&k, "{cap_tokens: 2, cap_exceptions: 'group/red:tokens=3,user/bob:tokens=1'}");
    static const struct row rows[] = {
        {ALICE, "POST",  "/v1/tokens",          "{}",                                  201, ""                            },
        {ALICE, "POST",  "/v1/tokens",          "{}",                                  201, ""                            },
        {ALICE, "POST",  "/v1/tokens",          "{}",                                  201, ""                            },
        {ALICE, "POST",  "/v1/tokens",          "{}",                                  403, "user alice has 3 of 3 tokens"},
        {BOB,   "POST",  "/v1/tokens",          "{}",                                  201, ""                            },
        {BOB,   "POST",  "/v1/tokens",          "{}",                                  403, "revoke unused tokens"        },
        {ADMIN, "POST",  "/v1/tokens",          "{user: bob}",                         201, ""                            },
        {ADMIN, "PATCH", "/v1/system/settings", "{cap_exceptions: 'alice:tokens=3'}",  400,
         "user/alice:instances=50000"                                                                                     },
        {ADMIN, "PATCH", "/v1/system/settings", "{cap_exceptions: 'user/a:socks=3'}",  400, "cap_exceptions"              },
        {ADMIN, "PATCH", "/v1/system/settings", "{cap_exceptions: 'user/a:tokens=x'}", 400, "cap_exceptions"              },
    };
    rows_call(&k, rows, COUNT(rows));
    kit_done(&k);
}

/* ---- concurrent requests ---------------------------------------------------------------------------------------- */

struct sent {
    int taken, refused;
    struct stream *stream;
};

static void sent_answered(void *ctx, struct answer *answer)
{
    struct sent *s = ctx;
    s->taken += answer->status < 300;
    s->refused += answer->status == 403 || answer->status == 429;
    s->stream = take_ptr(&answer->stream);
}

static const char *query_watch(const void *from, const char *name)
{
    return strcmp(name, "watch") == 0 ? from : NULL;
}

static void send_raw(struct kit *k, const char *who, const char *method, const char *path, const char *body,
                     struct sent *to)
{
    const struct request_input request = {.method = method,
                                          .path = path,
                                          .peer = who,
                                          .remote = "192.0.2.1",
                                          .body = body,
                                          .body_len = strlen(body),
                                          .query = query_watch,
                                          .query_from = *body ? NULL : "1"};
    control_handle(k->control, &request, sent_answered, to);
}

static void requests_in_progress_count(void **state)
{
    struct kit k;
    struct sent sent = {0};
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    for (int i = 0; i < 64; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/v1/apps/a%d", i);
        send_raw(&k, ALICE, "PUT", path, "{\"replicas\": 3000}", &sent);
    }
    for (int i = 0; i < 100; i++)
        (void)store_pump(k.store);
    assert_int_equal(sent.taken, 3);
    assert_int_equal(sent.refused, 61);
    assert_int_equal(use(&k, "alice", CAP_INSTANCES), 9000);
    kit_done(&k);
}

static void watches_are_bounded(void **state)
{
    struct kit k;
    struct sent open[6] = {0}, other = {0};
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    caps_set(&k, "{cap_watches: 4}");
    for (int i = 0; i < 6; i++)
        send_raw(&k, ALICE, "GET", "/v1/jobs", "", &open[i]);
    for (int i = 0; i < 6; i++)
        assert_int_equal(open[i].stream != NULL, i < 4);
    assert_int_equal(open[4].refused, 1);
    send_raw(&k, BOB, "GET", "/v1/jobs", "", &other);
    assert_non_null(other.stream);
    stream_stop(open[2].stream);
    send_raw(&k, ALICE, "GET", "/v1/apps", "", &open[4]);
    assert_non_null(open[4].stream);
    send_raw(&k, ALICE, "GET", "/v1/apps", "", &open[5]);
    assert_null(open[5].stream);
    kit_done(&k);
}

/* A schedule creates no job beyond its owner's cap, and reports that. */
static void schedules_are_bounded(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    caps_set(&k, "{cap_jobs: 2}");
    CALL(&k, 201, ALICE, "POST", "/v1/crons",
         "{name: often, schedule: '* * * * *', overlap: allow, job: {hold: true}}");
    for (int i = 0; i < 4; i++)
        kit_sleep(&k, 61);
    assert_int_equal(use(&k, "alice", CAP_JOBS), 2);
    CALL(&k, 200, ALICE, "GET", "/v1/crons/often", NULL);
    SAYS(&k, "cap jobs: user alice has 2 of 2");
    kit_done(&k);
}

/* ---- nodes without a number of pods ----------------------------------------------------------------------------- */

static size_t placed(struct kit *k, const char *url)
{
    kit_plan(k);
    CALL(k, 200, ADMIN, "GET", url, NULL);
    return json_array_size(kit_at(k, "items"));
}

static void audited(struct kit *k)
{
    struct berth_err err = {0};
    if (state_audit(control_state(k->control), &err) < 0)
        fail_msg("%s", err.text);
}

static void node_takes_250_pods_by_default(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 1000, memory: 1Ti}}");
    CALL(&k, 201, ALICE, "PUT", "/v1/apps/many", "{replicas: 600, requests: {cpu: 10m, memory: 1Mi}}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000"), 250);
    audited(&k);

    /* The node's own number takes precedence, lower or higher. */
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, allocatable: {cpu: 1000, memory: 1Ti, pods: 10}}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000&node=n2"), 10);
    CALL(&k, 200, ADMIN, "PUT", "/v1/nodes/n2/capabilities", "{allocatable: {cpu: 1000, memory: 1Ti, pods: 260}}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000&node=n2"), 260);

    /* Another default applies at once; if it is below present use, nothing stops. */
    caps_set(&k, "{node_pods: 300, shed: 'off'}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000"), 560);
    audited(&k);
    caps_set(&k, "{node_pods: 100}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000&node=n1"), 300);
    audited(&k);
    kit_restart(&k);
    audited(&k);
    kit_done(&k);
}

/* A cluster created by an earlier version has no such limit: running pods stay, and journals replay the same. */
static void older_clusters_keep_their_pods(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    caps_set(&k, "{defaults: 2}");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 1000, memory: 1Ti}}");
    CALL(&k, 201, ALICE, "PUT", "/v1/apps/many", "{replicas: 300, requests: {cpu: 10m, memory: 1Mi}}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000"), 300);
    caps_set(&k, "{defaults: 3}");
    assert_int_equal(placed(&k, "/v1/instances?limit=1000"), 300);
    audited(&k);
    kit_done(&k);
}

/* Half of the resource names are for nodes: users cannot use them up by jobs or quotas. */
static void users_cannot_use_up_resource_names(void **state)
{
    struct kit k;
    char body[8192], name[32];
    (void)state;
    kit_open(&k);
    kit_add_users(&k);
    for (int round = 0; round < 12; round++) {
        size_t len = (size_t)snprintf(body, sizeof body, "{hold: true, requests: {cpu: 1");
        for (int i = 0; i < 20; i++)
            len += (size_t)snprintf(body + len, sizeof body - len, ", made-up-%d-%d: 1", round, i);
        (void)snprintf(body + len, sizeof body - len, "}}");
        bool fits = state_cluster(control_state(k.control))->resources.len + 20 <= BERTH_RESOURCES_MAX / 2;
        CALL(&k, fits ? 201 : 403, ALICE, "POST", "/v1/jobs", body);
        if (!fits)
            SAYS(&k, "resource names");
    }
    assert_true(state_cluster(control_state(k.control))->resources.len <= BERTH_RESOURCES_MAX / 2);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", "{hold: true, requests: {cpu: 1, made-up-0-0: 1}}");
    for (int i = 0; i < 30; i++) {
        (void)snprintf(name, sizeof name, "device-%d", i);
        (void)snprintf(body, sizeof body, "{allocatable: {cpu: 4, %s: 1}}", name);
        (void)snprintf(name, sizeof name, "/v1/nodes/more-%d", i);
        CALL(&k, 201, ADMIN, "PUT", name, body);
    }
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_of_one_user_are_bounded),
        cmocka_unit_test(users_cannot_use_up_resource_names),
        cmocka_unit_test(tasks_of_jobs_are_bounded),
        cmocka_unit_test(stored_bytes_are_bounded),
        cmocka_unit_test(tokens_are_bounded_and_exceptions_hold),
        cmocka_unit_test(requests_in_progress_count),
        cmocka_unit_test(watches_are_bounded),
        cmocka_unit_test(schedules_are_bounded),
        cmocka_unit_test(node_takes_250_pods_by_default),
        cmocka_unit_test(older_clusters_keep_their_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
