/* status_test.c - status of workloads: time of the last transition, reasons, and advice. */
#include "control/api/kit_test.h"

#include "control/control_parts.h"

#define ALICE "user:alice"

static void open_world(struct kit *k, int nodes)
{
    kit_open(k);
    kit_add_users(k);
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

/* The transition time stays while plans have the same result, and changes when a pod is placed or left over again. */
static void condition_has_transition_time(void **state)
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

/* A window over the full node n1 is not the reason why the app waits. */
static void window_on_full_node_is_not_main_reason(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k, 2);
    CALL(&k, 201, ALICE, "POST", "/v1/apps", "{name: web, command: [x], replicas: 2, requests: {cpu: 3}}");
    kit_plan(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/windows",
         "{id: w, start: '2026-03-02T13:00:00Z', duration: 1h, nodes: [n1], maintenance: true}");
    CALL(&k, 201, ALICE, "POST", "/v1/apps", "{name: more, command: [x], requests: {cpu: 2}}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/apps/more", NULL);
    assert_string_equal(kit_text(&k, "status/reason"), "short");
    assert_string_equal(kit_text(&k, "status/conditions/0/message"),
                        "all 2 nodes have too little cpu left: 2 needed, at most 1 free");
    SAYS(&k, "will be reserved for others or for maintenance");
    kit_done(&k);
}

/* Advice is verified by a plan; a placed workload gets none. */
static void why_advice_is_verified_by_plan(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k, 2);
    CALL(&k, 201, ALICE, "POST", "/v1/apps", "{name: web, command: [x], replicas: 2, requests: {cpu: 3}}");
    kit_plan(&k);
    CALL(&k, 201, ALICE, "POST", "/v1/apps", "{name: more, command: [x], requests: {cpu: 2}}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/why/app/more", NULL);
    SAYS(&k, "Suggestion: with 1 of cpu instead of 2, the pod starts on n");
    CALL(&k, 200, ALICE, "GET", "/v1/why/app/web", NULL);
    assert_null(strstr(k.text, "Suggestion"));
    CALL(&k, 200, ALICE, "PATCH", "/v1/apps/more", "{requests: {cpu: 1}}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/apps/more", NULL);
    assert_int_equal(kit_number(&k, "status/placed"), 1);
    kit_done(&k);
}

/* Six of eight pods fit: the advice is six, not half of eight. */
static void gang_advice_is_number_that_fits(void **state)
{
    struct kit k;
    (void)state;
    open_world(&k, 3);
    CALL(&k, 201, ALICE, "POST", "/v1/jobs",
         "{name: train, command: [x], replicas: 8, gang: true, requests: {cpu: 2}, time_limit: 1h}");
    kit_plan(&k);
    CALL(&k, 200, ALICE, "GET", "/v1/jobs/1/why?suggest=1", NULL);
    SAYS(&k, "as an elastic gang that starts with 6 pods instead of 8");
    SAYS(&k, "with 1333m of cpu instead of 2 in each pod");
    SAYS(&k, "as an elastic gang that starts with 4 pods instead of 8");
    kit_done(&k);
}

static void unknown_gpu_model_causes_warning(void **state)
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
        (void)snprintf(want, sizeof want, "no node has a GPU of model %s; available models: A100 or T4",
                       rows[i].models ? rows[i].models : "");
        if (rows[i].models)
            assert_string_equal(kit_text(&k, "warnings/0"), want);
        else
            assert_null(kit_at(&k, "warnings"));
    }
    CALL(&k, 200, ALICE, "POST", "/v1/jobs?dry_run=true", rows[0].body);
    assert_non_null(kit_at(&k, "answer/warnings/0"));
    /* A repeated request with the same key gets the same answer, even if such a node exists by then. */
    k.key = "once";
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", rows[0].body);
    assert_non_null(kit_at(&k, "warnings/0"));
    k.key = NULL;
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: g2, state: ready, allocatable: {cpu: 4}, gpus: [{model: H200}]}");
    k.key = "once";
    CALL(&k, 201, ALICE, "POST", "/v1/jobs", rows[0].body);
    assert_non_null(kit_at(&k, "warnings/0"));
    k.key = NULL;
    /* The model keeps its spelling, and is matched without case. */
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
        cmocka_unit_test(condition_has_transition_time),    cmocka_unit_test(window_on_full_node_is_not_main_reason),
        cmocka_unit_test(why_advice_is_verified_by_plan),   cmocka_unit_test(gang_advice_is_number_that_fits),
        cmocka_unit_test(unknown_gpu_model_causes_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
