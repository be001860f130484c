/* run_doc_test.c - keys of how a workload runs: mounts, health checks, stopping. */
#include <errno.h>

#include "wire/doc/doc_kit_test.h"

static const char whole[] =
    "{id: web.alice, owner: alice, endpoints: [http, {name: admin, listen: socket}], volumes: [maps],"
    " mounts: [{path: /data, volume: data}, {path: /maps, volume: maps, read_only: true},"
    "          {path: /host, bind: /var/lib/x}, {path: /tmp, tmpfs: 64Mi}],"
    " files: [{path: /etc/app.conf, text: 'a = 1'}, {path: /run/password, secret: db, key: password},"
    "         {path: /etc/run.sh, mode: '0755', text: ''}],"
    " health: {http: {endpoint: http, path: /healthz}, every: 5s, timeout: 500ms, delay: 1m, failures: 2},"
    " stop: {signal: SIGINT, grace: 30s, delay: 2s}, log: {size: 1Mi, files: 5},"
    " rlimits: {nofile: 4096, stack: 8Mi}, exclusive: {card: [card0, card1], licence: a},"
    " restart_policy: on-failure}";

static void every_key_has_its_field(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given(whole);
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    const struct work_run *run = &d.run;
    assert_int_equal(d.endpoints[0].listen, LISTEN_PORT);
    assert_int_equal(d.endpoints[1].listen, LISTEN_SOCKET);
    assert_int_equal(run->mounts_len, 4);
    assert_string_equal(run->mounts[0].volume, "data");
    assert_true(run->mounts[1].read_only);
    assert_string_equal(run->mounts[2].bind, "/var/lib/x");
    assert_int_equal(run->mounts[3].tmpfs_bytes, 64 << 20);
    assert_int_equal(d.workload.shape.volumes_len, 2); /* maps is mounted twice but listed once */
    assert_string_equal(d.workload.shape.volumes[0], "maps");
    assert_string_equal(d.workload.shape.volumes[1], "data");
    assert_int_equal(run->files_len, 3);
    assert_int_equal(run->files[0].mode, 0644);
    assert_int_equal(run->files[1].mode, 0400);
    assert_string_equal(run->files[1].key, "password");
    assert_int_equal(run->files[2].mode, 0755);
    assert_int_equal(run->health.how, HEALTH_HTTP);
    assert_string_equal(run->health.path, "/healthz");
    assert_int_equal(run->health.every_ns, 5000000000);
    assert_int_equal(run->health.timeout_ns, 500000000);
    assert_int_equal(run->health.delay_ns, 60000000000);
    assert_int_equal(run->health.failures, 2);
    assert_string_equal(run->stop.signal, "INT");
    assert_int_equal(run->stop.grace_ns, 30000000000);
    assert_int_equal(run->stop.delay_ns, 2000000000);
    assert_int_equal(run->log.bytes, 1 << 20);
    assert_int_equal(run->log.files, 5);
    assert_int_equal(run->rlimits_len, 2);
    assert_int_equal(run->rlimits[1].amount, 8 << 20);
    assert_int_equal(run->exclusive_len, 2);
    assert_int_equal(run->exclusive[0].names_len, 2);
    assert_string_equal(run->exclusive[1].names[0], "a");
    assert_int_equal(run->restart_policy, RESTART_ON_FAILURE);
    assert_int_equal(run->retries, -1);
}

static void missing_keys_have_defaults(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: '7'}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_int_equal(d.run.health.how, HEALTH_NONE);
    assert_false(d.run.stop.given);
    assert_int_equal(d.run.log.bytes, 0);
    assert_int_equal(d.run.restart_policy, RESTART_DEFAULT);
    assert_false(d.workload.suspended);
    CLEANUP(given) struct given over = given("{id: '7', failed: true, error: no such file}");
    READ(&over, work_doc_read, &d);
    assert_true(d.workload.suspended);
    assert_string_equal(d.error, "no such file");
}

static void errors_name_the_key(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"{id: a, mounts: [{path: data, tmpfs: 1Mi}]}",                             "mounts[0]: path: expected an absolute path"},
        {"{id: a, mounts: [{path: /, tmpfs: 1Mi}]}",                                "mounts[0]: path: expected an absolute path"},
        {"{id: a, mounts: [{path: /a/../b, tmpfs: 1Mi}]}",                          "must not have '..'"                        },
        {"{id: a, mounts: [{path: /a/.., tmpfs: 1Mi}]}",                            "must not have '..'"                        },
        {"{id: a, mounts: [{path: \"/a\\nb\", tmpfs: 1Mi}]}",                       "control character"                         },
        {"{id: a, mounts: [{path: /a}]}",                                           "expected one of volume, bind and tmpfs"    },
        {"{id: a, mounts: [{path: /a, volume: v, tmpfs: 1Mi}]}",                    "expected one of volume, bind and tmpfs"    },
        {"{id: a, mounts: [{path: /a, tmpfs: 0}]}",                                 "tmpfs: expected a size"                    },
        {"{id: a, mounts: [{path: /a, tmpfs: 1Mi}], files: [{path: /a, text: b}]}", "files: /a is listed twice"                 },
        {"{id: a, files: [{path: /a}]}",                                            "expected text, or secret and key"          },
        {"{id: a, files: [{path: /a, text: b, secret: c}]}",                        "expected text, or secret and key"          },
        {"{id: a, files: [{path: /a, secret: c}]}",                                 "files[0]: key: missing"                    },
        {"{id: a, files: [{path: /a, text: b, mode: '0888'}]}",                     "mode: expected octal"                      },
        {"{id: a, files: [{path: /a, text: b, mode: '1777'}]}",                     "mode: expected octal"                      },
        {"{id: a, health: {every: 5s}}",                                            "expected one of exec, http and tcp"        },
        {"{id: a, health: {exec: [x], tcp: b}}",                                    "expected one of exec, http and tcp"        },
        {"{id: a, health: {exec: []}}",                                             "health: exec: expected a program"          },
        {"{id: a, health: {tcp: web}}",                                             "health: there is no endpoint web"          },
        {"{id: a, endpoints: [web], health: {http: {endpoint: web, path: x}}}",     "path: expected a path"                     },
        {"{id: a, endpoints: [web], health: {tcp: web, every: 1ms}}",               "every: at least"                           },
        {"{id: a, endpoints: [web], health: {tcp: web, every: 1s, timeout: 1s}}",   "timeout: must be shorter"                  },
        {"{id: a, endpoints: [web], health: {tcp: web, failures: 0}}",              "failures: expected"                        },
        {"{id: a, endpoints: [{name: web, listen: pipe}]}",                         "listen: expected one of"                   },
        {"{id: a, stop: {signal: SIGNAL}}",                                         "stop: signal: expected the name"           },
        {"{id: a, stop: {grace: 25h}}",                                             "grace: expected a duration"                },
        {"{id: a, log: {size: 1}}",                                                 "log: size: expected a size"                },
        {"{id: a, log: {files: 0}}",                                                "log: files: expected"                      },
        {"{id: a, rlimits: {nofiles: 1}}",                                          "did you mean \"nofile\"?"                  },
        {"{id: a, exclusive: {card: []}}",                                          "exclusive: card: expected a list"          },
        {"{id: a, exclusive: {card: [x, x]}}",                                      "x is listed twice"                         },
        {"{id: a, restart_policy: sometimes}",                                      "restart_policy: expected one of"           },
        {"{id: a, retries: -1}",                                                    "retries: expected"                         },
        {"{id: a, image: x, rootfs: /srv/root}",                                    "rootfs: cannot be combined with an image"  },
        {"{id: a, image: x, pull: often}",                                          "pull: expected one of"                     },
        {"{id: a, image: x, run_as: root}",                                         "run_as: expected one of"                   },
        {"{id: a, run_as: owner}",                                                  "run_as: needs an image"                    },
        {"{id: a, pull: always}",                                                   "pull: needs an image"                      },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct work_doc d = {.weight = 77};
        REFUSED(&rows[i], &g, work_doc_read(g.doc, &g.arena, &d, &g.err));
        assert_int_equal(d.weight, 77);
    }
}

static void limits_are_enforced(void **state)
{
    (void)state;
    struct work_doc d;
    struct given g = {.doc = json_pack("{s:s, s:[], s:[{s:s, s:o}]}", "id", "a", "mounts", "files", "path", "/a",
                                       "text", json_null())};
    arena_init(&g.arena);
    for (int i = 0; i < 65; i++)
        (void)json_array_append_new(json_object_get(g.doc, "mounts"),
                                    json_pack("{s:s+, s:i}", "path", "/m", i % 2 ? "a" : "b", "tmpfs", 1 + i));
    assert_int_equal(work_doc_read(g.doc, &g.arena, &d, &g.err), -EINVAL);
    assert_non_null(strstr(g.err.text, "65 mounts; at most 64"));
    (void)json_object_del(g.doc, "mounts");
    char *text = mem_alloc(128 * 1024 + 2);
    memset(text, 'x', 128 * 1024 + 1);
    text[128 * 1024 + 1] = 0;
    (void)json_object_set_new(json_array_get(json_object_get(g.doc, "files"), 0), "text", json_string(text));
    assert_int_equal(work_doc_read(g.doc, &g.arena, &d, &g.err), -EINVAL);
    assert_non_null(strstr(g.err.text, "files[0]: text: has 131073 bytes"));
    mem_free(text);
    given_cleanup(&g);
}

static void signals_by_name(void **state)
{
    (void)state;
    assert_string_equal(signal_name_find("sigterm"), "TERM");
    assert_string_equal(signal_name_find("HUP"), "HUP");
    assert_null(signal_name_find("SIG"));
    assert_null(signal_name_find("9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_its_field), cmocka_unit_test(missing_keys_have_defaults),
        cmocka_unit_test(errors_name_the_key),     cmocka_unit_test(limits_are_enforced),
        cmocka_unit_test(signals_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
