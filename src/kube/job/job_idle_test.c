/* job_idle_test.c - rejected requests are not repeated at once, and finished jobs stay idle: no busy loops. */
#include "kube/job/job_controller.h"

#include "kube/job/job_kit_test.h"

#define ONE "roles: [{name: w, " TEMPLATE "}]"
#define NO "{\"kind\":\"Status\",\"message\":\"no\"}"

/* Counts the requests for kube_jobs_process during as many rounds as a busy loop would need to show. */
static unsigned process_requests(struct life *l)
{
    unsigned before = l->changes;
    for (int i = 0; i < 50; i++)
        kit_round(&l->f.kit);
    return l->changes - before;
}

static void nothing_is_asked(struct life *l)
{
    for (int i = 0; i < 50; i++) {
        (void)step(l);
        kit_round(&l->f.kit);
    }
    assert_int_equal(l->f.asked.len, 0);
}

/* Its pods were rejected and a dry run is due; before that the job is deleted and kept by a finalizer. */
static void deleted_job_needs_no_dry_run(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin_as(&l, true);
    put(&l, ONE, "", 1);
    fake_answer(next(&l, "POST", PODS), 403, NO);
    KIT_UNTIL(&l.f.kit, kube_jobs_stats(l.k).refused == 1);
    json_t *root = kit_parse("{metadata: {name: train, namespace: default, uid: j-1, generation: 1, creationTimestamp: "
                             "'2026-01-01T00:00:00Z', deletionTimestamp: '2026-01-01T00:00:01Z'}, spec: {" ONE "}}");
    kube_jobs_put(l.k, root);
    json_decref(root);
    (void)step(&l);
    unsigned changes = l.changes;
    KIT_UNTIL(&l.f.kit, l.changes > changes); /* when the next dry run is due */
    assert_int_equal(process_requests(&l), 0);
}

/* Another replica leads and writes that the job has failed, which its deleted pods do not show. */
static void end_written_by_other_leader_is_kept(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin(&l);
    accepted(&l, ONE, "");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    settle(&l);
    put(&l, ONE,
        "phase: Failed, reason: too long, conditions: [{type: Failed, status: 'True', reason: DeadlineExceeded}]", 1);
    assert_false(is_there(&l, "default:train:w"));
    scene_drop(&l.s, CACHE_POD, "{metadata: {name: train-w-0, namespace: default}}");
    settle(&l);
    assert_int_equal(step(&l), 0);
    has(status(&l), "\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"DeadlineExceeded\"");
}

/* Writing the final status fails: it is repeated, but not at once. */
static void failed_end_write_is_retried_later(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin_as(&l, true);
    accepted(&l, "gang: false, " ONE, "");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    (void)step(&l);
    (void)status(&l);
    settle(&l);
    pod(&l, "train-w-0", 0, 1, "Succeeded", "");
    (void)step(&l);
    fake_answer(next(&l, "PATCH", JOB "/status"), 403, NO);
    settle(&l);
    nothing_is_asked(&l);
    l.ahead_ns = 6 * SECOND_NS;
    put(&l, "gang: false, " ONE, "", 1); /* the job is processed */
    (void)step(&l);
    has(status(&l), "\"type\":\"Complete\",\"status\":\"True\"");
}

/* Answers requests until a deletion comes; calls kube_jobs_process only when requested. */
static struct http_request *deletion(struct life *l)
{
    unsigned looked = l->changes;
    for (;;) {
        if (l->changes != looked) {
            (void)step(l);
            looked = l->changes;
        }
        kit_round(&l->f.kit);
        struct http_request *x = l->f.asked.len ? fake_next(&l->f) : NULL;
        if (x && strcmp(http_method(x), "DELETE") == 0)
            return x;
        if (x)
            fake_answer(x, 201, "{}");
    }
}

/* A pod of an earlier attempt cannot be deleted: the deletion is repeated, not at once, and without other events. */
static void failed_pod_deletion_is_retried_later(void **state)
{
    (void)state;
    CLEANUP(life) struct life l;
    life_begin_as(&l, true);
    accepted(&l, "retries: 3, roles: [{name: w, tasks: 2, " TEMPLATE "}]", "restarts: 1");
    pod(&l, "train-w-0", 0, 1, "Running", "");
    (void)step(&l);
    fake_answer(deletion(&l), 403, NO);
    settle(&l);
    while (l.f.asked.len)
        fake_answer(fake_next(&l.f), 201, "{}");
    settle(&l);
    nothing_is_asked(&l);
    assert_string_equal(http_path(deletion(&l)), PODS "/train-w-0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleted_job_needs_no_dry_run),
        cmocka_unit_test(end_written_by_other_leader_is_kept),
        cmocka_unit_test(failed_end_write_is_retried_later),
        cmocka_unit_test(failed_pod_deletion_is_retried_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
