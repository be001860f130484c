/* placement_test.c - placing demands: whole gangs, reserved instances on resources that will be free, order, rounds,
 * pods that fit nowhere.
 *
 * Each step is also applied, and must leave nothing to do at that moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

#define APP(name, weigh)                                                                                               \
    {                                                                                                                  \
        LIST(exprs, struct berth_expr, {"app", BERTH_IN, (const char *const[]){name}, 1}), .weight = (weigh)           \
    }

static struct scene stage(size_t nodes)
{
    struct scene s = scene_new();
    for (size_t i = 0; i < nodes; i++) {
        const char id[] = {(char)('a' + i), '\0'};
        scene_node(&s, id, 1000, 1000);
    }
    return s;
}

static void put_gang(struct scene *s, const char *id, uint32_t replicas, uint32_t least, int64_t cpu)
{
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = replicas,
                                         .gang = "g",
                                         .gang_min = least,
                                         .shape = {NEEDS(cpu, 10)}});
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

static void gang_is_placed_whole_or_not_at_all(void **state)
{
    (void)state;
    struct scene s = stage(2);
    put_gang(&s, "job", 3, 0, 600);
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_pending(&s, "job"), 3);
    assert_non_null(strstr(scene_reason(&s, "job", "gang").text, "needs 3 pods placed at once; only 2 fit"));
    scene_node(&s, "c", 1000, 1000);
    scene_expect_and_apply(&s, "place job/0 a pending; place job/1 b pending; place job/2 c pending");
    scene_cleanup(&s);
}

static void workloads_of_one_gang_are_placed_together(void **state)
{
    (void)state;
    struct scene s = stage(2);
    put_gang(&s, "master", 1, 0, 300);
    put_gang(&s, "worker", 3, 0, 600);
    scene_service(&s, "web", 1, 700, 10);
    scene_expect_and_apply(&s, "place web/0 a pending");
    assert_int_equal(scene_pending(&s, "master"), 1);
    assert_int_equal(scene_pending(&s, "worker"), 3);
    scene_node(&s, "c", 2000, 1000);
    scene_expect_and_apply(
        &s, "place master/0 c pending; place worker/0 c pending; place worker/1 b pending; place worker/2 c pending");
    scene_cleanup(&s);
}

static void elastic_gang_needs_its_minimum(void **state)
{
    static const struct {
        size_t nodes;
        const char *want;
    } rows[] = {
        {1, ""                                                                                          },
        {2, "place job/0 a pending; place job/1 b pending"                                              },
        {3, "place job/0 a pending; place job/1 b pending; place job/2 c pending"                       },
        {5, "place job/0 a pending; place job/1 b pending; place job/2 c pending; place job/3 d pending"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(rows[i].nodes);
        put_gang(&s, "job", 4, 2, 600);
        scene_expect_and_apply(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

static void elastic_gang_grows_later(void **state)
{
    (void)state;
    struct scene s = stage(2);
    put_gang(&s, "job", 4, 2, 600);
    scene_expect_and_apply(&s, "place job/0 a pending; place job/1 b pending");
    scene_node(&s, "c", 1000, 1000);
    scene_expect_and_apply(&s, "place job/2 c pending");
    assert_int_equal(scene_pending(&s, "job"), 1);
    scene_cleanup(&s);
}

/* The minimums of all workloads of a gang come before pods beyond the minimum of one. */
static void gang_minimums_come_first(void **state)
{
    (void)state;
    struct scene s = stage(3);
    put_gang(&s, "a1", 3, 1, 600);
    put_gang(&s, "b1", 2, 2, 600);
    scene_expect_and_apply(&s, "place a1/0 a pending; place b1/0 b pending; place b1/1 c pending");
    assert_int_equal(scene_pending(&s, "a1"), 2);
    scene_cleanup(&s);
}

static void failed_gang_releases_everything(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = {NEEDS(600, 10), .gpu = {.count = 1},
                                LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})};
    for (const char *id = "a\0b\0"; *id; id += 2)
        scene_put_node(&s, (struct berth_node){.id = id, HAS(1000, 1000), LIST(gpus, struct berth_gpu, {"x", 1})});
    scene_put(&s, (struct berth_workload){.id = "gang", .replicas = 3, .priority = 9, .gang = "g", .shape = shape});
    scene_put(&s, (struct berth_workload){.id = "one", .replicas = 2, .shape = shape});
    scene_expect_and_apply(&s, "place one/0 a pending; place one/1 b pending");
    scene_cleanup(&s);
}

static void gang_may_be_reserved(void **state)
{
    (void)state;
    struct scene s = stage(2);
    scene_service(&s, "old", 1, 900, 10);
    scene_running(&s, "old", 0, "a");
    scene_check(&s, berth_workload_remove(s.c, "old", &s.err));
    put_gang(&s, "job", 2, 0, 600);
    scene_expect_and_apply(&s, "stop old/0 a removed #1; place job/0 b pending; reserve job/1 a pending after 1");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote job/1 a pending #3");
    scene_cleanup(&s);
}

/* ---- reserved instances ----------------------------------------------------------------------------------------- */

static void free_resources_are_used_before_stopping_ones(void **state)
{
    (void)state;
    struct scene s = stage(2);
    scene_service(&s, "old", 1, 900, 10);
    scene_running(&s, "old", 0, "a");
    scene_check(&s, berth_workload_remove(s.c, "old", &s.err));
    scene_service(&s, "web", 3, 600, 10);
    scene_expect_and_apply(&s, "stop old/0 a removed #1; place web/0 b pending; reserve web/1 a pending after 1");
    assert_int_equal(scene_pending(&s, "web"), 1); /* resources are not reserved twice */
    scene_cleanup(&s);
}

static void reserved_instance_waits_for_all_stops_on_its_node(void **state)
{
    (void)state;
    struct scene s = stage(1);
    scene_service(&s, "old", 3, 300, 10);
    for (uint32_t i = 0; i < 3; i++)
        scene_running(&s, "old", i, "a");
    scene_service(&s, "old", 0, 300, 10);
    scene_service(&s, "web", 1, 1000, 10);
    scene_expect_and_apply(&s, "stop old/0 a scaled #1; stop old/1 a scaled #2; stop old/2 a scaled #3; "
                               "reserve web/0 a pending after 1,2,3");
    scene_remove(&s, 2);
    scene_expect_and_apply(&s, "");
    scene_remove(&s, 1);
    scene_remove(&s, 3);
    scene_expect_and_apply(&s, "promote web/0 a pending #4");
    scene_cleanup(&s);
}

static void stopping_gpu_is_reserved(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(10, 10), LIST(gpus, struct berth_gpu, {"x", 1}, {"x", 1})});
    scene_put(&s, (struct berth_workload){.id = "old", .replicas = 2, .shape = {.gpu = {.count = 1}}});
    scene_instance(
        &s, (struct berth_instance){.workload = "old", .node = "a", .gpus = 1, .state = BERTH_RUNNING, .ready = true});
    scene_instance(
        &s, (struct berth_instance){.workload = "old", .ordinal = 1, .node = "a", .gpus = 2, .state = BERTH_RUNNING});
    scene_put(&s, (struct berth_workload){.id = "old", .replicas = 1, .shape = {.gpu = {.count = 1}}});
    scene_put(&s, (struct berth_workload){.id = "new", .replicas = 1, .shape = {.gpu = {.count = 1}}});
    scene_expect(&s, "stop old/1 a scaled #2; reserve new/0 a pending after 2");
    for (size_t i = 0; i < berth_plan_actions(s.p); i++)
        if (berth_plan_action(s.p, i).op == BERTH_RESERVE)
            assert_int_equal(berth_plan_action(s.p, i).gpus, 2);
    scene_apply(&s);
    scene_remove(&s, 2);
    scene_expect_and_apply(&s, "promote new/0 a pending #3");
    scene_cleanup(&s);
}

static void dropped_reservation_releases_its_attachment(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_volume first = {.id = "v1", .driver = "csi"}, second = {.id = "v2", .driver = "csi"};
    struct berth_shape web = {NEEDS(800, 10), NAMES(volumes, "v1")}, new = {NEEDS(50, 10), NAMES(volumes, "v2")};
    scene_check(&s, berth_volume_put(s.c, &first, &s.err));
    scene_check(&s, berth_volume_put(s.c, &second, &s.err));
    scene_put_node(
        &s, (struct berth_node){
                .id = "a", LIST(allocatable, struct berth_amount, {"cpu", 1000}, {"memory", 1000}, {"attach-csi", 1})});
    scene_service(&s, "old", 1, 900, 10);
    scene_running(&s, "old", 0, "a");
    scene_service(&s, "old", 0, 900, 10);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .shape = web});
    scene_expect_and_apply(&s, "stop old/0 a scaled #1; reserve web/0 a pending after 1");
    scene_put(&s, (struct berth_workload){.id = "new", .replicas = 1, .shape = new});
    scene_expect_and_apply(&s, "");
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 0, .shape = web});
    scene_expect_and_apply(&s, "stop web/0 a scaled #2; place new/0 a pending");
    scene_cleanup(&s);
}

/* Returns the hash of a plan with one reserved instance behind 1500 stopping ones, put in ascending or descending order
 * of their ids. */
static uint64_t hash_of_reservation_behind_many(bool descending)
{
    enum { MANY = 1500 };
    struct scene s = scene_new();
    struct berth_shape one = {NEEDS(1, 1)};
    scene_node(&s, "a", MANY, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t n = descending ? MANY - 1 - i : i;
        scene_instance(
            &s, (struct berth_instance){
                    .id = n + 1, .workload = "old", .ordinal = n, .node = "a", .state = BERTH_STOPPING, .shape = &one});
    }
    scene_service(&s, "web", 1, MANY, MANY);
    scene_plan(&s);
    uint64_t hash = berth_plan_hash(s.p);
    assert_int_equal(berth_plan_actions(s.p), 1);
    struct berth_action a = berth_plan_action(s.p, 0);
    assert_int_equal(a.op, BERTH_RESERVE);
    assert_int_equal(a.waits_len, BERTH_LIST_MAX);
    for (size_t i = 0; i < a.waits_len; i++)
        assert_int_equal(a.waits[i], i + 1);
    scene_apply(&s);
    scene_cleanup(&s);
    return hash;
}

static void waits_are_the_lowest_ids(void **state)
{
    (void)state;
    assert_true(hash_of_reservation_behind_many(false) == hash_of_reservation_behind_many(true));
}

/* ---- order and room --------------------------------------------------------------------------------------------- */

static void scarce_room_goes_to_the_first_in_order(void **state)
{
    (void)state;
    struct scene s = stage(1);
    for (int32_t i = 0; i < 3; i++) {
        const char id[] = {'w', (char)('0' + i), '\0'};
        scene_put(&s, (struct berth_workload){.id = id, .replicas = 1, .priority = i, .shape = {NEEDS(400, 10)}});
    }
    scene_expect_and_apply(&s, "place w2/0 a pending; place w1/0 a pending");
    assert_int_equal(scene_pending(&s, "w0"), 1);
    scene_cleanup(&s);
}

static void smaller_pod_fits_where_larger_one_did_not(void **state)
{
    (void)state;
    struct scene s = stage(1);
    scene_put(&s, (struct berth_workload){.id = "large", .replicas = 1, .priority = 5, .shape = {NEEDS(2000, 10)}});
    scene_service(&s, "small", 1, 100, 10);
    scene_expect_and_apply(&s, "place small/0 a pending");
    scene_cleanup(&s);
}

/* Adds pods of every kind that fit nowhere; the plan for all other pods must not change. */
static void unplaceable_pods_do_not_affect_others(void **state)
{
    (void)state;
    char without[SCENE_TEXT_MAX], with[SCENE_TEXT_MAX];
    for (int round = 0; round < 2; round++) {
        struct scene s = stage(4);
        scene_service(&s, "web", 5, 300, 100);
        put_gang(&s, "gang", 3, 0, 200);
        scene_put(&s, (struct berth_workload){
                          .id = "port", .replicas = 3, .shape = {LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})}});
        if (round) {
            struct berth_affinity near = {.topology = "node", .select = APP("nobody", 0)};
            scene_put(&s,
                      (struct berth_workload){.id = "x1", .replicas = 2, .priority = 9, .shape = {NEEDS(2000, 10)}});
            scene_put(&s,
                      (struct berth_workload){.id = "x2", .replicas = 2, .priority = 9, .shape = {.node = "nowhere"}});
            scene_put(&s, (struct berth_workload){
                              .id = "x3", .replicas = 2, .priority = 9, .shape = {.near = &near, .near_len = 1}
            });
            scene_put(&s, (struct berth_workload){
                              .id = "x4", .replicas = 9, .priority = 9, .gang = "x", .shape = {NEEDS(900, 10)}});
            scene_put(
                &s, (struct berth_workload){.id = "x5", .replicas = 2, .priority = 9, .shape = {.gpu = {.count = 1}}});
            scene_put(&s, (struct berth_workload){.id = "x6",
                                                  .replicas = 2,
                                                  .priority = 9,
                                                  .shape = {LIST(requests, struct berth_amount, {"unheard-of", 1})}});
        }
        scene_plan(&s);
        scene_text(&s, round ? with : without);
        assert_int_equal(berth_plan_pendings(s.p), round ? 6 : 0);
        scene_apply(&s);
        scene_cleanup(&s);
    }
    assert_string_equal(with, without);
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

/* Each pod must be near the next one in a chain, and the pods that others need come last in the order. */
static void affinity_chain_is_placed_in_one_plan(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .zone = "z1", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .zone = "z2", HAS(4000, 4000)});
    static const char *const ids[] = {"w0", "w1", "w2", "w3"};
    for (size_t i = 0; i < ROWS(ids); i++) {
        const struct berth_label app = {"app", ids[i]};
        struct berth_affinity near = {.topology = "zone", .select = APP(ids[(i + 1) % ROWS(ids)], 0)};
        struct berth_shape shape = {NEEDS(100, 100), .near = &near, .near_len = i + 1 < ROWS(ids),
                                    .node = i == 3 ? "a" : NULL};
        scene_put(
            &s,
            (struct berth_workload){
                .id = ids[i], .replicas = 1, .priority = -(int32_t)i, .labels = &app, .labels_len = 1, .shape = shape});
    }
    scene_expect_and_apply(&s,
                           "place w0/0 a pending; place w1/0 a pending; place w2/0 a pending; place w3/0 a pending");
    scene_cleanup(&s);
}

static void spread_is_even(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .zone = "z1", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .zone = "z2", HAS(1000, 1000)});
    struct berth_spread even = {.topology = "zone", .select = APP("web", 0), .max_skew = 1};
    struct berth_shape shape = {NEEDS(100, 100), .spread = &even, .spread_len = 1};
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 4, LABEL("app", "web"), .shape = shape});
    scene_expect_and_apply(
        &s, "place web/0 a pending; place web/1 b pending; place web/2 a pending; place web/3 b pending");
    scene_cleanup(&s);
}

/* A selector that names a value twice counts a pod once. */
static void selected_pod_counts_once(void **state)
{
    (void)state;
    struct scene s = scene_new();
    static const char *const twice[] = {"web", "web"};
    const struct berth_expr expr = {"app", BERTH_IN, twice, 2};
    struct berth_spread even = {
        .topology = "zone", .select = {.exprs = &expr, .exprs_len = 1},
             .max_skew = 2
    };
    struct berth_shape shape = {NEEDS(100, 100), .spread = &even, .spread_len = 1};
    scene_put_node(&s, (struct berth_node){.id = "a", .zone = "z1", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .zone = "z2", HAS(100, 100)});
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 4, LABEL("app", "web"), .shape = shape});
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "a");
    scene_running(&s, "web", 2, "b");
    scene_expect_and_apply(&s, "place web/3 a pending"); /* 3 and 1 pods */
    scene_cleanup(&s);
}

/* A service that cannot be moved at once stops without a replacement, and its pod is reserved a place where another one
 * stops. */
static void old_instance_stops_without_room_for_replacement(void **state)
{
    (void)state;
    struct scene s = stage(2);
    scene_service(&s, "web", 2, 700, 10);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "b");
    scene_state(&s, "a", 1000, 1000, BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "stop web/0 a drained #1");
    assert_int_equal(scene_pending(&s, "web"), 1);
    scene_remove(&s, 1);
    scene_state(&s, "a", 1000, 1000, BERTH_NODE_READY);
    scene_expect_and_apply(&s, "place web/0 a pending");
    scene_cleanup(&s);
}

static void single_replica_without_room_stays(void **state)
{
    (void)state;
    struct scene s = stage(1);
    scene_service(&s, "db", 1, 700, 10);
    scene_running(&s, "db", 0, "a");
    scene_state(&s, "a", 1000, 1000, BERTH_NODE_DRAINING);
    scene_expect_and_apply(&s, "");
    assert_int_equal(scene_reason(&s, "db", "state").nodes, 1);
    scene_node(&s, "b", 1000, 1000);
    scene_expect_and_apply(&s, "place db/0 b drained for 1");
    scene_cleanup(&s);
}

static void count_progress(void *ctx, size_t done, size_t total)
{
    size_t *calls = ctx;
    assert_true(done <= total);
    ++*calls;
}

static void progress_callback_does_not_affect_the_plan(void **state)
{
    (void)state;
    struct scene s = stage(3);
    size_t calls = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "w%u", i);
        scene_service(&s, id, 1, 1, 1);
    }
    scene_plan(&s);
    uint64_t hash = berth_plan_hash(s.p);
    scene_reset(&s);
    struct berth_policy policy = {.progress = count_progress, .progress_ctx = &calls};
    s.s = berth_freeze(s.c, s.now_ns, s.seed);
    scene_check(&s, berth_plan_make(s.s, &policy, &s.p, &s.err));
    assert_true(calls > 1);
    assert_true(berth_plan_hash(s.p) == hash);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gang_is_placed_whole_or_not_at_all),
        cmocka_unit_test(workloads_of_one_gang_are_placed_together),
        cmocka_unit_test(elastic_gang_needs_its_minimum),
        cmocka_unit_test(elastic_gang_grows_later),
        cmocka_unit_test(gang_minimums_come_first),
        cmocka_unit_test(failed_gang_releases_everything),
        cmocka_unit_test(gang_may_be_reserved),
        cmocka_unit_test(free_resources_are_used_before_stopping_ones),
        cmocka_unit_test(reserved_instance_waits_for_all_stops_on_its_node),
        cmocka_unit_test(stopping_gpu_is_reserved),
        cmocka_unit_test(scarce_room_goes_to_the_first_in_order),
        cmocka_unit_test(smaller_pod_fits_where_larger_one_did_not),
        cmocka_unit_test(unplaceable_pods_do_not_affect_others),
        cmocka_unit_test(affinity_chain_is_placed_in_one_plan),
        cmocka_unit_test(spread_is_even),
        cmocka_unit_test(selected_pod_counts_once),
        cmocka_unit_test(old_instance_stops_without_room_for_replacement),
        cmocka_unit_test(single_replica_without_room_stays),
        cmocka_unit_test(progress_callback_does_not_affect_the_plan),
        cmocka_unit_test(dropped_reservation_releases_its_attachment),
        cmocka_unit_test(waits_are_the_lowest_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
