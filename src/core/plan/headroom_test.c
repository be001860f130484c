/* headroom_test.c - headroom in every zone or in a domain: which pods must leave it free and which may use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

static struct scene zones(const struct berth_headroom_amount *reserve)
{
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a1", .zone = "a", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "a2", .zone = "a", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b1", .zone = "b", HAS(1000, 1000)});
    s.policy.headroom = (struct berth_headroom){reserve, 1, 5};
    return s;
}

/* How many of ten pods of 300 cpu are placed. */
static void headroom_limits_placed_pods(void **state)
{
    static const struct {
        const char *label;
        struct berth_headroom_amount reserve;
        int32_t priority;
        uint32_t want;
    } rows[] = {
        {"nothing is kept",        {"cpu", 0, 0},     0, 9},
        {"a tenth of each zone",   {"cpu", 0, 100},   0, 9}, /* 200 of 2000 and 100 of 1000 stay free anyway */
        {"a little more",          {"cpu", 0, 101},   0, 7},
        {"an amount in each zone", {"cpu", 700, 0},   0, 5},
        {"the larger of both",     {"cpu", 100, 500}, 0, 4},
        {"all of it",              {"cpu", 0, 1000},  0, 0},
        {"of something else",      {"disk", 5, 0},    0, 9},
        {"for the urgent",         {"cpu", 0, 1000},  5, 9},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = zones(&rows[i].reserve);
        scene_put(&s, (struct berth_workload){
                          .id = "web", .replicas = 10, .priority = rows[i].priority, .shape = {NEEDS(300, 1)}});
        scene_plan(&s);
        if (berth_plan_actions(s.p) != rows[i].want)
            fail_msg("%s: %zu placed", rows[i].label, berth_plan_actions(s.p));
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

static void reason_names_the_zone(void **state)
{
    static const struct berth_headroom_amount reserve = {"cpu", 0, 600};
    (void)state;
    struct scene s = zones(&reserve);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 4, .shape = {NEEDS(400, 1)}});
    scene_put(&s, (struct berth_workload){.id = "now", .replicas = 1, .priority = 5, .shape = {NEEDS(900, 1)}});
    scene_expect_and_apply(&s, "place now/0 a1 pending; place web/0 b1 pending");
    assert_int_equal(scene_pending(&s, "web"), 3);
    struct berth_reason r = scene_reason(&s, "web", "headroom");
    assert_int_equal(r.nodes, 3);
    assert_string_equal(r.what, "cpu");
    assert_string_equal(r.text, "all 3 nodes are in a zone that reserves free cpu for more urgent work");
    scene_cleanup(&s);
}

/* The reason names the domain, not a zone. */
static void reason_names_the_domain(void **state)
{
    static const struct berth_headroom_amount reserve = {"cpu", 0, 1000, "train"};
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .domain = "train", HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .domain = "serve", HAS(100, 1000)});
    s.policy.headroom = (struct berth_headroom){.reserves = &reserve, .reserves_len = 1, .priority = 5};
    scene_service(&s, "web", 1, 300, 1);
    scene_expect(&s, "");
    assert_string_equal(scene_reason(&s, "web", "headroom").text,
                        "1 of 2 nodes is in the domain train, which reserves free cpu for more urgent work");
    scene_cleanup(&s);
}

/* Migrations are no new demand. */
static void drain_may_use_headroom(void **state)
{
    static const struct berth_headroom_amount reserve = {"cpu", 0, 1000};
    (void)state;
    struct scene s = zones(&reserve);
    scene_service(&s, "web", 1, 400, 1);
    scene_running(&s, "web", 0, "b1");
    scene_put_node(&s, (struct berth_node){.id = "b1", .zone = "b", .state = BERTH_NODE_DRAINING, HAS(1000, 1000)});
    scene_expect_and_apply(&s, "place web/0 a1 drained for 1");
    scene_cleanup(&s);
}

/* Headroom in one domain that spans zones: how many of ten pods of 300 are placed on four nodes of 1000. */
static void headroom_is_kept_in_a_domain(void **state)
{
    static const struct {
        const char *label;
        struct berth_headroom_amount reserves[2];
        size_t len;
        const char *domains; /* domains that the pods may use */
        uint32_t want;
    } rows[] = {
        {"nothing",                   {{"cpu", 0, 0, "train"}},                            1, "",      10},
        {"all of it",                 {{"cpu", 0, 1000, "train"}},                         1, "",      6 },
        {"from those who want it",    {{"cpu", 0, 1000, "train"}},                         1, "train", 0 },
        {"not from others",           {{"cpu", 0, 1000, "train"}},                         1, "serve", 6 },
        {"an amount, of both zones",  {{"cpu", 1500, 0, "train"}},                         1, "train", 1 },
        {"half of what it has",       {{"cpu", 0, 500, "train"}},                          1, "train", 3 },
        {"of a domain without nodes", {{"cpu", 900, 0, "none"}},                           1, "train", 6 },
        {"beside that of zones",      {{"cpu", 0, 1000, "train"}, {"cpu", 1500, 0, NULL}}, 2, "serve", 2 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = scene_new();
        scene_put_node(&s, (struct berth_node){.id = "a1", .zone = "a", .domain = "train", HAS(1000, 1000)});
        scene_put_node(&s, (struct berth_node){.id = "a2", .zone = "a", .domain = "serve", HAS(1000, 1000)});
        scene_put_node(&s, (struct berth_node){.id = "b1", .zone = "b", .domain = "train", HAS(1000, 1000)});
        scene_put_node(&s, (struct berth_node){.id = "b2", .zone = "b", .domain = "serve", HAS(1000, 1000)});
        s.policy.headroom =
            (struct berth_headroom){.reserves = rows[i].reserves, .reserves_len = rows[i].len, .priority = 5};
        const char *const domains[] = {rows[i].domains};
        scene_put(&s, (struct berth_workload){
                          .id = "web",
                          .replicas = 10,
                          .shape = {NEEDS(300, 1), .domains = domains, .domains_len = *rows[i].domains ? 1 : 0}
        });
        scene_plan(&s);
        if (berth_plan_actions(s.p) != rows[i].want)
            fail_msg("%s: %zu placed", rows[i].label, berth_plan_actions(s.p));
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

/* Gangs that are large enough may use the headroom; the pods of all workloads of a gang count. */
static void large_gangs_may_use_headroom(void **state)
{
    static const struct {
        uint32_t tasks, lead, rest, want;
    } rows[] = {
        {4, 0, 4, 4},
        {4, 0, 3, 0},
        {4, 1, 3, 4},
        {0, 0, 4, 0},
    };
    static const struct berth_headroom_amount reserve = {"cpu", 0, 1000, NULL};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = zones(&reserve);
        s.policy.headroom.tasks = rows[i].tasks;
        if (rows[i].lead)
            scene_put(&s, (struct berth_workload){
                              .id = "lead", .replicas = rows[i].lead, .gang = "g", .shape = {NEEDS(300, 1)}});
        scene_put(
            &s, (struct berth_workload){.id = "rest", .replicas = rows[i].rest, .gang = "g", .shape = {NEEDS(300, 1)}});
        scene_plan(&s);
        assert_int_equal(berth_plan_actions(s.p), rows[i].want);
        scene_apply(&s);
        scene_cleanup(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headroom_limits_placed_pods),  cmocka_unit_test(reason_names_the_zone),
        cmocka_unit_test(reason_names_the_domain),      cmocka_unit_test(drain_may_use_headroom),
        cmocka_unit_test(headroom_is_kept_in_a_domain), cmocka_unit_test(large_gangs_may_use_headroom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
