/* status_test.c - how workloads are doing, and what is doubted of them. */
#include "control/kit_test.h"

#include "control/control_parts.h"

#define ALICE "user:alice"

static void open_world(struct kit *k, int nodes)
{
    kit_open(k);
    kit_people(k);
    for (int i = 1; i <= nodes; i++) {
        char body[256];
        (void)snprintf(body, sizeof body, "{id: n%d, state: ready, allocatable: {cpu: 4, memory: 16Gi}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
}

static void a_model_that_no_node_has_is_warned_of(void **state)
{
    static const struct {
        const char *body, *models; /* NULL: no warning */
    } rows[] = {
        {"{command: [x], gpu: {count: 1, model: H200}}",          "H200"        },
        {"{command: [x], gpu: {count: 1, models: [H200, b200]}}", "H200 or b200"},
        {"{command: [x], gpu: {count: 1, models: [H200, t4]}}",   NULL          },
        {"{command: [x], gpu: {count: 1, model: a100}}",          NULL          },
        {"{command: [x], gpu: 1}",                                NULL          },
        {"{command: [x]}",                                        NULL          },
    };
    char want[128];
    struct kit k;
    (void)state;
    open_world(&k, 1);
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: g1, state: ready, allocatable: {cpu: 4, memory: 16Gi}, gpus: [{count: 2, model: A100}, {model: T4}]}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(&k, 201, ALICE, "POST", "/v1/jobs", rows[i].body);
        (void)snprintf(want, sizeof want, "no node has a GPU of the model %s; there are A100 or T4",
                       rows[i].models ? rows[i].models : "");
        if (rows[i].models)
            assert_string_equal(kit_text(&k, "warnings/0"), want);
        else
            assert_null(kit_at(&k, "warnings"));
    }
    CALL(&k, 200, ALICE, "POST", "/v1/jobs?dry_run=true", rows[0].body);
    assert_non_null(kit_at(&k, "answer/warnings/0"));
    /* As it was written it is kept, and matched whatever its case. */
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/4", NULL);
    SAYS(&k, "a100");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/4", NULL);
    assert_int_equal(kit_number(&k, "status/placed"), 1);
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_that_no_node_has_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
