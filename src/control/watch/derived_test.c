#include "control/watch/derived.h"

#include <errno.h>

#include "base/mem.h"
#include "control/api/permit.h"
#include "control/api/permit_kit_test.h"
#include "control/watch/derived_parts.h"
#include "wire/text/document.h"

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    world_open(w);
    world_put(w, KIND_GROUP, "lab", "{\"v\":1,\"id\":\"lab\"}");
    world_put(w, KIND_USER, "alice", "{\"v\":1,\"id\":\"alice\",\"group\":\"lab\",\"role\":\"user\"}");
    world_put(w, KIND_USER, "bob", "{\"v\":1,\"id\":\"bob\",\"role\":\"viewer\",\"disabled\":true}");
    world_put(
        w, KIND_NODE, "n1",
        "{\"v\":1,\"id\":\"n1\",\"zone\":\"east\",\"allocatable\":{\"cpu\":64,\"memory\":\"64Gi\"},\"gpus\":[{\"model\":\"x\"},{\"model\":\"x\"}],"
        "\"address\":\"10.0.0.1\"}");
    world_put(w, KIND_NODE, "n2", "{\"v\":1,\"id\":\"n2\",\"zone\":\"east\",\"allocatable\":{\"cpu\":64}}");
    world_put(w, KIND_NODE, "n3", "{\"v\":1,\"id\":\"n3\",\"zone\":\"west\",\"allocatable\":{\"cpu\":64}}");
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world_done(*state);
    mem_free(*state);
    return 0;
}

static void app_put(struct world *w, const char *name, const char *owner, unsigned generation, const char *more)
{
    CLEANUP(str) struct str text = {0};
    CLEANUP(str) struct str id = {0};

    str_addf(&id, "%s.%s", name, owner);
    str_addf(&text, "{\"v\":1,\"id\":\"%s\",\"name\":\"%s\",\"owner\":\"%s\",\"group\":\"lab\",\"generation\":%u%s}",
             id.at, name, owner, generation, more);
    world_put(w, KIND_APP, id.at, text.at);
}

static void instance_put(struct world *w, unsigned number, const char *work, const char *node, const char *state,
                         const char *more)
{
    CLEANUP(str) struct str text = {0};
    char id[24];

    str_addf(&text,
             "{\"v\":1,\"id\":%u,\"workload\":\"%s\",\"ordinal\":%u,\"node\":\"%s\",\"state\":\"%s\",\"of\":1%s%s}",
             number, work, number, node, state, strstr(more, "ready") ? "" : ",\"ready\":false", more);
    world_put(w, KIND_INSTANCE, str_u64(number, id), text.at);
}

static json_t *made(const struct world *w, int (*write)(const struct state *s, const char *id, struct str *to),
                    const char *id)
{
    CLEANUP(str) struct str text = {0};

    assert_int_equal(write(w->state, id, &text), 0);
    assert_null(strchr(text.at, '\n'));
    json_t *doc = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    return doc;
}

static void same_json(const json_t *found, const char *want)
{
    CLEANUP(json) json_t *expected = json_loads(want, JSON_DECODE_ANY, NULL);

    assert_non_null(expected);
    if (!found || !json_equal(found, expected)) {
        char *text = found ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        fail_msg("found %s\nnot %s", text ? text : "nothing", want);
    }
}

/* ---- node_config ------------------------------------------------------------------------------------------------ */

static void node_config_is_complete(void **state)
{
    struct world *w = *state;

    app_put(w, "photos", "alice", 1,
            ",\"command\":[\"/bin/photos\",\"--all\",\"a b\"],\"env\":{\"Z\":\"1\",\"A\":\"x=\\u0001\"},"
            "\"image\":\"photos:2\",\"workdir\":\"/srv\",\"runtime\":\"oci\",\"replicas\":3,\"index\":2,"
            "\"resources\":{\"memory\":\"1Gi\",\"cpu\":\"500m\"},\"gpu\":0.5,"
            "\"limits\":{\"memory\":\"2Gi\",\"cpu\":{\"amount\":1,\"max\":4},\"net\":{\"weight\":20}},"
            "\"endpoints\":[{\"name\":\"web\"},{\"name\":\"dns\",\"protocol\":\"udp\"}],"
            "\"settings\":{\"size\":3},\"settings_schema\":{\"size\":{\"type\":\"integer\"},"
            "\"name\":{\"type\":\"text\",\"default\":\"p\"}},\"install\":{\"disk\":\"big\"}");
    instance_put(w, 17, "photos.alice", "n1", "starting", ",\"gpus\":[1],\"usage\":{\"cpu\":{\"used\":1,\"limit\":2}}");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
    same_json(
        doc,
        "{\"node\":\"n1\",\"instances\":[{\"id\":17,\"workload\":\"photos.alice\",\"ordinal\":17,\"state\":\"run\","
        "\"generation\":1,\"kind\":\"app\",\"owner\":\"alice\",\"group\":\"lab\","
        "\"command\":[\"/bin/photos\",\"--all\",\"a b\"],\"env\":{\"A\":\"x=\\u0001\",\"Z\":\"1\"},"
        "\"image\":\"photos:2\",\"workdir\":\"/srv\",\"runtime\":\"oci\",\"gpus\":[1],\"gpu_milli\":500,"
        "\"requests\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"},"
        "\"limits\":{\"cpu\":{\"amount\":\"2\"},\"memory\":{\"amount\":\"2Gi\"},\"net\":{\"weight\":20}},"
        "\"ports\":[{\"endpoint\":\"web\",\"protocol\":\"tcp\",\"start\":10032,\"count\":16,"
        "\"listen\":\"port\",\"await\":true},"
        "{\"endpoint\":\"dns\",\"protocol\":\"udp\",\"start\":10033,\"count\":15,\"listen\":\"port\"}],"
        "\"settings\":{\"name\":\"p\",\"size\":3},\"install\":{\"disk\":\"big\"}}]}");
}

/* Ports that must accept connections before an instance is ready. */
static void awaited_ports_follow_health_check(void **state)
{
    static const struct {
        const char *keys;
        bool awaited;
    } rows[] = {
        {"\"endpoints\":[{\"name\":\"web\"}]",                                             true },
        {"\"endpoints\":[{\"name\":\"web\",\"await\":true}]",                              true },
        {"\"endpoints\":[{\"name\":\"web\",\"await\":false}]",                             false},
        {"\"endpoints\":[{\"name\":\"web\",\"listen\":\"socket\"}]",                       false},
        {"\"endpoints\":[{\"name\":\"web\",\"protocol\":\"udp\"}]",                        false},
        {"\"endpoints\":[{\"name\":\"web\"}],\"health\":{\"tcp\":{\"endpoint\":\"web\"}}", false},
        {"\"endpoints\":[{\"name\":\"web\"}],\"health\":{\"exec\":[\"/bin/true\"]}",       false},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char keys[256], name[16];
        (void)snprintf(name, sizeof name, "app%zu", i);
        (void)snprintf(keys, sizeof keys, ",\"index\":%zu,%s", i, rows[i].keys);
        app_put(w, name, "alice", 1, keys);
        (void)snprintf(name, sizeof name, "app%zu.alice", i);
        instance_put(w, (unsigned)i + 1, name, "n1", "starting", "");
        CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
        const json_t *told = json_array_get(json_object_get(doc, "instances"), i);
        const json_t *port = json_array_get(json_object_get(told, "ports"), 0);
        assert_non_null(port);
        if (json_is_true(json_object_get(port, "await")) != rows[i].awaited)
            fail_msg("%s: %s", rows[i].keys, rows[i].awaited ? "should be awaited" : "should not be awaited");
    }
}

static void node_config_has_gpu_uuids(void **state)
{
    struct world *w = *state;

    world_put(w, KIND_NODE, "n9",
              "{\"v\":1,\"id\":\"n9\",\"gpus\":[{\"uuid\":\"A\"},{\"uuid\":\"B\"},{\"model\":\"x\"}]}");
    app_put(w, "some", "alice", 1, ",\"gpu\":1");
    instance_put(w, 1, "some.alice", "n9", "assigned", ",\"gpus\":[1]");
    instance_put(w, 2, "some.alice", "n9", "assigned", ",\"gpus\":[2]");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n9");
    const json_t *list = json_object_get(doc, "instances");
    const json_t *named = json_object_get(json_array_get(list, 0), "gpu_uuids");
    assert_int_equal(json_array_size(named), 1);
    assert_string_equal(json_string_value(json_array_get(named, 0)), "B");
    assert_null(json_object_get(json_array_get(list, 1), "gpu_uuids")); /* the UUID is unknown */
}

static void node_config_has_image_pull_and_user(void **state)
{
    struct world *w = *state;

    app_put(w, "old", "alice", 1, ",\"image\":\"a:1\",\"pull\":\"missing\",\"run_as\":\"image\"");
    app_put(w, "new", "alice", 1, ",\"image\":\"a:1\",\"pull\":\"always\",\"run_as\":\"owner\"");
    instance_put(w, 1, "old.alice", "n1", "assigned", "");
    instance_put(w, 2, "new.alice", "n1", "assigned", "");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
    const json_t *list = json_object_get(doc, "instances");
    assert_null(json_object_get(json_array_get(list, 0), "pull"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "pull")), "always");
    assert_null(json_object_get(json_array_get(list, 0), "run_as"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "run_as")), "owner");
}

static void node_config_describes_vm(void **state)
{
    struct world *w = *state;

    app_put(w, "box", "alice", 1,
            ",\"image\":\"/srv/a.qcow2\",\"index\":0,\"resources\":{\"memory\":\"1Gi\"},"
            "\"endpoints\":[{\"name\":\"ssh\",\"guest\":22}],"
            "\"vm\":{\"disk\":\"1Gi\",\"kernel\":\"/boot/k\",\"append\":\"quiet\"}");
    instance_put(w, 1, "box.alice", "n1", "assigned", "");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
    const json_t *told = json_array_get(json_object_get(doc, "instances"), 0);
    assert_string_equal(json_string_value(json_object_get(told, "runtime")), "vm");
    CLEANUP(json) json_t *vm = json_deep_copy(json_object_get(told, "vm"));
    same_json(vm, "{\"disk\":1073741824,\"kernel\":\"/boot/k\",\"append\":\"quiet\",\"accel\":\"auto\"}");
    CLEANUP(json) json_t *ports = json_deep_copy(json_object_get(told, "ports"));
    same_json(ports, "[{\"endpoint\":\"ssh\",\"protocol\":\"tcp\",\"start\":10000,\"count\":16,\"listen\":\"port\","
                     "\"guest\":22}]");
}

static void node_config_has_run_options(void **state)
{
    struct world *w = *state;

    world_put(w, KIND_VOLUME, "data", "{\"v\":1,\"id\":\"data\",\"node\":\"n1\"}");
    world_put(w, KIND_VOLUME, "etc", "{\"v\":1,\"id\":\"etc\",\"type\":\"bind\",\"path\":\"/etc/web\"}");
    world_put(w, KIND_VOLUME, "fast", "{\"v\":1,\"id\":\"fast\",\"type\":\"tmpfs\",\"size\":\"1Mi\"}");
    app_put(
        w, "web", "alice", 1,
        ",\"rootfs\":\"/srv/root\",\"replicas\":3,\"index\":0,"
        "\"endpoints\":[{\"name\":\"http\",\"listen\":\"socket\"}],"
        "\"mounts\":[{\"path\":\"/data\",\"volume\":\"data\"},{\"path\":\"/etc\",\"volume\":\"etc\",\"read_only\":true},"
        "{\"path\":\"/fast\",\"volume\":\"fast\"},{\"path\":\"/host\",\"bind\":\"/opt\"},{\"path\":\"/tmp\",\"tmpfs\":\"2Mi\"}],"
        "\"files\":[{\"path\":\"/a\",\"text\":\"x\"},{\"path\":\"/b\",\"secret\":\"db\",\"key\":\"pw\"}],"
        "\"health\":{\"http\":{\"endpoint\":\"http\"}},\"stop\":{\"signal\":\"sigint\"},\"log\":{\"files\":3},"
        "\"rlimits\":{\"stack\":1,\"nofile\":10},\"exclusive\":{\"z\":[\"b\",\"a\"],\"card\":\"c0\"}");
    instance_put(w, 1, "web.alice", "n1", "assigned", "");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
    same_json(
        doc,
        "{\"node\":\"n1\",\"instances\":[{\"id\":1,\"workload\":\"web.alice\",\"ordinal\":1,\"state\":\"run\","
        "\"generation\":1,\"kind\":\"app\",\"owner\":\"alice\",\"group\":\"lab\",\"rootfs\":\"/srv/root\","
        "\"ports\":[{\"endpoint\":\"http\",\"protocol\":\"tcp\",\"start\":10000,\"count\":16,\"listen\":\"socket\"}],"
        "\"rlimits\":{\"nofile\":10,\"stack\":1},\"exclusive\":{\"card\":[\"c0\"],\"z\":[\"b\",\"a\"]},"
        "\"mounts\":[{\"path\":\"/data\",\"volume\":\"data\"},"
        "{\"path\":\"/etc\",\"read_only\":true,\"volume\":\"etc\",\"source\":\"/etc/web\"},"
        "{\"path\":\"/fast\",\"tmpfs\":1048576},{\"path\":\"/host\",\"bind\":\"/opt\"},{\"path\":\"/tmp\",\"tmpfs\":2097152}],"
        "\"files\":[{\"path\":\"/a\",\"mode\":420,\"text\":\"x\"},"
        "{\"path\":\"/b\",\"mode\":256,\"secret\":\"db.alice\",\"key\":\"pw\"}],"
        "\"health\":{\"http\":{\"endpoint\":\"http\",\"path\":\"/\"},\"every_ns\":10000000000,"
        "\"timeout_ns\":2000000000,\"delay_ns\":0,\"failures\":3},"
        "\"stop\":{\"signal\":\"INT\",\"grace_ns\":10000000000},"
        "\"log\":{\"bytes\":10485760,\"files\":3}}]}");
}

static void node_config_lists_desired_instances_only(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *state, *want; /* NULL: not included */
    } rows[] = {
        {"reserved", NULL  },
        {"assigned", "run" },
        {"starting", "run" },
        {"running",  "run" },
        {"stopping", "stop"},
        {"ended",    NULL  },
    };

    app_put(w, "web", "alice", 1, ",\"replicas\":9");
    instance_put(w, 90, "web.alice", "n2", "running", "");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        instance_put(w, 10 + i, "web.alice", "n1", rows[i].state, "");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
    const json_t *list = json_object_get(doc, "instances");
    size_t at = 0;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].want)
            continue;
        const json_t *item = json_array_get(list, at++);
        assert_int_equal(json_integer_value(json_object_get(item, "id")), 10 + i);
        assert_string_equal(json_string_value(json_object_get(item, "state")), rows[i].want);
    }
    assert_int_equal(json_array_size(list), at);
}

/* Checks that the kept configuration equals a new one. */
static void expect_incremental_equals_full(const struct world *w, struct node_config *kept)
{
    CLEANUP(str) struct str text = {0};
    char hash[DERIVED_HASH_MAX];

    assert_int_equal(node_config_write(w->state, "n1", &text), 0);
    node_config_update(kept, w->state, state_find(w->state, KIND_NODE, "n1"));
    assert_string_equal(str_text(&kept->text), text.at);
    assert_string_equal(kept->hash, derived_hash(&text, hash));
}

static void incremental_node_config_equals_full_one(void **state)
{
    struct world *w = *state;
    struct node_config kept = {0};

    expect_incremental_equals_full(w, &kept);
    app_put(w, "web", "alice", 1, ",\"command\":[\"/old\"]");
    for (int i = 0; i < 4; i++) {
        instance_put(w, 5 + 2 * (unsigned)i, "web.alice", "n1", "starting", "");
        expect_incremental_equals_full(w, &kept);
    }
    instance_put(w, 8, "web.alice", "n1", "running", ""); /* inserted between two */
    expect_incremental_equals_full(w, &kept);
    instance_put(w, 5, "web.alice", "n1", "ended", ""); /* the first is removed */
    expect_incremental_equals_full(w, &kept);
    instance_put(w, 7, "web.alice", "n1", "stopping", "");
    expect_incremental_equals_full(w, &kept);
    world_put(
        w, KIND_SPEC, "web.alice/1",
        "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"generation\":1,\"command\":[\"/old\"]}");
    app_put(w, "web", "alice", 2, ",\"command\":[\"/new\"],\"settings\":{\"size\":4}");
    expect_incremental_equals_full(w, &kept);
    app_put(w, "web", "alice", 2, ",\"command\":[\"/new\"],\"settings\":{\"size\":5}");
    expect_incremental_equals_full(w, &kept);
    assert_non_null(strstr(kept.text.at, "\"size\":5"));
    node_config_done(&kept);
}

static void older_instance_keeps_spec_of_its_placement(void **state)
{
    struct world *w = *state;

    app_put(w, "web", "alice", 1, ",\"command\":[\"/old\"]");
    instance_put(w, 5, "web.alice", "n1", "running", "");
    world_put(
        w, KIND_SPEC, "web.alice/1",
        "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"generation\":1,\"command\":[\"/old\"]}");
    app_put(w, "web", "alice", 2, ",\"command\":[\"/new\"],\"restart\":3,\"settings\":{\"size\":4}");
    CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
    const json_t *item = json_array_get(json_object_get(doc, "instances"), 0);
    same_json(json_object_get(item, "command"), "[\"/old\"]");
    assert_int_equal(json_integer_value(json_object_get(item, "generation")), 1);
    assert_null(json_object_get(item, "restart"));                /* the planner replaces the outdated instance */
    same_json(json_object_get(item, "settings"), "{\"size\":4}"); /* settings are the present ones */

    /* The same after the workload is deleted. Without a spec there is nothing to run. */
    world_drop(w, KIND_APP, "web.alice");
    CLEANUP(json) json_t *gone = made(w, node_config_write, "n1");
    item = json_array_get(json_object_get(gone, "instances"), 0);
    same_json(json_object_get(item, "command"), "[\"/old\"]");
    world_drop(w, KIND_SPEC, "web.alice/1");
    CLEANUP(json) json_t *lost = made(w, node_config_write, "n1");
    same_json(lost,
              "{\"node\":\"n1\",\"instances\":[{\"id\":5,\"workload\":\"web.alice\",\"ordinal\":5,\"state\":\"stop\","
              "\"generation\":1}]}");
}

/* A disconnected agent must have stopped the instances that may be replaced elsewhere, and only these. */
static void fences_follow_the_workload(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *more;
        int64_t want_s; /* 0: no fence */
    } rows[] = {
        {"",                                         600},
        {",\"replicas\":2",                          0  },
        {",\"replicas\":2,\"on_lost\":\"fence\"",    600},
        {",\"on_lost\":\"fence\",\"fence\":\"30s\"", 30 },
        {",\"on_lost\":\"wait\"",                    0  },
        {",\"on_lost\":\"replace\"",                 0  },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        app_put(w, "web", "alice", 1, rows[i].more);
        instance_put(w, 5, "web.alice", "n1", "running", "");
        CLEANUP(json) json_t *doc = made(w, node_config_write, "n1");
        const json_t *item = json_array_get(json_object_get(doc, "instances"), 0);
        assert_int_equal(json_integer_value(json_object_get(item, "fence_ns")), rows[i].want_s * 1000000000);
    }
}

/* ---- services --------------------------------------------------------------------------------------------------- */

static void services_put(struct world *w)
{
    app_put(w, "web", "alice", 1,
            ",\"replicas\":9,\"index\":0,\"weight\":40,\"endpoints\":[{\"name\":\"http\"},{\"name\":\"admin\"}]");
    instance_put(
        w, 1, "web.alice", "n3", "running",
        ",\"ready\":true,\"ports\":[{\"endpoint\":\"http\",\"port\":10000},{\"endpoint\":\"admin\",\"port\":10001}]");
    instance_put(w, 2, "web.alice", "n1", "running",
                 ",\"ready\":true,\"ports\":[{\"endpoint\":\"http\",\"port\":10003}]");
    instance_put(w, 3, "web.alice", "n2", "starting", ",\"ports\":[{\"endpoint\":\"http\",\"port\":10004}]");
}

static void service_lists_reported_ports(void **state)
{
    struct world *w = *state;

    services_put(w);
    CLEANUP(json) json_t *doc = made(w, service_info_write, "web.alice");
    same_json(doc,
              "{\"service\":\"web.alice\",\"selector\":{\"app\":\"web.alice\",\"choose\":\"weighted\",\"instances\":["
              "{\"instance\":1,\"weight\":40},{\"instance\":2,\"weight\":40}]},\"endpoints\":[{\"name\":\"http\","
              "\"protocol\":\"tcp\",\"instances\":["
              "{\"instance\":1,\"node\":\"n3\",\"address\":\"n3\",\"port\":10000,\"weight\":40,\"ready\":true},"
              "{\"instance\":2,\"node\":\"n1\",\"address\":\"10.0.0.1\",\"port\":10003,\"weight\":40,\"ready\":true},"
              "{\"instance\":3,\"node\":\"n2\",\"address\":\"n2\",\"port\":10004,\"weight\":40,\"ready\":false}]},"
              "{\"name\":\"admin\",\"protocol\":\"tcp\",\"instances\":["
              "{\"instance\":1,\"node\":\"n3\",\"address\":\"n3\",\"port\":10001,\"weight\":40,\"ready\":true}]}]}");
}

/* In a migration the new instance is in the selector once it is ready, the old one until it begins to stop. */
static void selector_follows_a_migration(void **state)
{
    struct world *w = *state;
    static const char ports[] = "\"ports\":[{\"endpoint\":\"http\",\"port\":10000}]";
    static const struct {
        const char *was, *is, *want;
        bool ready;
    } rows[] = {
        {"running",  "reserved", "[{\"instance\":1,\"weight\":100}]",                                 false},
        {"running",  "starting", "[{\"instance\":1,\"weight\":100}]",                                 false},
        {"running",  "running",  "[{\"instance\":1,\"weight\":100},{\"instance\":2,\"weight\":100}]", true },
        {"stopping", "running",  "[{\"instance\":2,\"weight\":100}]",                                 true },
        {"ended",    "running",  "[{\"instance\":2,\"weight\":100}]",                                 true },
    };

    app_put(w, "web", "alice", 1, ",\"index\":0,\"endpoints\":[{\"name\":\"http\"}]");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str old = {0};
        CLEANUP(str) struct str fresh = {0};
        str_addf(&old, ",\"ready\":true,%s", ports);
        str_addf(&fresh, ",\"replaces\":1,\"ready\":%s,%s", rows[i].ready ? "true" : "false", ports);
        instance_put(w, 1, "web.alice", "n1", rows[i].was, old.at);
        instance_put(w, 2, "web.alice", "n2", rows[i].is, fresh.at);
        CLEANUP(json) json_t *doc = made(w, service_info_write, "web.alice");
        same_json(json_object_get(json_object_get(doc, "selector"), "instances"), rows[i].want);
    }
}

static void gateway_prefers_near_targets(void **state)
{
    struct world *w = *state;

    services_put(w);
    app_put(w, "alone", "alice", 1, ",\"index\":1,\"endpoints\":[{\"name\":\"x\"}]"); /* no instance, so no route */
    static const struct {
        const char *node;
        int order[2]; /* expected order of the instances of web.alice */
    } rows[] = {
        {"n1", {2, 1}},
        {"n2", {2, 1}}, /* in the zone of n1 */
        {"n3", {1, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(json) json_t *doc = made(w, gateway_config_write, rows[i].node);
        const json_t *routes = json_object_get(doc, "routes");
        assert_int_equal(json_array_size(routes), 2);
        same_json(json_object_get(json_array_get(routes, 1), "endpoint"), "\"admin\"");
        const json_t *targets = json_object_get(json_array_get(routes, 0), "targets");
        assert_int_equal(json_array_size(targets), 2); /* instance 3 is not ready */
        for (size_t t = 0; t < 2; t++)
            assert_int_equal(json_integer_value(json_object_get(json_array_get(targets, t), "instance")),
                             rows[i].order[t]);
    }
    CLEANUP(json) json_t *doc = made(w, gateway_config_write, "n1");
    same_json(json_array_get(json_object_get(json_array_get(json_object_get(doc, "routes"), 0), "targets"), 0),
              "{\"instance\":2,\"node\":\"n1\",\"address\":\"10.0.0.1\",\"port\":10003,\"weight\":40}");
}

/* Cached values never affect the result. */
static void cached_gateway_equals_new_gateway(void **state)
{
    struct world *w = *state;
    struct gateway_config *kept = gateway_new();
    unsigned seed = 7;

    services_put(w);
    for (unsigned i = 10; i < 30; i++) { /* on one node each, because they use the same ports */
        char id[8], text[64];
        (void)snprintf(id, sizeof id, "m%u", i);
        (void)snprintf(text, sizeof text, "{\"v\":1,\"id\":\"%s\",\"allocatable\":{\"cpu\":4}}", id);
        world_put(w, KIND_NODE, id, text);
    }
    for (unsigned round = 0; round < 300; round++) {
        seed = seed * 1103515245 + 12345;
        unsigned pick = seed >> 16 & 7, number = 10 + (seed >> 20) % 20;
        char id[24], node[8];
        (void)snprintf(node, sizeof node, "m%u", number);
        if (pick == 0)
            app_put(w, "web", "alice", 1,
                    seed >> 25 & 1 ? ",\"index\":0,\"weight\":7,\"endpoints\":[{\"name\":\"http\"}]"
                                   : ",\"index\":0,\"endpoints\":[{\"name\":\"http\"}]");
        else if (pick == 1)
            world_put(w, KIND_NODE, "n2",
                      seed >> 25 & 1 ? "{\"v\":1,\"id\":\"n2\",\"zone\":\"west\",\"allocatable\":{\"cpu\":64}}"
                                     : "{\"v\":1,\"id\":\"n2\",\"address\":\"a2\"}");
        else if (pick == 2 && state_find(w->state, KIND_INSTANCE, str_u64(number, id)))
            world_drop(w, KIND_INSTANCE, id);
        else
            instance_put(w, number, "web.alice", node, "running",
                         seed >> 25 & 1 ? ",\"ready\":true,\"ports\":[{\"endpoint\":\"http\",\"port\":10009}]"
                                        : ",\"ready\":true");
        CLEANUP(str) struct str before = {0};
        CLEANUP(str) struct str found = {0};
        CLEANUP(str) struct str want = {0};
        if (round)
            assert_int_equal(gateway_write(kept, w->state, "n3", &before), 0);
        bool differs = gateway_refresh(kept, w->state);
        assert_int_equal(gateway_write(kept, w->state, "n3", &found), 0);
        assert_int_equal(gateway_config_write(w->state, "n3", &want), 0);
        assert_string_equal(found.at, want.at);
        if (!differs)
            assert_string_equal(before.at, found.at);
    }
    assert_false(gateway_refresh(kept, w->state));
    gateway_free(kept);
}

static void lists_show_what_the_caller_may_see(void **state)
{
    struct world *w = *state;
    struct arena arena;
    static const struct {
        enum scope scope;
        const char *user, *group;
        size_t want;
    } rows[] = {
        {SCOPE_ALL,   "root",  "",    3},
        {SCOPE_GROUP, "carol", "lab", 2},
        {SCOPE_GROUP, "carol", "",    0},
        {SCOPE_OWN,   "alice", "lab", 1},
        {SCOPE_OWN,   "dave",  "lab", 0},
        {SCOPE_NONE,  "alice", "lab", 0},
    };

    arena_init(&arena);
    app_put(w, "web", "alice", 1, "");
    app_put(w, "web", "bob", 1, "");
    world_put(w, KIND_APP, "web.eve",
              "{\"v\":1,\"id\":\"web.eve\",\"name\":\"web\",\"owner\":\"eve\",\"generation\":1}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct caller caller = {.user = rows[i].user, .group = rows[i].group, .role = "", .node = "", .token = ""};
        caller.scope[PERMIT_READ] = rows[i].scope;
        CLEANUP(json) json_t *doc = made(w, services_write, services_scope(&caller, &arena));
        assert_int_equal(json_array_size(json_object_get(doc, "items")), rows[i].want);
    }
    arena_done(&arena);
}

/* ---- permissions ------------------------------------------------------------------------------------------------ */

static void rbac_table_lists_all_subjects(void **state)
{
    struct world *w = *state;

    world_put(w, KIND_ROLE, "helper", "{\"v\":1,\"id\":\"helper\",\"permissions\":{\"manage\":\"group\"}}");
    world_put(w, KIND_USER, "carol", "{\"v\":1,\"id\":\"carol\",\"role\":\"helper\"}");
    world_put(w, KIND_USER, "dave", "{\"v\":1,\"id\":\"dave\",\"role\":\"vanished\"}");
    app_put(w, "web", "alice", 1, "");
    CLEANUP(json) json_t *doc = made(w, rbac_write, "");
    same_json(doc, "{\"subjects\":["
                   "{\"user\":\"alice\",\"group\":\"lab\",\"role\":\"user\",\"permissions\":{\"read\":\"own\","
                   "\"cluster\":\"all\",\"submit\":\"own\",\"manage\":\"own\"}},"
                   "{\"user\":\"bob\",\"group\":\"\",\"role\":\"viewer\",\"disabled\":true,\"permissions\":{}},"
                   "{\"user\":\"carol\",\"group\":\"\",\"role\":\"helper\",\"permissions\":{\"manage\":\"group\"}},"
                   "{\"user\":\"dave\",\"group\":\"\",\"role\":\"vanished\",\"permissions\":{}}],"
                   "\"nodes\":[{\"node\":\"n1\",\"permissions\":{\"report\":\"own\"}},"
                   "{\"node\":\"n2\",\"permissions\":{\"report\":\"own\"}},"
                   "{\"node\":\"n3\",\"permissions\":{\"report\":\"own\"}}],"
                   "\"apps\":[{\"app\":\"web.alice\",\"owner\":\"alice\",\"group\":\"lab\"}]}");
}

/* An agent reads only the users with instances on its node. */
static void rbac_table_of_node_is_restricted(void **state)
{
    struct world *w = *state;

    world_put(w, KIND_USER, "carol", "{\"v\":1,\"id\":\"carol\",\"role\":\"admin\"}");
    app_put(w, "web", "alice", 1, "");
    app_put(w, "db", "carol", 1, "");
    app_put(w, "gone", "carol", 1, "");
    instance_put(w, 1, "web.alice", "n1", "running", "");
    instance_put(w, 2, "db.carol", "n2", "running", "");
    instance_put(w, 3, "gone.carol", "n1", "ended", "");
    CLEANUP(json) json_t *doc = made(w, rbac_write, "n1");
    same_json(doc, "{\"subjects\":["
                   "{\"user\":\"alice\",\"group\":\"lab\",\"role\":\"user\",\"permissions\":{\"read\":\"own\","
                   "\"cluster\":\"all\",\"submit\":\"own\",\"manage\":\"own\"}}],"
                   "\"nodes\":[{\"node\":\"n1\",\"permissions\":{\"report\":\"own\"}}],"
                   "\"apps\":[{\"app\":\"web.alice\",\"owner\":\"alice\",\"group\":\"lab\"}]}");
    CLEANUP(json) json_t *none = made(w, rbac_write, "n3");
    same_json(none, "{\"subjects\":[],\"nodes\":[{\"node\":\"n3\",\"permissions\":{\"report\":\"own\"}}],\"apps\":[]}");
}

/* ---- all documents ---------------------------------------------------------------------------------------------- */

static void missing_objects_write_nothing(void **state)
{
    const struct world *w = *state;
    CLEANUP(str) struct str text = {0};

    assert_int_equal(node_config_write(w->state, "n9", &text), -ENOENT);
    assert_int_equal(gateway_config_write(w->state, "n9", &text), -ENOENT);
    assert_int_equal(service_info_write(w->state, "n1", &text), -ENOENT);
    assert_int_equal(text.len, 0);
}

/* The same content gives the same bytes, whatever the order of arrival and the history. */
static void bytes_depend_on_content_only(void **state)
{
    struct world *w = *state, other;
    static const struct {
        int (*write)(const struct state *s, const char *id, struct str *to);
        const char *id;
    } rows[] = {
        {node_config_write,    "n1"       },
        {gateway_config_write, "n2"       },
        {service_info_write,   "web.alice"},
        {rbac_write,           ""         },
        {services_write,       "3//"      },
    };
    static const char env[] = ",\"env\":{\"A\":\"1\",\"B\":\"2\"},\"limits\":{\"cpu\":1,\"memory\":5},\"replicas\":5";
    static const char swapped[] =
        ",\"replicas\":5,\"limits\":{\"memory\":5,\"cpu\":1},\"env\":{\"B\":\"2\",\"A\":\"1\"}";

    app_put(w, "web", "alice", 1, env);
    instance_put(w, 1, "web.alice", "n1", "running", "");
    instance_put(w, 2, "web.alice", "n1", "running", ",\"ready\":true");
    world_open(&other);
    world_put(&other, KIND_NODE, "n3", "{\"v\":1,\"id\":\"n3\",\"zone\":\"west\",\"allocatable\":{\"cpu\":64}}");
    world_put(&other, KIND_NODE, "n2", "{\"v\":1,\"id\":\"n2\",\"zone\":\"east\",\"allocatable\":{\"cpu\":64}}");
    world_put(&other, KIND_NODE, "n1",
              "{\"v\":1,\"id\":\"n1\",\"address\":\"10.0.0.1\",\"zone\":\"east\",\"allocatable\":{"
              "\"memory\":\"64Gi\",\"cpu\":64},\"gpus\":[{\"model\":\"x\"},{\"model\":\"x\"}]}");
    app_put(&other, "web", "alice", 1, swapped);
    instance_put(&other, 2, "web.alice", "n1", "assigned", "");
    instance_put(&other, 1, "web.alice", "n1", "running", "");
    instance_put(&other, 2, "web.alice", "n1", "running", ",\"ready\":true");
    world_put(&other, KIND_USER, "bob", "{\"v\":1,\"id\":\"bob\",\"role\":\"viewer\",\"disabled\":true}");
    world_put(&other, KIND_USER, "alice", "{\"v\":1,\"id\":\"alice\",\"group\":\"lab\",\"role\":\"user\"}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str a = {0};
        CLEANUP(str) struct str b = {0};
        char a_hash[DERIVED_HASH_MAX], b_hash[DERIVED_HASH_MAX];
        assert_int_equal(rows[i].write(w->state, rows[i].id, &a), 0);
        assert_int_equal(rows[i].write(other.state, rows[i].id, &b), 0);
        assert_string_equal(a.at, b.at);
        assert_string_equal(derived_hash(&a, a_hash), derived_hash(&b, b_hash));
        str_add_char(&b, ' ');
        assert_string_not_equal(a_hash, derived_hash(&b, b_hash));
    }
    world_done(&other);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(node_config_is_complete),
        CASE(awaited_ports_follow_health_check),
        CASE(node_config_has_gpu_uuids),
        CASE(node_config_has_image_pull_and_user),
        CASE(node_config_describes_vm),
        CASE(node_config_has_run_options),
        CASE(node_config_lists_desired_instances_only),
        CASE(older_instance_keeps_spec_of_its_placement),
        CASE(incremental_node_config_equals_full_one),
        CASE(fences_follow_the_workload),
        CASE(service_lists_reported_ports),
        CASE(selector_follows_a_migration),
        CASE(gateway_prefers_near_targets),
        CASE(cached_gateway_equals_new_gateway),
        CASE(lists_show_what_the_caller_may_see),
        CASE(rbac_table_lists_all_subjects),
        CASE(rbac_table_of_node_is_restricted),
        CASE(missing_objects_write_nothing),
        CASE(bytes_depend_on_content_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
