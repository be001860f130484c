/* node_test.c - nodes, volumes, resources, profiles and instances through the API. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static void node_is_added_and_read(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: Cellar-1, allocatable: {cpu: 4, memory: 8Gi}, labels: {disk: ssd}}");
    assert_string_equal(kit_text(k, "id"), "cellar-1");
    CALL(k, 200, ALICE, "GET", "/v1/nodes/CELLAR-1", NULL);
    assert_string_equal(kit_text(k, "id"), "cellar-1");
    assert_string_equal(kit_text(k, "display"), "Cellar-1");
    assert_string_equal(kit_text(k, "state"), "ready");
    assert_string_equal(kit_text(k, "since"), "2026-03-01T12:00:00Z");
    assert_int_equal(kit_number(k, "generation"), 1);
    assert_int_equal(kit_number(k, "status/instances"), 0);
    CALL(k, 201, ADMIN, "PUT", "/v1/nodes/n2", "{state: joining}");
    CALL(k, 200, ALICE, "GET", "/v1/nodes?state=joining", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
    assert_string_equal(kit_text(k, "items/0/id"), "n2");
}

static void invalid_node_is_rejected(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, gpus: {count: 2}}");
    static const struct {
        const char *who, *method, *url, *body;
        int status;
        const char *words;
    } rows[] = {
        {ADMIN, "POST",   "/v1/nodes",                 "{id: N1}",                                   409, "n1 already exists"             },
        {ADMIN, "POST",   "/v1/nodes",                 "{}",                                         400, "id: missing"                   },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: 5}",                                    400, "id: expected text"             },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: all}",                                  400, "reserved word"                 },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: a b}",                                  400, "may have only"                 },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, state: lost}",                       400, "a new node is ready"           },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, state: gone}",                       400, "state: expected"               },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, count: 2}",                          400, "count: is only for cluster"    },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, allocatable: {cpu: -1}}",            400, "0 or more"                     },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, allocatable: {hugepages-2Mi: 3Mi}}", 400, "whole number of pages"         },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, overcommit: {cpu: 1000}}",           400, "over-commit"                   },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, taints: [a]}",                       400, "taints"                        },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, ports: [0]}",                        400, "ports"                         },
        {ADMIN, "POST",   "/v1/nodes",                 "{id: x, colour: red}",                       400, "unknown key"                   },
        {ALICE, "POST",   "/v1/nodes",                 "{id: x}",                                    403, "lacks the permission"          },
        {ALICE, "POST",   "/v1/nodes/n1/drain",        "{}",                                         403, "lacks the permission"          },
        {ALICE, "DELETE", "/v1/nodes/n1",              NULL,                                         403, "lacks the permission"          },
        {ADMIN, "PATCH",  "/v1/nodes/n1",              "{state: draining}",                          400, "state: is changed with POST"   },
        {ADMIN, "PUT",    "/v1/nodes/n1",              "{disabled: true}",                           400, "disabled: is changed with POST"},
        {ADMIN, "PUT",    "/v1/nodes/n1",              "{id: n2}",                                   400, "id: n1 cannot be renamed to n2"},
        {ADMIN, "PATCH",  "/v1/nodes/n9",              "{zone: a}",                                  404, "no node"                       },
        {ADMIN, "POST",   "/v1/nodes/n9/drain",        "{}",                                         404, "no node"                       },
        {ADMIN, "DELETE", "/v1/nodes/n9",              NULL,                                         404, "no node"                       },
        {ADMIN, "DELETE", "/v1/nodes/n1?force=maybe",  NULL,                                         400, "force: expected"               },
        {ADMIN, "PUT",    "/v1/nodes/n1/capabilities", "{labels: {}}",                               400, "unknown key"                   },
        {ADMIN, "PUT",    "/v1/nodes/n1/settings",     "{allocatable: {}}",                          400, "unknown key"                   },
        {ADMIN, "PUT",    "/v1/nodes/n1/settings",     "{rank: x}",                                  400, "rank: expected"                },
        {ADMIN, "PUT",    "/v1/nodes/n1/capabilities", "{gpus: {count: 1}}",                         409, "cordon it before"              },
        {ADMIN, "PUT",    "/v1/nodes/n1/capabilities", "{gpus: {count: 2}, ports: [22]}",            409, "cordon it before"              },
        {ADMIN, "PUT",    "/v1/nodes/n1/capabilities", "{gpus: {count: 3}}",                         200, "n1"                            },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
    }
}

static void verbs_change_the_node_state(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *verb;
        int status;
        const char *state;
        bool disabled;
    } rows[] = {
        {"cordon",  200, "cordoned", false},
        {"cordon",  200, "cordoned", false},
        {"drain",   200, "draining", false},
        {"enable",  200, "ready",    false},
        {"disable", 200, "draining", true },
        {"cordon",  200, "cordoned", true },
        {"enable",  200, "ready",    false},
    };
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        char url[64];
        (void)snprintf(url, sizeof url, "/v1/nodes/n1/%s", rows[i].verb);
        k->now_ns += 1000000000;
        CALL(k, rows[i].status, ADMIN, "POST", url, "{}");
        CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
        assert_string_equal(kit_text(k, "state"), rows[i].state);
        assert_int_equal(json_is_true(kit_at(k, "disabled")), rows[i].disabled);
        assert_int_equal(kit_number(k, "generation"), 1);
    }
    assert_string_equal(kit_text(k, "since"), "2026-03-01T12:00:07Z");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, state: joining}");
    CALL(k, 409, ADMIN, "POST", "/v1/nodes/n2/drain", NULL);
    SAYS(k, "node n2 is joining, which cannot become draining");
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n2/enable", NULL);
}

static void parts_of_a_node_are_replaced_separately(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: n1, zone: a, labels: {x: y}, allocatable: {cpu: 4}, address: 10.0.0.1}");
    CALL(k, 200, ADMIN, "PUT", "/v1/nodes/n1/capabilities", "{allocatable: {cpu: 8}, runtimes: [process]}");
    CALL(k, 200, ADMIN, "PUT", "/v1/nodes/n1/settings", "{rack: r1}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(k, "allocatable/cpu"), 8);
    assert_string_equal(kit_text(k, "runtimes/0"), "process");
    assert_string_equal(kit_text(k, "rack"), "r1");
    assert_null(kit_at(k, "zone"));
    assert_null(kit_at(k, "labels"));
    assert_string_equal(kit_text(k, "address"), "10.0.0.1");
    assert_int_equal(kit_number(k, "generation"), 3);
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/cordon", NULL);
    CALL(k, 200, ADMIN, "PUT", "/v1/nodes/n1", "{allocatable: {cpu: 8}}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "state"), "cordoned");
}

static void only_empty_node_is_released(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8}}");
    CALL(k, 201, ADMIN, "POST", "/v1/tokens", "{node: n1}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, replicas: 7, requests: {cpu: 1}}");
    kit_plan(k);
    CALL(k, 200, ADMIN, "GET", "/v1/instances?node=n1", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 7);
    CALL(k, 409, ADMIN, "DELETE", "/v1/nodes/n1", NULL);
    SAYS(k, "1 of web.alice, 2 of web.alice");
    SAYS(k, "5 of web.alice and 2 more");
    CALL(k, 409, ADMIN, "DELETE", "/v1/nodes/n1?force=false", NULL);
    CALL(k, 204, ADMIN, "DELETE", "/v1/nodes/n1?force=true", NULL);
    size_t len = 0;
    (void)state_list(control_state(k->control), KIND_INSTANCE, &len);
    assert_int_equal(len, 0);
    (void)state_list(control_state(k->control), KIND_LEDGER, &len);
    assert_int_equal(len, 0);
    CALL(k, 200, ADMIN, "GET", "/v1/tokens?node=n1", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 0);
    CALL(k, 404, ADMIN, "GET", "/v1/nodes/n1", NULL);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8}}");
    kit_plan(k);
    CALL(k, 200, ADMIN, "GET", "/v1/instances?node=n1", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 7);
    assert_int_equal(kit_number(k, "items/0/id"), 8);
}

static void used_gpus_and_ports_cannot_be_removed(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, gpus: {count: 2}, allocatable: {cpu: 8}}");
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{gpu: 2, ports: [8080]}");
    kit_plan(k);
    CALL(k, 200, ADMIN, "GET", "/v1/instances/1", NULL);
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/cordon", NULL);
    CALL(k, 409, ADMIN, "PATCH", "/v1/nodes/n1", "{gpus: {count: 1}}");
    SAYS(k, "device 1 is allocated to instance 1 of 1");
    CALL(k, 409, ADMIN, "PATCH", "/v1/nodes/n1", "{ports: [8000-8100]}");
    SAYS(k, "8080 is in use by instance 1 of 1");
    CALL(k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{ports: [9000, 8080/udp]}");
    CALL(k, 204, ADMIN, "DELETE", "/v1/nodes/n1?force=true", NULL);
    CALL(k, 404, ADMIN, "GET", "/v1/instances/1", NULL);
}

static void resources_and_profiles(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *method, *url, *body;
        int status;
        const char *words;
    } rows[] = {
        {ADMIN, "POST",   "/v1/resources",               "{name: traffic, kind: cumulative, period: 30d}", 201, "traffic"                   },
        {ADMIN, "POST",   "/v1/resources",               "{name: traffic}",                                409, "already exists"            },
        {ADMIN, "PUT",    "/v1/resources/hugepages-2Mi", "{}",                                             201, "hugepages-2Mi"             },
        {ALICE, "GET",    "/v1/resources/hugepages-2Mi", NULL,                                             200, "\"name\":\"hugepages-2Mi\""},
        {ADMIN, "POST",   "/v1/resources",               "{name: hugepages-2X}",                           400, "no page size"              },
        {ADMIN, "POST",   "/v1/resources",               "{name: a, period: -1}",                          400, "period"                    },
        {ADMIN, "POST",   "/v1/resources",               "{name: a/b}",                                    400, "printable ASCII"           },
        {ADMIN, "POST",   "/v1/resources",               "{id: a, name: b}",                               400, "name: expected a, the id"  },
        {ALICE, "POST",   "/v1/resources",               "{name: a}",                                      403, "lacks"                     },
        {ADMIN, "DELETE", "/v1/resources/traffic",       NULL,                                             204, ""                          },
        {ADMIN, "POST",   "/v1/profiles",                "{id: Mine, scores: {least_allocated: 2}}",       201, "mine"                      },
        {ADMIN, "POST",   "/v1/profiles",                "{id: p, scores: {least_allocated: 0}}",          400, "weight 0"                  },
        {ADMIN, "POST",   "/v1/profiles",                "{id: p, scores: {least: 1}}",                    400, "there is no score"         },
        {ADMIN, "POST",   "/v1/profiles",                "{id: default}",                                  400, "reserved"                  },
        {ALICE, "POST",   "/v1/profiles",                "{id: p}",                                        403, "lacks"                     },
        {ALICE, "GET",    "/v1/profiles",                NULL,                                             200, "\"mine\""                  },
        {ADMIN, "PATCH",  "/v1/system/settings",         "{profile: mine}",                                200, "\"profile\":\"mine\""      },
        {ADMIN, "DELETE", "/v1/profiles/mine",           NULL,                                             409, "is in use"                 },
        {ADMIN, "PATCH",  "/v1/system/settings",         "{profile: null}",                                200, "\"profile\":\"default\""   },
        {ADMIN, "DELETE", "/v1/profiles/mine",           NULL,                                             204, ""                          },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
    }
}

static void instances_are_read_only(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8}}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: a, replicas: 2}");
    CALL(k, 201, "user:bob", "POST", "/v1/apps", "{name: b}");
    kit_plan(k);
    static const struct {
        const char *who, *url;
        size_t len;
    } rows[] = {
        {ADMIN,        "/v1/instances",                  3},
        {ALICE,        "/v1/instances",                  2},
        {"user:bob",   "/v1/instances",                  1},
        {ADMIN,        "/v1/instances?workload=a.alice", 2},
        {ADMIN,        "/v1/instances?node=n1",          3},
        {ADMIN,        "/v1/instances?node=n2",          0},
        {ADMIN,        "/v1/instances?owner=bob",        1},
        {ADMIN,        "/v1/instances?group=red",        2},
        {ADMIN,        "/v1/instances?state=assigned",   3},
        {ADMIN,        "/v1/instances?state=running",    0},
        {"user:carol", "/v1/instances",                  2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, 200, rows[i].who, "GET", rows[i].url, NULL);
        if (json_array_size(kit_at(k, "items")) != rows[i].len)
            fail_msg("%s: %s", rows[i].url, k->text);
    }
    CALL(k, 405, ADMIN, "DELETE", "/v1/instances/1", NULL);
    CALL(k, 405, ADMIN, "POST", "/v1/instances", "{}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(node_is_added_and_read),      TEST(invalid_node_is_rejected),
        TEST(verbs_change_the_node_state), TEST(parts_of_a_node_are_replaced_separately),
        TEST(only_empty_node_is_released), TEST(used_gpus_and_ports_cannot_be_removed),
        TEST(resources_and_profiles),      TEST(instances_are_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
