/* object_test.c - the parts of verbs that need no server: targets, cells, KEY=VALUE, exit codes, retries. */
#include "cli/show/object.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/lib/save.h"
#include "cli/show/listing.h"
#include "wire/text/document.h"

#define SECOND ((int64_t)1000000000)

static FILE *null_device_open(void)
{
    FILE *file = fopen("/dev/null", "w");

    assert_non_null(file);
    return file;
}

static void targets_are_read(void **state)
{
    static const struct {
        const char *words[4];
        bool whole;
        int rc;
        const char *want;
    } rows[] = {
        {{"app", "x"},        false, EXIT_OK,    "app/x "       },
        {{"apps", "x", "y"},  false, EXIT_OK,    "app/x app/y " },
        {{"app/x", "job/17"}, false, EXIT_OK,    "app/x job/17 "},
        {{"svc", "x"},        false, EXIT_OK,    "app/x "       },
        {{"jobs"},            true,  EXIT_OK,    "job/- "       },
        {{"jobs"},            false, EXIT_USAGE, ""             },
        {{"jbos"},            true,  EXIT_USAGE, ""             },
        {{"app/x", "y"},      false, EXIT_USAGE, ""             },
        {{"app/x", "job"},    false, EXIT_USAGE, ""             },
        {{"app/"},            false, EXIT_USAGE, ""             },
        {{"app", ""},         false, EXIT_USAGE, ""             },
    };
    struct cli cli = {.out = null_device_open(), .err = null_device_open()};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(targets) struct object_targets targets = {0};
        CLEANUP(str) struct str got = {0};
        struct operands operands = {.at = (const char **)rows[i].words};
        while (operands.len < 4 && rows[i].words[operands.len])
            operands.len++;
        int rc = targets_parse(&cli, &operands, rows[i].whole, &targets);
        if (rc != rows[i].rc)
            fail_msg("row %zu: %d", i, rc);
        for (size_t t = 0; t < targets.len && rc == EXIT_OK; t++)
            str_addf(&got, "%s/%s ", targets.at[t].collection->kind, targets.at[t].id ? targets.at[t].id : "-");
        assert_string_equal(str_text(&got), rows[i].want);
    }
    fclose(cli.out);
    fclose(cli.err);
}

static void cells_are_readable(void **state)
{
    static const struct {
        struct column column;
        const char *json, *want;
        enum color color;
    } rows[] = {
        {{.form = COLUMN_TEXT, .path = "a"},                      "{\"a\": \"x\"}",                    "x",                          COLOR_NONE },
        {{.form = COLUMN_TEXT, .path = "a"},                      "{\"a\": 5}",                        "5",                          COLOR_NONE },
        {{.form = COLUMN_TEXT, .path = "a.b|c"},                  "{\"a\": {}, \"c\": 0.5}",           "0.5",                        COLOR_NONE },
        {{.form = COLUMN_TEXT, .path = "a.b|c"},                  "{\"a\": {\"b\": null}}",            "",                           COLOR_NONE },
        {{.form = COLUMN_STATE, .path = "s"},                     "{\"s\": \"running\"}",              "running",                    COLOR_GREEN},
        {{.form = COLUMN_STATE, .path = "s"},                     "{\"s\": \"lost\"}",                 "lost",                       COLOR_RED  },
        {{.form = COLUMN_STATE, .path = "s"},                     "{\"s\": \"odd\"}",                  "odd",                        COLOR_NONE },
        {{.form = COLUMN_AGE, .path = "t"},                       "{\"t\": \"1970-01-01T00:00:00Z\"}", "2h",                         COLOR_NONE },
        {{.form = COLUMN_AGE, .path = "t"},                       "{\"t\": 7100}",                     "100s",                       COLOR_NONE },
        {{.form = COLUMN_AGE, .path = "t"},                       "{\"t\": 99999}",                    "0s",                         COLOR_NONE },
        {{.form = COLUMN_AGE, .path = "t"},                       "{\"t\": \"no time\"}",              "",                           COLOR_NONE },
        {{.form = COLUMN_UNTIL, .path = "t"},                     "{\"t\": 7260}",                     "in 60s",                     COLOR_NONE },
        {{.form = COLUMN_UNTIL, .path = "t"},                     "{\"t\": 60}",                       "expired",                    COLOR_NONE },
        {{.form = COLUMN_PART, .path = "a", .of = "b"},           "{\"a\": 1, \"b\": 3}",              "1/3",                        COLOR_NONE },
        {{.form = COLUMN_PART, .path = "a", .of = "b"},           "{\"b\": 3}",                        "0/3",                        COLOR_NONE },
        {{.form = COLUMN_PART, .path = "a", .of = "b"},           "{}",                                "",                           COLOR_NONE },
        {{.form = COLUMN_AMOUNT, .path = "allocatable.cpu"},
         "{\"allocatable\": {\"cpu\": \"3500m\"}}",                                                    "3.5",
         COLOR_NONE                                                                                                                             },
        {{.form = COLUMN_AMOUNT, .path = "allocatable.memory"},
         "{\"allocatable\": {\"memory\": 1073741824}}",                                                "1Gi",
         COLOR_NONE                                                                                                                             },
        {{.form = COLUMN_COUNT, .path = "g"},                     "{\"g\": [{\"count\": 2}, {}]}",     "3",                          COLOR_NONE },
        {{.form = COLUMN_COUNT, .path = "g"},                     "{\"g\": {\"count\": 8}}",           "8",                          COLOR_NONE },
        {{.form = COLUMN_COUNT, .path = "g"},                     "{\"g\": []}",                       "",                           COLOR_NONE },
        {{.form = COLUMN_YES, .path = "y"},                       "{\"y\": true}",                     "yes",                        COLOR_NONE },
        {{.form = COLUMN_MILLI, .path = "p"},                     "{\"p\": 425}",                      "42%",                        COLOR_NONE },
        {{.form = COLUMN_MILLI, .path = "p"},                     "{}",                                "",                           COLOR_NONE },
        {{.form = COLUMN_YES, .path = "y"},                       "{\"y\": false}",                    "",                           COLOR_NONE },
        {{.title = "TAINTS", .form = COLUMN_WORDS, .path = "w"},
         "{\"w\": [\"a:NoExecute\", {\"key\": \"k\", \"value\": \"v\", \"effect\": \"NoSchedule\"}]}", "a:NoExecute,k=v:NoSchedule",
         COLOR_NONE                                                                                                                             },
        {{.title = "COMMAND", .form = COLUMN_WORDS, .path = "w"}, "{\"w\": [\"sleep\", \"5\"]}",       "sleep 5",                    COLOR_NONE },
        {{.form = COLUMN_PAIRS, .path = "p"},                     "{\"p\": {\"a\": \"b\", \"c\": 1}}", "a=b,c=1",                    COLOR_NONE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(json) json_t *object = json_loads(rows[i].json, 0, NULL);
        CLEANUP(str) struct str text = {0};
        struct column column = rows[i].column;
        enum color color;
        assert_non_null(object);
        if (!column.title)
            column.title = "X";
        column_text(&column, object, 7200 * SECOND, &text, &color);
        if (strcmp(str_text(&text), rows[i].want) != 0 || color != rows[i].color)
            fail_msg("row %zu: '%s', colour %d", i, str_text(&text), (int)color);
    }
}

static void objects_are_sorted(void **state)
{
    static const struct {
        const char *title, *want;
    } rows[] = {
        {"name",   "a b c "},
        {"cpu",    "b a c "},
        {"MEMORY", "b c a "},
        {"age",    "c b a "},
    };
    const struct collection *nodes = collection_find("nodes");

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(json)
        json_t *items =
            json_loads("[{\"id\": \"c\", \"allocatable\": {\"memory\": \"2Gi\"}, \"created\": 1},"
                       " {\"id\": \"a\", \"allocatable\": {\"cpu\": 10, \"memory\": \"1Ti\"}, \"created\": 3},"
                       " {\"id\": \"b\", \"allocatable\": {\"cpu\": \"500m\", \"memory\": \"900Mi\"}, \"created\": 2}]",
                       0, NULL);
        CLEANUP(str) struct str got = {0};
        char id[ID_TEXT_MAX];
        assert_int_equal(objects_sort(nodes, items, rows[i].title), 0);
        for (size_t j = 0; j < json_array_size(items); j++)
            str_addf(&got, "%s ", object_id(json_array_get(items, j), id));
        assert_string_equal(str_text(&got), rows[i].want);
        assert_int_equal(objects_sort(nodes, items, "nothing"), -1);
    }
}

static void listings_line_up(void **state)
{
    char *text = NULL;
    size_t len = 0;
    struct cli cli = {.out = open_memstream(&text, &len), .width = 100};
    struct listing listing;

    (void)state;
    listing_init(&listing, &cli, collection_find("volumes"), false);
    CLEANUP(json) json_t *first = json_pack("{s:s, s:s, s:b}", "id", "photographs", "zone", "cellar", "shared", 1);
    CLEANUP(json) json_t *second = json_pack("{s:s, s:s}", "id", "v", "zone", "a");
    listing_add(&listing, first);
    listing_print(&listing);
    listing_add(&listing, second);
    listing_add_word(&listing, "photographs", "gone");
    listing_print(&listing);
    listing_done(&listing);
    fclose(cli.out);
    static const char *const lines[] = {"NAME         OWNER  ZONE    ", "photographs         cellar  ",
                                        "v                   a       ", "photographs  gone           "};
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strncmp(at, lines[i], strlen(lines[i])) != 0)
            fail_msg("line %zu of:\n%s", i, text);
        at += strcspn(at, "\n") + 1;
    }
    free(text);
}

static void pairs_are_read(void **state)
{
    static const struct {
        const char *words[3];
        const char *want; /* NULL: rejected */
    } rows[] = {
        {{"a=5", "b=true", "c=x y"},    "{\"a\":5,\"b\":true,\"c\":\"x y\"}" },
        {{"a=\"5\"", "b=", "c=null"},   "{\"a\":\"5\",\"b\":\"\",\"c\":null}"},
        {{"a.b=1", "a.c=2"},            "{\"a\":{\"b\":1,\"c\":2}}"          },
        {{"a=[1, 2]", "b={\"c\": []}"}, "{\"a\":[1,2],\"b\":{\"c\":[]}}"     },
        {{"a=b=c"},                     "{\"a\":\"b=c\"}"                    },
        {{"a=1", "a=2"},                "{\"a\":2}"                          },
        {{"a"},                         NULL                                 },
        {{"=1"},                        NULL                                 },
        {{"a=[1"},                      NULL                                 },
        {{"a=1", "a.b=2"},              NULL                                 },
        {{"a.=1"},                      NULL                                 },
        {{".a=1"},                      NULL                                 },
        {{"a=99999999999999999999"},    NULL                                 },
        {{"a=.inf"},                    NULL                                 },
        {{"a.b.c.d.e.f.g.h.i.j.k=1"},   NULL                                 },
    };
    struct cli cli = {.out = null_device_open(), .err = null_device_open()};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(json) json_t *got = json_object();
        size_t len = 0;
        while (len < 3 && rows[i].words[len])
            len++;
        int rc = pairs_parse(&cli, rows[i].words, len, got);
        if (rc != (rows[i].want ? EXIT_OK : EXIT_USAGE))
            fail_msg("row %zu: %d", i, rc);
        char *text = json_dumps(got, JSON_COMPACT);
        if (rows[i].want)
            assert_string_equal(text, rows[i].want);
        free(text);
    }
    fclose(cli.out);
    fclose(cli.err);
}

static void statuses_have_exit_codes(void **state)
{
    static const struct {
        int status;
        enum exit_code want;
    } rows[] = {
        {200, EXIT_OK         },
        {201, EXIT_OK         },
        {204, EXIT_OK         },
        {400, EXIT_FAILED     },
        {401, EXIT_REFUSED    },
        {403, EXIT_REFUSED    },
        {404, EXIT_NOT_FOUND  },
        {405, EXIT_FAILED     },
        {409, EXIT_CONFLICT   },
        {410, EXIT_FAILED     },
        {412, EXIT_CONFLICT   },
        {413, EXIT_FAILED     },
        {429, EXIT_UNREACHABLE},
        {500, EXIT_FAILED     },
        {503, EXIT_UNREACHABLE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(status_exit_code(rows[i].status), rows[i].want);
}

static void transient_errors_are_retried(void **state)
{
    static const struct {
        unsigned attempt;
        int rc, status;
        uint64_t retry_after_s;
        double want; /* negative: no retry */
    } rows[] = {
        {1, 0,             200, 0,   -1  },
        {1, 0,             404, 0,   -1  },
        {1, 0,             400, 5,   -1  },
        {1, 0,             503, 0,   0.25},
        {2, 0,             503, 0,   0.5 },
        {1, 0,             503, 3,   3   },
        {1, 0,             429, 1,   1   },
        {1, 0,             429, 600, -1  },
        {9, 0,             503, 1,   -1  },
        {1, -ECONNRESET,   0,   0,   0.25},
        {1, -ETIMEDOUT,    0,   0,   0.25},
        {3, -EPIPE,        0,   0,   1   },
        {9, -ECONNRESET,   0,   0,   -1  },
        {1, -ECONNREFUSED, 0,   0,   -1  },
        {2, -ECONNREFUSED, 0,   0,   0.5 },
        {1, -EPERM,        0,   0,   -1  },
        {1, -EINVAL,       0,   0,   -1  },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got = retry_wait(rows[i].attempt, rows[i].rc, rows[i].status, rows[i].retry_after_s);
        if (rows[i].want < 0 ? got >= 0 : got != rows[i].want)
            fail_msg("row %zu: %g", i, got);
    }
}

static void paths_are_encoded(void **state)
{
    CLEANUP(str) struct str path = {0};

    (void)state;
    str_add(&path, "/v1/apps");
    path_add(&path, "a/b?c");
    query_add(&path, "x", "1&y=2");
    query_add(&path, "none", NULL);
    query_add(&path, "z", "");
    assert_string_equal(str_text(&path), "/v1/apps/a%2Fb%3Fc?x=1%26y%3D2&z=");
}

static void new_files_are_whole_and_private(void **state)
{
    char folder[] = "/tmp/object_test.XXXXXX", path[64];
    CLEANUP(str) struct str text = {0};
    struct berth_err err;
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    str_add(&text, "secret\n");
    assert_int_equal(save_new(path, &text, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 7);
    assert_int_equal(save_new(path, &text, &err), -EEXIST);
    assert_int_equal(unlink(path), 0);
    struct saved_file save;
    assert_int_equal(save_begin(&save, path, &err), 0);
    assert_int_equal(save_write(&save, "x", 1, &err), 0);
    assert_int_not_equal(access(path, F_OK), 0); /* does not exist before save_end */
    save_drop(&save);
    assert_int_equal(rmdir(folder), 0); /* fails if a temporary file remains */
    assert_int_equal(save_new("/nonexistent/file", &text, &err), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_read),
        cmocka_unit_test(cells_are_readable),
        cmocka_unit_test(objects_are_sorted),
        cmocka_unit_test(listings_line_up),
        cmocka_unit_test(pairs_are_read),
        cmocka_unit_test(statuses_have_exit_codes),
        cmocka_unit_test(transient_errors_are_retried),
        cmocka_unit_test(paths_are_encoded),
        cmocka_unit_test(new_files_are_whole_and_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
