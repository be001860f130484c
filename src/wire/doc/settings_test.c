/* settings_test.c - schemas, and the settings that they accept. */
#include "wire/doc/doc_kit_test.h"

static const char schema[] =
    "{port: {type: integer, min: 1, max: 65535, default: 80}, name: {type: text, min: 2, max: 4},"
    " ratio: {type: number, max: 1}, on: {type: boolean, required: true},"
    " mode: {type: text, values: [fast, slow]}}";

static void defaults_are_filled_in(void **state)
{
    (void)state;
    CLEANUP(given) struct given s = given(schema);
    CLEANUP(given) struct given v = given("{on: true, ratio: 1, mode: fast, name: null}");
    CLEANUP(given) struct given want = given("{on: true, ratio: 1, mode: fast, port: 80}");
    CLEANUP(json) json_t *got = NULL;
    assert_int_equal(settings_schema_check(s.doc, &s.err), 0);
    if (settings_check(s.doc, v.doc, &got, &v.err) < 0)
        fail_msg("%s", v.err.text);
    assert_true(json_equal(got, want.doc));
}

static void invalid_settings_are_rejected(void **state)
{
    (void)state;
    CLEANUP(given) struct given s = given(schema);
    static const struct refusal rows[] = {
        {"[]",                       "expected an object"                                  },
        {"{}",                       "on: missing"                                         },
        {"{on: null}",               "on: missing"                                         },
        {"{on: 1}",                  "on: expected true or false"                          },
        {"{on: true, port: 0}",      "port: is below the least allowed, 1"                 },
        {"{on: true, port: 65536}",  "port: is above the most allowed, 65535"              },
        {"{on: true, port: 1.5}",    "port: expected a whole number"                       },
        {"{on: true, name: x}",      "name: the length is below"                           },
        {"{on: true, name: xxxxx}",  "name: the length is above"                           },
        {"{on: true, name: 55}",     "name: expected text"                                 },
        {"{on: true, ratio: 1.01}",  "ratio: is above"                                     },
        {"{on: true, ratio: '1'}",   "ratio: expected a number"                            },
        {"{on: true, mode: middle}", "mode: expected one of"                               },
        {"{on: true, prot: 5}",      "there is no setting \"prot\"; did you mean \"port\"?"},
        {"{on: true, 'a b': 5}",     "\"a b\" is not a valid name of a setting"            },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        json_t *got = NULL;
        REFUSED(&rows[i], &g, settings_check(s.doc, g.doc, &got, &g.err));
        assert_null(got);
        assert_true(settings_check(s.doc, g.doc, &got, NULL) < 0);
    }
}

static void invalid_schemas_are_rejected(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"[]",                                            "expected an object"                   },
        {"{a: 1}",                                        "a: expected an object"                },
        {"{a: {}}",                                       "a: type: missing"                     },
        {"{a: {type: date}}",                             "a: type: expected one of"             },
        {"{a: {type: text, kind: 1}}",                    "a: unknown key"                       },
        {"{a: {type: boolean, min: 0}}",                  "a: min: a boolean cannot have bounds" },
        {"{a: {type: integer, max: big}}",                "a: max: expected a number"            },
        {"{a: {type: integer, min: 3, max: 2}}",          "a: max: is below min"                 },
        {"{a: {type: integer, values: []}}",              "a: values: expected a list"           },
        {"{a: {type: integer, values: 3}}",               "a: values: expected a list"           },
        {"{a: {type: integer, values: [1, x]}}",          "a: values[1]: expected a whole"       },
        {"{a: {type: integer, default: x}}",              "a: default: expected a whole"         },
        {"{a: {type: integer, max: 3, default: 4}}",      "a: default: is above"                 },
        {"{a: {type: integer, values: [1], default: 2}}", "a: default: expected one of"          },
        {"{a: {type: integer, required: 1}}",             "a: required: expected true"           },
        {"{'': {type: integer}}",                         "\"\" is not a valid name of a setting"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        REFUSED(&rows[i], &g, settings_schema_check(g.doc, &g.err));
        assert_true(settings_schema_check(g.doc, NULL) < 0);
    }
}

static void without_a_schema_plain_values_are_accepted(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{a: 1, b: x, c: true, d: 0.5, e: null}");
    CLEANUP(given) struct given want = given("{a: 1, b: x, c: true, d: 0.5}");
    CLEANUP(json) json_t *got = NULL, *none = NULL;
    assert_int_equal(settings_check(NULL, g.doc, &got, &g.err), 0);
    assert_true(json_equal(got, want.doc));
    assert_int_equal(settings_check(NULL, NULL, &none, &g.err), 0);
    assert_int_equal(json_object_size(none), 0);
    static const struct refusal rows[] = {
        {"{a: [1]}",    "a: expected text, a number"},
        {"{a: {b: 1}}", "a: expected text, a number"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        json_t *ret = NULL;
        REFUSED(&rows[i], &bad, settings_check(NULL, bad.doc, &ret, &bad.err));
    }
}

static void large_whole_numbers_are_compared_exactly(void **state)
{
    (void)state;
    CLEANUP(given) struct given s = given("{a: {type: integer, max: 9007199254740992}}");
    CLEANUP(given) struct given v = given("{a: 9007199254740993}");
    json_t *got = NULL;
    assert_true(settings_check(s.doc, v.doc, &got, &v.err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(invalid_settings_are_rejected),
        cmocka_unit_test(invalid_schemas_are_rejected),
        cmocka_unit_test(without_a_schema_plain_values_are_accepted),
        cmocka_unit_test(large_whole_numbers_are_compared_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
