/* batch_ordinals_test.c - which pods of a workload have an instance: the lookup agrees with the instances. */
#include "control/api/kit_test.h"

#include "control/sched/batch_ordinals.h"

static void lookup_agrees_with_instances(void **state)
{
    (void)state;
    struct kit k;
    struct batch_used_ordinals t = {0};
    struct arena arena;
    kit_open(&k);
    arena_init(&arena);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: a, allocatable: {cpu: 100, memory: 100Gi, pods: 200}}");
    CALL(&k, 200, "node:a", "POST", "/v1/nodes/a/report", "{epoch: 1, seq: 1}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{array: 0-99, requests: {cpu: 1}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{array: 0-149, requests: {cpu: 1}}");
    kit_plan(&k);
    const struct state *s = control_state(k.control);
    const struct object *all = state_find(s, KIND_JOB, "1"), *more = state_find(s, KIND_JOB, "2");
    assert_int_equal(all->work->instances_len, 100);
    for (uint32_t i = 0; i < 130; i++)
        assert_int_equal(batch_ordinal_used(&t, s, all, i, &arena), i < 100);
    assert_int_equal(more->work->instances_len, 0);
    assert_true(batch_ordinal_used(&t, s, more, 0, &arena)); /* workloads with few pods have no lookup */

    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: b, allocatable: {cpu: 70, memory: 100Gi, pods: 200}}");
    CALL(&k, 200, "node:b", "POST", "/v1/nodes/b/report", "{epoch: 1, seq: 1}");
    kit_plan(&k);
    assert_int_equal(more->work->instances_len, 70);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(batch_ordinal_used(&t, s, more, i, &arena), i < 70);

    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: c, allocatable: {cpu: 30, memory: 100Gi, pods: 200}}");
    CALL(&k, 200, "node:c", "POST", "/v1/nodes/c/report", "{epoch: 1, seq: 1}");
    kit_plan(&k);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(batch_ordinal_used(&t, s, more, i, &arena), i < 100);
    assert_true(batch_ordinal_used(&t, s, all, 99, &arena));
    assert_false(batch_ordinal_used(&t, s, all, UINT32_MAX, &arena));
    arena_done(&arena);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup_agrees_with_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
