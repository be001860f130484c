/* node_doc_test.c - documents of nodes, volumes, resources and profiles. */
#include "wire/doc/doc_kit_test.h"

static void node_document_has_file_and_daemon_keys(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{v: 1, id: n1, display: Cellar, created: 10, generation: 4, state: cordoned, since: 9, "
                           "allocatable: {cpu: 4}, gpus: {count: 2, model: A}, address: 10.0.0.1, disabled: true, "
                           "epoch: 7, seq: 8}");
    struct node_doc d = {0};
    READ(&g, node_doc_read, &d);
    assert_string_equal(d.meta.id, "n1");
    assert_string_equal(d.meta.display, "Cellar");
    assert_int_equal(d.meta.created_ns, 10000000000);
    assert_int_equal(d.meta.generation, 4);
    assert_int_equal(d.node.state, BERTH_NODE_CORDONED);
    assert_int_equal(d.node.allocatable[0].amount, 4000);
    assert_int_equal(d.node.gpus_len, 2);
    assert_string_equal(d.address, "10.0.0.1");
    assert_true(d.disabled);
    assert_int_equal(d.epoch, 7);
    assert_int_equal(d.seq, 8);
}

/* `want`: + for each healthy device, - for each unhealthy one. */
static void gpu_health_follows_the_agent_report(void **state)
{
    static const struct {
        const char *label, *gpus, *probed, *want;
    } rows[] = {
        {"nobody says",              "{count: 2}",                   "null",                                         "++" },
        {"a machine without a word", "{count: 2}",                   "{}",                                           "++" },
        {"as written",               "[{unhealthy: true}, {}]",      "{}",                                           "-+" },
        {"by place",                 "{count: 2}",                   "{gpus: [{}, {unhealthy: gone}]}",              "+-" },
        {"more than there are",      "{count: 3}",                   "{gpus: [{uuid: A}]}",                          "+--"},
        {"by name",                  "[{uuid: A}, {uuid: B}]",       "{gpus: [{uuid: B}, {uuid: A}]}",               "++" },
        {"by name, one ails",        "[{uuid: A}, {uuid: B}]",       "{gpus: [{uuid: B, unhealthy: x}, {uuid: A}]}", "+-" },
        {"by name, one is gone",     "[{uuid: A}, {uuid: B}]",       "{gpus: [{uuid: B}]}",                          "-+" },
        {"all are gone",             "[{uuid: A}, {uuid: B}]",       "{}",                                           "--" },
        {"the administrator's word", "[{uuid: A, unhealthy: true}]", "{gpus: [{uuid: A}]}",                          "-"  },
        {"no list",                  "[{uuid: A}, {}]",              "{gpus: 7}",                                    "-+" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char doc[512], got[8] = "";
        (void)snprintf(doc, sizeof doc, "{id: n, gpus: %s%s%s}", rows[i].gpus,
                       strcmp(rows[i].probed, "null") ? ", probed: " : "",
                       strcmp(rows[i].probed, "null") ? rows[i].probed : "");
        CLEANUP(given) struct given g = given(doc);
        struct node_doc d = {0};
        READ(&g, node_doc_read, &d);
        for (size_t k = 0; k < d.node.gpus_len; k++)
            got[k] = d.node.gpus[k].unhealthy ? '-' : '+';
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: %s, not %s", rows[i].label, got, rows[i].want);
    }
}

static void invalid_nodes_are_rejected(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"{}",                                        "id: missing"                     },
        {"{id: n, count: 3}",                         "count: is only for cluster files"},
        {"{id: n, count: 0}",                         "count: is only for cluster files"},
        {"{id: n, state: gone}",                      "state: expected one of"          },
        {"{id: n, epoch: -1}",                        "epoch: expected a whole number"  },
        {"{id: n, seq: '3'}",                         "seq: expected a whole number"    },
        {"{id: n, gpus: {count: 65}}",                "gpus: more than 64"              },
        {"{id: n, gpus: {count: 2, uuid: G}}",        "uuid: identifies one device"     },
        {"{id: n, gpus: [{uuid: G}, {}, {uuid: G}]}", "uuid: \"G\" is listed twice"     },
        {"{id: n, adress: x}",                        "did you mean \"address\"?"       },
        {"{id: n, labels: [a]}",                      "labels: expected an object"      },
        {"{id: n, allocatable: {cpu: x}}",            "allocatable: cpu"                },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct node_doc d = {.seq = 5};
        REFUSED(&rows[i], &g, node_doc_read(g.doc, &g.arena, &d, &g.err));
        assert_int_equal(d.seq, 5);
    }
}

static void volumes(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: maps, generation: 2, zone: north, shared: true, owner: a, group: g}");
    struct volume_doc d = {0};
    READ(&g, volume_doc_read, &d);
    assert_string_equal(d.volume.id, "maps");
    assert_string_equal(d.meta.id, "maps");
    assert_string_equal(d.owner, "a");
    assert_int_equal(d.meta.generation, 2);
    assert_true(d.volume.shared);
    assert_int_equal(d.type, VOLUME_LOCAL);
    CLEANUP(given) struct given bind = given("{id: etc, type: bind, path: /etc}");
    READ(&bind, volume_doc_read, &d);
    assert_int_equal(d.type, VOLUME_BIND);
    assert_string_equal(d.path, "/etc");
    CLEANUP(given) struct given memory = given("{id: maps, type: tmpfs, size: 64Mi}");
    READ(&memory, volume_doc_read, &d);
    assert_int_equal(d.size_bytes, 64 << 20);

    static const struct refusal rows[] = {
        {"{zone: north}",                        "id: missing"              },
        {"{id: v, shared: 1}",                   "shared: expected"         },
        {"{id: v, bytes: 1}",                    "unknown key"              },
        {"{id: v, type: disk}",                  "type: expected one of"    },
        {"{id: v, type: bind}",                  "path: missing"            },
        {"{id: v, path: /etc}",                  "path: is only for volumes"},
        {"{id: v, type: bind, path: etc}",       "an absolute path"         },
        {"{id: v, type: bind, path: /a/../etc}", "must not have '..'"       },
        {"{id: v, type: tmpfs}",                 "size: missing"            },
        {"{id: v, size: 1Gi}",                   "size: is only for volumes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, volume_doc_read(bad.doc, &bad.arena, &d, &bad.err));
        assert_string_equal(d.volume.id, "maps");
    }
}

static void secret_document_is_read_or_refused(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: db.alice, name: db, owner: alice, keys: {password: 8}, sealed: xyz}");
    struct secret_doc d = {0};
    READ(&g, secret_doc_read, &d);
    assert_string_equal(d.meta.id, "db.alice");
    assert_string_equal(d.sealed, "xyz");
    assert_int_equal(json_integer_value(json_object_get(d.keys, "password")), 8);
    static const struct refusal rows[] = {
        {"{id: a.b, keys: {}}",                              "sealed: missing"        },
        {"{id: a.b, sealed: x}",                             "keys: missing"          },
        {"{id: a.b, keys: {}, sealed: x, data: {a: plain}}", "data: must be encrypted"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, secret_doc_read(bad.doc, &bad.arena, &d, &bad.err));
        assert_null(strstr(bad.err.text, "plain"));
    }
}

static void a_resource_is_named_by_its_id(void **state)
{
    (void)state;
    struct doc_meta meta = {0};
    struct berth_resource resource = {0};
    CLEANUP(given) struct given g = given("{id: traffic, kind: cumulative, period: 30d}");
    READ(&g, resource_doc_read, &meta, &resource);
    assert_string_equal(resource.name, "traffic");
    assert_int_equal(resource.kind, BERTH_CUMULATIVE);

    CLEANUP(given) struct given named = given("{id: hugepages-2mi, name: hugepages-2Mi}");
    READ(&named, resource_doc_read, &meta, &resource);
    assert_string_equal(resource.name, "hugepages-2Mi");
    assert_string_equal(meta.id, "hugepages-2mi");

    CLEANUP(given) struct given unnamed = given("{kind: instant}");
    assert_true(resource_doc_read(unnamed.doc, &unnamed.arena, &meta, &resource, &unnamed.err) < 0);
    assert_string_equal(unnamed.err.text, "id: missing");
}

static void a_profile_is_named_by_its_id(void **state)
{
    (void)state;
    struct doc_meta meta = {0};
    struct berth_profile profile = {0};
    CLEANUP(given) struct given g = given("{id: mine, scores: {least_allocated: 2}}");
    READ(&g, profile_doc_read, &meta, &profile);
    assert_string_equal(profile.name, "mine");
    assert_int_equal(profile.scores_len, 1);

    static const struct refusal rows[] = {
        {"{scores: {}}",                  "id: missing"       },
        {"{id: p, scores: {nothing: 1}}", "there is no score" },
        {"{id: p, filters: [nothing]}",   "there is no filter"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, profile_doc_read(bad.doc, &bad.arena, &meta, &profile, &bad.err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_document_has_file_and_daemon_keys),
        cmocka_unit_test(gpu_health_follows_the_agent_report),
        cmocka_unit_test(invalid_nodes_are_rejected),
        cmocka_unit_test(volumes),
        cmocka_unit_test(secret_document_is_read_or_refused),
        cmocka_unit_test(a_resource_is_named_by_its_id),
        cmocka_unit_test(a_profile_is_named_by_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
