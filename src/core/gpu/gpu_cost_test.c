/* gpu_cost_test.c - the GPU cost of a pod on a node, and the cheapest device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/hash.h"
#include "core/gpu/gpu.h"
#include "core/gpu/gpu_cost.h"
#include "core/gpu/gpu_prices.h"
#include "core/scene/kit_test.h"
#include "core/search/search.h"

static double cost(struct kit *k, const char *node)
{
    struct attempt t;
    kit_attempt(k, "web", &t);
    double c = gpu_cost_of(&t, kit_position(k, node)).cost;
    attempt_end(&t);
    return c;
}

/* Compares, ignoring the small amounts that only order places of equal cost. */
static void expect(const char *label, double got, double want)
{
    if (got < want - 1e-6 || got > want + 1e-3)
        fail_msg("%s: %f, not %f", label, got, want);
}

static void cost_is_the_loss_of_typical_pods(void **state)
{
    (void)state;
    /* A node with 8 cores, 8 GiB and two T4. */
    static const struct {
        const char *label;
        struct kit_request usual[2], pod;
        double want;
    } rows[] = {
        {"nobody came yet",               {{0}},                                                           {.count = 1},               0  },
        {"nobody wants GPUs",             {{.pods = 9, .cpu = 500}},                                       {.count = 2},               0  },
        {"a whole one",                   {{.pods = 1, .count = 1}},                                       {.count = 1},               1  },
        {"a half leaves a half",          {{.pods = 1, .count = 1, .milli = 500}},                         {.count = 1, .milli = 500}, 0.5},
        {"more than half leaves nothing", {{.pods = 1, .count = 1, .milli = 500}},                         {.count = 1, .milli = 501}, 1  },
        {"a little costs nothing",        {{.pods = 1, .count = 1, .milli = 810}},                         {.count = 1, .milli = 190}, 0  },
        {"a little more does",            {{.pods = 1, .count = 1, .milli = 810}},                         {.count = 1, .milli = 191}, 1  },
        {"others want another model",     {{.pods = 1, .count = 1, .model = "A100"}},                      {.count = 1},               0  },
        {"a pair breaks up",              {{.pods = 1, .count = 2}},                                       {.count = 1},               2  },
        {"more than there are",           {{.pods = 1, .count = 3}},                                       {.count = 1},               0  },
        {"cpu that others need",          {{.pods = 1, .count = 1, .cpu = 4000}},                          {.cpu = 4000},              1  },
        {"... part of it",                {{.pods = 1, .count = 1, .cpu = 4000}},                          {.cpu = 2000},              0.5},
        {"cpu that nobody needs",         {{.pods = 1, .count = 1, .cpu = 1000}},                          {.cpu = 6000},              0  },
        {"memory that others need",       {{.pods = 1, .count = 1, .memory = 4 * KIT_GIB}},                {.memory = 2 * KIT_GIB},    0.5},
        {"half of them need it",          {{.pods = 1, .count = 1}, {.pods = 1, .count = 1, .cpu = 4000}}, {.cpu = 8000},              1  },
        {"... a quarter",                 {{.pods = 3, .count = 1}, {.pods = 1, .count = 1, .cpu = 4000}}, {.cpu = 8000},              0.5},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpus[] = {
            {"T4", 0},
            {"T4", 0}
        };
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_node(&k, (struct berth_node){.id = "n2"});
        kit_typical(&k, "a", &rows[i].usual[0]);
        kit_typical(&k, "b", &rows[i].usual[1]);
        kit_pending(&k, "web", 0, &rows[i].pod);
        kit_plan(&k, "gpu_worth");
        expect(rows[i].label, cost(&k, "n1"), rows[i].want);
        assert_true(rows[i].pod.count || cost(&k, "n2") == 0);
    }
}

static void cheapest_device_is_picked(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t usual, held, asked; /* milli; the first is idle, this much of the second is held */
        uint64_t want;
    } rows[] = {
        {"810 must stay",                810, 100, 110, 1 << 0},
        {"both keep it: the fuller one", 810, 100, 90,  1 << 1},
        {"equal cost: the fuller one",   470, 470, 470, 1 << 1},
        {"fits only on one",             470, 470, 531, 1 << 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpus[2] = {0};
        struct berth_action a = {0};
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_workload(&k, "old", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = rows[i].held});
        kit_running(&k, "old", 0, "n1", 1 << 1);
        kit_typical(&k, "usual", &(struct kit_request){.pods = 100000, .count = 1, .milli = rows[i].usual});
        kit_pending(&k, "web", 1, &(struct kit_request){.count = 1, .milli = rows[i].asked});
        kit_plan(&k, "gpu_worth");
        assert_true(kit_placed(&k, "web", 0, &a));
        if (a.gpus != rows[i].want)
            fail_msg("%s: devices %llx", rows[i].label, (unsigned long long)a.gpus);
    }
}

/* Half of the requests may use only the T4, which is half of the GPUs. */
static void scarce_gpus_cost_more(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_gpu t4 = {.model = "T4"}, a100 = {.model = "A100"};
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = &t4, .gpus_len = 1});
    kit_node(&k, (struct berth_node){.id = "n2", .gpus = &a100, .gpus_len = 1});
    kit_typical(&k, "any", &(struct kit_request){.pods = 1, .count = 1});
    kit_typical(&k, "some", &(struct kit_request){.pods = 1, .count = 1, .model = "T4"});
    kit_pending(&k, "web", 0, &(struct kit_request){.count = 1});
    kit_plan(&k, "gpu_worth");
    expect("T4", cost(&k, "n1"), 1.2);
    expect("A100", cost(&k, "n2"), 1);
}

/* A node may have several models; idle GPUs are counted for each. */
static void models_on_one_node_are_priced_separately(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_gpu gpus[] = {
        {"T4",   0},
        {"A100", 0},
        {"T4",   0}
    };
    struct berth_action a = {0};
    kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 3});
    kit_typical(&k, "pair", &(struct kit_request){.pods = 1000, .count = 2, .model = "T4"});
    kit_pending(&k, "web", 1, &(struct kit_request){.count = 1, .milli = 400});
    kit_plan(&k, "gpu_worth");
    assert_true(kit_placed(&k, "web", 0, &a));
    assert_int_equal(a.gpus, 1 << 1);
    /* One T4 breaks up the pair, and the requests for T4 exceed the T4 by half. */
    kit_check(&k, berth_workload_remove(k.cluster, "web", &k.err));
    kit_pending(&k, "web", 0, &(struct kit_request){.count = 1, .model = "T4"});
    kit_plan(&k, "gpu_worth");
    expect("T4", cost(&k, "n1"), 2.3);
}

/* ---- rows and bounds -------------------------------------------------------------------------------------------- */

static uint32_t below(uint64_t *seed, uint32_t n)
{
    *seed = hash_u64(*seed + 1);
    return (uint32_t)(*seed % n);
}

/* Nodes of six kinds, all with GPUs; workloads of shares, one GPU, several and none, until the cluster is nearly
 * full. */
static void fill_cluster(struct kit *k, uint64_t *seed, bool mixed)
{
    static const uint32_t gpus[] = {1, 2, 4, 8};
    char id[8];
    for (uint32_t i = 0; i < 150; i++) {
        struct berth_gpu has[8];
        uint32_t len = gpus[below(seed, ROWS(gpus))], model = below(seed, 2);
        for (uint32_t g = 0; g < len; g++)
            has[g] = (struct berth_gpu){.model = (mixed && g == 0 ? !model : model) ? "T4" : "A100"};
        snprintf(id, sizeof id, "n%03u", i);
        struct berth_node n = {.id = id, .gpus = has, .gpus_len = len};
        struct berth_amount cpu[] = {
            {"cpu",    4000 * (1 + below(seed,    8))},
            {"memory", KIT_GIB * (8 + below(seed, 9))}
        };
        n.allocatable = cpu;
        n.allocatable_len = 2;
        kit_node(k, n);
    }
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t what = below(seed, 4), pods = 1 + below(seed, 16);
        struct kit_request r = {.cpu = 100 * below(seed, 60), .memory = KIT_GIB / 4 * below(seed, 12)};
        r.count = what == 0 ? 0 : what == 1 ? 1 << below(seed, 3) : 1;
        r.milli = what >= 2 ? 10 + below(seed, 990) : 0;
        r.model = what && below(seed, 4) == 0 ? "T4" : NULL;
        snprintf(id, sizeof id, "w%02u", i);
        kit_pending(k, id, pods, &r);
    }
}

static bool node_fits(const struct attempt *t, uint32_t p)
{
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        if (t->c->free[t->k->needs[i].resource][p] < t->k->needs[i].amount)
            return false;
    return bits_has(t->mask, p) && (t->k->gpu.count == 0 || gpu_node_fits(t, p));
}

/* Returns the best node of a full scan. Checks that the kept row of a node equals a new one, and that no node is above
 * its bound. */
static uint32_t scan(struct attempt *t)
{
    struct attempt anew = *t;
    uint32_t best = NONE;
    int32_t most = INT32_MIN;
    anew.later = true; /* nothing stops, so the free amounts are the same, and no rows are kept for them */
    for (uint32_t p = 0; p < t->c->len; p++) {
        int32_t out[BLOCK] = {0};
        if (!node_fits(t, p))
            continue;
        assert_true(gpu_cost_of(t, p).cost == gpu_cost_of(&anew, p).cost);
        assert_int_equal(gpu_cost_of(t, p).device, gpu_cost_of(&anew, p).device);
        t->live[0].score->add(t, p / BLOCK, (uint64_t)1 << p % BLOCK, 1, out);
        assert_true(out[p % BLOCK] <= t->live[0].score->bound(t, 1, layout_segment(t->c->l, p)));
        best = out[p % BLOCK] > most ? p : best;
        most = out[p % BLOCK] > most ? out[p % BLOCK] : most;
    }
    return best;
}

static void search_equals_full_scan(void **state)
{
    (void)state;
    uint32_t found = 0, none = 0;
    for (uint64_t seed = 1, i = 0; i < 12; i++) {
        CLEANUP(kit) struct kit k = kit_new();
        fill_cluster(&k, &seed, i % 3 == 2);
        kit_plan(&k, "gpu_worth");
        for (uint32_t w = 0; w < 60; w++) {
            char id[8];
            struct attempt t;
            struct search s;
            uint32_t at = NONE;
            snprintf(id, sizeof id, "w%02u", w);
            kit_attempt(&k, id, &t);
            assert_int_equal(t.live_len, 1);
            uint32_t want = scan(&t);
            search_begin(&s, &t);
            if (!search_next(&s, &at))
                at = NONE;
            if (at != want)
                fail_msg("cluster %u, %s: node %u, not %u", (unsigned)i, id, at, want);
            found += at != NONE;
            none += at == NONE;
            attempt_end(&t);
        }
    }
    assert_true(found > 100 && none > 10);
}

/* Classes are numbered in the order of their creation; sums must be the same to the last bit. */
static void prices_do_not_depend_on_insertion_order(void **state)
{
    (void)state;
    enum { CELLS = (CUTTING_STOCK_PARTS + 1) * 2 * GPU_PRICES_PER_RESOURCE };
    static double earned[2][CELLS];
    for (uint32_t turned = 0; turned < 2; turned++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpu = {0};
        char id[8];
        for (uint32_t i = 0; i < 97; i++) {
            uint32_t n = turned ? 96 - i : i;
            struct kit_request r = {.pods = 1 + n * n % 71, .count = 1, .milli = 70 + n % 9 * 37};
            r.cpu = 1 + n * n * n % 3989;
            snprintf(id, sizeof id, "w%02u", n);
            kit_typical(&k, id, &r);
        }
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = &gpu, .gpus_len = 1});
        kit_plan(&k, "gpu_worth");
        assert_int_equal(k.plan->c.gpu_prices->steps, 2 * GPU_PRICES_PER_RESOURCE);
        memcpy(earned[turned], k.plan->c.gpu_prices->kinds[0].part, sizeof earned[0]);
    }
    assert_memory_equal(earned[0], earned[1], sizeof earned[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_is_the_loss_of_typical_pods),
        cmocka_unit_test(cheapest_device_is_picked),
        cmocka_unit_test(scarce_gpus_cost_more),
        cmocka_unit_test(models_on_one_node_are_priced_separately),
        cmocka_unit_test(search_equals_full_scan),
        cmocka_unit_test(prices_do_not_depend_on_insertion_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
