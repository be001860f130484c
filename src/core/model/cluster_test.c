/* cluster_test.c - creating and freeing a cluster; resources, volumes and facts; resources that are named late. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static int put_volume(struct scene *s, struct berth_volume v)
{
    return berth_volume_put(s->c, &v, &s->err);
}

static void put_fact(struct scene *s, struct berth_fact f)
{
    scene_check(s, berth_fact_put(s->c, &f, &s->err));
}

static size_t facts_live(const struct scene *s)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->c->facts.len; i++)
        n += ((const struct fact *)pages_at(&s->c->facts, i))->live;
    return n;
}

static void empty_cluster_plans_nothing(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_audit(&s);
    assert_int_equal(berth_nodes_over_capacity(s.c), 0);
    scene_expect_and_apply(&s, "");
    assert_true(berth_plan_recheck_ns(s.p) == BERTH_NEVER_NS);
    assert_false(berth_plan_alarm(s.p));
    scene_cleanup(&s);
    berth_cluster_free(NULL);
    berth_snapshot_free(NULL);
    berth_plan_free(NULL);
}

static void resources_are_named_once(void **state)
{
    (void)state;
    struct scene s = scene_new();
    assert_int_equal(cluster_resource_put(s.c, "cpu"), RESOURCE_CPU);
    assert_int_equal(cluster_resource_put(s.c, "memory"), RESOURCE_MEMORY);
    assert_int_equal(cluster_resource_put(s.c, "pods"), RESOURCE_PODS);
    uint32_t r = cluster_resource_put(s.c, "traffic");
    assert_int_equal(r, RESOURCES_BUILT_IN);
    assert_int_equal(cluster_resource_put(s.c, "traffic"), r);
    struct berth_resource def = {"traffic", BERTH_CUMULATIVE, 5};
    scene_check(&s, berth_resource_put(s.c, &def, &s.err));
    assert_int_equal(s.c->resources.len, RESOURCES_BUILT_IN + 1);
    assert_int_equal(cluster_resource(s.c, r)->kind, BERTH_CUMULATIVE);
    assert_int_equal(cluster_resource(s.c, r)->period_ns, 5);
    assert_true(cluster_resource(s.c, cluster_resource_put(s.c, "attach-csi"))->optional);
    assert_false(cluster_resource(s.c, r)->optional);
    scene_cleanup(&s);
}

/* Defining a new resource moves the table of resources; the definition must be stored in the new table. */
static void all_resources_keep_their_definitions(void **state)
{
    (void)state;
    struct scene s = scene_new();
    char name[32];
    for (int i = RESOURCES_BUILT_IN; i < BERTH_RESOURCES_MAX; i++) {
        (void)snprintf(name, sizeof name, "traffic-%d", i);
        struct berth_resource def = {name, BERTH_CUMULATIVE, i};
        scene_check(&s, berth_resource_put(s.c, &def, &s.err));
    }
    assert_int_equal(s.c->resources.len, BERTH_RESOURCES_MAX);
    for (uint32_t r = RESOURCES_BUILT_IN; r < BERTH_RESOURCES_MAX; r++) {
        assert_int_equal(cluster_resource(s.c, r)->kind, BERTH_CUMULATIVE);
        assert_int_equal(cluster_resource(s.c, r)->period_ns, r);
    }
    struct berth_resource over = {"one-more", BERTH_CUMULATIVE, 1};
    assert_int_equal(berth_resource_put(s.c, &over, &s.err), -EINVAL);
    assert_non_null(strstr(s.err.text, "256 distinct resources"));
    assert_int_equal(s.c->resources.len, BERTH_RESOURCES_MAX);
    scene_audit(&s);
    scene_cleanup(&s);
}

/* No node has the resource, although the layout was made before it was named. */
static void late_resource_is_on_no_node(void **state)
{
    (void)state;
    static const char *const names[] = {"fpga", "licence", "token", "ticket"};
    struct scene s = scene_new();
    scene_put_node(&s,
                   (struct berth_node){.id = "a", HAS(1000, 1000), LIST(gpus, struct berth_gpu, {"x", 1}, {"x", 1})});
    scene_expect(&s, "");
    for (size_t i = 0; i < ROWS(names); i++) {
        const struct berth_amount one = {names[i], 1};
        scene_put(&s, (struct berth_workload){
                          .id = names[i], .replicas = 1, .shape = {.requests = &one, .requests_len = 1}
        });
    }
    scene_expect(&s, "");
    for (size_t i = 0; i < ROWS(names); i++)
        assert_string_equal(scene_reason(&s, names[i], "short").what, names[i]);
    scene_cleanup(&s);
}

static void late_driver_has_no_limit(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_expect(&s, "");
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "disk", .driver = "csi"}));
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {NAMES(volumes, "disk")}});
    scene_expect_and_apply(&s, "place w/0 a pending");
    scene_cleanup(&s);
}

static void volumes_are_replaced_unless_in_use(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .zone = "z1", HAS(10, 10)});
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "disk", .zone = "z2", .driver = "csi"}));
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 1, .shape = {NAMES(volumes, "disk")}});
    scene_expect(&s, "");
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "disk", .zone = "z1", .driver = "nfs"}));
    scene_expect_and_apply(&s, "place w/0 a pending");
    assert_int_equal(put_volume(&s, (struct berth_volume){.id = "disk", .driver = "csi"}), -EBUSY);
    assert_non_null(strstr(s.err.text, "\"disk\""));
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "disk", .shared = true, .driver = "nfs"}));
    scene_audit(&s);
    scene_remove(&s, 1);
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "disk", .driver = "csi"}));
    scene_audit(&s);
    scene_cleanup(&s);
}

static void volume_is_attached_once_per_node(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", LIST(allocatable, struct berth_amount, {"attach-csi", 1})});
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "d1", .driver = "csi"}));
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "d2", .driver = "csi"}));
    scene_put(&s, (struct berth_workload){.id = "w1", .replicas = 3, .shape = {NAMES(volumes, "d1")}});
    scene_put(&s, (struct berth_workload){.id = "w2", .replicas = 1, .shape = {NAMES(volumes, "d2")}});
    scene_expect_and_apply(&s, "place w1/0 a pending; place w1/1 a pending; place w1/2 a pending");
    assert_int_equal(scene_reason(&s, "w2", "attach").nodes, 1);
    scene_remove(&s, 2); /* the other two instances still hold it */
    scene_audit(&s);
    scene_expect_and_apply(&s, "place w1/1 a pending");
    scene_cleanup(&s);
}

static void volume_is_used_where_an_instance_runs(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a"});
    scene_put_node(&s, (struct berth_node){.id = "b", .state = BERTH_NODE_JOINING});
    scene_check(&s, put_volume(&s, (struct berth_volume){.id = "d1", .driver = "csi"}));
    scene_put(&s, (struct berth_workload){.id = "w1", .replicas = 1, .shape = {NAMES(volumes, "d1")}});
    assert_false(berth_volume_used(s.c, "d1", "a"));
    scene_expect_and_apply(&s, "place w1/0 a pending");
    assert_true(berth_volume_used(s.c, "d1", "a"));
    assert_false(berth_volume_used(s.c, "d1", "b"));
    assert_false(berth_volume_used(s.c, "d1", "c"));
    assert_false(berth_volume_used(s.c, "d2", "a"));
    scene_remove(&s, 1);
    assert_false(berth_volume_used(s.c, "d1", "a"));
    scene_cleanup(&s);
}

static void facts_are_kept_until_they_are_over(void **state)
{
    (void)state;
    struct scene s = scene_new();
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_LEDGER, .key = "x", .value = 1});
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_LEDGER, .key = "x", .value = 2});
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_LEDGER, .key = "y", .value = 3});
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_SINCE, .subject = 7, .value = 4});
    assert_int_equal(facts_live(&s), 3);
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_LEDGER, .key = "x", .over = true});
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_LEDGER, .key = "never", .over = true});
    assert_int_equal(facts_live(&s), 2);
    put_fact(&s, (struct berth_fact){.kind = BERTH_FACT_POLICY, .key = "z"});
    assert_int_equal(facts_live(&s), 3);
    assert_int_equal(s.c->facts.len, 3); /* its slot is reused */
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_cluster_plans_nothing),
        cmocka_unit_test(resources_are_named_once),
        cmocka_unit_test(all_resources_keep_their_definitions),
        cmocka_unit_test(late_resource_is_on_no_node),
        cmocka_unit_test(late_driver_has_no_limit),
        cmocka_unit_test(volumes_are_replaced_unless_in_use),
        cmocka_unit_test(volume_is_attached_once_per_node),
        cmocka_unit_test(volume_is_used_where_an_instance_runs),
        cmocka_unit_test(facts_are_kept_until_they_are_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
