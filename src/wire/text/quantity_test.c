/* quantity_test.c - amounts are parsed exactly; printed amounts parse to the same value. */
#include "wire/text/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

#define KI ((int64_t)1024)
#define GI (KI * KI * KI)

/* A row of a table that is too wide for columns. */
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static void amounts_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *text;
        int64_t want;
    } rows[] = {
        {"cpu",      "1",                             1000            },
        {"cpu",      "500m",                          500             },
        {"cpu",      "0.5",                           500             },
        {"cpu",      "2.5",                           2500            },
        {"cpu",      "2.500000000000000000000000000", 2500            },
        {"cpu",      ".001",                          1               },
        {"cpu",      "1e2",                           100000          },
        {"cpu",      "1k",                            1000000         },
        {"cpu",      "-1",                            -1000           },
        {"cpu",      "+1",                            1000            },
        {"cpu",      "1500m",                         1500            },
        {"cpu",      "9223372036854775.807",          INT64_MAX       },
        {"memory",   "0",                             0               },
        {"memory",   "128",                           128             },
        {"memory",   "1Ki",                           KI              },
        {"memory",   "1Mi",                           KI * KI         },
        {"memory",   "16Gi",                          16 * GI         },
        {"memory",   "1.5Gi",                         GI + GI / 2     },
        {"memory",   "1Ti",                           KI * GI         },
        {"memory",   "1Pi",                           KI * KI * GI    },
        {"memory",   "1k",                            1000            },
        {"memory",   "1M",                            1000000         },
        {"memory",   "10G",                           10000000000     },
        {"memory",   "1.5T",                          1500000000000   },
        {"memory",   "2P",                            2000000000000000},
        {"memory",   "1e9",                           1000000000      },
        {"memory",   "12E3",                          12000           },
        {"memory",   "0.1Ki",                         103             }, /* 102.4 bytes, rounded up */
        {"memory",   "-0.1Ki",                        -103            },
        {"memory",   "-5Gi",                          -5 * GI         },
        {"memory",   "9223372036854775807",           INT64_MAX       },
        {"licences", "3",                             3               },
        {"licences", "3.0",                           3               },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = 0;
        struct berth_err err = {0};
        if (quantity_parse_text(rows[i].resource, rows[i].text, &got, &err) != 0 || got != rows[i].want)
            fail_msg("%s %s: %lld %s", rows[i].resource, rows[i].text, (long long)got, err.text);
    }
}

static void invalid_amounts_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *text, *want;
    } rows[] = {
        ROW("cpu", "", "expected an amount like 2, 1.5 or 500m, found \"\""),
        ROW("cpu", "two", "expected an amount like 2, 1.5 or 500m, found \"two\""),
        ROW("memory", "much", "expected an amount like 2, 1.5Gi or 10G, found \"much\""),
        ROW("memory", "-", "expected an amount"),
        ROW("memory", ".", "expected an amount"),
        ROW("memory", " 1", "expected an amount"),
        ROW("cpu", "0.0005", "\"0.0005\" has more than three decimal places"),
        ROW("cpu", "1.5m", "\"1.5m\" has more than three decimal places"),
        ROW("memory", "1.5", "\"1.5\" is not a whole number of units"),
        ROW("memory", "0.0001k", "\"0.0001k\" is not a whole number of units"),
        ROW("memory", "16GB", "\"16GB\" has an unknown unit; expected k, M, G, T, P, Ki, Mi, Gi, Ti or Pi"),
        ROW("cpu", "1 ", "\"1 \" has an unknown unit; expected m, k, M, G, T, P, Ki, Mi, Gi, Ti or Pi"),
        ROW("memory", "1e", "\"1e\" has an unknown unit"),
        ROW("memory", "500m", "\"500m\": m means thousandths and is for cpu only; mebibytes are Mi, megabytes M"),
        ROW("memory", "9223372036854775808", "\"9223372036854775808\" is too large"),
        ROW("memory", "9000Pi", "\"9000Pi\" is too large"),
        ROW("memory", "1e300", "\"1e300\" is too large"),
        ROW("memory", "1e99999999999", "\"1e99999999999\" has too many digits"),
        ROW("cpu", "9223372036854776", "\"9223372036854776\" is too large"),
        ROW("memory", "123456789012345678901234567890", "\"123456789012345678901234567890\" has too many digits"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = 77;
        struct berth_err err = {0};
        int rc = quantity_parse_text(rows[i].resource, rows[i].text, &got, &err);
        if (rc >= 0 || rc != -err.code || got != 77 || strncmp(err.text, rows[i].want, strlen(rows[i].want)) != 0)
            fail_msg("%s %s: %d, %lld, %s", rows[i].resource, rows[i].text, rc, (long long)got, err.text);
        assert_int_equal(quantity_parse_text(rows[i].resource, rows[i].text, &got, NULL), rc);
    }
}

static void json_numbers_are_amounts(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *json;
        int64_t want;
    } rows[] = {
        {"cpu",    "8",       8000      },
        {"cpu",    "0.1",     100       },
        {"cpu",    "2.001",   2001      },
        {"memory", "1e9",     1000000000},
        {"memory", "-3",      -3        },
        {"memory", "\"1Ki\"", 1024      },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
        int64_t got = 0;
        assert_int_equal(quantity_parse(rows[i].resource, value, &got, NULL), 0);
        if (got != rows[i].want)
            fail_msg("%s: %lld", rows[i].json, (long long)got);
        json_decref(value);
    }
    int64_t got;
    struct berth_err err;
    assert_true(quantity_parse("cpu", json_true(), &got, &err) < 0);
    assert_string_equal(err.text, "expected an amount, a number or a string like \"500m\"");
}

static void ratios_are_thousandths(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int64_t want; /* INT64_MIN: rejected */
    } rows[] = {
        {"1.5",      1500     },
        {"1",        1000     },
        {"\"1.25\"", 1250     },
        {"\"250m\"", 250      },
        {"0.0001",   INT64_MIN},
        {"\"1.5x\"", INT64_MIN},
        {"true",     INT64_MIN},
        {"1e300",    INT64_MIN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
        int64_t got = INT64_MIN;
        int rc = ratio_parse(value, &got, NULL);
        if (got != rows[i].want || (rc < 0) != (rows[i].want == INT64_MIN))
            fail_msg("%s: %d, %lld", rows[i].json, rc, (long long)got);
        json_decref(value);
    }
}

static void amounts_are_printed_short(void **state)
{
    (void)state;
    static const struct {
        const char *resource;
        int64_t amount;
        const char *want;
    } rows[] = {
        {"cpu",           0,                        "0"      },
        {"cpu",           500,                      "500m"   },
        {"cpu",           1000,                     "1"      },
        {"cpu",           1500,                     "1.5"    },
        {"cpu",           1250,                     "1.25"   },
        {"cpu",           1001,                     "1001m"  },
        {"cpu",           -2500,                    "-2.5"   },
        {"memory",        0,                        "0"      },
        {"memory",        1000,                     "1000"   },
        {"memory",        1024,                     "1Ki"    },
        {"memory",        16 * GI,                  "16Gi"   },
        {"memory",        16 * GI + GI / 2,         "16.5Gi" },
        {"memory",        5 * GI / 4,               "1.25Gi" },
        {"memory",        1023 * GI,                "1023Gi" },
        {"memory",        KI * GI,                  "1Ti"    },
        {"memory",        10000000000,              "10G"    },
        {"memory",        1500000,                  "1.5M"   },
        {"memory",        1234567,                  "1234567"},
        {"memory",        -GI,                      "-1Gi"   },
        {"hugepages-2Mi", 512 * KI * KI,            "512Mi"  },
        {"licences",      4096,                     "4096"   },
        {"licences",      1000,                     "1000"   },
        {"bandwidth",     10000000000,              "10G"    },
        {"bandwidth",     1000000,                  "1M"     },
        {"scratch",       100 * GI,                 "100Gi"  },
        {"scratch",       100 * GI + 512 * KI * KI, "100.5Gi"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char buf[QUANTITY_TEXT_MAX];
        assert_string_equal(quantity_print(rows[i].resource, rows[i].amount, buf), rows[i].want);
    }
}

static void printed_amounts_parse_back(void **state)
{
    (void)state;
    static const char *const resources[] = {"cpu", "memory", "licences"};
    for (uint64_t n = 0; n < 200000; n++) {
        uint64_t draw = hash_u64(n + 1);
        /* Round and odd amounts of every size. */
        int64_t amount = (int64_t)(hash_u64(draw) >> (draw % 64) << (draw / 64 % 40)), got = 0;
        if (amount == INT64_MIN || n == 0)
            amount = INT64_MAX;
        const char *resource = resources[n % 3];
        char buf[QUANTITY_TEXT_MAX];
        quantity_print(resource, amount, buf);
        if (quantity_parse_text(resource, buf, &got, NULL) != 0 || got != amount)
            fail_msg("draw %llu: %s %lld printed as %s came back as %lld", (unsigned long long)n, resource,
                     (long long)amount, buf, (long long)got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_parsed),        cmocka_unit_test(invalid_amounts_are_rejected),
        cmocka_unit_test(json_numbers_are_amounts),  cmocka_unit_test(ratios_are_thousandths),
        cmocka_unit_test(amounts_are_printed_short), cmocka_unit_test(printed_amounts_parse_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
