/* quantity_test.c - amounts as Kubernetes counts them. */
#include "kube/object/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void amounts(void **state)
{
    static const struct {
        const char *text;
        int64_t scale, want;
    } rows[] = {
        {"0",                                                 1,    0                  },
        {"1",                                                 1,    1                  },
        {"1",                                                 1000, 1000               },
        {"100m",                                              1000, 100                },
        {"1.5",                                               1000, 1500               },
        {".5",                                                1000, 500                },
        {"2.",                                                1000, 2000               },
        {"+3",                                                1,    3                  },
        {"1500m",                                             1,    2                  }, /* rounded up */
        {"1u",                                                1000, 1                  },
        {"1n",                                                1,    1                  },
        {"0n",                                                1,    0                  },
        {"1k",                                                1,    1000               },
        {"1Ki",                                               1,    1024               },
        {"1.5Gi",                                             1,    1610612736         },
        {"2E",                                                1,    2000000000000000000},
        {"1Ei",                                               1,    1152921504606846976},
        {"9E",                                                1000, INT64_MAX          },
        {"99999999999999999999999999999999999999999999",      1,    INT64_MAX          },
        {"0.00000000000000000000000000000000000000000000001", 1,    1                  },
        {"0.10000000000000000000000000000000000000000000000", 1000, 100                },
        {"1e3",                                               1,    1000               },
        {"1E3",                                               1,    1000               },
        {"5e-1",                                              1000, 500                },
        {"1e-30",                                             1,    1                  },
        {"1e99",                                              1,    INT64_MAX          },
        {"-1",                                                1,    -1                 },
        {"-1500m",                                            1,    -1                 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = -77;
        if (!kube_quantity_parse(rows[i].text, strlen(rows[i].text), rows[i].scale, &got) || got != rows[i].want)
            fail_msg("%s: %lld, not %lld", rows[i].text, (long long)got, (long long)rows[i].want);
    }
}

static void invalid_quantities_are_rejected(void **state)
{
    static const char *const rows[] = {"",   "+",   "-",     ".",  "m",  "1x",  "1Kii", "1ki",
                                       "1e", "1e+", "1.2.3", "1 ", " 1", "0x1", "1Mib", "e3"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = -77;
        if (kube_quantity_parse(rows[i], strlen(rows[i]), 1, &got) || got != -77)
            fail_msg("\"%s\" was read", rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(amounts), cmocka_unit_test(invalid_quantities_are_rejected)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
