/* plan_json_test.c - the JSON of a plan matches the plan. */
#include "wire/cluster/plan_json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/cluster/cluster_file.h"
#include "wire/text/document.h"

struct test_plan {
    struct cluster_file file;
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
};

static struct test_plan plan_of(const char *yaml)
{
    struct test_plan m = {0};
    struct berth_err err;
    CLEANUP(json) json_t *doc = NULL;
    if (document_parse(yaml, strlen(yaml), "f", &doc, &err) < 0 ||
        cluster_file_parse(doc, NULL, NULL, &m.file, &err) < 0)
        fail_msg("%s", err.text);
    m.snapshot = berth_freeze(m.file.cluster, m.file.now_ns, m.file.seed);
    if (berth_plan_make(m.snapshot, &(struct berth_policy){0}, &m.plan, &err) < 0)
        fail_msg("%s", err.text);
    return m;
}

static void test_plan_done(struct test_plan *m)
{
    berth_plan_free(m->plan);
    berth_snapshot_free(m->snapshot);
    cluster_file_done(&m->file);
}

static char *written(struct berth_plan *plan)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    assert_int_equal(plan_json_write(plan, to), 0);
    fclose(to);
    return text;
}

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void json_has_every_member(void **state)
{
    (void)state;
    struct test_plan m = plan_of("now: 100\n"
                                 "nodes:\n"
                                 "- {id: n, allocatable: {cpu: 4}, gpus: {count: 4, model: T4, memory: 16Gi}}\n"
                                 "- {id: d, allocatable: {cpu: 4}, state: draining, since: 90}\n"
                                 "workloads:\n"
                                 "- {id: g, requests: {cpu: 1}, gpu: 2}\n"
                                 "- {id: \"q\\\"\xc3\xbc\", replicas: 3, requests: {cpu: 100}}\n"
                                 "- {id: s, replicas: 2, requests: {cpu: 1}}\n"
                                 "instances:\n"
                                 "- {id: 7, pod: s/0, node: d}\n"
                                 "- {id: 8, pod: s/1, node: n}\n"
                                 "- {id: 9, pod: gone/0, node: n}\n");
    char *text = written(m.plan), *again = written(m.plan);
    assert_string_equal(text, again);
    json_error_t problem;
    json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    if (!doc)
        fail_msg("%s: %s", problem.text, text);

    const json_t *actions = json_object_get(doc, "actions");
    assert_int_equal(json_array_size(actions), berth_plan_actions(m.plan));
    bool placed = false, stopped = false, moved = false;
    for (size_t i = 0; i < json_array_size(actions); i++) {
        const json_t *a = json_array_get(actions, i);
        const char *op = text_at(a, "op"), *pod = text_at(a, "pod");
        assert_non_null(text_at(a, "node"));
        assert_non_null(text_at(a, "cause"));
        if (strcmp(pod, "g/0") == 0) {
            placed = strcmp(op, berth_op_name(BERTH_PLACE)) == 0 && strcmp(text_at(a, "node"), "n") == 0 &&
                     json_array_size(json_object_get(a, "gpus")) == 2 && !json_object_get(a, "instance");
        } else if (strcmp(pod, "gone/0") == 0) {
            stopped =
                strcmp(op, berth_op_name(BERTH_STOP)) == 0 && json_integer_value(json_object_get(a, "instance")) == 9;
        } else if (strcmp(pod, "s/0") == 0) {
            moved = json_integer_value(json_object_get(a, "replaces")) == 7;
        }
    }
    if (!placed || !stopped || !moved)
        fail_msg("%s", text);

    const json_t *pending = json_object_get(doc, "pending");
    assert_int_equal(json_array_size(pending), 3);
    const json_t *first = json_array_get(pending, 0), *reasons = json_object_get(first, "reasons");
    assert_string_equal(text_at(first, "pod"), "q\"\xc3\xbc/0");
    assert_true(json_array_size(reasons) > 0);
    assert_non_null(text_at(json_array_get(reasons, 0), "reason"));
    assert_non_null(text_at(json_array_get(reasons, 0), "text"));
    assert_true(json_is_integer(json_object_get(json_array_get(reasons, 0), "nodes")));
    assert_true(json_is_integer(json_object_get(json_array_get(reasons, 0), "only")));

    assert_true(json_is_array(json_object_get(doc, "facts")));
    assert_int_equal(json_array_size(json_object_get(doc, "facts")), berth_plan_facts(m.plan));
    assert_true(json_is_null(json_object_get(doc, "recheck")) || json_is_number(json_object_get(doc, "recheck")));
    assert_true(json_is_false(json_object_get(doc, "alarm")));
    char hash[32];
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)berth_plan_hash(m.plan));
    assert_string_equal(text_at(doc, "hash"), hash);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "summary"), "pending")), 3);
    json_decref(doc);
    free(text);
    free(again);
    test_plan_done(&m);
}

static void empty_plan_has_empty_lists(void **state)
{
    (void)state;
    struct test_plan m = plan_of("nodes: []");
    char *text = written(m.plan);
    json_t *doc = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(doc, "actions")), 0);
    assert_true(json_is_null(json_object_get(doc, "recheck")));
    json_decref(doc);
    free(text);
    test_plan_done(&m);
}

/* Thousands of pods, so that the buffer is flushed several times. */
static void large_plan_is_complete(void **state)
{
    (void)state;
    struct test_plan m = plan_of("nodes: [{id: n, count: 50, allocatable: {cpu: 100}}]\n"
                                 "workloads: [{id: a, replicas: 4000, requests: {cpu: 1}},\n"
                                 "            {id: b, replicas: 3000, requests: {cpu: 1}}]\n");
    char *text = written(m.plan);
    json_t *doc = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(doc, "actions")), 5000);
    assert_int_equal(json_array_size(json_object_get(doc, "pending")), 2000);
    const json_t *summary = json_object_get(doc, "summary");
    assert_int_equal(json_integer_value(json_object_get(summary, "placed")), 5000);
    json_decref(doc);
    free(text);

    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(plan_json_write(m.plan, full), -EIO);
        fclose(full);
    }
    test_plan_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_every_member),
        cmocka_unit_test(empty_plan_has_empty_lists),
        cmocka_unit_test(large_plan_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
