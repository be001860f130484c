/* formula_test.c - results of formulas, forbidden constructs, and error messages. */
#include "formula/formula.h"

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

enum { LEN = 3 };
#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* Three rows. Factor i is 0.25 * (i + 1) modulo 1 in the first row, 0 in the second, 1 in the third. */
struct formula_batch {
    const char *names[32];
    int32_t values[32][LEN];
    const int32_t *columns[32];
    struct berth_factors in;
};

static const double waited[LEN] = {60, 0, 3600}, runtime[LEN] = {600, 1, 60}, pods[LEN] = {1, 2, 3},
                    size[LEN] = {8, 0.5, 64}, created[LEN] = {1000, 2000, 3000};
static const char *const class_column[LEN] = {"llm", "", "vision"}, *const shop_column[LEN] = {"", "north", "south"};
static const char *const word_names[] = {"class", "shop"};
static const char *const *const word_columns[] = {class_column, shop_column};

static void batch_init(struct formula_batch *b)
{
    memset(b, 0, sizeof *b);
    for (size_t i = 0; berth_factor_at(i, NULL); i++, b->in.names_len++) {
        b->names[i] = berth_factor_at(i, NULL);
        b->values[i][0] = (int32_t)((i + 1) % 4 * 250000);
        b->values[i][2] = 1000000;
        b->columns[i] = b->values[i];
    }
    b->in.len = LEN;
    b->in.names = b->names;
    b->in.columns = b->columns;
    b->in.word_names = word_names;
    b->in.word_names_len = ROWS(word_names);
    b->in.words = word_columns;
    b->in.waited = waited;
    b->in.runtime = runtime;
    b->in.pods = pods;
    b->in.size = size;
    b->in.created = created;
}

static void formulas_give_keys(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want[LEN];
    } rows[] = {
        {"1",                                                             {1000, 1000, 1000}                              },
        {"age",                                                           {250, 0, 1000}                                  },
        {"2 * age + size",                                                {1000, 0, 3000}                                 },
        {"-- the oldest first\nage",                                      {250, 0, 1000}                                  },
        {"return age",                                                    {250, 0, 1000}                                  },
        {"local x = age\nif x > 0.5 then return 7 end\nreturn -x",        {-250, 0, 7000}                                 },
        {"waited / runtime",                                              {100, 0, 60000}                                 },
        {"pow(waited / runtime, 3) * processors",                         {8, 0, 13824000000}                             },
        {"log10(runtime) * processors",                                   {22225, 0, 113802}                              },
        {"math.sqrt(processors) + math.abs(-pods)",                       {3828, 2707, 11000}                             },
        {"min(pods, 2, 7) + max(1, pods) * floor(1.5) + ceil(0.2)",       {3000, 5000, 6000}                              },
        {"floor(-0.5) + ceil(-0.5) + exp(0) + log(1) + log2(8)",          {3000, 3000, 3000}                              },
        {"class == \"llm\" and 10 or 1",                                  {10000, 1000, 1000}                             },
        {"attr.shop == 'south' and 1 or attr[\"shop\"] == '' and 2 or 3", {2000, 3000, 1000}                              },
        {"type == '' and network == '' and 1 or 0",                       {1000, 1000, 1000}                              },
        {"created",                                                       {1000000, 2000000, 3000000}                     },
        {"class < 'm' and 1 or 0",                                        {1000, 1000, 0}                                 },
        {"1 / (waited - waited)",                                         {(int64_t)9e18, (int64_t)9e18, (int64_t)9e18}   },
        {"-1e300",                                                        {-(int64_t)9e18, -(int64_t)9e18, -(int64_t)9e18}},
        {"0.0004 + pods // 2 + 7 % 4",                                    {3000, 4000, 4000}                              },
        {"local s = 0 for i = 1, 10 do s = s + i end return s * age",     {13750, 0, 55000}                               },
    };
    struct formula_batch b;
    batch_init(&b);
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(formula) struct formula *f = NULL;
        struct berth_err err = {0};
        int64_t keys[LEN] = {-1, -1, -1};
        if (formula_new(rows[i].text, "test", &f, &err) || formula_run(f, &b.in, keys, &err))
            fail_msg("%s: %s", rows[i].text, err.text);
        for (size_t n = 0; n < LEN; n++)
            if (keys[n] != rows[i].want[n])
                fail_msg("%s: row %zu is %lld, not %lld", rows[i].text, n, (long long)keys[n],
                         (long long)rows[i].want[n]);
    }
}

static void bad_formulas_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want; /* part of the error message */
    } rows[] = {
        {"",                                                       "the formula is empty"                              },
        {"age +",                                                  "line 1: unexpected symbol near <eof>"              },
        {"local x = 1\nreturn x +* 2",                             "line 2: unexpected symbol near '*'"                },
        {"age * \n\n nonsense",                                    "line 3: \"nonsense\" is not available in a formula"},
        {"local x = 1\nlocal y = attr.x * 2\nreturn x",            "line 2: attempt to perform arithmetic on a string" },
        {"age ^ 2",                                                "line 1: ^ cannot be used in a formula; write pow(x"},
        {"1\n + pow(2,\n 2)^2",                                    "line 3: ^"                                         },
        {"(age .. 'x') == '' and 1 or 2",                          ".. cannot be used"                                 },
        {"x = 1 return x",                                         "\"x\" cannot be set; write local x"                },
        {"attr.x = 1 return 1",                                    "\"x\" cannot be set"                               },
        {"math.log = 1 return 1",                                  "\"log\" cannot be set"                             },
        {"_ENV = {} return 1",                                     "_ENV cannot be used"                               },
        {"-- a comment ends here\r return 2^age",                  "^ cannot be used"                                  },
        {"class == '\\z\n' and 2^age or '' and 1",                 "^ cannot be used"                                  },
        {"class == 'a\\\r\nb' and 2^age or '' and 1",              "^ cannot be used"                                  },
        {"local a <const> = _ENV return 1",                        "_ENV cannot be used"                               },
        {"os.time()",                                              "\"os\" is not available in a formula"              },
        {"io.open('x')",                                           "\"io\" is not available in a formula"              },
        {"pairs({})",                                              "\"pairs\" is not available in a formula"           },
        {"load('return 1')()",                                     "attempt to call a number value"                    },
        {"require('x')",                                           "\"require\" is not available in a formula"         },
        {"getmetatable('')",                                       "\"getmetatable\" is not available in a formula"    },
        {"math.random()",                                          "\"random\" is not available in a formula"          },
        {"('x'):rep(9)",                                           "attempt to index a string value"                   },
        {"'10' + 1",                                               "attempt to perform arithmetic on a string"         },
        {"log('10')",                                              "expected a number, not string"                     },
        {"min()",                                                  "expected a number, not no value"                   },
        {"'10'",                                                   "the formula returns string, not a number"          },
        {"age > 1",                                                "the formula returns boolean, not a number"         },
        {"local x = age",                                          "the formula returns nil, not a number"             },
        {"waited / waited",                                        "the result is not a number"                        },
        {"sqrt(-1)",                                               "the result is not a number"                        },
        {"while true do end",                                      "the formula takes more than 2000 steps"            },
        {"local function f() return f() end return f()",           "the formula takes more than 2000 steps"            },
        {"local function f() return 1 + f() end return f()",       "the formula takes more than 2000 steps"            },
        {"local t = {} for i = 1, 1e9 do t[i] = {i} end return 1", "the formula takes more than 2000 steps"            },
        {"local function f(...) return f(1, ...) end return f()",  ""                                                  },
        {"attr[1]",                                                "attr: expected a name as the key, not number"      },
        {"error('x')",                                             "\"error\" is not available in a formula"           },
        {"\x1bLua",                                                "line 1: "                                          },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct formula *f = (struct formula *)&f;
        struct berth_err err = {0};
        if (formula_new(rows[i].text, "policy", &f, &err) != -EINVAL)
            fail_msg("%s: not refused", rows[i].text);
        assert_ptr_equal(f, &f); /* unchanged */
        if (!strstr(err.text, rows[i].want) || strncmp(err.text, "policy: ", 8) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", rows[i].text, err.text, rows[i].want);
    }
    CLEANUP(str) struct str deep = {0}, longer = {0}, wide = {0};
    struct berth_err err = {0};
    struct formula *f = NULL;
    for (int i = 0; i < 1000; i++)
        str_add_char(&deep, '(');
    assert_int_equal(formula_new(deep.at, "policy", &f, &err), -EINVAL);
    for (int i = 0; i <= FORMULA_TEXT_MAX; i++)
        str_add_char(&longer, ' ');
    assert_int_equal(formula_new(longer.at, "policy", &f, &err), -EINVAL);
    assert_non_null(strstr(err.text, "longer than 8192 bytes"));
    str_add(&wide, "local function f() local a0"); /* many variables in each call */
    for (int i = 1; i < 180; i++)
        str_addf(&wide, ",a%d", i);
    str_add(&wide, " return 1 + f() end return f()");
    assert_int_equal(formula_new(wide.at, "policy", &f, &err), -EINVAL);
    assert_string_equal(err.text,
                        "policy: the formula needs more than 1024 KiB of memory (for waited 0, runtime 1, pods 1, "
                        "processors 0)");
}

/* A string, a comment or a long bracket may contain what is forbidden elsewhere. */
static void strings_and_comments_may_contain_anything(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "class == 'a^b..c' and 1 or 2", "class == \"a\\\"^\" and 1 or 2", "-- x^2 .. _ENV\nage",
        "--[==[ x^2 ]] \n .. ]==] age", "class == [[ ^ ]] and 1 or 2",    "attr['a_ENV'] == '' and 1 or 2",
        "local a_ENV = 1 return a_ENV",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(formula) struct formula *f = NULL;
        struct berth_err err = {0};
        if (formula_new(rows[i], "test", &f, &err))
            fail_msg("%s: %s", rows[i], err.text);
    }
}

/* A formula that passes its sample rows may still fail later: then no key is changed, and the formula stays usable. */
static void failure_leaves_keys_unchanged(void **state)
{
    (void)state;
    struct formula_batch b;
    batch_init(&b);
    CLEANUP(formula) struct formula *f = NULL;
    struct berth_err err = {0};
    int64_t keys[LEN] = {1, 2, 3};
    assert_int_equal(formula_new("attr.shop == 'south' and nil or age", "test", &f, &err), 0);
    assert_int_equal(formula_run(f, &b.in, keys, &err), 0);
    memcpy(keys, (const int64_t[LEN]){1, 2, 3}, sizeof keys);
    CLEANUP(formula) struct formula *g = NULL;
    assert_int_equal(formula_new("attr.shop == 'north' and (nil + 1) or age", "test", &g, &err), 0);
    assert_int_equal(formula_run(g, &b.in, keys, &err), -EINVAL);
    assert_non_null(strstr(err.text, "test: line 1: attempt to perform arithmetic on a nil value"));
    assert_non_null(strstr(err.text, "(for waited 0, runtime 1, pods 2, processors 0)"));
    assert_true(keys[0] == 1 && keys[1] == 2 && keys[2] == 3);
    b.in.len = 1;
    assert_int_equal(formula_run(g, &b.in, keys, &err), 0);
    assert_int_equal(formula_run(g, &b.in, keys, NULL), 0);
}

/* The result of a row does not depend on other rows: alone, in another order, or again. */
static void rows_are_independent(void **state)
{
    (void)state;
    struct formula_batch b;
    batch_init(&b);
    CLEANUP(formula) struct formula *f = NULL;
    struct berth_err err = {0};
    const char *text = "local t = {n = 0}\nlocal function up() t.n = t.n + 1 return t.n end\nup()\n"
                       "return up() * 100 + age * pods + (class == '' and 5 or 0)";
    int64_t all[LEN], again[LEN];
    assert_int_equal(formula_new(text, "test", &f, &err), 0);
    assert_int_equal(formula_run(f, &b.in, all, &err), 0);
    assert_int_equal(formula_run(f, &b.in, again, &err), 0);
    assert_memory_equal(all, again, sizeof all);
    assert_int_equal(all[1], 205000);
}

/* Lua compares strings and parses numbers by the locale. */
static void locale_does_not_matter(void **state)
{
    (void)state;
    struct formula_batch b;
    batch_init(&b);
    int64_t keys[LEN];
    struct berth_err err = {0};
    if (!setlocale(LC_ALL, "en_US.UTF-8") && !setlocale(LC_ALL, "de_DE.UTF-8")) {
        print_message("skip: no locale is installed that compares texts otherwise\n");
        skip();
    }
    CLEANUP(formula) struct formula *f = NULL;
    assert_int_equal(formula_new("('a' < 'B' and 1 or 2) * 1.5", "test", &f, &err), 0);
    assert_int_equal(formula_run(f, &b.in, keys, &err), 0);
    assert_int_equal(keys[0], 3000);
    setlocale(LC_ALL, "C");
}

/* Garbage is collected while rows are computed: many rows need no more memory than one. */
static void many_rows_need_bounded_memory(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct formula_batch b;
    batch_init(&b);
    int32_t *column = mem_zarray(MANY, sizeof *column);
    double *numbers = mem_zarray(MANY, sizeof *numbers);
    int64_t *keys = mem_zarray(MANY, sizeof *keys);
    const char **texts = mem_zarray(MANY, sizeof *texts);
    const char *const *const both[] = {texts, texts};
    for (int i = 0; i < MANY; i++) {
        column[i] = i;
        numbers[i] = i;
        texts[i] = i % 2 ? "llm" : "";
    }
    for (size_t i = 0; i < b.in.names_len; i++)
        b.columns[i] = column;
    b.in.len = MANY;
    b.in.waited = b.in.runtime = b.in.pods = b.in.size = b.in.created = numbers;
    b.in.words = both;
    CLEANUP(formula) struct formula *f = NULL;
    struct berth_err err = {0};
    if (formula_new("local t = {age, size}\nreturn 1000 * t[1] + fair_share + (class == 'llm' and 1 or 0)", "test", &f,
                    &err) ||
        formula_run(f, &b.in, keys, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < MANY; i++)
        assert_true(keys[i] == i + (i % 2) * 1000 + (i + 500) / 1000 || keys[i] == i + (i % 2) * 1000 + i / 1000);
    mem_free(column);
    mem_free(numbers);
    mem_free(keys);
    mem_free(texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_give_keys),
        cmocka_unit_test(bad_formulas_are_refused),
        cmocka_unit_test(strings_and_comments_may_contain_anything),
        cmocka_unit_test(failure_leaves_keys_unchanged),
        cmocka_unit_test(rows_are_independent),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(many_rows_need_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
