/* work_defaults_test.c - default requests and a default memory limit. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"

static int world_open(void **state)
{
    struct kit *k = *state = mem_zalloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{default_requests: null, memory_limit: null}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 4, memory: 4Gi}}");
    return 0;
}

static int world_close(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

/* Checks requests and limits of the stored document. */
static void shows(struct kit *k, const char *url, const char *requests, const char *limits)
{
    static const char *const keys[] = {"requests", "limits"};
    const char *const want[] = {requests, limits};
    CALL(k, 200, ALICE, "GET", url, NULL);
    for (int i = 0; i < 2; i++) {
        char *text = json_dumps(json_object_get(k->body, keys[i]), JSON_COMPACT | JSON_SORT_KEYS);
        if (strcmp(text ? text : "", want[i]) != 0)
            fail_msg("%s: %s is %s, not %s", url, keys[i], text ? text : "nothing", want[i]);
        free(text);
    }
}

#define USUAL "{\"cpu\":\"50m\",\"memory\":\"256Mi\"}"

static void missing_values_get_defaults(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *body, *requests, *limits;
    } rows[] = {
        {"{}",                                                              USUAL,                                   "{\"memory\":\"256Mi\"}"},
        {"{requests: {cpu: 0, memory: 0}}",                                 USUAL,                                   "{\"memory\":\"256Mi\"}"},
        {"{requests: {cpu: 2}}",                                            "{\"cpu\":2,\"memory\":\"256Mi\"}",      "{\"memory\":\"256Mi\"}"},
        {"{resources: {memory: 1Gi}}",                                      "{\"cpu\":\"50m\",\"memory\":\"1Gi\"}",  "{\"memory\":\"1Gi\"}"  },
        {"{limits: {memory: 64Mi, cpu: 1}}",                                "{\"cpu\":\"50m\",\"memory\":\"64Mi\"}",
         "{\"cpu\":1,\"memory\":\"64Mi\"}"                                                                                                   },
        {"{limits: {memory: 2Gi}}",                                         USUAL,                                   "{\"memory\":\"2Gi\"}"  },
        {"{limits: {memory: {amount: 256Mi, max: 1Gi}, cpu: {weight: 5}}}", USUAL,
         "{\"cpu\":{\"weight\":5},\"memory\":{\"amount\":\"256Mi\",\"max\":\"1Gi\"}}"                                                        },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, 201, ALICE, "PUT", "/v1/apps/a", rows[i].body);
        shows(k, "/v1/apps/a", rows[i].requests, rows[i].limits);
        CALL(k, 200, ALICE, "PUT", "/v1/apps/a", rows[i].body); /* the same document again is no change */
        CALL(k, 200, ALICE, "GET", "/v1/apps/a", NULL);
        assert_int_equal(kit_number(k, "generation"), 1);
        CALL(k, 204, ALICE, "DELETE", "/v1/apps/a", NULL);
    }
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{array: 0-3}");
    shows(k, "/v1/jobs/1", USUAL, "{\"memory\":\"256Mi\"}");
    CALL(k, 400, ALICE, "PUT", "/v1/vms/v", "{image: 'https://x/y', vm: {}}"); /* a guest's memory has no default */
    CALL(k, 400, ALICE, "PUT", "/v1/apps/a", "{requests: 5}");
    CALL(k, 400, ALICE, "PUT", "/v1/apps/a", "{limits: 5}");
}

/* Nodes accept pods up to their default requests, so workloads without requests do not pile up on one node. */
static void nodes_fill_up_by_defaults(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "PUT", "/v1/apps/a", "{replicas: 100}");
    kit_plan(k);
    CALL(k, 200, ALICE, "GET", "/v1/instances", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 16); /* of 256 MiB in 4 GiB */
}

static void memory_limit_follows_the_request(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "PUT", "/v1/apps/a", "{requests: {cpu: 1, memory: 1Gi}}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/a", "{requests: {memory: 2Gi}}");
    shows(k, "/v1/apps/a", "{\"cpu\":1,\"memory\":\"2Gi\"}", "{\"memory\":\"2Gi\"}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/a", "{limits: {memory: 3Gi}}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/a", "{requests: {memory: 1Gi}}");
    shows(k, "/v1/apps/a", "{\"cpu\":1,\"memory\":\"1Gi\"}", "{\"memory\":\"3Gi\"}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/a", "{limits: null}");
    shows(k, "/v1/apps/a", "{\"cpu\":1,\"memory\":\"1Gi\"}", "{\"memory\":\"1Gi\"}");
}

/* A workload stored without defaults stays as it is when it is written again, so none of its pods restart. */
static void stored_workload_gets_no_defaults(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{default_requests: '', memory_limit: none}");
    CALL(k, 201, ALICE, "PUT", "/v1/apps/bare", "{image: x}");
    CALL(k, 201, ALICE, "PUT", "/v1/apps/some", "{requests: {memory: 1Gi}}");
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{default_requests: null, memory_limit: null}");
    CALL(k, 200, ALICE, "PUT", "/v1/apps/bare", "{image: x}");
    CALL(k, 200, ALICE, "PUT", "/v1/apps/some", "{requests: {memory: 1Gi}}");
    shows(k, "/v1/apps/bare", "", "");
    assert_int_equal(kit_number(k, "generation"), 1);
    shows(k, "/v1/apps/some", "{\"memory\":\"1Gi\"}", "");
    assert_int_equal(kit_number(k, "generation"), 1);
}

static void other_defaults_can_be_set(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{default_requests: 'memory=64Mi', memory_limit: none}");
    CALL(k, 201, ALICE, "PUT", "/v1/apps/a", "{}");
    shows(k, "/v1/apps/a", "{\"memory\":\"64Mi\"}", "");
    static const char *const wrong[] = {"cpu", "cpu=", "=1", "cpu=x", "cpu=0", "cpu=-1"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{default_requests: '%s'}", wrong[i]);
        CALL(k, 400, ADMIN, "PATCH", "/v1/system/settings", body);
        SAYS(k, "default_requests");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)
    const struct CMUnitTest tests[] = {
        TEST(missing_values_get_defaults),      TEST(nodes_fill_up_by_defaults), TEST(memory_limit_follows_the_request),
        TEST(stored_workload_gets_no_defaults), TEST(other_defaults_can_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
