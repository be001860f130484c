/* spare_victims_test.c - victims that later decisions of the same plan make needless are not stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/preempt/preempt_scene_test.h"

static const char *const web_value[] = {"web"};
static const struct berth_expr web_expr = {"app", BERTH_IN, web_value, 1};
static const struct berth_spread even = {
    .topology = "zone",
    .select = {.exprs = &web_expr, .exprs_len = 1},
    .max_skew = 1,
    .nodes = BERTH_SPREAD_ALL
};

/* Puts one pod that counts for the spread; `spreads`: it also has the spread constraint. */
static void web_job(struct scene *s, const char *id, int32_t priority, int64_t cpu, bool spreads)
{
    scene_put(s, (struct berth_workload){
                     .id = id,
                     .kind = BERTH_JOB,
                     .replicas = 1,
                     .priority = priority,
                     LABEL("app", "web"),
                     .shape = {NEEDS(cpu, 1), .spread = &even, .spread_len = spreads}
    });
}

/* `old` runs in zone a, the only zone with room for `new`. With both there the zones are uneven, unless another pod is
 * placed in zone b. */
static struct scene zones(void)
{
    struct scene s = scene_new();
    s.now_ns = 12 * 60 * MINUTE_NS;
    s.policy.preemption.on = s.policy.preemption.clears = true;
    scene_put_node(&s, (struct berth_node){.id = "a1", .zone = "a", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b1", .zone = "b", HAS(300, 1000)});
    web_job(&s, "old", 1, 100, false);
    runs(&s, "old", 0, "a1", 60);
    web_job(&s, "new", 9, 500, true);
    return s;
}

static void later_pod_that_evens_the_spread_saves_the_victim(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t cpu; /* request of the later pod; 0: there is none */
        const char *want;
    } rows[] = {
        {"nobody comes",                0,   "stop old/0 a1 preempted #1; reserve new/0 a1 pending after 1"},
        {"it comes",                    100, "place new/0 a1 pending; place later/0 b1 pending"            },
        {"it finds no place in zone b", 400, "stop old/0 a1 preempted #1; reserve new/0 a1 pending after 1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = zones();
        if (rows[i].cpu)
            web_job(&s, "later", 5, rows[i].cpu, true);
        print_message("%s\n", rows[i].label);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_pod_that_evens_the_spread_saves_the_victim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
