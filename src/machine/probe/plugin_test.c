/* plugin_test.c - real plugins in a real directory. */
#include "machine/probe/plugin.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/launch/folder_test.h"
#include "wire/text/document.h"

#define MS INT64_C(1000000)

static json_t *json_of(const char *text)
{
    json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static void text_cleanup(char **text)
{
    free(*text);
}

static void same(const json_t *got, const char *want)
{
    CLEANUP(json) json_t *doc = json_of(want);
    CLEANUP(text) char *text = json_dumps(got, JSON_SORT_KEYS);
    if (!json_equal(got, doc))
        fail_msg("got %s", text);
}

static void program_put(const struct folder *f, const char *name, const char *text)
{
    folder_put(f, name, text);
    assert_int_equal(chmod(folder_at(f, name), 0755), 0);
}

/* Returns the texts of all conditions, one per line. */
static const char *texts(const json_t *conditions)
{
    static char buf[4096];
    size_t i, len = 0;
    const json_t *c;
    *buf = '\0';
    json_array_foreach(conditions, i, c)
    {
        assert_string_equal(json_string_value(json_object_get(c, "type")), "PluginFailed");
        len += (size_t)snprintf(buf + len, sizeof buf - len, "%s\n", json_string_value(json_object_get(c, "text")));
        assert_true(len < sizeof buf);
    }
    return buf;
}

/* ---- names and documents ---------------------------------------------------------------------------------------- */

static void names_need_a_vendor(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool ok;
    } rows[] = {
        {"vendor.example/thing",    true },
        {"a.b/Thing_2.x-1",         true },
        {"my-firm.co.example/x",    true },
        {"cpu",                     false},
        {"memory",                  false},
        {"hugepages-2Mi",           false},
        {"vendor/thing",            false},
        {"vendor.example/",         false},
        {"/thing",                  false},
        {".example/thing",          false},
        {"vendor./thing",           false},
        {"Vendor.example/thing",    false},
        {"vendor.example/a/b",      false},
        {"vendor.example/a b",      false},
        {"vendor.example/\xc3\xa4", false},
        {"",                        false},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        if (plugin_name_ok(rows[i].name) != rows[i].ok)
            fail_msg("\"%s\"", rows[i].name);
}

static void plugin_output_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *said, *error; /* NULL: none */
    } rows[] = {
        {"{}",                                                                                                      NULL                                                       },
        {"{\"resources\": {\"v.e/x\": 3, \"v.e/y\": \"2Gi\"}}",                                                     NULL                                                       },
        {"",                                                                                                        "its output"                                               },
        {"hello there",                                                                                             "expected an object"                                       },
        {"[1]",                                                                                                     "expected an object"                                       },
        {"{\"resources\": {\"v.e/x\": 3}",                                                                          "its output"                                               },
        {"{\"resources\": 3}",                                                                                      "resources: expected an object"                            },
        {"{\"resources\": {\"cpu\": 1000}}",                                                                        "resources: \"cpu\" must begin with the name of its vendor"},
        {"{\"resources\": {\"memory\": 1}}",                                                                        "must begin with the name of its vendor"                   },
        {"{\"resources\": {\"v.e/x\": -1}}",                                                                        "v.e/x: the amount is out of range"                        },
        {"{\"resources\": {\"v.e/x\": 10000000000000000000}}",                                                      "too big"                                                  },
        {"{\"resources\": {\"v.e/x\": \"lots\"}}",                                                                  "v.e/x: expected an amount"                                },
        {"{\"labels\": {\"os\": \"evil\"}}",                                                                        "labels: \"os\" must begin with the name of its vendor"    },
        {"{\"labels\": {\"v.e/x\": 7}}",                                                                            "v.e/x: expected text"                                     },
        {"{\"use\": {\"cpu\": 1}}",                                                                                 "use: \"cpu\" must begin"                                  },
        {"{\"things\": {}}",                                                                                        "\"things\": unknown key"                                  },
        {"{\"devices\": {}}",                                                                                       "devices: expected a list"                                 },
        {"{\"devices\": [{\"resource\": \"gpu\", \"name\": \"a\"}]}",                                               "devices: [0]: \"gpu\" must begin"                         },
        {"{\"devices\": [{\"resource\": \"v.e/x\"}]}",                                                              "[0]: name: "                                              },
        {"{\"devices\": [{\"resource\": \"v.e/x\", \"name\": \"a\"}, {\"resource\": \"v.e/x\", \"name\": \"a\"}]}",
         "[1]: name: "                                                                                                                                                         },
        {"{\"devices\": [{\"resource\": \"v.e/x\", \"name\": \"a\", \"healthy\": 1}]}",                             "healthy: "                                                },
        {"{\"devices\": [{\"resource\": \"v.e/x\", \"name\": \"a\", \"env\": {\"A=B\": \"c\"}}]}",                  "env: "                                                    },
        {"{\"devices\": [{\"resource\": \"v.e/x\", \"name\": \"a\", \"mounts\": [\"dev/x\"]}]}",                    "mounts[0]: "                                              },
        {"{\"devices\": [{\"resource\": \"v.e/x\", \"name\": \"a\", \"mounts\": [\"/dev/../etc\"]}]}",              "mounts[0]: "                                              },
        {"{\"devices\": [{\"resource\": \"v.e/x\", \"name\": \"a\", \"mounts\": [\"/dev/x\"]}]}",                   NULL                                                       },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(json) json_t *all = json_object();
        struct berth_err err;
        int rc = plugin_take(all, "p", rows[i].said, strlen(rows[i].said), &err);
        if (!rows[i].error) {
            assert_int_equal(rc, 0);
            continue;
        }
        assert_true(rc < 0);
        assert_int_equal(json_object_size(all), 0);
        if (!strstr(err.text, rows[i].error))
            fail_msg("%s: \"%s\"", rows[i].said, err.text);
    }
}

/* ---- execution -------------------------------------------------------------------------------------------------- */

static void plugin_outputs_are_merged(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *conditions = json_array();
    program_put(&f, "a",
                "#!/bin/sh\n[ $# = 1 ] && [ $1 = probe ] || exit 9\n"
                "echo '{\"resources\": {\"a.example/x\": 2}, \"labels\": {\"a.example/l\": \"v\"}}'\n");
    program_put(&f, "b",
                "#!/bin/sh\necho '{\"devices\": [{\"resource\": \"b.example/d\", \"name\": \"d0\"}, {\"resource\": "
                "\"b.example/d\", \"name\": \"d1\", \"healthy\": false, \"env\": {\"D\": \"1\"}}], \"use\": "
                "{\"b.example/d\": 1}}'\n");
    program_put(&f, "c", "#!/bin/sh\necho '{\"resources\": {\"a.example/x\": 5, \"c.example/x\": 5}}'\n");
    folder_put(&f, "README", "this is no program\n");
    program_put(&f, ".hidden", "#!/bin/sh\nexit 1\n");
    folder_make(&f, "folder");
    CLEANUP(json) json_t *found = plugins_run(f.path, 60000 * MS, conditions);
    same(found,
         "{\"resources\": {\"a.example/x\": \"2\", \"b.example/d\": \"1\"}, \"labels\": {\"a.example/l\": \"v\"}, "
         "\"devices\": {\"b.example/d\": [{\"name\": \"d0\", \"healthy\": true, \"plugin\": \"b\"}, {\"name\": \"d1\", "
         "\"healthy\": false, \"env\": {\"D\": \"1\"}, \"plugin\": \"b\"}]}, \"use\": {\"b.example/d\": \"1\"}}");
    assert_string_equal(texts(conditions), "c: resources: another plugin has already reported a.example/x\n");
}

static void failed_plugins_become_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *program, *text;
    } rows[] = {
        {"#!/bin/sh\necho 'no card found' >&2\necho more >&2\nexit 3\n",         "p: ended with status 3: no card found\n"      },
        {"#!/bin/sh\nexit 1\n",                                                  "p: ended with status 1\n"                     },
        {"#!/bin/sh\nkill -9 $$\n",                                              "p: ended with signal 9\n"                     },
        {"#!/bin/sh\necho '{\"resources\": {\"cpu\": 5}}'\n",
         "p: resources: \"cpu\" must begin with the name of its vendor, such as \"vendor.example/thing\"\n"                     },
        {"#!/no/such/interpreter\n",                                             "p: cannot be run: No such file or directory\n"},
        {"#!/bin/sh\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n",
         "p: printed more than 65536 bytes and was killed\n"                                                                    },
        {"#!/bin/sh\nsleep 1000 &\nsleep 1000\n",                                "p: timed out and was killed\n"                },
        {"#!/bin/sh\nprintf '\\377' >&2\nexit 1\n",                              "p: ended with status 1: ?\n"                  },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(json) json_t *conditions = json_array();
        program_put(&f, "p", rows[i].program);
        program_put(&f, "q", "#!/bin/sh\necho '{\"resources\": {\"q.example/x\": 1}}'\n");
        CLEANUP(json)
        json_t *found = plugins_run(f.path, (strstr(rows[i].text, "time") ? 5000 : 60000) * MS, conditions);
        assert_string_equal(texts(conditions), rows[i].text);
        same(json_object_get(found, "resources"), "{\"q.example/x\": \"1\"}"); /* the other plugin is not affected */
    }
}

/* Children of a plugin are killed with it. */
static void children_of_plugin_are_killed(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *conditions = json_array();
    char text[256];
    (void)snprintf(text, sizeof text, "#!/bin/sh\nsleep 1000 &\necho $! > %s/pid\necho '{}'\n", f.path);
    program_put(&f, "p", text);
    CLEANUP(json) json_t *found = plugins_run(f.path, 60000 * MS, conditions);
    assert_non_null(found);
    assert_string_equal(texts(conditions), "");
    pid_t pid = (pid_t)atoi(folder_get(&f, "pid"));
    assert_true(pid > 1);
    for (;;) { /* gone, or a zombie that init has not reaped yet */
        char path[64], stat[256] = "";
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *in = fopen(path, "re");
        if (!in)
            break;
        stat[fread(stat, 1, sizeof stat - 1, in)] = '\0';
        (void)fclose(in);
        if (strstr(stat, ") Z "))
            break;
        usleep(1000);
    }
}

/* A plugin inherits no environment and no descriptors of the agent. */
static void plugin_inherits_nothing_from_agent(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *conditions = json_array();
    int leak = open("/dev/null", O_RDONLY); /* without close-on-exec, as a library might open it */
    assert_true(leak >= 0);
    assert_int_equal(setenv("BERTH_SECRET", "s3cret", 1), 0);
    char text[512];
    (void)snprintf(text, sizeof text,
                   "#!/bin/sh\nexec 2>&1\nenv > %s/env\npwd > %s/pwd\nls /proc/self/fd > %s/fds\necho '{}'\n", f.path,
                   f.path, f.path);
    program_put(&f, "p", text);
    CLEANUP(json) json_t *found = plugins_run(f.path, 60000 * MS, conditions);
    assert_non_null(found);
    (void)close(leak);
    assert_string_equal(texts(conditions), "");
    assert_null(strstr(folder_get(&f, "env"), "BERTH_SECRET"));
    assert_non_null(strstr(folder_get(&f, "env"), "PATH="));
    assert_string_equal(folder_get(&f, "pwd"), "/\n");
    assert_string_equal(folder_get(&f, "fds"), "0\n1\n2\n3\n"); /* 3 is ls's own descriptor of the directory */
}

static void untrusted_plugins_are_not_run(void **state)
{
    (void)state;
    static const char bad[] = "#!/bin/sh\necho '{\"resources\": {\"bad.example/x\": 1}}'\n";
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *conditions = json_array();
    program_put(&f, "others", bad);
    assert_int_equal(chmod(folder_at(&f, "others"), 0757), 0);
    program_put(&f, "groups", bad);
    assert_int_equal(chmod(folder_at(&f, "groups"), 0775), 0);
    program_put(&f, "target", bad);
    assert_int_equal(chmod(folder_at(&f, "target"), 0644), 0);
    assert_int_equal(symlink("target", folder_at(&f, "link")), 0);
    program_put(&f, "nobodys", bad);
    bool root = geteuid() == 0;
    if (root)
        assert_int_equal(chown(folder_at(&f, "nobodys"), 65534, 65534), 0);
    else
        assert_int_equal(unlink(folder_at(&f, "nobodys")), 0);
    CLEANUP(json) json_t *found = plugins_run(f.path, 60000 * MS, conditions);
    same(json_object_get(found, "resources"), "{}");
    assert_non_null(strstr(texts(conditions), "groups: is not run, as others can write to it"));
    assert_non_null(strstr(texts(conditions), "others: is not run, as others can write to it"));
    assert_non_null(strstr(texts(conditions), "link: is not run, as it is a symbolic link"));
    assert_true(!root || strstr(texts(conditions), "nobodys: is not run, as its owner is neither root"));
    /* no plugin of a world-writable directory is run */
    CLEANUP(json) json_t *again = json_array();
    program_put(&f, "fine", bad);
    assert_int_equal(chmod(f.path, 0777), 0);
    CLEANUP(json) json_t *none = plugins_run(f.path, 60000 * MS, again);
    same(json_object_get(none, "resources"), "{}");
    assert_int_equal(json_array_size(again), 1);
    assert_non_null(strstr(texts(again), "is not run, as others can write to it"));
}

static void missing_directory_has_no_plugins(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *conditions = json_array();
    CLEANUP(json) json_t *found = plugins_run(folder_at(&f, "none"), MS, conditions);
    same(found, "{\"resources\": {}, \"labels\": {}, \"devices\": {}, \"use\": {}}");
    same(conditions, "[]");
}

/* ---- examples --------------------------------------------------------------------------------------------------- */

static void example_plugins_work(void **state)
{
    (void)state;
    static const char *const names[] = {"disk-network", "fake-device"};
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *conditions = json_array();
    const char *source = getenv("BERTH_SOURCE");
    if (!source) {
        print_message("skip: $BERTH_SOURCE does not say where the examples are\n");
        skip();
    }
    for (size_t i = 0; i < ROWS(names); i++) {
        /* copied, as an administrator would do: the checkout may belong to any user */
        char path[512], text[8192] = "";
        (void)snprintf(path, sizeof path, "%s/examples/plugins/%s", source, names[i]);
        FILE *in = fopen(path, "re");
        assert_non_null(in);
        text[fread(text, 1, sizeof text - 1, in)] = '\0';
        (void)fclose(in);
        program_put(&f, names[i], text);
    }
    CLEANUP(json) json_t *found = plugins_run(f.path, 60000 * MS, conditions);
    assert_string_equal(texts(conditions), "");
    const json_t *resources = json_object_get(found, "resources");
    assert_string_equal(json_string_value(json_object_get(resources, "acme.example/frobnicator")), "1");
    assert_non_null(json_object_get(resources, "berth.example/ssd"));
    assert_non_null(json_object_get(resources, "berth.example/hdd"));
    assert_non_null(json_object_get(json_object_get(found, "labels"), "berth.example/network-mbit"));
    assert_int_equal(json_array_size(json_object_get(json_object_get(found, "devices"), "acme.example/frobnicator")),
                     2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_need_a_vendor),           cmocka_unit_test(plugin_output_is_checked),
        cmocka_unit_test(plugin_outputs_are_merged),     cmocka_unit_test(failed_plugins_become_conditions),
        cmocka_unit_test(children_of_plugin_are_killed), cmocka_unit_test(plugin_inherits_nothing_from_agent),
        cmocka_unit_test(untrusted_plugins_are_not_run), cmocka_unit_test(missing_directory_has_no_plugins),
        cmocka_unit_test(example_plugins_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
