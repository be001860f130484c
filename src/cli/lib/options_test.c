/* options_test.c - parsing of command lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/lib/options.h"

enum { WORDS_MAX = 8 };

struct values {
    bool strict, all;
    const char *why;
    struct option_count seed;
    unsigned output;
    struct option_list env;
};

static const char *const outputs[] = {"table", "json", NULL};

static const struct option options[] = {
    OPTION_FLAG_ROW("strict", 0, values, strict, ""),
    OPTION_FLAG_ROW("all", 'a', values, all, ""),
    OPTION_TEXT_ROW("why", 'w', values, why, "POD", ""),
    OPTION_COUNT_ROW("seed", 0, values, seed, 1, 5000000, ""),
    OPTION_CHOICE_ROW("output", 'o', values, output, outputs, ""),
    OPTION_LIST_ROW("env", 'e', values, env, "NAME=VALUE", ""),
};

static int parse(const char *const *words, struct values *ret, struct operands *operands, struct berth_err *err)
{
    struct option_set set = {options, sizeof options / sizeof options[0], ret};
    int argc = 0;

    *ret = (struct values){0};
    while (words[argc])
        argc++;
    return options_parse(&set, 1, argc, (char *const *)words, operands, err);
}

static void option_values_are_parsed(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        struct values want;
        size_t operands;
    } rows[] = {
        {{"file"},                      {0},                         1},
        {{"--strict", "file"},          {.strict = true},            1},
        {{"file", "--strict"},          {.strict = true},            1},
        {{"--why", "web/3"},            {.why = "web/3"},            0},
        {{"--why=web/3"},               {.why = "web/3"},            0},
        {{"--why="},                    {.why = ""},                 0},
        {{"--why", "--strict"},         {.why = "--strict"},         0},
        {{"-wweb", "a", "b"},           {.why = "web"},              2},
        {{"-w", "web"},                 {.why = "web"},              0},
        {{"-aw", "web"},                {.why = "web", .all = true}, 0},
        {{"-awweb"},                    {.why = "web", .all = true}, 0},
        {{"-w=web"},                    {.why = "web"},              0},
        {{"-o", "json"},                {.output = 1},               0},
        {{"-ojson"},                    {.output = 1},               0},
        {{"--output=table"},            {.output = 0},               0},
        {{"-o", "json", "-o", "table"}, {.output = 0},               0},
        {{"--seed", "12k"},             {.seed = {12000, true}},     0},
        {{"--seed=2M"},                 {.seed = {2000000, true}},   0},
        {{"-", "x"},                    {0},                         2},
        {{"--", "--strict", "-a"},      {0},                         2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *at[WORDS_MAX];
        struct operands operands = {.at = at};
        struct values got;
        struct berth_err err;
        int rc = parse(rows[i].words, &got, &operands, &err);
        if (rc != 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(got.strict, rows[i].want.strict);
        assert_int_equal(got.all, rows[i].want.all);
        assert_int_equal(got.output, rows[i].want.output);
        assert_int_equal(got.seed.n, rows[i].want.seed.n);
        assert_int_equal(got.seed.given, rows[i].want.seed.given);
        assert_int_equal(operands.len, rows[i].operands);
        if (rows[i].want.why)
            assert_string_equal(got.why, rows[i].want.why);
        else
            assert_null(got.why);
    }
}

static void invalid_options_have_clear_errors(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *says;
    } rows[] = {
        {{"--stric"},                         "did you mean --strict?"          },
        {{"--ouput=json"},                    "did you mean --output?"          },
        {{"--outptu", "json"},                "did you mean --output?"          },
        {{"--nothing-like-it"},               "unknown option --nothing-like-it"},
        {{"--strict=yes"},                    "--strict takes no value"         },
        {{"--why"},                           "--why needs a value"             },
        {{"-w"},                              "-w needs a value"                },
        {{"-x"},                              "unknown option -x"               },
        {{"-ax"},                             "unknown option -x"               },
        {{"-o", "yaml"},                      "one of table, json, not 'yaml'"  },
        {{"--seed", "many"},                  "takes a number"                  },
        {{"--seed", "-1"},                    "takes a number"                  },
        {{"--seed", "1kk"},                   "takes a number"                  },
        {{"--seed", ""},                      "takes a number"                  },
        {{"--seed", "k"},                     "takes a number"                  },
        {{"--seed", "99999999999999999999"},  "takes a number"                  },
        {{"--seed", "18446744073709551615k"}, "takes a number"                  },
        {{"--seed", "0"},                     "at least 1"                      },
        {{"--seed", "6M"},                    "at most 5000000"                 },
        {{"--=x"},                            "unknown option --"               },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *at[WORDS_MAX];
        struct operands operands = {.at = at};
        struct values got;
        struct berth_err err = {0};
        assert_int_not_equal(parse(rows[i].words, &got, &operands, &err), 0);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: \"%s\" should say \"%s\"", i, err.text, rows[i].says);
    }
}

static void list_options_collect_every_value(void **state)
{
    static const char *const words[] = {"--env", "A=1", "file", "-eB=2", "--env=C=3", "-e", "D", NULL};
    const char *at[WORDS_MAX];
    struct operands operands = {.at = at};
    struct values got;
    struct option_set set = {options, sizeof options / sizeof options[0], &got};
    struct berth_err err;

    (void)state;
    assert_int_equal(parse(words, &got, &operands, &err), 0);
    assert_int_equal(got.env.len, 4);
    assert_string_equal(got.env.at[0], "A=1");
    assert_string_equal(got.env.at[1], "B=2");
    assert_string_equal(got.env.at[2], "C=3");
    assert_string_equal(got.env.at[3], "D");
    assert_int_equal(operands.len, 1);
    options_done(&set, 1);
    assert_int_equal(got.env.len, 0);
}

static void operands_before_double_dash_are_counted(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        size_t len, before;
    } rows[] = {
        {{"a", "b"},                  2, 2},
        {{"a", "--", "b", "-c"},      3, 1},
        {{"--", "a"},                 1, 0},
        {{"a", "--"},                 1, 1},
        {{"a", "--", "b", "--", "c"}, 4, 1},
        {{"--strict"},                0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *at[WORDS_MAX];
        struct operands operands = {.at = at};
        struct values got;
        struct berth_err err;
        assert_int_equal(parse(rows[i].words, &got, &operands, &err), 0);
        assert_int_equal(operands.len, rows[i].len);
        assert_int_equal(operands.before, rows[i].before);
    }
}

static void leading_options_end_at_the_first_operand(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        int rc, taken;
        bool strict;
    } rows[] = {
        {{"get", "--strict"},                 0,       0, false},
        {{"--strict", "get", "-a"},           0,       1, true },
        {{"--why", "get", "--strict", "get"}, 0,       3, true },
        {{"--why=x", "-a", "get"},            0,       2, false},
        {{"--strict"},                        0,       1, true },
        {{0},                                 0,       0, false},
        {{"--bogus", "get"},                  -EINVAL, 7, false},
        {{"--why"},                           -EINVAL, 7, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct values got = {0};
        struct option_set set = {options, sizeof options / sizeof options[0], &got};
        struct berth_err err;
        int argc = 0, taken = 7;
        while (rows[i].words[argc])
            argc++;
        assert_int_equal(options_parse_leading(&set, 1, argc, (char *const *)rows[i].words, &taken, &err), rows[i].rc);
        assert_int_equal(taken, rows[i].taken);
        assert_int_equal(got.strict, rows[i].strict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(option_values_are_parsed),
        cmocka_unit_test(invalid_options_have_clear_errors),
        cmocka_unit_test(list_options_collect_every_value),
        cmocka_unit_test(operands_before_double_dash_are_counted),
        cmocka_unit_test(leading_options_end_at_the_first_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
