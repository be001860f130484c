/* cutting_stock_test.c - prices of shares that are cut from whole GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/gpu/cutting_stock.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

struct item {
    uint32_t size;
    double pods, price;
};

static void sizes_that_fill_a_gpu_share_its_price(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        struct item items[4];
    } rows[] = {
        {"nothing is asked for",               {{0}}                                                            },
        {"whole ones",                         {{100, 5, 1}}                                                    },
        {"halves",                             {{50, 7, 0.5}}                                                   },
        {"the rest is paid for",               {{81, 7, 1}}                                                     },
        {"two of 47 fit, three do not",        {{47, 3, 0.5}}                                                   },
        {"small ones are scarce: free",        {{81, 10, 1}, {16, 2, 0}}                                        },
        {"small ones abound: big ones less",   {{81, 1, 1 - 1.0 / 6}, {16, 100, 1.0 / 6}}                       },
        {"two kinds that complete each other", {{65, 4, 2.0 / 3}, {32, 9, 1.0 / 3}}                             },
        {"... the smaller one scarce: free",   {{65, 9, 1}, {32, 4, 0}}                                         },
        {"three kinds",                        {{55, 10, 0.5}, {23, 10, 0.25}, {22, 30, 0.25}}                  },
        {"whole ones change nothing",          {{100, 50, 1}, {65, 4, 2.0 / 3}, {32, 9, 1.0 / 3}, {81, 1000, 1}}},
        {"a hundredth",                        {{1, 1, 0.01}}                                                   },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        double demand[CUTTING_STOCK_PARTS + 1] = {0}, price[CUTTING_STOCK_PARTS + 1];
        struct arena arena;
        arena_init(&arena);
        for (size_t k = 0; k < 4; k++)
            demand[rows[i].items[k].size] = rows[i].items[k].pods;
        cutting_stock_prices(demand, &arena, price);
        for (size_t k = 0; k < 4; k++) {
            const struct item *of = &rows[i].items[k];
            double off = of->size ? price[of->size] - of->price : 0;
            if (off > 1e-6 || off < -1e-6)
                fail_msg("%s: %u costs %f, not %f", rows[i].label, of->size, price[of->size], of->price);
        }
        arena_done(&arena);
    }
}

/* For any demand: no filling has a value above one GPU, and every filling in use has a value of exactly one. */
static void prices_are_dual_to_fillings(void **state)
{
    (void)state;
    uint64_t random = 12345;
    for (int round = 0; round < 200; round++) {
        double demand[CUTTING_STOCK_PARTS + 1] = {0}, price[CUTTING_STOCK_PARTS + 1],
                                            gpu_cost[CUTTING_STOCK_PARTS + 1] = {0};
        struct arena arena;
        arena_init(&arena);
        for (int k = 0; k <= round % 40; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            demand[1 + (random >> 33) % CUTTING_STOCK_PARTS] += (double)(1 + (random >> 50) % 100);
        }
        cutting_stock_prices(demand, &arena, price);
        for (uint32_t parts = 1; parts <= CUTTING_STOCK_PARTS; parts++) {
            gpu_cost[parts] = gpu_cost[parts - 1];
            for (uint32_t size = 1; size <= parts; size++)
                if (gpu_cost[parts - size] + price[size] > gpu_cost[parts])
                    gpu_cost[parts] = gpu_cost[parts - size] + price[size];
            assert_true(price[parts] >= 0);
            assert_true(demand[parts] > 0 || price[parts] == 0);
        }
        assert_true(gpu_cost[CUTTING_STOCK_PARTS] > 1 - 1e-5 && gpu_cost[CUTTING_STOCK_PARTS] < 1 + 1e-5);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_fill_a_gpu_share_its_price),
        cmocka_unit_test(prices_are_dual_to_fillings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
