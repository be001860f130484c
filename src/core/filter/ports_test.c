/* ports_test.c - ports that are held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void allocated_ports_refuse_the_node(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        struct berth_port held, asked;
        const char *what;
        uint64_t want;
    } rows[] = {
        {"the same",              {BERTH_TCP, 80, 0},             {BERTH_TCP, 80, 1},             "tcp/80",          1},
        {"another",               {BERTH_TCP, 80, 0},             {BERTH_TCP, 81, 0},             "",                0},
        {"another protocol",      {BERTH_TCP, 80, 0},             {BERTH_UDP, 80, 0},             "",                0},
        {"of UDP",                {BERTH_UDP, 53, 0},             {BERTH_UDP, 53, 0},             "udp/53",          1},
        {"last of a block",       {BERTH_TCP, 8000, 10},          {BERTH_TCP, 8009, 0},           "tcp/8009",        1},
        {"after a block",         {BERTH_TCP, 8000, 10},          {BERTH_TCP, 8010, 0},           "",                0},
        {"block reaches it",      {BERTH_TCP, 8000, 0},           {BERTH_TCP, 7990, 11},          "tcp/8000",        1},
        {"block ends before it",  {BERTH_TCP, 8000, 0},           {BERTH_TCP, 7990, 10},          "",                0},
        {"blocks overlap by one", {BERTH_TCP, 100, 5},            {BERTH_TCP, 104, 5},            "tcp/104",         1},
        {"the last port",         {BERTH_TCP, 65535, 0},          {BERTH_TCP, 65534, 2},          "tcp/65535",       1},
        {"one address, the same", {BERTH_TCP, 80, 0, "10.0.0.1"}, {BERTH_TCP, 80, 0, "10.0.0.1"}, "tcp/80@10.0.0.1", 1},
        {"one address, another",  {BERTH_TCP, 80, 0, "10.0.0.1"}, {BERTH_TCP, 80, 0, "10.0.0.2"}, "",                0},
        {"one and all",           {BERTH_TCP, 80, 0, "10.0.0.1"}, {BERTH_TCP, 80, 0},             "tcp/80",          1},
        {"all and one",           {BERTH_TCP, 80, 0},             {BERTH_TCP, 80, 0, "10.0.0.1"}, "tcp/80@10.0.0.1", 1},
        {"all, spelled out",      {BERTH_TCP, 80, 0, "0.0.0.0"},  {BERTH_TCP, 80, 0},             "tcp/80",          1},
        {"one, of a block",       {BERTH_TCP, 80, 3, "10.0.0.1"}, {BERTH_TCP, 82, 0, "0.0.0.0"},  "tcp/82",          1},
    };
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        size_t r = i / 2;
        bool own = i % 2; /* held by the node itself, or by a pod */
        kit_node(&k, (struct berth_node){.id = "n1", .ports = &rows[r].held, .ports_len = own});
        kit_workload(&k, "old", !own, &(struct berth_shape){.ports = &rows[r].held, .ports_len = 1});
        if (!own)
            kit_running(&k, "old", 0, "n1", 0);
        kit_workload(&k, "web", 1, &(struct berth_shape){.ports = &rows[r].asked, .ports_len = 1});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[r].label, "port", rows[r].what, rows[r].want);
    }
}

static void two_pods_need_two_nodes(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {LIST(ports, struct berth_port, {BERTH_TCP, 80, 0})};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_node(&k, (struct berth_node){.id = "n2"});
    kit_workload(&k, "web", 3, &shape);
    kit_plan(&k, NULL);
    assert_string_equal(kit_order(&k, "web"), "n1 n2");
    assert_int_equal(kit_refusals(&k, "web", "port", "tcp/80"), 2);
}

static void pods_of_one_plan_share_a_port_at_other_addresses(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    const struct berth_port ports[] = {
        {BERTH_TCP, 80, 0, "10.0.0.1"},
        {BERTH_TCP, 80, 0, "10.0.0.2"},
        {BERTH_TCP, 80, 0, NULL      },
    };
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_workload(&k, "a", 1, &(struct berth_shape){.ports = &ports[0], .ports_len = 1});
    kit_workload(&k, "b", 1, &(struct berth_shape){.ports = &ports[1], .ports_len = 1});
    kit_workload(&k, "c", 1, &(struct berth_shape){.ports = &ports[2], .ports_len = 1});
    kit_workload(&k, "d", 1, &(struct berth_shape){.ports = &ports[1], .ports_len = 1});
    kit_plan(&k, NULL);
    assert_string_equal(kit_node_of(&k, "a", 0), "n1");
    assert_string_equal(kit_node_of(&k, "b", 0), "n1");
    assert_int_equal(kit_refusals(&k, "c", "port", "tcp/80"), 1);
    assert_int_equal(kit_refusals(&k, "d", "port", "tcp/80@10.0.0.2"), 1);
}

static void port_of_stopping_pod_can_be_reserved(void **state)
{
    (void)state;
    CLEANUP(kit) struct kit k = kit_new();
    struct berth_shape shape = {LIST(ports, struct berth_port, {BERTH_TCP, 80, 0})};
    struct berth_instance old = {.id = 7, .workload = "old", .node = "n1", .state = BERTH_STOPPING, .shape = &shape};
    kit_node(&k, (struct berth_node){.id = "n1"});
    kit_check(&k, berth_instance_put(k.cluster, &old, &k.err));
    kit_workload(&k, "web", 1, &shape);
    kit_plan(&k, NULL);
    assert_int_equal(berth_plan_actions(k.plan), 1);
    struct berth_action a = berth_plan_action(k.plan, 0);
    assert_int_equal(a.op, BERTH_RESERVE);
    assert_string_equal(a.node, "n1");
    assert_int_equal(a.waits_len, 1);
    assert_int_equal(a.waits[0], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocated_ports_refuse_the_node),
        cmocka_unit_test(two_pods_need_two_nodes),
        cmocka_unit_test(pods_of_one_plan_share_a_port_at_other_addresses),
        cmocka_unit_test(port_of_stopping_pod_can_be_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
