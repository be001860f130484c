/* fragmentation_test.c - idle GPUs that usual pods cannot use, and what a placement changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/fragmentation.h"
#include "core/kit_test.h"

struct request {
    uint32_t pods, count, milli;
    int64_t cpu;
    const char *model;
};

static struct berth_shape shape_of(const struct request *r, struct berth_amount *cpu)
{
    struct berth_shape shape = {.requests = cpu, .requests_len = 1, .gpu.count = r->count, .gpu.milli = r->milli};
    *cpu = (struct berth_amount){"cpu", r->cpu};
    shape.gpu.models = &r->model;
    shape.gpu.models_len = r->model != NULL;
    return shape;
}

/* Pods that are wanted, but not now. */
static void usual(struct kit *k, const char *id, const struct request *r)
{
    struct berth_amount cpu;
    struct berth_workload w = {.id = id, .replicas = r->pods, .suspended = true, .shape = shape_of(r, &cpu)};
    kit_must(k, berth_workload_put(k->cluster, &w, &k->err));
}

static double gain(struct kit *k, const char *node)
{
    struct turn t;
    kit_turn(k, "web", &t);
    double g = fragmentation_gain(&t, kit_position(k, node));
    turn_end(&t);
    return g;
}

static void usual_pods_set_the_measure(void **state)
{
    (void)state;
    /* A node with 8 cores and two T4; what it gains by a pod, in milli-GPU. */
    static const struct {
        const char *label;
        struct request usual[2], pod;
        double want;
    } rows[] = {
        {"nobody wants GPUs: all is useless", {{1, 0, 0, 0, NULL}, {0}},                  {1, 1, 0, 0, NULL},    1000 },
        {"... and so is what is left",        {{1, 0, 0, 0, NULL}, {0}},                  {1, 1, 300, 0, NULL},  300  },
        {"others want another model",         {{1, 1, 500, 0, "A100"}, {0}},              {1, 2, 0, 0, NULL},    2000 },
        {"others want this model",            {{1, 1, 500, 0, "T4"}, {0}},                {1, 2, 0, 0, NULL},    0    },
        {"what is left is of use",            {{1, 1, 500, 0, NULL}, {0}},                {1, 1, 500, 0, NULL},  0    },
        {"what is left is of no use",         {{1, 1, 500, 0, NULL}, {0}},                {1, 1, 501, 0, NULL},  -499 },
        {"others want both",                  {{1, 2, 0, 0, NULL}, {0}},                  {1, 1, 100, 0, NULL},  -1900},
        {"others want more than there are",   {{1, 3, 0, 0, NULL}, {0}},                  {1, 1, 100, 0, NULL},  100  },
        {"cpu is left for others",            {{1, 1, 0, 4000, NULL}, {0}},               {1, 1, 0, 4000, NULL}, 0    },
        {"no cpu is left for others",         {{1, 1, 0, 4000, NULL}, {0}},               {1, 1, 0, 4001, NULL}, -1000},
        {"cpu alone is taken",                {{1, 1, 0, 4000, NULL}, {0}},               {1, 0, 0, 4001, NULL}, -2000},
        {"half of them cannot use the rest",  {{1, 1, 0, 0, NULL}, {1, 1, 500, 0, NULL}}, {1, 1, 500, 0, NULL},  -250 },
        {"... or a quarter",                  {{1, 1, 0, 0, NULL}, {3, 1, 500, 0, NULL}}, {1, 1, 500, 0, NULL},  -125 },
        {"19 of 20 are all",                  {{95, 0, 0, 0, NULL}, {5, 1, 0, 0, NULL}},  {1, 1, 0, 0, NULL},    1000 },
        {"fewer are not",                     {{94, 0, 0, 0, NULL}, {6, 1, 0, 0, NULL}},  {1, 1, 0, 0, NULL},    940  },
        {"nobody is usual",                   {{0}, {0}},                                 {1, 1, 0, 0, NULL},    0    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_gpu gpus[] = {
            {"T4", 0},
            {"T4", 0}
        };
        struct berth_amount cpu;
        struct berth_shape shape = shape_of(&rows[i].pod, &cpu);
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
        kit_node(&k, (struct berth_node){.id = "n2"});
        usual(&k, "a", &rows[i].usual[0]);
        usual(&k, "b", &rows[i].usual[1]);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "fragmentation");
        double got = gain(&k, "n1"), off = got - rows[i].want;
        if (off > 1e-6 || off < -1e-6)
            fail_msg("%s: %f, not %f", rows[i].label, got, rows[i].want);
        assert_true(rows[i].pod.count || gain(&k, "n2") == 0);
    }
}

static void the_device_that_leaves_most_of_use_is_picked(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t usual, asked; /* milli */
        uint64_t want;         /* the first is idle, of the second 700 are free */
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
        usual(&k, "usual", &(struct request){1000, 1, rows[i].usual, 0, NULL});
        kit_workload(&k, "web", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = rows[i].asked});
        kit_plan(&k, "fragmentation");
        assert_true(kit_placed(&k, "web", 0, &a));
        if (a.gpus != rows[i].want)
            fail_msg("%s: devices %llx", rows[i].label, (unsigned long long)a.gpus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_pods_set_the_measure),
        cmocka_unit_test(the_device_that_leaves_most_of_use_is_picked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
