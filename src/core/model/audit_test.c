/* audit_test.c - consistent clusters pass, every kind of corruption is found and named, and nodes over capacity are
 * counted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bits.h"
#include "core/scene/scene_test.h"

static struct scene stage(void)
{
    struct scene s = scene_new();
    struct berth_volume v = {.id = "disk", .driver = "csi"};
    struct berth_shape shape = {NEEDS(100, 100), LIST(ports, struct berth_port, {BERTH_TCP, 80, 1}),
                                .gpu = {.count = 1}, NAMES(volumes, "disk")};
    scene_check(&s, berth_volume_put(s.c, &v, &s.err));
    scene_put_node(&s,
                   (struct berth_node){.id = "a", HAS(1000, 1000), LIST(gpus, struct berth_gpu, {"x", 1}, {"x", 1})});
    scene_node(&s, "b", 1000, 1000);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .shape = shape});
    scene_put(&s, (struct berth_workload){.id = "job", .kind = BERTH_JOB, .replicas = 2, .shape = {NEEDS(10, 10)}});
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "a", .gpus = 1, .state = BERTH_RUNNING});
    scene_instance(&s, (struct berth_instance){.workload = "job", .node = "b", .state = BERTH_ENDED});
    scene_instance(&s, (struct berth_instance){.workload = "job", .ordinal = 1, .node = "b", .state = BERTH_STOPPING});
    return s;
}

static struct instance *instance_edit(struct scene *s, uint64_t id)
{
    return pages_edit(&s->c->instances, cluster_instance_find(s->c, id));
}

static struct node *node_edit(struct scene *s, const char *id)
{
    return pages_edit(&s->c->nodes, cluster_node_find(s->c, id));
}

static void consistent_clusters_pass(void **state)
{
    (void)state;
    struct scene s = stage();
    scene_audit(&s);
    assert_int_equal(berth_audit(s.c, NULL), 0);
    scene_plan(&s);
    scene_apply(&s);
    scene_cleanup(&s);
}

static void corrupt_book(struct scene *s)
{
    cluster_book(s->c, RESOURCE_CPU, cluster_node_find(s->c, "a"))->active++;
}

static void corrupt_stopping(struct scene *s)
{
    cluster_book(s->c, RESOURCE_MEMORY, cluster_node_find(s->c, "b"))->stopping--;
}

static void corrupt_attached(struct scene *s)
{
    cluster_book(s->c, cluster_resource_put(s->c, "attach-csi"), cluster_node_find(s->c, "a"))->active++;
}

static void corrupt_device(struct scene *s)
{
    node_edit(s, "a")->devices[1].active += 500;
}

static void corrupt_count(struct scene *s)
{
    ((struct workload *)pages_edit(&s->c->workloads, cluster_workload_find(s->c, "web")))->plain++;
}

static void corrupt_settled(struct scene *s)
{
    bits_drop(s->c->unsettled.at, cluster_workload_find(s->c, "web"));
}

static void corrupt_owner(struct scene *s)
{
    instance_edit(s, 1)->workload.v = cluster_workload_find(s->c, "job");
}

static void corrupt_place(struct scene *s)
{
    instance_edit(s, 3)->node.v = cluster_node_find(s->c, "a");
}

static void corrupt_node_count(struct scene *s)
{
    node_edit(s, "b")->instances--;
}

static void corrupt_nodes(struct scene *s)
{
    s->c->nodes_len++;
}

static void corrupt_port(struct scene *s)
{
    uint32_t port = cluster_port_put(s->c, &(struct berth_port){BERTH_TCP, 80}, 0), at = cluster_node_find(s->c, "a");
    (void)cluster_hold(s->c, port, at, NONE, NONE);
}

static void corruption_is_found_and_named(void **state)
{
    static const struct {
        void (*hurt)(struct scene *s);
        const char *part;
    } rows[] = {
        {corrupt_book,       "cpu of node \"a\" is 101 and should be 100"},
        {corrupt_stopping,   "node \"b\""                                },
        {corrupt_attached,   "attach-csi of node \"a\""                  },
        {corrupt_device,     "GPU"                                       },
        {corrupt_count,      "workload \"web\""                          },
        {corrupt_settled,    "the settled flag of workload \"web\""      },
        {corrupt_owner,      "owner"                                     },
        {corrupt_place,      "node \"b\""                                },
        {corrupt_node_count, "number of instances of node \"b\""         },
        {corrupt_nodes,      "number of nodes"                           },
        {corrupt_port,       "tcp/80 is allocated twice on node \"a\""   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage();
        scene_audit(&s);
        rows[i].hurt(&s);
        assert_int_equal(berth_audit(s.c, &s.err), -EBADMSG);
        if (!strstr(s.err.text, rows[i].part))
            fail_msg("\"%s\" does not say \"%s\"", s.err.text, rows[i].part);
        s.c->nodes_len -= rows[i].hurt == corrupt_nodes;
        scene_cleanup(&s);
    }
}

static void nodes_over_capacity_are_counted(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape fpga = {LIST(requests, struct berth_amount, {"fpga", 1})};
    scene_put_node(&s,
                   (struct berth_node){.id = "a", LIST(allocatable, struct berth_amount, {"cpu", 100}, {"pods", 1})});
    scene_node(&s, "b", 100, 100);
    scene_node(&s, "c", 100, 100);
    scene_service(&s, "web", 9, 50, 0);
    scene_running(&s, "web", 0, "a");
    scene_running(&s, "web", 1, "b");
    scene_running(&s, "web", 2, "b");
    assert_int_equal(berth_nodes_over_capacity(s.c), 0); /* full, but not over capacity */
    scene_running(&s, "web", 3, "b");
    assert_int_equal(berth_nodes_over_capacity(s.c), 1);
    scene_running(&s, "web", 4, "a"); /* two pods where one is allowed */
    assert_int_equal(berth_nodes_over_capacity(s.c), 2);
    scene_instance(&s, (struct berth_instance){.workload = "web", .node = "c", .state = BERTH_RUNNING, .shape = &fpga});
    assert_int_equal(berth_nodes_over_capacity(s.c), 3); /* the node has none of the resource */
    scene_audit(&s);
    scene_report(&s, 5, BERTH_STOPPING, false);
    assert_int_equal(berth_nodes_over_capacity(s.c), 3); /* its instance still exists */
    scene_remove(&s, 5);
    assert_int_equal(berth_nodes_over_capacity(s.c), 2);
    scene_cleanup(&s);
}

static void reserved_instances_count_as_over_capacity(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 100, 100);
    scene_service(&s, "web", 9, 60, 0);
    scene_running(&s, "web", 0, "a");
    scene_instance(&s, (struct berth_instance){.workload = "web", .ordinal = 1, .node = "a", .state = BERTH_RESERVED});
    assert_int_equal(berth_nodes_over_capacity(s.c), 1);
    scene_report(&s, 1, BERTH_STOPPING, false);
    assert_int_equal(berth_nodes_over_capacity(s.c), 0);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consistent_clusters_pass),
        cmocka_unit_test(corruption_is_found_and_named),
        cmocka_unit_test(nodes_over_capacity_are_counted),
        cmocka_unit_test(reserved_instances_count_as_over_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
