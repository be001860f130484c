/* gpu_filling_test.c - the fullest GPU in part use, then a node in part use, then the smallest empty one, in
 * hundredths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static const struct berth_gpu gpus[8];

/* n1 has two GPUs and is empty, as is n5 with eight. On n2 one GPU is held; on n3 half of one and 0.7 of the other; on
 * n4 0.2 of one. */
static void nodes(struct kit *k)
{
    kit_node(k, (struct berth_node){.id = "n1", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n2", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n3", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n4", .gpus = gpus, .gpus_len = 2});
    kit_node(k, (struct berth_node){.id = "n5", .gpus = gpus, .gpus_len = 8});
    kit_workload(k, "whole", 1, &(struct berth_shape){.gpu.count = 1});
    kit_running(k, "whole", 0, "n2", 1 << 0);
    kit_workload(k, "half", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 500});
    kit_running(k, "half", 0, "n3", 1 << 0);
    kit_workload(k, "most", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 700});
    kit_running(k, "most", 0, "n3", 1 << 1);
    kit_workload(k, "some", 1, &(struct berth_shape){.gpu.count = 1, .gpu.milli = 200});
    kit_running(k, "some", 0, "n4", 1 << 1);
}

static void fullest_gpu_is_best(void **state)
{
    (void)state;
    /* -1: the pod does not fit. */
    static const struct {
        const char *label;
        uint32_t count, milli;
        int32_t want[5];
        const char *first;
    } rows[] = {
        {"a share, on the fuller of two", 1, 300, {31, 49, 97, 92, 25}, "n3"},
        {"a share, on the other",         1, 301, {31, 49, 95, 92, 25}, "n3"},
        {"a share that fits on n4 alone", 1, 501, {31, 49, -1, 92, 25}, "n4"},
        {"a whole one",                   1, 0,   {31, 49, -1, 49, 25}, "n2"},
        {"two",                           2, 0,   {31, -1, -1, -1, 25}, "n1"},
        {"eight",                         8, 0,   {-1, -1, -1, -1, 25}, "n5"},
    };
    static const char *const names[] = {"n1", "n2", "n3", "n4", "n5"};
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct berth_shape shape = {.gpu.count = rows[i].count, .gpu.milli = rows[i].milli};
        nodes(&k);
        kit_workload(&k, "web", 0, &shape);
        kit_plan(&k, "gpu_filling");
        print_message("%s\n", rows[i].label);
        for (size_t n = 0; n < ROWS(names); n++)
            if (rows[i].want[n] >= 0)
                assert_int_equal(kit_score(&k, "web", names[n]), (int64_t)SCORE_ONE * rows[i].want[n] / 100);
        kit_workload(&k, "web", 1, &shape);
        kit_plan(&k, "gpu_filling");
        assert_string_equal(kit_node_of(&k, "web", 0), rows[i].first);
    }
}

static void bound_is_at_least_the_score(void **state)
{
    (void)state;
    static const struct berth_gpu_need asked[] = {
        {.count = 1,    .milli = 1},
        {.count = 1,             .milli = 301},
        {.count = 1,.milli = 801},
        {.count = 1   },
        {.count = 2            },
        {.count = 8         },
    };
    for (size_t i = 0; i < ROWS(asked); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        struct attempt t;
        nodes(&k);
        kit_workload(&k, "web", 0, &(struct berth_shape){.gpu = asked[i]});
        kit_plan(&k, "gpu_filling");
        kit_attempt(&k, "web", &t);
        const struct layout *l = k.snapshot->layout;
        for (uint32_t p = 0; p < l->len; p++) {
            int32_t out[BLOCK] = {0}, bound = t.live[0].score->bound(&t, 1, layout_segment(l, p));
            uint64_t bit = t.mask[0] & (uint64_t)1 << p;
            for (uint32_t f = 0; f < t.dynamic_len; f++)
                t.dynamic[f]->mask(&t, (struct block_range){0, 1}, &bit);
            t.live[0].score->add(&t, 0, bit, 1, out);
            if (out[p] > bound)
                fail_msg("request %zu, position %u: %d above the bound %d", i, p, out[p], bound);
        }
        attempt_end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fullest_gpu_is_best),
        cmocka_unit_test(bound_is_at_least_the_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
