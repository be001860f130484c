/* attempt_test.c - one placement attempt: masks, effects of a placement, preferences; observed through plans.
 *
 * Covers the constraint masks (with a partial last block), the effects of a placement (ports, volumes), the preference
 * column and the chosen devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static void every_node_is_filtered_once(void **state)
{
    static const uint32_t sizes[] = {1, 63, 64, 65, 128, 130};
    (void)state;
    for (size_t n = 0; n < ROWS(sizes); n++) {
        struct scene s = scene_new();
        for (uint32_t i = 0; i < sizes[n]; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "n%u", i);
            scene_put_node(&s, (struct berth_node){.id = id, .arch = i % 3 ? "amd64" : "arm64", HAS(10, 10)});
        }
        struct berth_shape arm = {NEEDS(10, 1), .arch = "arm64"}, mips = {NEEDS(1, 1), .arch = "mips"};
        scene_put(&s, (struct berth_workload){.id = "arm", .replicas = sizes[n] + 1, .shape = arm});
        scene_put(&s, (struct berth_workload){.id = "mips", .replicas = 1, .shape = mips});
        scene_plan(&s);
        uint32_t suits = (sizes[n] + 2) / 3;
        assert_int_equal(berth_plan_actions(s.p), suits); /* one on each suitable node */
        assert_int_equal(scene_pending(&s, "arm"), sizes[n] + 1 - suits);
        assert_int_equal(scene_reason(&s, "arm", "short").nodes, suits);
        assert_int_equal(scene_reason(&s, "mips", "arch").nodes, sizes[n]);
        scene_cleanup(&s);
    }
}

static void pods_of_one_attempt_do_not_share_a_port(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 1000, 1000);
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 3, .shape = {LIST(ports, struct berth_port, {BERTH_TCP, 80, 9})}});
    scene_expect_and_apply(&s, "place w/0 a pending; place w/1 b pending");
    assert_int_equal(scene_reason(&s, "w", "port").nodes, 2);
    scene_cleanup(&s);
}

static void volume_binds_pods_of_one_attempt_to_one_node(void **state)
{
    static const bool shared[] = {false, true};
    (void)state;
    for (size_t i = 0; i < ROWS(shared); i++) {
        struct scene s = scene_new();
        struct berth_volume v = {.id = "disk", .shared = shared[i]};
        scene_check(&s, berth_volume_put(s.c, &v, &s.err));
        scene_node(&s, "a", 1000, 1000);
        scene_node(&s, "b", 1000, 1000);
        scene_put(&s, (struct berth_workload){
                          .id = "w", .replicas = 3, .shape = {NEEDS(400, 10), NAMES(volumes, "disk")}
        });
        scene_expect_and_apply(&s, shared[i] ? "place w/0 a pending; place w/1 b pending; place w/2 a pending"
                                             : "place w/0 a pending; place w/1 a pending");
        scene_cleanup(&s);
    }
}

static void preference_decides_between_fitting_nodes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    for (uint32_t i = 0; i < 200; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "n%03u", i);
        const struct berth_label ssd = {"disk", "ssd"};
        scene_put_node(&s, (struct berth_node){.id = id, HAS(1000, 1000), .labels = &ssd, .labels_len = i == 143});
    }
    const struct berth_expr expr = {"disk", BERTH_IN, (const char *const[]){"ssd"}, 1};
    const struct berth_term like = {&expr, 1, 50}, avoid = {&expr, 1, -50};
    scene_put(&s, (struct berth_workload){
                      .id = "like", .replicas = 1, .shape = {NEEDS(600, 10), .prefer = &like, .prefer_len = 1}
    });
    scene_put(&s, (struct berth_workload){
                      .id = "like2", .replicas = 1, .shape = {NEEDS(600, 10), .prefer = &like, .prefer_len = 1}
    });
    scene_expect_and_apply(
        &s, "place like/0 n143 pending; place like2/0 n000 pending"); /* a preference is no requirement */
    scene_check(&s, berth_workload_remove(s.c, "like", &s.err));
    scene_put(
        &s,
        (struct berth_workload){
            .id = "avoid", .replicas = 1, .shape = {NEEDS(10, 10), .prefer = &avoid, .prefer_len = 1, .node = "n143"}
    });
    scene_expect(&s, "stop like/0 n143 removed #1; place avoid/0 n143 pending");
    scene_cleanup(&s);
}

static void devices_are_chosen_in_order(void **state)
{
    static const struct {
        uint32_t count, milli;
        uint64_t want;
    } rows[] = {
        {1, 0,   0x2}, /* the first free device */
        {2, 0,   0x6},
        {1, 300, 0x1}, /* the fullest device that fits */
        {1, 600, 0x2},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        s.profile = "pack"; /* the default profile would choose by GPU cost */
        scene_put_node(&s, (struct berth_node){
                               .id = "a", HAS(10, 10), LIST(gpus, struct berth_gpu, {"x", 1}, {"x", 1}, {"x", 1})});
        scene_put(&s,
                  (struct berth_workload){.id = "half", .replicas = 1, .shape = {.gpu = {.count = 1, .milli = 500}}});
        scene_instance(&s, (struct berth_instance){.workload = "half", .node = "a", .gpus = 1, .state = BERTH_RUNNING});
        scene_put(&s, (struct berth_workload){.id = "w",
                                              .replicas = 1,
                                              .shape = {.gpu = {.count = rows[i].count, .milli = rows[i].milli}}});
        scene_expect(&s, "place w/0 a pending");
        assert_int_equal(berth_plan_action(s.p, 0).gpus, rows[i].want);
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_is_filtered_once),
        cmocka_unit_test(pods_of_one_attempt_do_not_share_a_port),
        cmocka_unit_test(volume_binds_pods_of_one_attempt_to_one_node),
        cmocka_unit_test(preference_decides_between_fitting_nodes),
        cmocka_unit_test(devices_are_chosen_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
