/* manifest_test.c - documents of manifests: ids, order, and errors for invalid documents. */
#include "cli/show/manifest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/document.h"

static int add_all(struct manifests *m, const char *text, struct berth_err *err)
{
    struct documents documents;
    int rc = documents_parse(text, strlen(text), "f", &documents, err);

    for (size_t i = 0; i < documents.len && rc == 0; i++)
        rc = manifests_add(m, documents.at[i].root, "f", documents.at[i].line, err);
    documents_done(&documents);
    return rc;
}

/* Returns "kind/id@place " for each document. */
static char *shown(const struct manifests *m)
{
    struct str text = {0};

    for (size_t i = 0; i < m->len; i++)
        str_addf(&text, "%s/%s@%s ", m->at[i].collection->kind, m->at[i].id ? m->at[i].id : "", m->at[i].place);
    return str_take(&text);
}

static void documents_have_ids(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"kind: app\nname: photos\n",                                                    "app/photos@f:1 "        },
        {"kind: app\nname: photos\nowner: alice\n",                                      "app/photos.alice@f:1 "  },
        {"kind: apps\nid: photos.alice\nname: x\nowner: alice\n",                        "app/photos.alice@f:1 "  },
        {"kind: Job\nname: x\n",                                                         "job/@f:1 "              },
        {"kind: job\nid: 17\n",                                                          "job/17@f:1 "            },
        {"kind: service\nname: x\n",                                                     "app/x@f:1 "             },
        {"kind: volume\nid: v\nowner: alice\n",                                          "volume/v@f:1 "          },
        {"kind: resource\nname: traffic\ntype: cumulative\n",                            "resource/traffic@f:1 "  },
        {"kind: group\nid: a\n---\n# x\n---\nkind: user\nid: b\n",                       "group/a@f:1 user/b@f:6 "},
        {"[{\"kind\": \"group\", \"id\": \"a\"}, {\"kind\": \"group\", \"id\": \"b\"}]",
         "group/a@f:1: [0] group/b@f:1: [1] "                                                                     },
        {"{\"items\": [{\"kind\": \"node\", \"id\": \"n\"}], \"revision\": 3}",          "node/n@f:1: [0] "       },
        {"[]",                                                                           ""                       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(manifests) struct manifests m = {0};
        struct berth_err err;
        if (add_all(&m, rows[i].text, &err) != 0)
            fail_msg("row %zu: %s", i, err.text);
        CLEANUP(mem) char *got = shown(&m);
        assert_string_equal(got, rows[i].want);
    }
}

static void invalid_documents_are_rejected(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"name: x\n",                        "f:1: missing kind: one of app"                     },
        {"kind:\n",                          "f:1: missing kind"                                 },
        {"kind: 5\n",                        "f:1: kind: expected text"                          },
        {"kind: ap\nname: x\n",              "f:1: kind: unknown kind 'ap'; did you mean 'app'?" },
        {"kind: spaceship\n",                "f:1: kind: unknown kind 'spaceship'; kinds are app"},
        {"kind: token\n",                    "f:1: kind: a manifest cannot create tokens"        },
        {"kind: instance\nid: 1\n",          "f:1: kind: a manifest cannot create instances"     },
        {"kind: app\n",                      "f:1: app: no name"                                 },
        {"kind: node\n",                     "f:1: node: no id"                                  },
        {"version: 1\nnodes: []\n",          "cluster file for 'berth plan'"                     },
        {"just text\n",                      "f:1: expected an object with a kind"               },
        {"[5]",                              "f:1: [0]: expected an object with a kind"          },
        {"kind: app\nname: x\n---\nid: y\n", "f:4: missing kind"                                 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(manifests) struct manifests m = {0};
        struct berth_err err = {0};
        assert_int_equal(add_all(&m, rows[i].text, &err), -EINVAL);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: %s", i, err.text);
    }
}

static void sorted_by_dependence(void **state)
{
    CLEANUP(manifests) struct manifests m = {0};

    (void)state;
    assert_int_equal(add_all(&m,
                             "kind: job\nname: j1\n---\nkind: vm\nname: v\n---\nkind: app\nname: a2\n---\n"
                             "kind: volume\nid: v\n---\nkind: node\nid: n\n---\nkind: profile\nname: p\n---\n"
                             "kind: resource\nname: r\n---\nkind: user\nid: u\n---\nkind: role\nid: o\n---\n"
                             "kind: group\nid: g\n---\nkind: app\nname: a1\n---\nkind: job\nname: j2\n",
                             NULL),
                     0);
    manifests_sort(&m);
    CLEANUP(mem) char *got = shown(&m);
    assert_string_equal(got, "group/g@f:28 role/o@f:25 user/u@f:22 resource/r@f:19 profile/p@f:16 node/n@f:13 "
                             "volume/v@f:10 app/a2@f:7 app/a1@f:31 vm/v@f:4 job/@f:1 job/@f:34 ");
}

static void duplicate_documents_are_rejected(void **state)
{
    CLEANUP(manifests) struct manifests m = {0};
    struct berth_err err;

    (void)state;
    assert_int_equal(add_all(&m,
                             "kind: job\nname: x\n---\nkind: job\nname: x\n---\nkind: app\nname: x\n---\n"
                             "kind: vm\nname: x\n",
                             NULL),
                     0);
    assert_int_equal(manifests_check(&m, &err), 0);
    assert_int_equal(add_all(&m, "kind: app\nname: x\n", NULL), 0);
    assert_int_equal(manifests_check(&m, &err), -EEXIST);
    assert_non_null(strstr(err.text, "f:1: app/x is also in f:7"));
}

static const struct manifest *nth(const struct manifests *m, size_t i)
{
    static const struct manifest none;

    return m->at && i < m->len ? &m->at[i] : &none;
}

static void daemon_keys_are_removed(void **state)
{
    CLEANUP(manifests) struct manifests m = {0};

    (void)state;
    assert_int_equal(add_all(&m,
                             "kind: app\nname: x\nrevision: 5\ngeneration: 2\ncreated: 2026-01-01T00:00:00Z\n"
                             "status: {state: running}\nv: 1\n---\nkind: resource\nname: r\ntype: cumulative\n",
                             NULL),
                     0);
    assert_int_equal(m.len, 2);
    CLEANUP(json) json_t *app = json_pack("{s:s}", "name", "x");
    CLEANUP(json) json_t *resource = json_pack("{s:s, s:s}", "name", "r", "kind", "cumulative");
    assert_true(json_equal(nth(&m, 0)->object, app));
    assert_true(json_equal(nth(&m, 1)->object, resource));

    CLEANUP(json) json_t *again = object_to_manifest(nth(&m, 1)->collection, nth(&m, 1)->object);
    assert_string_equal(json_string_value(json_object_get(again, "kind")), "resource");
    assert_string_equal(json_string_value(json_object_get(again, "type")), "cumulative");
    object_from_manifest(nth(&m, 1)->collection, again);
    assert_true(json_equal(again, resource));
}

static void file_make(const char *folder, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void folders_are_read_in_order(void **state)
{
    static const char *const files[] = {"b.yaml", "a/z.yml", "a/m.json", "c.txt", ".hidden.yaml"};
    char folder[] = "/tmp/manifest_test.XXXXXX";
    char path[256];
    struct berth_err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    file_make(folder, files[0], "kind: group\nid: b\n");
    file_make(folder, files[1], "kind: group\nid: z\n");
    file_make(folder, files[2], "{\"kind\": \"group\", \"id\": \"m\"}");
    file_make(folder, files[3], "nothing");
    file_make(folder, files[4], "nothing");
    CLEANUP(manifests) struct manifests m = {0};
    assert_int_equal(manifests_read(folder, &m, &err), 0);
    assert_int_equal(m.len, 3);
    assert_string_equal(m.at[0].id, "m");
    assert_string_equal(m.at[1].id, "z");
    assert_string_equal(m.at[2].id, "b");
    file_make(folder, files[0], "kind: [\n");
    assert_int_equal(manifests_read(folder, &m, &err), -EINVAL);
    assert_non_null(strstr(err.text, "b.yaml:2:"));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(manifests_read(folder, &m, &err), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_have_ids),      cmocka_unit_test(invalid_documents_are_rejected),
        cmocka_unit_test(sorted_by_dependence),    cmocka_unit_test(duplicate_documents_are_rejected),
        cmocka_unit_test(daemon_keys_are_removed), cmocka_unit_test(folders_are_read_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
