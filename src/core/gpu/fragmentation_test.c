/* fragmentation_test.c - idle GPUs that typical pods cannot use, and how a placement changes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/gpu/fragmentation.h"
#include "core/scene/kit_test.h"

static double gain(struct kit *k, const char *node)
{
    struct attempt t;
    kit_attempt(k, "web", &t);
    double g = fragmentation_of(&t, kit_position(k, node)).gain;
    attempt_end(&t);
    return g;
}

static void gain_depends_on_typical_pods(void **state)
{
    (void)state;
    /* A node with 8 cores and two T4; the gain of a pod, in milli-GPU. */
    static const struct {
        const char *label;
        struct kit_request usual[2], pod;
        double want;
    } rows[] = {
        {"nobody wants GPUs: all is useless", {{1, 0, 0, 0, NULL, 0}, {0}},                     {1, 1, 0, 0, NULL, 0},    1000 },
        {"... and so is what is left",        {{1, 0, 0, 0, NULL, 0}, {0}},                     {1, 1, 300, 0, NULL, 0},  300  },
        {"others want another model",         {{1, 1, 500, 0, "A100", 0}, {0}},                 {1, 2, 0, 0, NULL, 0},    2000 },
        {"others want this model",            {{1, 1, 500, 0, "T4", 0}, {0}},                   {1, 2, 0, 0, NULL, 0},    0    },
        {"what is left is of use",            {{1, 1, 500, 0, NULL, 0}, {0}},                   {1, 1, 500, 0, NULL, 0},  0    },
        {"what is left is of no use",         {{1, 1, 500, 0, NULL, 0}, {0}},                   {1, 1, 501, 0, NULL, 0},  -499 },
        {"others want both",                  {{1, 2, 0, 0, NULL, 0}, {0}},                     {1, 1, 100, 0, NULL, 0},  -1900},
        {"others want more than there are",   {{1, 3, 0, 0, NULL, 0}, {0}},                     {1, 1, 100, 0, NULL, 0},  100  },
        {"cpu is left for others",            {{1, 1, 0, 4000, NULL, 0}, {0}},                  {1, 1, 0, 4000, NULL, 0}, 0    },
        {"no cpu is left for others",         {{1, 1, 0, 4000, NULL, 0}, {0}},                  {1, 1, 0, 4001, NULL, 0}, -1000},
        {"cpu alone is taken",                {{1, 1, 0, 4000, NULL, 0}, {0}},                  {1, 0, 0, 4001, NULL, 0}, -2000},
        {"half of them cannot use the rest",
         {{1, 1, 0, 0, NULL, 0}, {1, 1, 500, 0, NULL, 0}},
         {1, 1, 500, 0, NULL, 0},
         -250                                                                                                                  },
        {"... or a quarter",                  {{1, 1, 0, 0, NULL, 0}, {3, 1, 500, 0, NULL, 0}}, {1, 1, 500, 0, NULL, 0},  -125 },
        {"19 of 20 are all",                  {{95, 0, 0, 0, NULL, 0}, {5, 1, 0, 0, NULL, 0}},  {1, 1, 0, 0, NULL, 0},    1000 },
        {"fewer are not",                     {{94, 0, 0, 0, NULL, 0}, {6, 1, 0, 0, NULL, 0}},  {1, 1, 0, 0, NULL, 0},    940  },
        {"nobody is usual",                   {{0}, {0}},                                       {1, 1, 0, 0, NULL, 0},    0    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpus[] = {
            {"T4", 0},
            {"T4", 0}
        };
        struct berth_amount needs[2];
        struct berth_shape shape = kit_shape(&rows[i].pod, needs);
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_node(&k, (struct berth_node){.id = "n2"});
        kit_typical(&k, "a", &rows[i].usual[0]);
        kit_typical(&k, "b", &rows[i].usual[1]);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "fragmentation");
        double got = gain(&k, "n1"), off = got - rows[i].want;
        if (off > 1e-6 || off < -1e-6)
            fail_msg("%s: %f, not %f", rows[i].label, got, rows[i].want);
        assert_true(rows[i].pod.count || gain(&k, "n2") == 0);
    }
}

static void device_with_least_fragmentation_is_picked(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t usual, asked; /* milli */
        uint64_t want;         /* the first is idle, 700 of the second are free */
    } rows[] = {
        {"600 must stay",             600, 400, 1 << 0},
        {"the fuller one loses less", 700, 400, 1 << 1},
        {"equal: the first",          300, 400, 1 << 0},
        {"fits only on one",          600, 701, 1 << 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpus[2] = {0};
        struct berth_action a = {0};
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_workload(&k, "old", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 300});
        kit_running(&k, "old", 0, "n1", 1 << 1);
        kit_typical(&k, "usual", &(struct kit_request){1000, 1, rows[i].usual, 0, NULL, 0});
        kit_workload(&k, "web", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = rows[i].asked});
        kit_plan(&k, "fragmentation");
        assert_true(kit_placed(&k, "web", 0, &a));
        if (a.gpus != rows[i].want)
            fail_msg("%s: devices %llx", rows[i].label, (unsigned long long)a.gpus);
    }
}

/* The policy's list counts, not the workloads: sorted by pods, and by position among equals, up to 95 %. */
static void policy_defines_typical_pods(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        struct kit_request usual[3];
        double want; /* a share of 400 uses the one idle GPU: F becomes the useless part of the other 600 */
    } rows[] = {
        {"600 is of use to all",         {{1, 1, 600, 0, NULL, 0}},                                                   0   },
        {"to half of them",              {{1, 1, 600, 0, NULL, 0}, {1, 1, 601, 0, NULL, 0}},                          300 },
        {"whole ones",                   {{1, 1, 0, 0, NULL, 0}, {3, 1, 600, 0, NULL, 0}},                            150 },
        {"the rare ones do not count",   {{5, 1, 1000, 0, NULL, 0}, {95, 1, 600, 0, NULL, 0}},                        0   },
        {"one more of them does",        {{6, 1, 1000, 0, NULL, 0}, {94, 1, 600, 0, NULL, 0}},                        36  },
        {"of equal ones the first does",
         {{90, 1, 600, 0, NULL, 0}, {5, 1, 1000, 0, NULL, 0}, {5, 1, 1, 0, NULL, 0}},
         600.0 * 5 / 95                                                                                                   },
        {"and the other way round",      {{90, 1, 600, 0, NULL, 0}, {5, 1, 1, 0, NULL, 0}, {5, 1, 1000, 0, NULL, 0}}, 0   },
        {"of another model",             {{1, 1, 1, 0, "A100", 0}, {1, 1, 600, 0, "T4", 0}},                          -200},
        {"of its model or another",      {{1, 1, 601, 0, "T4", 0}},                                                   600 },
        {"with more cpu than is left",   {{1, 1, 600, 7000, NULL, 0}, {1, 1, 600, 7001, NULL, 0}},                    300 },
        {"without a GPU",                {{1, 0, 0, 0, NULL, 0}},                                                     -400},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpu = {.model = "T4"};
        struct berth_typical_pod demand[3];
        struct berth_amount needs[3][2];
        for (; k.demand_len < 3 && rows[i].usual[k.demand_len].pods; k.demand_len++) {
            const struct kit_request *r = &rows[i].usual[k.demand_len];
            demand[k.demand_len] = (struct berth_typical_pod){kit_shape(r, needs[k.demand_len]), r->pods};
        }
        k.demand = demand;
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = &gpu, .gpus_len = 1});
        kit_typical(&k, "here", &(struct kit_request){1000, 1, 100, 0, NULL, 0}); /* does not count */
        kit_workload(&k, "web", 0,
                     &(struct berth_shape){
                         .gpu.count = 1, .gpu.milli = 400, LIST(requests, struct berth_amount, {"cpu", 1000})});
        kit_plan(&k, "fragmentation");
        double got = gain(&k, "n1"), off = got + rows[i].want;
        if (off > 1e-6 || off < -1e-6)
            fail_msg("%s: F grows by %f, not %f", rows[i].label, -got, rows[i].want);
    }
}

/* With steps, devices that hardly differ are equal, and the first one is picked. */
static void steps_apply_to_device_choice(void **state)
{
    (void)state;
    static const struct {
        uint32_t steps;
        uint64_t want;
    } rows[] = {
        {0,   1 << 1},
        {100, 1 << 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpus[2] = {0};
        struct berth_action a = {0};
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_workload(&k, "old", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 970});
        kit_running(&k, "old", 0, "n1", 1 << 1);
        kit_typical(&k, "usual", &(struct kit_request){1000, 1, 991, 0, NULL, 0});
        kit_typical(&k, "small", &(struct kit_request){1000, 1, 1, 0, NULL, 0});
        k.steps = rows[i].steps;
        /* On the first device, the 990 that are left become useless to half of the pods; on the second, 10 less become
         * useless. */
        kit_workload(&k, "web", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 9});
        kit_plan(&k, "fragmentation");
        assert_true(kit_placed(&k, "web", 0, &a));
        assert_int_equal(a.gpus, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gain_depends_on_typical_pods),
        cmocka_unit_test(device_with_least_fragmentation_is_picked),
        cmocka_unit_test(policy_defines_typical_pods),
        cmocka_unit_test(steps_apply_to_device_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
