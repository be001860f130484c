/* stranded_test.c - idle GPUs and their useless part, reported for a node and for the cluster. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static const struct berth_gpu gpus[2] = {
    {"T4", 0},
    {"T4", 0}
};

/* n1 has 2 GPUs, 700 of one are free, and 8 cores; n2 has one GPU, and a core is left; n3 has none. */
static void cluster(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 1});
    kit_node(k, (struct berth_node){.id = "n3"});
    kit_workload(k, "share", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 300});
    kit_running(k, "share", 0, "n1", 1 << 0);
    kit_workload(k, "plain", 1, &(struct berth_shape){LIST(requests, struct berth_amount, {"cpu", 7000})});
    kit_running(k, "plain", 0, "n2", 0);
    k->snapshot = berth_freeze(k->cluster, 0, 0);
}

static void useless_gpus_of_node_and_cluster(void **state)
{
    (void)state;
    static const struct berth_amount one = {"cpu", 1000}, two = {"cpu", 1001};
    static const char *const t4[] = {"T4"}, *const other[] = {"A100"};
    static const struct {
        const char *label;
        struct berth_shape shape;
        double n1, n2;
    } rows[] = {
        {"a whole one",      {.gpu.count = 1},                                                       700,  0   },
        {"two",              {.gpu.count = 2},                                                       1700, 1000},
        {"a share",          {.gpu = {.count = 1, .milli = 700}},                                    0,    0   },
        {"a larger one",     {.gpu = {.count = 1, .milli = 701}},                                    700,  0   },
        {"of a model",       {.gpu = {.count = 1, .milli = 1, .models = t4, .models_len = 1}},       0,    0   },
        {"of another",       {.gpu = {.count = 1, .models = other, .models_len = 1}},                1700, 1000},
        {"with all the cpu", {.gpu = {.count = 1, .milli = 1}, .requests = &one, .requests_len = 1}, 0,    0   },
        {"with more",        {.gpu = {.count = 1, .milli = 1}, .requests = &two, .requests_len = 1}, 0,    1000},
        {"no GPU",           {0},                                                                    1700, 1000},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_typical_pod demand = {rows[i].shape, 1};
        const struct berth_policy policy = {.demand = &demand, .demand_len = 1};
        struct berth_fragmentation n1, n2, n3, all;
        cluster(&k);
        print_message("%s\n", rows[i].label);
        kit_check(&k, berth_fragmentation(k.snapshot, &policy, "n1", &n1, &k.err));
        kit_check(&k, berth_fragmentation(k.snapshot, &policy, "n2", &n2, &k.err));
        kit_check(&k, berth_fragmentation(k.snapshot, &policy, "n3", &n3, &k.err));
        kit_check(&k, berth_fragmentation(k.snapshot, &policy, "", &all, &k.err));
        assert_true(n1.idle_milli == 1700 && n2.idle_milli == 1000 && n3.idle_milli == 0 && all.idle_milli == 2700);
        assert_true(n1.useless_milli == rows[i].n1 && n2.useless_milli == rows[i].n2 && n3.useless_milli == 0);
        assert_true(all.useless_milli == rows[i].n1 + rows[i].n2);
    }
}

/* A node may have several models: a device that a pod may not use is as useless as one that is too full. */
static void useless_gpus_with_mixed_models(void **state)
{
    (void)state;
    static const struct berth_gpu mixed[] = {
        {"T4",   0},
        {"A100", 0},
        {"T4",   0}
    };
    static const char *const t4[] = {"T4"}, *const a100[] = {"A100"}, *const both[] = {"A100", "T4"};
    static const struct {
        const char *label;
        struct berth_gpu_need gpu;
        double want;
    } rows[] = {
        {"any",              {.count = 3},                                  0   },
        {"one kind",         {.count = 1, .models = a100, .models_len = 1}, 2000},
        {"the other",        {.count = 2, .models = t4, .models_len = 1},   1000},
        {"more than it has", {.count = 2, .models = a100, .models_len = 1}, 3000},
        {"either",           {.count = 3, .models = both, .models_len = 2}, 0   },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_typical_pod demand = {{.gpu = rows[i].gpu}, 1};
        const struct berth_policy policy = {.demand = &demand, .demand_len = 1};
        struct berth_fragmentation f;
        kit_node(&k, (struct berth_node){.id = "n1", .gpus = mixed, .gpus_len = 3});
        k.snapshot = berth_freeze(k.cluster, 0, 0);
        kit_check(&k, berth_fragmentation(k.snapshot, &policy, "n1", &f, &k.err));
        if (f.useless_milli != rows[i].want)
            fail_msg("%s: %f", rows[i].label, f.useless_milli);
    }
}

static void workloads_count_without_a_policy(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_fragmentation all;
    cluster(&k); /* one pod requests 300, the other no GPU */
    kit_check(&k, berth_fragmentation(k.snapshot, NULL, NULL, &all, &k.err));
    assert_true(all.idle_milli == 2700 && all.useless_milli == 1350);
}

static void invalid_requests_are_rejected(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_typical_pod none = {0};
    const struct berth_policy policy = {.demand = &none, .demand_len = 1};
    struct berth_fragmentation f = {1, 2};
    cluster(&k);
    assert_int_equal(berth_fragmentation(k.snapshot, NULL, "n4", &f, &k.err), -ENOENT);
    assert_non_null(strstr(k.err.text, "n4"));
    assert_int_equal(berth_fragmentation(k.snapshot, &policy, "", &f, &k.err), -EINVAL);
    assert_true(f.useless_milli == 1 && f.idle_milli == 2); /* unchanged */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(useless_gpus_of_node_and_cluster),
        cmocka_unit_test(useless_gpus_with_mixed_models),
        cmocka_unit_test(workloads_count_without_a_policy),
        cmocka_unit_test(invalid_requests_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
