/* job_controller_test.c - the life of jobs against a fake API server: dry runs, pods with unknown outcome, ends,
 * restarts, written statuses.
 */
#include "kube/job/job_controller.h"

#include "kube/job/job_kit_test.h"

static void job_from_dry_run_to_pods(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    put(&l, "roles: [{name: w, tasks: 2, " TEMPLATE "}, {name: m, " TEMPLATE "}]", "", 1);
    answer_trial(&l, "1");
    settle(&l);
    assert_false(is_there(&l, "default:train:w")); /* not before all roles are known */
    assert_int_equal(step(&l), 0);
    answer_trial(&l, "1");
    KIT_UNTIL(&l.f.kit, is_there(&l, "default:train:w") && is_there(&l, "default:train:m"));
    assert_int_equal(step(&l), 3);
    unsigned pods = 0, services = 0, told = 0;
    while (pods + services + told < 5) {
        struct http_request *x = fake_next(&l.f);
        if (strcmp(http_path(x), PODS) == 0) {
            has(body(x), "\"nodeName\"");
            pods++;
        } else if (strcmp(http_path(x), "/api/v1/namespaces/default/services") == 0) {
            services++;
        } else {
            assert_string_equal(http_path(x), JOB "/status");
            has(body(x), "\"phase\":\"Pending\"");
            has(body(x), "\"uid\":\"j-1\"");
            told++;
        }
        fake_answer(x, 201, "{}");
    }
    assert_int_equal(pods, 3);
    KIT_UNTIL(&l.f.kit, kube_jobs_stats(l.k).made == 3);
    assert_int_equal(step(&l), 0); /* no pod is created twice */
}

static void rejected_job_reports_reason(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    put(&l, "roles: []", "", 1);
    (void)step(&l);
    const char *text = status(&l);
    has(text, "\"type\":\"Accepted\",\"status\":\"False\"");
    has(text, "expected 1 to 16");
    put(&l, "roles: [{name: w, " TEMPLATE "}]", "", 2);
    fake_answer(next(&l, "POST", PODS), 422, "{\"kind\":\"Status\",\"message\":\"no such thing\"}");
    KIT_UNTIL(&l.f.kit, kube_jobs_stats(l.k).refused == 1); /* the dry run is repeated after a second */
    l.ahead_ns = SECOND_NS;
    (void)step(&l);
    text = status(&l);
    has(text, "\"message\":\"role w: ");
    has(text, "no such thing");
    assert_false(is_there(&l, "default:train:w"));
}

/* Outcomes of creating a pod that did not simply succeed. */
static void unknown_pod_creation_is_looked_up(void **state)
{
#define THERE(uid, attempt, node, more)                                                                                \
    "{\"metadata\":{\"name\":\"train-w-0\",\"uid\":\"p\",\"ownerReferences\":[{\"uid\":\"" uid "\"}],\"labels\":"      \
    "{\"berth.dev/job\":\"train\",\"berth.dev/role\":\"w\",\"berth.dev/index\":\"0\",\"berth.dev/attempt\":\"" attempt \
    "\"}" more "},\"spec\":{\"nodeName\":\"" node "\"}}"
    static const struct {
        const char *label;
        int status;
        const char *there; /* NULL: the pod is not looked up */
        unsigned made, failed;
        bool counts; /* the task keeps its node */
    } rows[] = {
        {"forbidden", 403, NULL,                                         0, 1, false},
        { "ours already",       409, THERE("j-1",                                                "1", "n1", ""),  1, 0, true},
        { "of another job",     409, THERE("j-0",                                                "1", "n1", ""), 0, 1, false},
        { "of another attempt", 409, THERE("j-1",                                                "2", "n1", ""), 0, 1, false},
        { "on another node",    409, THERE("j-1",                                                "1", "n2", ""), 0, 0, false},
        { "being deleted",      409, THERE("j-1", "1", "n1", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""), 0, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(life) struct life l;
        struct cache_pod_view known;
        life_begin(&l);
        accepted(&l, "roles: [{name: w, " TEMPLATE "}]", "");
        assert_int_equal(step(&l), 1);
        struct http_request *x;
        while (strcmp(http_path(x = fake_next(&l.f)), PODS) != 0)
            fake_answer(x, 200, "{}");
        fake_answer(x, rows[i].status,
                    rows[i].status == 409 ? "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"m\"}"
                                          : "{\"kind\":\"Status\",\"message\":\"m\"}");
        while (rows[i].there && strcmp(http_path(x = fake_next(&l.f)), PODS "/train-w-0") != 0)
            fake_answer(x, 200, "{}");
        if (rows[i].there)
            fake_answer(x, 200, rows[i].there);
        settle(&l);
        struct kube_jobs_stats stats = kube_jobs_stats(l.k);
        if (stats.made != rows[i].made || stats.failed != rows[i].failed ||
            cache_pod_find(l.s.p, "default:train-w-0", &known) != rows[i].counts)
            fail_msg("%s: made %u, failed %u", rows[i].label, (unsigned)stats.made, (unsigned)stats.failed);
    }
}

static void job_completes(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    accepted(&l, "gang: false, roles: [{name: w, tasks: 2, " TEMPLATE "}]", "");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    pod(&l, "train-w-1", 1, 1, "Running", "");
    assert_int_equal(step(&l), 0);
    has(status(&l), "\"phase\":\"Running\",\"pending\":0,\"running\":2");
    pod(&l, "train-w-1", 1, 1, "Succeeded", "");
    scene_drop(&l.s, CACHE_POD, "{metadata: {name: train-w-1, namespace: default}}"); /* a deletion changes nothing */
    l.ahead_ns = SECOND_NS;
    settle(&l);
    assert_int_equal(step(&l), 0);
    const char *text = status(&l);
    has(text, "\"running\":1,\"succeeded\":1");
    has(text, "\"completedIndexes\":\"w:1\"");
    pod(&l, "train-w-0", 0, 1, "Succeeded", "");
    settle(&l);
    (void)step(&l);
    text = status(&l);
    has(text, "\"phase\":\"Succeeded\"");
    has(text, "\"type\":\"Complete\",\"status\":\"True\"");
    has(text, "\"completedIndexes\":null");
    KIT_UNTIL(&l.f.kit, !is_there(&l, "default:train:w")); /* after the end is written */
}

/* A new process takes completed tasks from the status, though their pods are gone. */
static void new_leader_restores_completed_tasks(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    pod(&l, "train-w-0-2", 0, 2, "Running", ""); /* pods may be seen before their job */
    accepted(&l, "retries: 5, roles: [{name: w, tasks: 9, " TEMPLATE "}]",
             "restarts: 1, completedIndexes: 'w:1-3,5;x:7;w:99', succeeded: 4");
    (void)step(&l);
    const char *text = status(&l);
    has(text, "\"running\":1,\"succeeded\":4");
    has(text, "\"restarts\":1");
    has(text, "\"completedIndexes\":\"w:1-3,5\"");
}

static void finished_job_stays_finished(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    put(&l, "roles: [{name: w, " TEMPLATE "}]",
        "phase: Failed, reason: it was so, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]",
        1);
    settle(&l);
    assert_int_equal(step(&l), 0);
    assert_false(is_there(&l, "default:train:w"));
    has(status(&l),
        "\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"BackoffLimitExceeded\",\"message\":\"it was so\"");
}

static void gang_restarts_after_failure(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    accepted(&l, "retries: 1, roles: [{name: w, tasks: 2, " TEMPLATE "}]", "");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    pod(&l, "train-w-1", 1, 1, "Running", "");
    (void)step(&l);
    (void)status(&l);
    settle(&l);
    pod(&l, "train-w-1", 1, 1, "Failed", "");
    l.ahead_ns = SECOND_NS;
    (void)step(&l);
    bool deleted = false, told = false; /* the other pod is deleted too */
    while (!deleted || !told) {
        struct http_request *x = fake_next(&l.f);
        if (strcmp(http_method(x), "DELETE") == 0) {
            assert_string_equal(http_path(x), PODS "/train-w-0");
            has(body(x), "\"uid\":\"uid-train-w-0\"");
            deleted = true;
        } else {
            has(body(x), "\"restarts\":1");
            told = true;
        }
        fake_answer(x, 200, "{}");
    }
    scene_drop(&l.s, CACHE_POD, "{metadata: {name: train-w-0, namespace: default}}");
    settle(&l);
    assert_int_equal(step(&l), 0); /* the job pauses */
    l.ahead_ns = 15 * SECOND_NS;
    assert_int_equal(step(&l), 2);
    struct http_request *x;
    while (strcmp(http_path(x = fake_next(&l.f)), PODS) != 0)
        fake_answer(x, 200, "{}");
    has(body(x), "\"name\":\"train-w-0-2\"");
    fake_answer(x, 201, "{}");
    pod(&l, "train-w-0-2", 0, 2, "Failed", "");
    settle(&l);
    l.ahead_ns = 20 * SECOND_NS;
    (void)step(&l);
    const char *text = status(&l);
    while (!strstr(text, "BackoffLimitExceeded"))
        text = status(&l);
    has(text, "pod train-w-0-2 failed, after 2 tries");
}

/* An elastic gang restarts even if the remaining tasks would be enough. */
static void elastic_gang_restarts_after_failure(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    struct http_request *x;
    life_begin(&l);
    accepted(&l, "retries: 1, roles: [{name: w, tasks: 3, min: 1, " TEMPLATE "}]", "");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    pod(&l, "train-w-1", 1, 1, "Failed", "");
    (void)step(&l);
    while (strcmp(http_method(x = fake_next(&l.f)), "DELETE") != 0)
        fake_answer(x, 200, "{}");
    assert_string_equal(http_path(x), PODS "/train-w-0");
    fake_answer(x, 200, "{}");
}

/* A pod that is stopped while it is being created is deleted right after. */
static void pod_stopped_while_created_is_deleted(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    struct http_request *x, *making;
    life_begin(&l);
    accepted(&l, "roles: [{name: w, " TEMPLATE "}]", "");
    assert_int_equal(step(&l), 1);
    while (strcmp(http_path(making = fake_next(&l.f)), PODS) != 0)
        fake_answer(making, 200, "{}");
    put(&l, "suspend: true, roles: [{name: w, " TEMPLATE "}]", "", 2);
    assert_int_equal(step(&l), 1);
    assert_int_equal(step(&l), 0); /* it is deleted once */
    fake_answer(making, 201, "{\"metadata\":{\"name\":\"train-w-0\",\"uid\":\"p-1\"}}");
    while (strcmp(http_method(x = fake_next(&l.f)), "DELETE") != 0)
        fake_answer(x, 422, "{}");
    assert_string_equal(http_path(x), PODS "/train-w-0");
    has(body(x), "\"uid\":\"p-1\"");
    fake_answer(x, 200, "{}");
}

/* The job was deleted and another of that name created before the watch showed the pod: the pod is deleted, by its uid,
 * when the watch shows it. */
static void unseen_pod_of_deleted_job_is_deleted(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    struct http_request *x;
    life_begin_as(&l, true);
    accepted(&l, "roles: [{name: w, " TEMPLATE "}]", "");
    assert_int_equal(step(&l), 1);
    while (strcmp(http_path(x = fake_next(&l.f)), PODS) != 0)
        fake_answer(x, 200, "{}");
    fake_answer(x, 201, "{\"metadata\":{\"name\":\"train-w-0\",\"uid\":\"uid-train-w-0\"}}");
    KIT_UNTIL(&l.f.kit, kube_jobs_stats(l.k).made == 1);
    kube_jobs_drop(l.k, "default", "train");
    put_uid(&l, "j-2", "roles: [{name: w, " TEMPLATE "}]", "", 1);
    answer_trial(&l, "1");
    KIT_UNTIL(&l.f.kit, is_there(&l, "default:train:w"));
    for (int i = 0; i < 3; i++)
        (void)step(&l);
    pod(&l, "train-w-0", 0, 1, "Running", "");
    (void)step(&l);
    while (strcmp(http_method(x = fake_next(&l.f)), "DELETE") != 0)
        fake_answer(x, 200, "{}");
    assert_string_equal(http_path(x), PODS "/train-w-0");
    has(body(x), "\"uid\":\"uid-train-w-0\"");
    fake_answer(x, 200, "{}");
}

/* A pod that was deleted by a user has not failed. */
static void deleted_pod_has_not_failed(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    accepted(&l, "roles: [{name: w, " TEMPLATE "}]", "");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    (void)step(&l);
    pod(&l, "train-w-0", 0, 1, "Failed", ", deletionTimestamp: 300");
    scene_drop(&l.s, CACHE_POD, "{metadata: {name: train-w-0, namespace: default}}");
    l.ahead_ns = SECOND_NS;
    assert_int_equal(step(&l), 1); /* the same attempt again */
    struct http_request *x;
    while (strcmp(http_path(x = fake_next(&l.f)), PODS) != 0)
        fake_answer(x, 200, "{}");
    has(body(x), "\"name\":\"train-w-0\"");
    fake_answer(x, 201, "{}");
}

/* ---- ephemeral claims ------------------------------------------------------------------------------------------- */

#define CLAIMS "/api/v1/namespaces/default/persistentvolumeclaims/train-w-0-"
#define SELECTED ", annotations: {volume.kubernetes.io/selected-node: n1}"
#define HAS_VOLUME ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}"

/* Puts a pod with two ephemeral claims, v and w. */
static void pod_with_claims(struct life *l, const char *uid)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml,
             "{metadata: {name: train-w-0, namespace: default, uid: %s, labels: {berth.dev/job: train, berth.dev/role: "
             "w, berth.dev/index: '0', berth.dev/attempt: '1'}, ownerReferences: [{kind: Job, apiVersion: "
             "berth.dev/v1, uid: j-1, controller: true}]}, spec: {schedulerName: berth, nodeName: n1, volumes: [{name: "
             "v, ephemeral: {}}, {name: w, ephemeral: {}}], containers: [{name: c}]}, status: {phase: Pending}}",
             uid);
    scene_put(&l->s, CACHE_POD, yaml.at);
}

static void claim_of(struct life *l, const char *pod_uid, const char *volume, const char *notes)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml,
             "{metadata: {name: train-w-0-%s, namespace: default, uid: %s-%s, ownerReferences: [{uid: %s, controller: "
             "true}]%s}, spec: {storageClassName: late%s}}",
             volume, pod_uid, volume, pod_uid, notes, strcmp(notes, HAS_VOLUME) == 0 ? ", volumeName: pv" : "");
    scene_put(&l->s, CACHE_CLAIM, yaml.at);
}

/* Runs kube_jobs_process and returns which claim or pod is written, "PATCH v" or "DELETE", apart from the status. "":
 * none. */
static const char *looks(struct life *l)
{
    static const char claims[] = CLAIMS;
    str_clear(&l->s.text);
    (void)step(l);
    settle(l);
    while (l->f.asked.len) {
        struct http_request *x = fake_next(&l->f);
        bool claim = strncmp(http_path(x), claims, strlen(claims)) == 0;
        if (claim || strcmp(http_method(x), "DELETE") == 0)
            str_addf(&l->s.text, "%s%s%s%s", l->s.text.len ? ", " : "", http_method(x), claim ? " " : "",
                     claim ? http_path(x) + strlen(claims) : "");
        fake_answer(x, 200, "{}");
        settle(l);
    }
    return str_text(&l->s.text);
}

/* The node is selected for each claim when it appears. The pod is deleted when a provisioner clears the selection; the
 * next pod starts anew. */
static void ephemeral_claims_get_node_one_by_one(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    accepted(&l,
             "roles: [{name: w, template: {spec: {volumes: [{name: v, ephemeral: {}}, {name: w, ephemeral: {}}], "
             "containers: [{name: c, image: i}]}}}]",
             "");
    pod_with_claims(&l, "p1");
    assert_string_equal(looks(&l), "");
    claim_of(&l, "p1", "v", "");
    assert_string_equal(looks(&l), "PATCH v");
    assert_string_equal(looks(&l), ""); /* not repeated at once */
    l.ahead_ns = 20 * SECOND_NS;
    assert_string_equal(looks(&l), "PATCH v"); /* repeated, as the claim does not show the node */
    claim_of(&l, "p1", "v", SELECTED);
    assert_string_equal(looks(&l), "");
    claim_of(&l, "p1", "w", "");
    assert_string_equal(looks(&l), "PATCH w");
    claim_of(&l, "p1", "v", HAS_VOLUME);
    assert_string_equal(looks(&l), "");
    claim_of(&l, "p1", "w", SELECTED);
    assert_string_equal(looks(&l), "");
    claim_of(&l, "p1", "w", "");
    assert_string_equal(looks(&l), "DELETE");
    pod_with_claims(&l, "p2"); /* the test drops no event for the deleted pod */
    assert_string_equal(looks(&l), "");
    claim_of(&l, "p2", "v", "");
    assert_string_equal(looks(&l), "PATCH v");
    claim_of(&l, "p2", "w", "");
    assert_string_equal(looks(&l), "PATCH w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_from_dry_run_to_pods),
        cmocka_unit_test(rejected_job_reports_reason),
        cmocka_unit_test(unknown_pod_creation_is_looked_up),
        cmocka_unit_test(job_completes),
        cmocka_unit_test(new_leader_restores_completed_tasks),
        cmocka_unit_test(finished_job_stays_finished),
        cmocka_unit_test(gang_restarts_after_failure),
        cmocka_unit_test(elastic_gang_restarts_after_failure),
        cmocka_unit_test(pod_stopped_while_created_is_deleted),
        cmocka_unit_test(unseen_pod_of_deleted_job_is_deleted),
        cmocka_unit_test(deleted_pod_has_not_failed),
        cmocka_unit_test(ephemeral_claims_get_node_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
