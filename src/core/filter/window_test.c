/* window_test.c - nodes that a window keeps for others, or for no workload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/waiting_test.h"

static void windows_exclude_other_users(void **state)
{
    static const struct {
        int64_t start, end, seconds; /* of the window; run time of the job */
        bool own, by_label;
        const char *want;
        int64_t begins;
    } rows[] = {
        {100,  200, 100, false, false, "place job/0 a pending", 0  },
        {100,  200, 101, false, false, "",                      200},
        {100,  200, 101, false, true,  "",                      200},
        {100,  200, 101, true,  false, "place job/0 a pending", 0  },
        {-100, 200, 1,   false, false, "",                      200},
        {-200, -1,  999, false, false, "place job/0 a pending", 0  },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(0, 100);
        scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), LABEL("row", "1")});
        struct berth_term term = {LIST(exprs, struct berth_expr, {"row", BERTH_IN, (const char *const[]){"1"}, 1})};
        const char *const nodes[] = {"nobody", "a"}, *const quotas[] = {"group/x"};
        struct berth_window w = {.id = "service",
                                 .start_ns = START_NS + rows[i].start * SCENE_SECOND_NS,
                                 .end_ns = START_NS + rows[i].end * SCENE_SECOND_NS,
                                 .nodes = nodes,
                                 .nodes_len = rows[i].by_label ? 0 : 2,
                                 .require = &term,
                                 .require_len = rows[i].by_label,
                                 .quotas = quotas,
                                 .quotas_len = 1};
        s.policy.windows = &w;
        s.policy.windows_len = 1;
        scene_check(&s, berth_quota_put(s.c, &(struct berth_quota){.id = "group/x"}, &s.err));
        scene_check(&s, berth_quota_put(s.c, &(struct berth_quota){.id = "user/ann", .parent = "group/x"}, &s.err));
        put_job(&s, (struct job){.id = "job",
                                 .cpu = 1000,
                                 .seconds = rows[i].seconds,
                                 .user = rows[i].own ? "user/ann" : "user/bob"});
        step(&s, rows[i].want);
        if (!*rows[i].want) {
            assert_int_equal(start_of(&s, "job"), rows[i].begins);
            assert_string_equal(scene_reason(&s, "job", "window").what, "service");
            assert_true(berth_plan_recheck_ns(s.p) <= w.end_ns);
        }
        scene_cleanup(&s);
    }
}

/* A window selects nodes by labels, out of three with row 1, row 7 and no row. */
static void window_selects_nodes_by_label(void **state)
{
    static const struct {
        const char *label;
        enum berth_match match;
        const char *value; /* NULL: none */
        const char *want;  /* nodes for a service that runs for ever */
    } rows[] = {
        {"in",                   BERTH_IN,         "7",       "ac" },
        {"not in",               BERTH_NOT_IN,     "7",       "b"  },
        {"there",                BERTH_EXISTS,     NULL,      "c"  },
        {"not there",            BERTH_NOT_EXISTS, NULL,      "ab" },
        {"greater",              BERTH_GT,         "3",       "ac" },
        {"less",                 BERTH_LT,         "3",       "bc" },
        {"than what is no word", BERTH_GT,         "many",    "abc"},
        {"never heard of",       BERTH_IN,         "nowhere", "abc"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(0, 100);
        char got[4] = "";
        scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), LABEL("row", "1")});
        scene_put_node(&s, (struct berth_node){.id = "b", HAS(1000, 1000), LABEL("row", "7")});
        scene_put_node(&s, (struct berth_node){.id = "c", HAS(1000, 1000)});
        const struct berth_expr expr = {"row", rows[i].match, &rows[i].value, rows[i].value != NULL};
        const struct berth_term term = {.exprs = &expr, .exprs_len = 1};
        const struct berth_window w = {
            .id = "w", .start_ns = s.now_ns + 1, .end_ns = s.now_ns + 2, .require = &term, .require_len = 1};
        s.policy.windows = &w;
        s.policy.windows_len = 1;
        scene_service(&s, "web", 3, 600, 10);
        scene_plan(&s);
        for (const char *node = "abc"; *node; node++)
            for (size_t n = 0; n < berth_plan_actions(s.p); n++)
                if (berth_plan_action(s.p, n).node[0] == *node)
                    got[strlen(got)] = *node;
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: placed on \"%s\"", rows[i].label, got);
        scene_cleanup(&s);
    }
}

/* A pod that already runs when a window begins is left alone, and the start of the next job is predicted. */
static void running_pod_is_not_stopped_for_a_window(void **state)
{
    (void)state;
    struct scene s = stage(1, 100);
    const char *const nodes[] = {"a"};
    const struct berth_window w = {.id = "w",
                                   .start_ns = START_NS + 10 * SCENE_SECOND_NS,
                                   .end_ns = START_NS + 300 * SCENE_SECOND_NS,
                                   .nodes = nodes,
                                   .nodes_len = 1};
    s.policy.windows = &w;
    s.policy.windows_len = 1;
    run_job(&s, (struct job){.id = "x", .cpu = 1000, .seconds = 200}, "a", 0);
    put_job(&s, (struct job){.id = "next", .cpu = 1000, .seconds = 5});
    for (int64_t at = 0; at <= 250; at += 50) {
        s.now_ns = START_NS + at * SCENE_SECOND_NS;
        step(&s, "");
        assert_int_equal(start_of(&s, "next"), at < 200 ? 300 : 400); /* x has outrun its estimate then */
    }
    scene_cleanup(&s);
}

/* The time limit decides, not the estimate; a job with a short limit is not kept from the node by one with a long
 * limit. */
static void window_uses_time_limit(void **state)
{
    (void)state;
    struct scene s = stage(1, 100);
    const char *const nodes[] = {"a"};
    const struct berth_window w = {.id = "w",
                                   .start_ns = START_NS + 100 * SCENE_SECOND_NS,
                                   .end_ns = START_NS + 300 * SCENE_SECOND_NS,
                                   .nodes = nodes,
                                   .nodes_len = 1};
    s.policy.windows = &w;
    s.policy.windows_len = 1;
    put_job(&s, (struct job){.id = "vague", .cpu = 900, .seconds = 20, .limit = 1000});
    put_job(&s, (struct job){.id = "exact", .cpu = 900, .seconds = 50, .limit = 100});
    step(&s, "place exact/0 a pending");
    assert_int_equal(start_of(&s, "vague"), 300);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_exclude_other_users),
        cmocka_unit_test(window_selects_nodes_by_label),
        cmocka_unit_test(running_pod_is_not_stopped_for_a_window),
        cmocka_unit_test(window_uses_time_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
