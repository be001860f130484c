/* holders_test.c - holders of ports and volumes: in the snapshot and after placements of the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/plan/plan.h"
#include "core/scene/scene_test.h"
#include "core/search/holders.h"

/* Expects the holders as sorted text: "NODE", or "NODE*" if the holder is stopping. */
static void expect_holders(struct scene *s, uint32_t port_or_volume, const char *want)
{
    char text[256] = "", got[SCENE_TEXT_MAX];
    size_t len = 0;
    for (struct holders_walk w = holders_begin(&s->p->c, port_or_volume); holders_next(&w);)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s%s", len ? "; " : "",
                                snapshot_text(s->s, s->s->layout->id[w.now.position]), w.now.leaving ? "*" : "");
    scene_sort(text, got);
    assert_string_equal(got, want);
}

static struct berth_shape port_shape(void)
{
    static const struct berth_port port = {BERTH_TCP, 80, 1};
    return (struct berth_shape){.ports = &port, .ports_len = 1};
}

static void port_holders_are_listed(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = port_shape();
    scene_put_node(&s, (struct berth_node){.id = "a", LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})});
    for (const char *id = "b\0c\0d\0e\0"; *id; id += 2)
        scene_node(&s, id, 10, 10);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .shape = shape});
    scene_running(&s, "web", 0, "b");
    scene_instance(&s,
                   (struct berth_instance){.workload = "gone", .node = "c", .state = BERTH_RUNNING, .shape = &shape});
    scene_instance(&s,
                   (struct berth_instance){.workload = "old", .node = "d", .state = BERTH_STOPPING, .shape = &shape});
    scene_expect(&s, "stop gone/0 c removed #2; place web/1 e pending");
    expect_holders(&s, cluster_port_put(s.c, &(struct berth_port){BERTH_TCP, 80}, 0), "a; b; c*; d*; e");
    expect_holders(&s, cluster_port_put(s.c, &(struct berth_port){BERTH_TCP, 80}, 0),
                   "a; b; c*; d*; e"); /* reading changes nothing */
    scene_cleanup(&s);
}

static void fenced_instance_holds_nothing(void **state)
{
    (void)state;
    struct scene s = scene_new();
    for (const char *id = "a\0b\0c\0d\0"; *id; id += 2)
        scene_node(&s, id, 10, 10);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 1, .fence_ns = 1, .shape = port_shape()});
    scene_running(&s, "web", 0, "a");
    scene_state(&s, "a", 10, 10, BERTH_NODE_LOST);
    s.now_ns += 5;
    scene_expect(&s, "lose web/0 a lost #1; place web/0 b lost");
    expect_holders(&s, cluster_port_put(s.c, &(struct berth_port){BERTH_TCP, 80}, 0), "b");
    scene_cleanup(&s);
}

static void holds_are_taken_and_undone(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_volume v = {.id = "disk", .driver = "csi", .shared = true};
    scene_check(&s, berth_volume_put(s.c, &v, &s.err));
    for (const char *id = "a\0b\0"; *id; id += 2)
        scene_put_node(&s, (struct berth_node){.id = id, LIST(allocatable, struct berth_amount, {"attach-csi", 3})});
    struct berth_shape shape = {NAMES(volumes, "disk"), LIST(ports, struct berth_port, {BERTH_TCP, 80, 1})};
    const struct class *k = cluster_class(s.c, class_put(s.c, &shape));
    uint32_t disk = cluster_volume_find(s.c, "disk"),
             port = cluster_port_put(s.c, &(struct berth_port){BERTH_TCP, 80}, 0);
    scene_plan(&s);
    const int64_t *left = cycle_column(&s.p->c, cluster_resource_put(s.c, "attach-csi"), false);
    holds_take(&s.p->c, k, 0);
    assert_int_equal(left[0], 2);
    holds_take(&s.p->c, k, 0); /* already attached there */
    assert_int_equal(left[0], 2);
    holds_take(&s.p->c, k, 1);
    expect_holders(&s, disk, "a; a; b");
    expect_holders(&s, port, "a; a; b");
    holds_undo(&s.p->c, k, 1);
    holds_undo(&s.p->c, k, 0);
    assert_int_equal(left[0], 2);
    assert_int_equal(left[1], 3);
    holds_undo(&s.p->c, k, 0);
    assert_int_equal(left[0], 3);
    expect_holders(&s, disk, "");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_holders_are_listed),
        cmocka_unit_test(fenced_instance_holds_nothing),
        cmocka_unit_test(holds_are_taken_and_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
