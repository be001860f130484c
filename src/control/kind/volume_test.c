/* volume_test.c - volumes: types, who may use folders of a node, and the node that keeps the data. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define BOB "user:bob"
#define CAROL "user:carol"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    for (int i = 1; i <= 3; i++) {
        char body[96];
        (void)snprintf(body, sizeof body, "{id: n%d, allocatable: {cpu: 8, memory: 8Gi, attach-disk: 4}}", i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static void node_folders_need_permission_over_nodes(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *method, *url, *body;
        int status;
    } rows[] = {
        {ALICE, "POST",   "/v1/volumes",      "{id: etc, type: bind, path: /etc}",                                       403},
        {CAROL, "POST",   "/v1/volumes",      "{id: etc, type: bind, path: /etc}",                                       403},
        {ALICE, "POST",   "/v1/volumes",      "{id: etc, kind: bind, path: /etc}",                                       403},
        {ADMIN, "POST",   "/v1/volumes",      "{id: etc, kind: bind, path: /etc, owner: alice}",                         201},
        {ALICE, "PATCH",  "/v1/volumes/etc",  "{path: /root}",                                                           403},
        {ALICE, "PATCH",  "/v1/volumes/etc",  "{display: x}",                                                            200},
        {ALICE, "POST",   "/v1/apps",         "{name: a, mounts: [{path: /e, volume: etc}]}",                            201},
        {BOB,   "POST",   "/v1/apps",         "{name: a, mounts: [{path: /e, volume: etc}]}",                            400},
        {ADMIN, "PATCH",  "/v1/volumes/etc",  "{path: /opt}",                                                            409},
        {ADMIN, "DELETE", "/v1/volumes/etc",  NULL,                                                                      409},
        {ALICE, "POST",   "/v1/apps",         "{name: b, mounts: [{path: /e, bind: /etc}]}",                             403},
        {ALICE, "POST",   "/v1/apps",         "{name: b, rootfs: /srv}",                                                 403},
        {ALICE, "POST",   "/v1/jobs",         "{rootfs: /srv}",                                                          403},
        {ALICE, "POST",   "/v1/jobs",         "{image: \"oci:/srv/layout:v1\"}",                                         403},
        {ALICE, "POST",   "/v1/vms",          "{name: v, image: /srv/a.qcow2, vm: {}, resources: {memory: 1Gi}}",        403},
        {ALICE, "POST",   "/v1/vms",          "{name: v, vm: {kernel: /boot/k}, resources: {memory: 1Gi}}",              403},
        {ALICE, "POST",   "/v1/vms",          "{name: v, runtime: vm, resources: {memory: 1Gi}}",                        400},
        {ADMIN, "POST",   "/v1/vms",          "{name: v, vm: {kernel: /boot/k}, resources: {memory: 1Gi}}",              201},
        {ADMIN, "POST",   "/v1/apps",         "{name: b, owner: alice, rootfs: /srv, mounts: [{path: /e, bind: /etc}]}", 201},
        {ALICE, "POST",   "/v1/apps/b/scale", "{replicas: 2}",                                                           200},
        {ALICE, "PATCH",  "/v1/apps/b",       "{mounts: [{path: /e, bind: /root}]}",                                     403},
        {ALICE, "PATCH",  "/v1/apps/b",       "{mounts: [{path: /tmp, tmpfs: 1Mi}]}",                                    403},
        {ALICE, "PATCH",  "/v1/apps/b",       "{mounts: [{path: /tmp, tmpfs: 1Mi}], rootfs: null}",                      200},
        {ALICE, "PATCH",  "/v1/apps/b",       "{rootfs: /srv}",                                                          403},
        {ALICE, "POST",   "/v1/volumes",      "{id: m, type: tmpfs}",                                                    400},
        {ALICE, "POST",   "/v1/volumes",      "{id: m, type: tmpfs, size: 1Mi}",                                         201},
        {ALICE, "PATCH",  "/v1/volumes/m",    "{size: 2Mi}",                                                             200},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status = kit_call(k, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        if (status != rows[i].status)
            fail_msg("row %zu: %d: %s", i, status, k->text);
    }
}

static void invalid_keys_are_rejected(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *url, *body, *words;
    } rows[] = {
        {"/v1/jobs", "{restart_policy: always}",                    "expected on-failure or never"},
        {"/v1/jobs", "{restart_policy: never, retries: 2}",         "retries: not allowed"        },
        {"/v1/apps", "{name: a, retries: 2}",                       "retries: is only for jobs"   },
        {"/v1/apps", "{name: a, mounts: [{path: /a, volume: no}]}", "there is no volume"          },
        {"/v1/apps", "{name: a, health: {http: web}}",              "health: there is no endpoint"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, 400, ALICE, "POST", rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
    }
}

static const char *node_of(struct kit *k, const char *volume)
{
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/volumes/%s", volume);
    CALL(k, 200, ALICE, "GET", url, NULL);
    return kit_text(k, "node");
}

static void volume_stays_on_its_node(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *volume;
        bool pinned;
    } rows[] = {
        {"{id: vol-0}",                         true },
        {"{id: vol-1, type: local}",            true },
        {"{id: vol-2, driver: disk}",           false},
        {"{id: vol-3, shared: true}",           false},
        {"{id: vol-4, type: tmpfs, size: 1Mi}", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[128], url[32], id[16], first[8];
        (void)snprintf(id, sizeof id, "vol-%zu", i);
        CALL(k, 201, ALICE, "POST", "/v1/volumes", rows[i].volume);
        (void)snprintf(body, sizeof body, "{name: a%zu, mounts: [{path: /data, volume: %s}], requests: {cpu: 1}}", i,
                       id);
        CALL(k, 201, ALICE, "POST", "/v1/apps", body);
        assert_string_equal(node_of(k, id), "");
        kit_plan(k);
        (void)snprintf(url, sizeof url, "/v1/apps/a%zu", i);
        CALL(k, 200, ALICE, "GET", url, NULL);
        (void)snprintf(first, sizeof first, "%s", kit_text(k, "status/instances/0/node"));
        assert_true(first[0]);
        assert_string_equal(node_of(k, id), rows[i].pinned ? first : "");
    }
    /* One journal record contains both the instance and the volume. */
    CALL(k, 200, ADMIN, "GET", "/v1/audit?all=true", NULL);
    const json_t *items = kit_at(k, "items");
    bool together = false;
    for (size_t i = 0; i < json_array_size(items); i++) {
        char *text = json_dumps(json_array_get(items, i), JSON_COMPACT);
        together = together || (strstr(text, "volumes/vol-0") && strstr(text, "instances/"));
        free(text);
    }
    assert_true(together);
    /* Replacing the document keeps the volume's node, and a new app with the volume is placed there, however empty
     * other nodes are. */
    CLEANUP(mem) char *at = mem_strdup(node_of(k, "vol-0"));
    CALL(k, 200, ALICE, "PUT", "/v1/volumes/vol-0", "{display: pictures}");
    assert_string_equal(node_of(k, "vol-0"), at);
    CALL(k, 204, ALICE, "DELETE", "/v1/apps/a0", NULL);
    kit_plan(k);
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/nodes/%s/cordon", at);
    CALL(k, 200, ADMIN, "POST", url, NULL);
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: b, mounts: [{path: /data, volume: vol-0}], requests: {cpu: 1}}");
    kit_plan(k);
    CALL(k, 200, ALICE, "GET", "/v1/apps/b", NULL);
    assert_int_equal(kit_number(k, "status/placed"), 0);
    (void)snprintf(url, sizeof url, "/v1/nodes/%s/enable", at);
    CALL(k, 200, ADMIN, "POST", url, NULL);
    kit_plan(k);
    CALL(k, 200, ALICE, "GET", "/v1/instances?workload=b.alice", NULL);
    assert_string_equal(kit_text(k, "items/0/node"), at);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
    const struct CMUnitTest tests[] = {
        CASE(node_folders_need_permission_over_nodes),
        CASE(invalid_keys_are_rejected),
        CASE(volume_stays_on_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
