/* document_test.c - JSON and YAML give the same tree, and errors are clear. */
#include "wire/text/document.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/yaml.h"

/* Parses a text; returns the tree as compact JSON, or "error: TEXT". The caller frees it. */
/* A row of a table that is too wide for columns. */
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static char *parsed(const char *text, size_t len)
{
    struct berth_err err = {0};
    json_t *doc = NULL;
    char *out = NULL;
    int rc = document_parse(text, len, "f", &doc, &err);
    if (rc == 0)
        out = json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    else {
        assert_null(doc);
        assert_int_equal(rc, -err.code);
        assert_true(asprintf(&out, "error: %s", err.text) > 0);
    }
    json_decref(doc);
    return out;
}

static void a_text_gives_a_tree_or_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        ROW("{\"a\": [1, 2.5, \"x\", true, null]}", "{\"a\":[1,2.5,\"x\",true,null]}"),
        ROW("  \n [1]", "[1]"),
        ROW("\xef\xbb\xbf{\"a\":1}", "{\"a\":1}"),
        ROW("a: [1, 2.5, x, true, null]", "{\"a\":[1,2.5,\"x\",true,null]}"),
        ROW("\xef\xbb\xbf"
            "a: 1",
            "{\"a\":1}"),
        ROW("# a comment\na:\n  b: ~\n  c:\n  d: \"1\"\n", "{\"a\":{\"b\":null,\"c\":null,\"d\":\"1\"}}"),
        ROW("- yes\n- No\n- on\n- 2026-03-01\n- 12:30\n", "[\"yes\",\"No\",\"on\",\"2026-03-01\",\"12:30\"]"),
        ROW("80: x\ntrue: y\n", "{\"80\":\"x\",\"true\":\"y\"}"),
        ROW("a: &x {b: 1}\nc: *x\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"),
        ROW("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}"),
        ROW("a: !!str 1\nb: !!int 7\nc: ! 8\nd: !!float 1\n", "{\"a\":\"1\",\"b\":7,\"c\":\"8\",\"d\":1}"),
        ROW("--- \na: 1\n---\n", "{\"a\":1}"),
        ROW("a: 1\n...\n", "{\"a\":1}"),
        ROW("a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}"),
        ROW("plain", "\"plain\""),

        ROW("", "error: f: empty"),
        ROW(" \n\t", "error: f: empty"),
        ROW("# nothing\n", "error: f: empty"),
        /* jansson's error texts differ between its versions. */
        ROW("{\"a\": 1, \"a\": 2}", "error: f:1:"),
        ROW("{\"a\": }", "error: f:1:"),
        ROW("{\"a\": 1} x", "error: f:1:"),
        ROW("{\"a\": \"\xff\"}", "error: f:1:"),
        ROW("{\"a\": 99999999999999999999}", "error: f:1:"),
        ROW("a: 1\nb: 2\na: 3\n", "error: f:3:1: the key \"a\" is listed twice"),
        ROW("a: 1\nb: \xff\n", "error: f:2:4: invalid leading UTF-8 octet"),
        ROW("a: \"x\\0y\"\n", "error: f:1:4: a NUL character in a string"),
        ROW("\"x\\0y\": 1\n", "error: f:1:1: a NUL character in a key"),
        ROW("a: 1\n---\nb: 2\n",
            "error: f:3:1: only one document per file is allowed; put everything before the `---`"),
        ROW("a: *x\n", "error: f:1:4: an alias of an anchor that is not defined above"),
        ROW("a: &x [*x]\n", "error: f:1:8: the alias refers to itself"),
        ROW("[a, b]: 1\n", "error: f:1:"), /* starts like JSON */
        ROW("? [a, b]\n: 1\n", "error: f:1:3: a key must be plain text"),
        ROW("a: 99999999999999999999\n", "error: f:1:4: the number is too large; put quotes around it if it is text"),
        ROW("a: .inf\n", "error: f:1:4: not a finite number; put quotes around it if it is text"),
        ROW("a: !!int x\n",
            "error: f:1:4: the tag does not match the value, or is not one of str, int, float, bool, null"),
        ROW("a: !mine {}\n", "error: f:1:4: unknown tag"),
        ROW("a: [1\n", "error: f:2:1: did not find expected ',' or ']', while parsing a flow sequence"),
        ROW("a: b: c\n", "error: f:1:5: mapping values are not allowed in this context"),
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *got = parsed(rows[i].text, strlen(rows[i].text));
        if (strncmp(got, rows[i].want, strlen(rows[i].want)) != 0)
            fail_msg("%s\n gave %s\n want %s", rows[i].text, got, rows[i].want);
        free(got);
    }
}

static void plain_scalars_follow_the_core_schema(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"",                     "null"                },
        {"~",                    "null"                },
        {"NULL",                 "null"                },
        {"nUll",                 "\"nUll\""            },
        {"True",                 "true"                },
        {"FALSE",                "false"               },
        {"yes",                  "\"yes\""             },
        {"0",                    "0"                   },
        {"-12",                  "-12"                 },
        {"+12",                  "12"                  },
        {"0x1F",                 "31"                  },
        {"0o17",                 "15"                  },
        {"0x",                   "\"0x\""              },
        {"0xg",                  "\"0xg\""             },
        {"0o8",                  "\"0o8\""             },
        {"007",                  "\"007\""             },
        {"-007",                 "\"-007\""            },
        {"1.5",                  "1.5"                 },
        {".5",                   "0.5"                 },
        {"5.",                   "5.0"                 },
        {"-.5",                  "-0.5"                },
        {"+1.5e3",               "1500.0"              },
        {"1e3",                  "1000.0"              },
        {"1e",                   "\"1e\""              },
        {".",                    "\".\""               },
        {"-",                    "\"-\""               },
        {"1.2.3",                "\"1.2.3\""           },
        {"1_000",                "\"1_000\""           },
        {"16Gi",                 "\"16Gi\""            },
        {"500m",                 "\"500m\""            },
        {"9223372036854775807",  "9223372036854775807" },
        {"-9223372036854775808", "-9223372036854775808"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = NULL;
        assert_int_equal(yaml_scalar(rows[i].text, strlen(rows[i].text), &value), 0);
        char *got = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s gave %s, want %s", rows[i].text, got, rows[i].want);
        free(got);
        json_decref(value);
    }

    static const char *const large[] = {"9223372036854775808", "0x8000000000000000", "1e999"};
    json_t *value = NULL;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        assert_int_equal(yaml_scalar(large[i], strlen(large[i]), &value), -ERANGE);
    assert_null(value);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    static const char *const opens[] = {"[", "{\"a\":", "- "};
    for (size_t o = 0; o < 3; o++)
        for (int over = 0; over < 2; over++) {
            CLEANUP(str) struct str s = {0};
            for (int i = 0; i < DOCUMENT_DEPTH_MAX + over; i++)
                str_add(&s, opens[o]);
            str_add(&s, "1");
            for (int i = 0; o < 2 && i < DOCUMENT_DEPTH_MAX + over; i++)
                str_add_char(&s, o ? '}' : ']');
            char *got = parsed(s.at, s.len);
            if ((strstr(got, "nested") != NULL) != over)
                fail_msg("%s: %s", s.at, got);
            free(got);
        }

    /* Depth hidden by aliases. */
    CLEANUP(str) struct str s = {0};
    str_add(&s, "- &a0 [x]\n");
    for (int i = 1; i < DOCUMENT_DEPTH_MAX + 4; i++)
        str_addf(&s, "- &a%d [*a%d]\n", i, i - 1);
    char *got = parsed(s.at, s.len);
    assert_non_null(strstr(got, "nested too deeply"));
    free(got);
}

/* Nine levels of nine aliases expand to 400 million values. */
static void aliases_count_as_expanded_values(void **state)
{
    (void)state;
    CLEANUP(str) struct str s = {0};
    str_add(&s, "- &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 9; i++) {
        str_addf(&s, "- &a%d [", i);
        for (int j = 0; j < 9; j++)
            str_addf(&s, "%s*a%d", j ? ", " : "", i - 1);
        str_add(&s, "]\n");
    }
    char *got = parsed(s.at, s.len);
    assert_non_null(strstr(got, "too many values"));
    free(got);
}

static void number_of_values_is_bounded(void **state)
{
    (void)state;
    size_t len = (size_t)DOCUMENT_NODES_MAX + 8;
    char *text = mem_alloc(len);
    memset(text, ',', len);
    text[0] = '[';
    char *got = parsed(text, len);
    assert_non_null(strstr(got, "more than 67108864 values"));
    free(got);
    mem_free(text);
}

/* Returns every document as "LINE:JSON", separated by spaces, or "error: TEXT". */
static char *parsed_each(const char *text)
{
    CLEANUP(str) struct str out = {0};
    struct documents documents;
    struct berth_err err = {0};
    int rc = documents_parse(text, strlen(text), "f", &documents, &err);

    if (rc != 0) {
        assert_int_equal(rc, -err.code);
        assert_null(documents.at);
        str_addf(&out, "error: %s", err.text);
    }
    for (size_t i = 0; documents.at && i < documents.len; i++) {
        char *json = json_dumps(documents.at[i].root, JSON_COMPACT | JSON_ENCODE_ANY);
        str_addf(&out, "%s%zu:%s", i ? " " : "", documents.at[i].line, json);
        free(json);
    }
    documents_done(&documents);
    return str_take(&out);
}

static void a_stream_gives_every_document(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        ROW("a: 1\n", "1:{\"a\":1}"),
        ROW("a: 1\n---\nb: 2\n", "1:{\"a\":1} 3:{\"b\":2}"),
        ROW("---\na: 1\n---\n---\n# nothing\n---\n\nb: 2\n---\n", "2:{\"a\":1} 8:{\"b\":2}"),
        ROW("a: 1\n...\n---\nb: 2\n...\n", "1:{\"a\":1} 4:{\"b\":2}"),
        ROW("", ""),
        ROW("# nothing\n", ""),
        ROW("---\n---\n", ""),
        ROW("null\n---\nplain\n", "1:null 3:\"plain\""),
        ROW("a: &x 1\nb: *x\n---\na: &x 2\nb: *x\n", "1:{\"a\":1,\"b\":1} 4:{\"a\":2,\"b\":2}"),
        ROW("a: &x 1\n---\nb: *x\n", "error: f:3:4: an alias of an anchor that is not defined above"),
        ROW("a: 1\n---\nb: 2\nb: 3\n", "error: f:4:1: the key \"b\" is listed twice"),
        ROW("a: 1\n---\nb: [\n", "error: f:4:1: "),
        ROW("{\"a\":1}", "1:{\"a\":1}"),
        ROW("\xef\xbb\xbf{\"a\":1}\n\n[2]\n", "1:{\"a\":1} 3:[2]"),
        ROW("{\"a\":1}\n---\n{\"b\":2}\n---\n", "1:{\"a\":1} 3:{\"b\":2}"),
        ROW("{\"a\":1}\n{\"b\":\n }", "error: f:3:"),
        ROW("{\"a\":1}\nb: 2\n", "error: f:2: expected { or ["),
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(mem) char *got = parsed_each(rows[i].text);
        bool is_error = strncmp(rows[i].want, "error", 5) == 0;
        if (is_error ? strncmp(got, rows[i].want, strlen(rows[i].want)) != 0 : strcmp(got, rows[i].want) != 0)
            fail_msg("row %zu: got %s, not %s", i, got, rows[i].want);
    }
}

static void a_stream_is_read_from_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/document_test.XXXXXX";
    int fd = mkstemp(path);
    struct documents documents;
    struct berth_err err;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: 1\n---\nb: 2\n", 14), 14);
    close(fd);
    assert_int_equal(documents_read(path, &documents, &err), 0);
    assert_int_equal(documents.len, 2);
    documents_done(&documents);
    unlink(path);
    assert_int_equal(documents_read(path, &documents, &err), -ENOENT);
    assert_int_equal(documents.len, 0);
}

static void files_are_read_whole(void **state)
{
    (void)state;
    char path[] = "/tmp/document_test.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    CLEANUP(str) struct str s = {0};
    for (int i = 0; i < 100000; i++)
        str_addf(&s, "- %d\n", i);
    assert_int_equal(write(fd, s.at, s.len), s.len);

    json_t *doc = NULL;
    struct berth_err err;
    assert_int_equal(document_read(path, &doc, &err), 0);
    assert_int_equal(json_array_size(doc), 100000);
    json_decref(doc);

    /* The same through standard input, whose size is unknown. */
    doc = NULL;
    int was = dup(STDIN_FILENO);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(document_read("-", &doc, &err), 0);
    assert_int_equal(json_array_size(doc), 100000);
    json_decref(doc);

    doc = NULL;
    assert_int_equal(ftruncate(fd, 2), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(write(fd, "{x", 2), 2);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(document_read("-", &doc, &err), -EINVAL);
    assert_ptr_equal(strstr(err.text, "standard input:1:2: "), err.text);
    assert_int_equal(dup2(was, STDIN_FILENO), STDIN_FILENO);
    close(was);

    assert_int_equal(ftruncate(fd, (off_t)DOCUMENT_BYTES_MAX + 1), 0);
    assert_int_equal(document_read(path, &doc, &err), -EFBIG);
    close(fd);
    unlink(path);
    assert_int_equal(document_read(path, &doc, &err), -ENOENT);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(document_read("/tmp", &doc, &err), -EISDIR);
    assert_int_equal(document_read("/tmp", &doc, NULL), -EISDIR);
    assert_null(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_gives_a_tree_or_an_error),
        cmocka_unit_test(plain_scalars_follow_the_core_schema),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(aliases_count_as_expanded_values),
        cmocka_unit_test(number_of_values_is_bounded),
        cmocka_unit_test(a_stream_gives_every_document),
        cmocka_unit_test(a_stream_is_read_from_a_file),
        cmocka_unit_test(files_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
