/* snapshot_test.c - a snapshot never changes; books with stopping and reserved instances; periods of consumption. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"
#include "core/snapshot/snapshot.h"

static uint64_t hash_of(const struct berth_snapshot *s)
{
    struct berth_plan *p = NULL;
    assert_int_equal(berth_plan_make(s, NULL, &p, NULL), 0);
    uint64_t h = berth_plan_hash(p);
    for (size_t i = 0; i < berth_plan_pendings(p); i++)
        h = hash_pair(h, berth_plan_pending(p, i).ordinals_len);
    berth_plan_free(p);
    return h;
}

static int64_t now_at(const struct berth_snapshot *s, struct scene *of, const char *node, uint32_t resource)
{
    return s->now[resource][s->layout->position[cluster_node_find(of->c, node)]];
}

static int64_t later_at(const struct berth_snapshot *s, struct scene *of, const char *node, uint32_t resource)
{
    uint32_t p = s->layout->position[cluster_node_find(of->c, node)];
    return s->later ? s->later[resource][p] : s->now[resource][p];
}

static struct scene stage(void)
{
    struct scene s = scene_new();
    for (uint32_t i = 0; i < 9; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "n%u", i);
        scene_put_node(&s, (struct berth_node){.id = id, HAS(1000, 1000), LIST(gpus, struct berth_gpu, {"x", 1})});
    }
    scene_service(&s, "web", 4, 300, 300);
    scene_service(&s, "huge", 2, 5000, 1);
    scene_running(&s, "web", 0, "n3");
    scene_running(&s, "web", 1, "n4");
    return s;
}

/* Changes everything in the cluster after the freeze. */
static void snapshot_is_immutable(void **state)
{
    (void)state;
    struct scene s = stage();
    struct berth_snapshot *then = berth_freeze(s.c, s.now_ns, 1);
    uint64_t before = hash_of(then);
    struct berth_resource r = {"cpu", BERTH_CUMULATIVE, 5};
    struct berth_volume v = {.id = "disk"};
    struct berth_fact f = {.kind = BERTH_FACT_MIGRATION, .subject = 1, .value = 1};
    scene_check(&s, berth_resource_put(s.c, &r, &s.err));
    scene_check(&s, berth_volume_put(s.c, &v, &s.err));
    scene_check(&s, berth_fact_put(s.c, &f, &s.err));
    scene_report(&s, 1, BERTH_STOPPING, false);
    scene_remove(&s, 2);
    scene_check(&s, berth_node_remove(s.c, "n4", &s.err));
    scene_state(&s, "n0", 10, 10, BERTH_NODE_LOST);
    scene_service(&s, "huge", 3, 1, 1);
    scene_check(&s, berth_workload_remove(s.c, "web", &s.err));
    for (uint32_t i = 0; i < 500; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "x%u", i);
        scene_node(&s, id, 7, 7);
        scene_put(&s, (struct berth_workload){.id = id, .replicas = 1, LABEL("app", id), .shape = {.near_zone = id}});
        scene_running(&s, id, 0, id);
    }
    assert_true(hash_of(then) == before);
    struct berth_snapshot *since = berth_freeze(s.c, s.now_ns, 1);
    assert_true(hash_of(since) != before);
    assert_true(hash_of(then) == before);
    berth_snapshot_free(since);
    assert_true(hash_of(then) == before);
    berth_snapshot_free(then);
    scene_audit(&s);
    scene_cleanup(&s);
}

static void same_cluster_gives_same_plan(void **state)
{
    (void)state;
    struct scene a = stage(), b = stage();
    struct berth_snapshot *x = berth_freeze(a.c, 5, 1), *y = berth_freeze(b.c, 5, 1), *z = berth_freeze(a.c, 5, 1);
    assert_true(hash_of(x) == hash_of(y));
    assert_true(hash_of(x) == hash_of(z));
    berth_snapshot_free(x);
    berth_snapshot_free(y);
    berth_snapshot_free(z);
    scene_cleanup(&a);
    scene_cleanup(&b);
}

static void stopping_and_reserved_create_two_books(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 9, 100, 10);
    scene_running(&s, "web", 0, "a");
    struct berth_snapshot *one = berth_freeze(s.c, 0, 0);
    assert_null(one->later); /* nothing is stopping or reserved */
    assert_int_equal(now_at(one, &s, "a", RESOURCE_CPU), 900);
    berth_snapshot_free(one);

    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 1, .node = "a", .state = BERTH_STOPPING});
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 2, .node = "a", .state = BERTH_RESERVED});
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 3, .node = "a", .state = BERTH_RESERVED});
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 4, .node = "a", .state = BERTH_ENDED});
    struct berth_snapshot *two = berth_freeze(s.c, 0, 0);
    assert_int_equal(now_at(two, &s, "a", RESOURCE_CPU), 800);
    assert_int_equal(later_at(two, &s, "a", RESOURCE_CPU), 700);
    assert_int_equal(now_at(two, &s, "a", RESOURCE_MEMORY), 980);
    assert_int_equal(later_at(two, &s, "a", RESOURCE_MEMORY), 970);
    assert_int_equal(two->over[0], 0);
    berth_snapshot_free(two);
    scene_cleanup(&s);
}

static void devices_have_two_books(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", LIST(gpus, struct berth_gpu, {"x", 80}, {"x", 80})});
    struct berth_shape half = {
        .gpu = {.count = 1, .milli = 500, .memory_bytes = 30}
    };
    scene_put(&s, (struct berth_workload){.id = "half", .replicas = 9, .shape = half});
    scene_put(&s, (struct berth_workload){.id = "whole", .replicas = 9, .shape = {.gpu = {.count = 1}}});
    scene_instance(&s, (struct berth_instance){.workload = "half", .node = "a", .gpus = 1, .state = BERTH_RUNNING});
    scene_instance(
        &s, (struct berth_instance){.workload = "half", .ordinal = 1, .node = "a", .gpus = 1, .state = BERTH_STOPPING});
    scene_instance(&s, (struct berth_instance){.workload = "whole", .node = "a", .gpus = 2, .state = BERTH_RESERVED});
    struct berth_snapshot *x = berth_freeze(s.c, 0, 0);
    assert_int_equal(x->devices[0].now, 0);
    assert_int_equal(x->devices[0].later, 500);
    assert_int_equal(x->devices[0].mem_now, 20);
    assert_int_equal(x->devices[0].mem_later, 50);
    assert_int_equal(x->devices[1].now, 1000);
    assert_int_equal(x->devices[1].later, 0);
    assert_int_equal(x->devices[1].mem_later, 80); /* a device that is held wholly has no share to give */
    berth_snapshot_free(x);
    scene_cleanup(&s);
}

static void consumption_counts_until_its_period_ends(void **state)
{
    static const struct {
        int64_t now_ns, free, recheck_ns;
    } rows[] = {
        {100, 40,  150           },
        {149, 40,  150           },
        {150, 100, BERTH_NEVER_NS},
        {500, 100, BERTH_NEVER_NS},
    };
    (void)state;
    struct scene s = scene_new();
    struct berth_resource traffic = {"traffic", BERTH_CUMULATIVE, 100};
    scene_check(&s, berth_resource_put(s.c, &traffic, &s.err));
    scene_put_node(&s, (struct berth_node){.id = "a",
                                           LIST(allocatable, struct berth_amount, {"traffic", 100}),
                                           LIST(consumed, struct berth_amount, {"traffic", 60}),
                                           .consumed_ns = 50});
    uint32_t r = cluster_resource_put(s.c, "traffic");
    scene_put(&s, (struct berth_workload){
                      .id = "w", .replicas = 1, .shape = {LIST(requests, struct berth_amount, {"traffic", 41})}});
    for (size_t i = 0; i < ROWS(rows); i++) {
        s.now_ns = rows[i].now_ns;
        scene_expect(&s, rows[i].free == 100 ? "place w/0 a pending" : "");
        assert_int_equal(now_at(s.s, &s, "a", r), rows[i].free);
        assert_true(berth_plan_recheck_ns(s.p) == rows[i].recheck_ns);
    }
    traffic.period_ns = 0; /* counts forever */
    scene_check(&s, berth_resource_put(s.c, &traffic, &s.err));
    scene_expect(&s, "");
    assert_true(berth_plan_recheck_ns(s.p) == BERTH_NEVER_NS);
    traffic.kind = BERTH_INSTANT; /* consumption no longer counts */
    scene_check(&s, berth_resource_put(s.c, &traffic, &s.err));
    scene_expect_and_apply(&s, "place w/0 a pending");
    scene_cleanup(&s);
}

static void overflowing_period_never_ends(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_resource traffic = {"traffic", BERTH_CUMULATIVE, INT64_MAX};
    scene_check(&s, berth_resource_put(s.c, &traffic, &s.err));
    scene_put_node(&s, (struct berth_node){.id = "a",
                                           LIST(allocatable, struct berth_amount, {"traffic", 100}),
                                           LIST(consumed, struct berth_amount, {"traffic", 60}),
                                           .consumed_ns = INT64_MAX});
    scene_expect(&s, "");
    assert_true(berth_plan_recheck_ns(s.p) == BERTH_NEVER_NS);
    scene_cleanup(&s);
}

static void nodes_over_capacity_are_marked(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape fpga = {LIST(requests, struct berth_amount, {"fpga", 1})};
    scene_node(&s, "a", 1000, 1000);
    scene_node(&s, "b", 1000, 1000);
    scene_node(&s, "c", 1000, 1000);
    scene_service(&s, "web", 9, 2000, 10);
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "a", .state = BERTH_RUNNING});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "c", .state = BERTH_RUNNING, .shape = &fpga});
    struct berth_snapshot *x = berth_freeze(s.c, 0, 0);
    for (const char *id = "a\0b\0c\0"; *id; id += 2) {
        uint32_t p = x->layout->position[cluster_node_find(s.c, id)];
        assert_int_equal(x->over[0] >> p & 1, *id != 'b');
    }
    berth_snapshot_free(x);
    scene_cleanup(&s);
}

static void id_order_survives_removals(void **state)
{
    (void)state;
    struct scene s = scene_new();
    uint64_t seed = scene_seed();
    for (int round = 0; round < 300; round++) {
        char id[16];
        (void)snprintf(id, sizeof id, "w%u", scene_random_below(&seed, 30));
        if (scene_random_below(&seed, 2))
            scene_service(&s, id, 1, 1, 1);
        else
            (void)berth_workload_remove(s.c, id, NULL);
        if (scene_random_below(&seed, 3))
            continue;
        struct berth_snapshot *x = berth_freeze(s.c, 0, 0);
        for (uint32_t a = 0; a < s.c->workloads.len; a++)
            for (uint32_t b = 0; b < s.c->workloads.len; b++) {
                const struct workload *u = cluster_workload(s.c, a), *v = cluster_workload(s.c, b);
                if (u->live && v->live && strcmp(snapshot_text(x, u->id), snapshot_text(x, v->id)) < 0)
                    assert_true(x->ranks[a] < x->ranks[b]);
            }
        berth_snapshot_free(x);
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshot_is_immutable),
        cmocka_unit_test(same_cluster_gives_same_plan),
        cmocka_unit_test(stopping_and_reserved_create_two_books),
        cmocka_unit_test(devices_have_two_books),
        cmocka_unit_test(consumption_counts_until_its_period_ends),
        cmocka_unit_test(overflowing_period_never_ends),
        cmocka_unit_test(nodes_over_capacity_are_marked),
        cmocka_unit_test(id_order_survives_removals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
