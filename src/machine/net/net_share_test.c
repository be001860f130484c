#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>

#include "machine/net/net_share.h"

#define M INT64_C(1000000)

static void bandwidth_is_shared_by_weight(void **state)
{
    static const struct {
        const char *label;
        int64_t capacity;
        struct net_share at[3];
        int64_t want[3];
    } rows[] = {
        {"both want all",          30 * M, {{10, 0, 10 * M, 10 * M}, {20, 0, 20 * M, 20 * M}},   {10 * M, 20 * M}},
        {"the one that had more",  30 * M, {{10, 0, 20 * M, 20 * M}, {20, 0, 10 * M, 10 * M}},   {10 * M, 20 * M}},
        {"one is idle",            30 * M, {{10, 0, 10 * M, 10 * M}, {20, 0, 0, 20 * M}},        {30 * M, 20 * M}},
        {"one wants little",       30 * M, {{10, 0, 10 * M, 10 * M}, {20, 0, 4 * M, 20 * M}},    {25 * M, 20 * M}},
        {"both are idle",          30 * M, {{10, 0, 0, 0}, {20, 0, 0, 0}},                       {10 * M, 20 * M}},
        {"one is bounded",         30 * M, {{10, 0, 10 * M, 10 * M}, {20, 5 * M, 5 * M, 5 * M}}, {25 * M, 5 * M} },
        {"one has no weight",
         30 * M,
         {{10, 0, 10 * M, 10 * M}, {0, 0, 6 * M, 0}, {20, 0, 20 * M, 20 * M}},
         {8 * M, 0, 16 * M}                                                                                      },
        {"a bound, and no weight", 30 * M, {{0, 7 * M, 0, 0}},                                   {7 * M}         },
        {"nobody knows the line",  0,      {{10, 0, 10 * M, 0}, {20, 9 * M, 10 * M, 0}},         {0, 9 * M}      },
        {"the line is overrun",    30 * M, {{0, 0, 50 * M, 0}, {20, 0, 0, 0}},                   {0, 1}          },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct net_share at[3];
        for (size_t k = 0; k < 3; k++)
            at[k] = rows[i].at[k];
        net_share_out(rows[i].capacity, at, 3);
        for (size_t k = 0; k < 3; k++) {
            if (at[k].bound != rows[i].want[k])
                fail_msg("%s, %zu: %lld", rows[i].label, k, (long long)at[k].bound);
            assert_int_equal(at[k].weight, rows[i].at[k].weight);
        }
    }
}

/* From any bounds, receivers without a limit converge to their shares within a few calls. */
static void shares_converge(void **state)
{
    struct net_share at[3] = {
        {10, 0, 0, 0},
        {20, 0, 0, 0},
        {30, 0, 0, 0}
    };
    (void)state;
    for (int look = 0; look < 5; look++) {
        net_share_out(60 * M, at, 3);
        for (size_t k = 0; k < 2; k++)
            at[k].rate = at[k].bound; /* the third receiver is idle */
    }
    assert_int_equal(at[0].bound, 20 * M);
    assert_int_equal(at[1].bound, 40 * M);
    assert_int_equal(at[2].bound, 30 * M);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidth_is_shared_by_weight),
        cmocka_unit_test(shares_converge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
