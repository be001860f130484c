/* yaml_write_test.c - printed documents are readable and parse to the same tree. */
#include "wire/text/yaml_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"

static json_t *tree(const char *json)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    if (!value)
        fail_msg("not JSON: %s", json);
    return value;
}

static void reads_back(const json_t *value)
{
    CLEANUP(str) struct str text = {0};
    CLEANUP(json) json_t *again = NULL;
    struct berth_err err;

    yaml_write(&text, value);
    if (yaml_parse(str_text(&text), text.len, "written", &again, &err) != 0)
        fail_msg("%s\n%s", err.text, str_text(&text));
    if (!json_equal((json_t *)value, again)) {
        char *got = json_dumps(again, JSON_ENCODE_ANY), *want = json_dumps(value, JSON_ENCODE_ANY);
        fail_msg("%s reads back as %s:\n%s", want, got, str_text(&text));
    }
}

static void output_has_block_style(void **state)
{
    static const struct {
        const char *json, *want;
    } rows[] = {
        {"{}",                                                             "{}\n"                                  },
        {"[]",                                                             "[]\n"                                  },
        {"\"text\"",                                                       "text\n"                                },
        {"{\"a\": {\"b\": 1}, \"c\": true}",                               "a:\n  b: 1\nc: true\n"                 },
        {"{\"a\": [], \"b\": {}, \"c\": null}",                            "a: []\nb: {}\nc: null\n"               },
        {"{\"a\": [1, \"x\"]}",                                            "a:\n  - 1\n  - x\n"                    },
        {"[{\"a\": 1, \"b\": 2}, {\"c\": [3]}]",                           "- a: 1\n  b: 2\n- c:\n    - 3\n"       },
        {"[[1, 2], [[3]], []]",                                            "- - 1\n  - 2\n- - - 3\n- []\n"         },
        {"{\"t\": \"two\\nlines\\n\"}",                                    "t: |\n  two\n  lines\n"                },
        {"{\"t\": \"two\\n\\nlines\"}",                                    "t: |-\n  two\n\n  lines\n"             },
        {"{\"t\": \"odd\\n\\n\"}",                                         "t: \"odd\\n\\n\"\n"                    },
        {"[\"a\\nb\"]",                                                    "- |-\n  a\n  b\n"                      },
        {"{\"x\": 0.1, \"w\": 3.0, \"z\": 1e300}",                         "x: 0.1\nw: 3.0\nz: 1e+300\n"           },
        {"{\"memory\": \"16Gi\", \"cpu\": \"500m\", \"period\": \"30d\"}", "memory: 16Gi\ncpu: 500m\nperiod: 30d\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(json) json_t *value = tree(rows[i].json);
        CLEANUP(str) struct str text = {0};
        yaml_write(&text, value);
        assert_string_equal(str_text(&text), rows[i].want);
        reads_back(value);
    }
}

static void strings_stay_strings(void **state)
{
    static const struct {
        const char *text;
        bool plain;
    } rows[] = {
        {"photos",               true },
        {"a b",                  true },
        {"a-b_c.d/e",            true },
        {"web/0",                true },
        {"10.0.0.1x",            true },
        {"http://a/b?c#d",       true },
        {"K=V",                  true },
        {"-x",                   true },
        {"a:b",                  true },
        {"\xc3\xa4rger",         true },
        {"2x",                   true },
        {"$HOME",                true },
        {"",                     false},
        {" a",                   false},
        {"a ",                   false},
        {"a: b",                 false},
        {"a:",                   false},
        {"a #b",                 false},
        {"#a",                   false},
        {"- a",                  false},
        {"-",                    false},
        {"?",                    false},
        {"---",                  false},
        {"...",                  false},
        {"true",                 false},
        {"False",                false},
        {"null",                 false},
        {"~",                    false},
        {"yes",                  false},
        {"No",                   false},
        {"on",                   false},
        {"y",                    false},
        {"1",                    false},
        {"-1.5",                 false},
        {"1e3",                  false},
        {"0x1F",                 false},
        {"0o17",                 false},
        {"007",                  false},
        {".5",                   false},
        {"+1",                   false},
        {".inf",                 false},
        {".NaN",                 false},
        {"1_000",                false},
        {"0b11",                 false},
        {"2026-03-01",           false},
        {"12:30",                false},
        {"2026-03-01T12:00:00Z", false},
        {"99999999999999999999", false},
        {"<<",                   false},
        {"=",                    false},
        {"[a",                   false},
        {"{a",                   false},
        {"!a",                   false},
        {"&a",                   false},
        {"*a",                   false},
        {"%a",                   false},
        {"@a",                   false},
        {"`a",                   false},
        {"'a",                   false},
        {"\"a",                  false},
        {"|",                    false},
        {">",                    false},
        {",a",                   false},
        {"tab\there",            false},
        {"bell\a",               false},
        {"esc\033[31m",          false},
        {"del\x7f",              false},
        {"nel\xc2\x85x",         false},
        {"ls\xe2\x80\xa8x",      false},
        {"bom\xef\xbb\xbfx",     false},
        {"cr\rx",                false},
        {"back\\slash",          true },
        {"quote\"inside",        true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(str) struct str text = {0};
        yaml_write_text(&text, rows[i].text, strlen(rows[i].text));
        if ((text.at[0] != '"') != rows[i].plain)
            fail_msg("'%s' is written as %s", rows[i].text, text.at);
        CLEANUP(json)
        json_t *value =
            json_pack("{s:s, s:[s], s:{s:s}}", "v", rows[i].text, "l", rows[i].text, "k", rows[i].text, rows[i].text);
        assert_non_null(value);
        reads_back(value);
    }
}

static void long_keys_parse_back(void **state)
{
    char key[2000];

    (void)state;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    CLEANUP(json) json_t *value = json_pack("{s:s, s:[{s:{s:i}}]}", key, "v", "l", key, key, 1);
    assert_non_null(value);
    reads_back(value);
}

/* Returns a random nested value with difficult strings. */
static json_t *random_value(uint64_t *seed, unsigned depth)
{
    static const char *const bits[] = {"a",  " ", ":",  "#", "-", "\n", "\"", "'",    "1",  ".",        "e",
                                       "\t", "|", "{",  "]", ",", "&",  "*",  "true", "0x", "\xc3\xa9", "\xe2\x80\xa8",
                                       "?",  "%", "\\", "\r"};
    uint64_t r = *seed = hash_u64(*seed + 1);

    if (depth < 4 && r % 3 == 0) {
        json_t *list = json_array();
        for (uint64_t i = 0; i < r / 3 % 4; i++)
            json_array_append_new(list, random_value(seed, depth + 1));
        return list;
    }
    if (depth < 4 && r % 3 == 1) {
        json_t *object = json_object();
        for (uint64_t i = 0; i < r / 3 % 4; i++) {
            CLEANUP(json) json_t *key = random_value(seed, 9);
            if (json_is_string(key))
                json_object_set_new(object, json_string_value(key), random_value(seed, depth + 1));
        }
        return object;
    }
    switch (r / 7 % 8) {
    case 0: return json_integer((json_int_t)(r >> (r % 60)));
    case 1: return json_real((double)(int64_t)r / 65536.0);
    case 2: return json_boolean(r & 64);
    case 3: return json_null();
    default: break;
    }
    CLEANUP(str) struct str text = {0};
    for (uint64_t i = 0; i < r / 64 % 7; i++)
        str_add(&text, bits[(*seed = hash_u64(*seed + 1)) % (sizeof bits / sizeof bits[0])]);
    return json_string(str_text(&text));
}

static void random_trees_parse_back(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t seed = i;
        CLEANUP(json) json_t *value = random_value(&seed, 0);
        reads_back(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_has_block_style),
        cmocka_unit_test(strings_stay_strings),
        cmocka_unit_test(long_keys_parse_back),
        cmocka_unit_test(random_trees_parse_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
