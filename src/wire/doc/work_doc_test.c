/* work_doc_test.c - documents of workloads: every key, the defaults, and rejected values. */
#include "wire/doc/doc_kit_test.h"

static void client_documents_are_read(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{\"id\": 7, \"name\": \"k\", \"command\": [\"/bin/true\"], \"hold\": true, "
                           "\"resources\": {\"cpu\": \"1\", \"memory\": \"16Mi\"}}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_string_equal(d.meta.id, "7");
    assert_string_equal(d.workload.id, "7");
    assert_string_equal(d.name, "k");
    assert_int_equal(d.command_len, 1);
    assert_string_equal(d.command[0], "/bin/true");
    assert_true(d.hold && d.workload.suspended && !d.stopped);
    assert_int_equal(d.workload.shape.requests_len, 2);
    assert_string_equal(d.workload.shape.requests[0].resource, "cpu");
    assert_int_equal(d.workload.shape.requests[0].amount, 1000);
    assert_int_equal(d.workload.shape.requests[1].amount, 16 << 20);
    assert_int_equal(d.workload.replicas, 1);
    assert_int_equal(d.weight, 100);
    assert_int_equal(d.port_index, -1);
    assert_true(d.stoppable);
    assert_null(d.settings);
}

static void every_key_has_its_field(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g =
        given("{v: 1, id: web.alice, display: Web Shop, created: '2026-03-01T12:00:00.25Z', generation: 3, name: web, "
              "owner: alice, group: staff, stopped: true, command: [/bin/web, --port, 80], env: {A: '1', B: null}, "
              "workdir: /srv, image: web, images: [base], replicas: 3, priority: -4, gang: true, gang_min: 2, "
              "endpoints: [http, {name: dns, protocol: udp}, {name: late, await: false}], index: 2, ports: [22], "
              "weight: 0, restart: 5, system: true, "
              "stoppable: false, cancelled: false, settings: {a: 1}, settings_schema: {a: {type: integer}}, "
              "install: {b: 2}, labels: {app: web}, spread: zone}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_int_equal(d.meta.version, 1);
    assert_string_equal(d.meta.display, "Web Shop");
    assert_int_equal(d.meta.created_ns, 1772366400250000000);
    assert_int_equal(d.workload.created_ns, d.meta.created_ns);
    assert_int_equal(d.meta.generation, 3);
    assert_string_equal(d.owner, "alice");
    assert_string_equal(d.group, "staff");
    assert_true(d.stopped && d.workload.suspended && d.system && !d.stoppable && !d.cancelled);
    assert_int_equal(d.command_len, 3);
    assert_string_equal(d.command[2], "80");
    assert_int_equal(d.env_len, 2);
    assert_string_equal(d.env[0].value, "1");
    assert_string_equal(d.env[1].value, "");
    assert_string_equal(d.workdir, "/srv");
    assert_string_equal(d.image, "web");
    assert_int_equal(d.workload.shape.images_len, 2);
    assert_string_equal(d.workload.shape.images[1], "web");
    assert_int_equal(d.workload.replicas, 3);
    assert_int_equal(d.workload.priority, -4);
    assert_string_equal(d.workload.gang, "web.alice");
    assert_int_equal(d.endpoints_len, 3);
    assert_string_equal(d.endpoints[0].name, "http");
    assert_true(endpoint_awaited(&d.endpoints[0]));
    assert_false(endpoint_awaited(&d.endpoints[1]) || endpoint_awaited(&d.endpoints[2]));
    assert_int_equal(d.endpoints[1].protocol, BERTH_UDP);
    assert_int_equal(d.workload.shape.ports_len, 1);
    assert_int_equal(d.workload.shape.max_per_node, 5); /* sixteen ports, three for each pod */
    assert_int_equal(d.weight, 0);
    assert_int_equal(d.restarts, 5);
    assert_true(d.settings && d.settings_schema && d.install);
    assert_int_equal(d.workload.shape.spread_len, 1);
    assert_int_equal(d.workload.shape.spread[0].select.exprs_len, 1);
}

static void image_is_listed_once(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: a, image: web, images: [web]}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_int_equal(d.workload.shape.images_len, 1);
}

static void without_an_index_an_endpoint_holds_no_port(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: a, endpoints: http, cancelled: true}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_int_equal(d.endpoints_len, 1);
    assert_int_equal(d.workload.shape.ports_len, 0);
    assert_true(d.cancelled && d.workload.suspended);
}

static void gang_name_contains_the_owner(void **state)
{
    (void)state;
    static const struct {
        const char *doc, *gang;
    } rows[] = {
        {"{id: '1', owner: alice, gang: g}",    "alice/g"},
        {"{id: '1', owner: alice, gang: true}", "1"      },
        {"{id: '1', gang: g}",                  "g"      },
        {"{id: '1', owner: alice, gang: ''}",   ""       },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct work_doc d = {0};
        READ(&g, work_doc_read, &d);
        assert_string_equal(d.workload.gang, rows[i].gang);
    }
}

static void errors_name_the_key(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"[]",                                                      "expected an object"                       },
        {"{}",                                                      "id: missing"                              },
        {"{id: ''}",                                                "id: missing"                              },
        {"{id: a, count: 2}",                                       "count: is only for cluster files"         },
        {"{id: a, kind: job}",                                      "kind: is set by the collection"           },
        {"{id: a, suspended: false}",                               "suspended: use \"hold\""                  },
        {"{id: a, requests: {cpu: 1}, resources: {cpu: 1}}",        "give only one"                            },
        {"{id: a, resources: {cpu: -1}}",                           "resources: cpu: expected"                 },
        {"{id: a, resource: {cpu: 1}}",                             "did you mean \"resources\"?"              },
        {"{id: a, command: sleep 5}",                               "command: expected a list"                 },
        {"{id: a, command: ['']}",                                  "command[0]: expected a program"           },
        {"{id: a, command: [/bin/sleep, true]}",                    "command[1]: expected text"                },
        {"{id: a, command: [/bin/sleep, [5]]}",                     "command[1]: expected text"                },
        {"{id: a, env: [A]}",                                       "env: expected an object"                  },
        {"{id: a, env: {A=B: c}}",                                  "env: \"A=B\" is not a valid variable name"},
        {"{id: a, env: {'': c}}",                                   "env: \"\" is not a valid variable name"   },
        {"{id: a, env: {A: {}}}",                                   "env: A: expected text"                    },
        {"{id: a, workdir: ''}",                                    "workdir: expected a path"                 },
        {"{id: a, image: 1.5}",                                     "image: expected text"                     },
        {"{id: a, hold: 1}",                                        "hold: expected true or false"             },
        {"{id: a, weight: 101}",                                    "weight: expected a whole number"          },
        {"{id: a, weight: -1}",                                     "weight: expected a whole number"          },
        {"{id: a, index: 1423}",                                    "index: expected the index"                },
        {"{id: a, index: -1}",                                      "index: expected the index"                },
        {"{id: a, restart: -1}",                                    "restart: expected a whole number"         },
        {"{id: a, generation: x}",                                  "generation: expected a whole"             },
        {"{id: a, v: -1}",                                          "v: -1 is not a valid version"             },
        {"{id: a, display: \"a\\nb\"}",                             "display: has a control character"         },
        {"{id: a, endpoints: [{protocol: tcp}]}",                   "endpoints[0]: name: missing"              },
        {"{id: a, endpoints: [{name: x, protocol: ip}]}",           "endpoints[0]: protocol: expected"         },
        {"{id: a, endpoints: [{name: x, await: 1}]}",               "endpoints[0]: await: expected"            },
        {"{id: a, endpoints: [x, x]}",                              "endpoint x is listed twice"               },
        {"{id: a, endpoints: [{name: x, port: 4}]}",                "endpoints[0]: unknown key"                },
        {"{id: a, endpoints: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]}", "17 endpoints; at most 16"                 },
        {"{id: a, settings: [1]}",                                  "settings: expected an object"             },
        {"{id: a, install: true}",                                  "install: expected an object"              },
        {"{id: a, settings_schema: 1}",                             "settings_schema: expected"                },
        {"{id: a, replicas: -1}",                                   "replicas: expected a whole"               },
        {"{id: a, created: yesterday}",                             "created: expected a time"                 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct work_doc d = {.weight = 77};
        REFUSED(&rows[i], &g, work_doc_read(g.doc, &g.arena, &d, &g.err));
        assert_int_equal(d.weight, 77);
        assert_true(work_doc_read(g.doc, &g.arena, &d, NULL) < 0);
    }
}

static void long_values_are_rejected(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: a}");
    struct work_doc d = {0};
    CLEANUP(mem) char *text = mem_alloc(128 * 1024 + 1);
    memset(text, 'x', 128 * 1024);
    text[128 * 1024] = 0;
    assert_int_equal(json_object_set_new(g.doc, "command", json_pack("[s]", text)), 0);
    assert_true(work_doc_read(g.doc, &g.arena, &d, &g.err) < 0);
    assert_non_null(strstr(g.err.text, "command[0]: has 131072 bytes"));
    text[4096] = 0;
    assert_int_equal(json_object_set_new(g.doc, "command", json_pack("[s]", text)), 0);
    assert_int_equal(json_object_set_new(g.doc, "workdir", json_string(text)), 0);
    assert_true(work_doc_read(g.doc, &g.arena, &d, &g.err) < 0);
    assert_non_null(strstr(g.err.text, "workdir: expected a path"));
}

static void read_documents_can_be_written_back(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{id: a, v: 1, revision: 9, created: 5, generation: 2, status: {state: held}, index: 1, "
                           "restart: 1, system: true, stoppable: false, cancelled: true, epoch: 1, seq: 1, of: 1, "
                           "error: x, hash: y, weight: 5}");
    doc_strip(g.doc);
    assert_int_equal(json_object_size(g.doc), 2);
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_int_equal(d.weight, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_documents_are_read),    cmocka_unit_test(every_key_has_its_field),
        cmocka_unit_test(image_is_listed_once),         cmocka_unit_test(without_an_index_an_endpoint_holds_no_port),
        cmocka_unit_test(gang_name_contains_the_owner), cmocka_unit_test(errors_name_the_key),
        cmocka_unit_test(long_values_are_rejected),     cmocka_unit_test(read_documents_can_be_written_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
