/* status_test.c - how workloads are doing, since when, and what is doubted of them. */
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

static const char *since(struct kit *k, const char *path, bool status)
{
    static char text[64];
    CALL(k, 200, ALICE, "GET", path, NULL);
    assert_string_equal(kit_text(k, "status/conditions/0/type"), "Scheduled");
    assert_int_equal(json_is_true(kit_at(k, "status/conditions/0/status")), status);
    (void)snprintf(text, sizeof text, "%s", kit_text(k, "status/conditions/0/since"));
    return text;
}

/* Later plans that say the same change nothing; a pod that is placed does, and one that is left over again. */
static void the_condition_says_since_when(void **state)
{
    struct kit k;
    char first[64], placed[64];
    (void)state;
    open_world(&k, 1);
    CALL(&k, 201, ALICE, "POST", "/v1/apps", "{name: web, command: [x], replicas: 2, requests: {cpu: 3}}");
    kit_plan(&k);
    (void)snprintf(first, sizeof first, "%s", since(&k, "/v1/apps/web", false));
    for (int i = 0; i < 3; i++) {
        kit_sleep(&k, 60);
        CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/n1", i % 2 ? "{labels: {a: b}}" : "{labels: {a: c}}");
        kit_plan(&k);
        assert_string_equal(since(&k, "/v1/apps/web", false), first);
    }
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, state: ready, allocatable: {cpu: 4, memory: 16Gi}}");
    kit_plan(&k);
    (void)snprintf(placed, sizeof placed, "%s", since(&k, "/v1/apps/web", true));
    assert_true(strcmp(placed, first) > 0);
    kit_sleep(&k, 60);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{labels: {a: d}}");
    kit_plan(&k);
    assert_string_equal(since(&k, "/v1/apps/web", true), placed);
    CALL(&k, 200, ALICE, "PATCH", "/v1/apps/web", "{replicas: 3}");
    kit_plan(&k);
    assert_true(strcmp(since(&k, "/v1/apps/web", false), placed) > 0);
    kit_done(&k);
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
        cmocka_unit_test(the_condition_says_since_when),
        cmocka_unit_test(a_model_that_no_node_has_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
