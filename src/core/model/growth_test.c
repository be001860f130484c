/* growth_test.c - grows every table of a cluster that a description can grow, to its limit or through several
 * doublings, then one entry beyond the limit. A table moves when it grows: a stale address shows under the sanitizers,
 * and under valgrind in a release build (tests/daemon/growth_check.sh).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/plan/policy.h"
#include "core/scene/scene_test.h"

enum { MANY = 3 * PAGE_LEN + 7 }; /* for tables without a limit: several pages, and several doublings of a vector */

static char names[BERTH_LIST_MAX + 1][8]; /* "x0", "x1", ... */

static int fill_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(names); i++)
        (void)snprintf(names[i], sizeof names[i], "x%zu", i);
    return 0;
}

static void refused(struct scene *s, int rc, const char *part)
{
    assert_int_equal(rc, -EINVAL);
    if (!strstr(s->err.text, part))
        fail_msg("%s: no '%s'", s->err.text, part);
}

/* Checks that nothing put before is lost and that a plan can be made. */
static void check_cluster(struct scene *s)
{
    scene_audit(s);
    scene_plan(s);
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

/* The ways in which the i-th name gets into the table. */
static int by_definition(struct scene *s, size_t i)
{
    return berth_resource_put(s->c, &(struct berth_resource){names[i], BERTH_CUMULATIVE, 1}, &s->err);
}

static int by_node(struct scene *s, size_t i)
{
    struct berth_amount has[] = {
        {names[i], 5}
    };
    return berth_node_put(s->c, &(struct berth_node){.id = names[i], .allocatable = has, .allocatable_len = 1},
                          &s->err);
}

static int by_request(struct scene *s, size_t i)
{
    struct berth_amount needs[] = {
        {names[i], 1}
    };
    struct berth_workload w = {
        .id = names[i], .replicas = 2, .shape = {.requests = needs, .requests_len = 1}
    };
    return berth_workload_put(s->c, &w, &s->err);
}

static int by_limit(struct scene *s, size_t i)
{
    struct berth_limit limits[] = {
        {names[i], BERTH_ABSOLUTE, 1, 2}
    };
    struct berth_workload w = {
        .id = names[i], .replicas = 1, .shape = {.limits = limits, .limits_len = 1}
    };
    return berth_workload_put(s->c, &w, &s->err);
}

static int by_quota(struct scene *s, size_t i)
{
    struct berth_amount limits[] = {
        {names[i], 9}
    };
    return berth_quota_put(s->c, &(struct berth_quota){.id = names[i], .limits = limits, .limits_len = 1}, &s->err);
}

static int by_driver(struct scene *s, size_t i)
{
    return berth_volume_put(s->c, &(struct berth_volume){.id = names[i], .driver = names[i]}, &s->err);
}

static int by_usage(struct scene *s, size_t i)
{
    struct berth_usage usage[] = {
        {.resource = names[i], .used = 1}
    };
    struct berth_instance held = {
        .id = 1, .workload = "web", .node = "n", .state = BERTH_RUNNING, .since_ns = 1, .usage = usage, .usage_len = 1};
    return berth_instance_put(s->c, &held, &s->err);
}

static void resources_grow_to_their_bound(void **state)
{
    (void)state;
    int (*const ways[])(struct scene *, size_t) = {by_definition, by_node,   by_request, by_limit,
                                                   by_quota,      by_driver, by_usage};
    for (size_t way = 0; way < ROWS(ways); way++) {
        struct scene s = scene_new();
        scene_node(&s, "n", 1000, 1000);
        scene_service(&s, "web", 1, 10, 10);
        for (size_t i = 0; i < BERTH_RESOURCES_MAX - RESOURCES_BUILT_IN; i++)
            scene_check(&s, ways[way](&s, i));
        assert_int_equal(s.c->resources.len, BERTH_RESOURCES_MAX);
        refused(&s, ways[way](&s, BERTH_RESOURCES_MAX), "256");
        assert_int_equal(s.c->resources.len, BERTH_RESOURCES_MAX);
        check_cluster(&s);
        scene_cleanup(&s);
    }
}

/* All ways one after another on one cluster, with plans in between. */
static void resources_grow_while_plans_are_made(void **state)
{
    (void)state;
    int (*const ways[])(struct scene *, size_t) = {by_node, by_definition, by_request, by_quota, by_driver};
    struct scene s = scene_new();
    scene_node(&s, "n", 1000, 1000);
    scene_service(&s, "web", 3, 10, 10);
    for (size_t i = 0; i < BERTH_RESOURCES_MAX - RESOURCES_BUILT_IN; i++) {
        scene_check(&s, ways[i % ROWS(ways)](&s, i));
        if (i % 16 == 0)
            check_cluster(&s);
    }
    assert_int_equal(s.c->resources.len, BERTH_RESOURCES_MAX);
    check_cluster(&s);
    scene_cleanup(&s);
}

/* ---- tables without a limit ------------------------------------------------------------------------------------- */

static void nodes_workloads_and_instances_grow(void **state)
{
    (void)state;
    struct scene s = scene_new();
    for (size_t i = 0; i < MANY; i++) {
        struct berth_label labels[] = {
            {names[i], names[MANY - i]},
            {"rack",   names[i % 7]   }
        };
        scene_put_node(&s, (struct berth_node){.id = names[i],
                                               HAS(1000, 1000),
                                               .labels = labels,
                                               .labels_len = ROWS(labels),
                                               LIST(gpus, struct berth_gpu, {names[i], 1})});
        scene_put(&s, (struct berth_workload){
                          .id = names[i],
                          .replicas = 1,
                          .labels = labels,
                          .labels_len = ROWS(labels),
                          .shape = {NEEDS(10, 10), LIST(ports, struct berth_port, {.port = 80})}
        });
        scene_running(&s, names[i], 0, names[i]);
        if (i % 200 == 0)
            check_cluster(&s);
    }
    check_cluster(&s);
    for (size_t i = 0; i < MANY; i++) {
        scene_remove(&s, i + 1);
        scene_check(&s, berth_workload_remove(s.c, names[i], &s.err));
        scene_check(&s, berth_node_remove(s.c, names[i], &s.err));
    }
    check_cluster(&s);
    scene_cleanup(&s);
}

static void quotas_budgets_volumes_and_facts_grow(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "n", 1000, 1000);
    scene_service(&s, "web", 1, 10, 10);
    for (size_t i = 0; i < MANY; i++) {
        struct berth_amount limits[] = {
            {"cpu",  (int64_t)i},
            {"gpu",  1         },
            {"jobs", 3         }
        };
        struct berth_quota q = {
            .id = names[i], .parent = i % 50 ? names[i - i % 50] : "", .limits = limits, .limits_len = ROWS(limits)};
        struct berth_budget b = {.id = names[i], .allowed = 1};
        struct berth_volume v = {.id = names[i], .node = "n"};
        scene_check(&s, berth_quota_put(s.c, &q, &s.err));
        scene_check(&s, berth_budget_put(s.c, &b, &s.err));
        scene_check(&s, berth_volume_put(s.c, &v, &s.err));
        const char *of[] = {names[i]};
        scene_put(&s, (struct berth_workload){
                          .id = names[i],
                          .replicas = 1,
                          .quotas = of,
                          .quotas_len = 1,
                          .shape = {NEEDS(1, 1), NAMES(volumes, names[i])}
        });
    }
    check_cluster(&s);
    for (size_t i = MANY; i-- > 0;) {
        scene_check(&s, berth_workload_remove(s.c, names[i], &s.err));
        scene_check(&s, berth_budget_remove(s.c, names[i], &s.err));
        scene_check(&s, berth_quota_remove(s.c, names[i], &s.err));
    }
    check_cluster(&s);
    scene_cleanup(&s);
}

/* ---- lists of one description ----------------------------------------------------------------------------------- */

static void lists_of_a_node_grow_to_their_bound(void **state)
{
    (void)state;
    static struct berth_label labels[BERTH_LIST_MAX + 1];
    static struct berth_taint taints[BERTH_LIST_MAX + 1];
    static struct berth_image images[BERTH_LIST_MAX + 1];
    static struct berth_gpu gpus[BERTH_NODE_GPUS_MAX + 1];
    for (size_t i = 0; i < BERTH_LIST_MAX + 1; i++) {
        labels[i] = (struct berth_label){names[i], names[i]};
        taints[i] = (struct berth_taint){.key = names[i], .value = "", .effect = BERTH_PREFER_NO_SCHEDULE};
        images[i] = (struct berth_image){.name = names[i], .size_bytes = 1};
    }
    for (size_t i = 0; i < ROWS(gpus); i++)
        gpus[i] = (struct berth_gpu){names[i], 1};
    struct scene s = scene_new();
    for (size_t len = 1; len <= BERTH_LIST_MAX; len *= 2) {
        struct berth_node n = {.id = "n",
                               HAS(1000, 1000),
                               .labels = labels,
                               .labels_len = len,
                               .taints = taints,
                               .taints_len = len,
                               .images = images,
                               .images_len = len,
                               .gpus = gpus,
                               .gpus_len = len < BERTH_NODE_GPUS_MAX ? len : BERTH_NODE_GPUS_MAX};
        scene_check(&s, berth_node_put(s.c, &n, &s.err));
        check_cluster(&s);
    }
    struct berth_node over[] = {
        {.id = "n", .labels = labels, .labels_len = BERTH_LIST_MAX + 1},
        {.id = "n", .taints = taints, .taints_len = BERTH_LIST_MAX + 1},
        {.id = "n", .images = images, .images_len = BERTH_LIST_MAX + 1},
        {.id = "n", .gpus = gpus,     .gpus_len = ROWS(gpus)          },
    };
    for (size_t i = 0; i < ROWS(over); i++)
        refused(&s, berth_node_put(s.c, &over[i], &s.err), i + 1 < ROWS(over) ? "1025" : "65 GPUs");
    check_cluster(&s);
    scene_cleanup(&s);
}

static void quotas_of_a_workload_grow_to_their_bound(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const char *of[QUOTAS_MAX + 1];
    scene_node(&s, "n", 1000, 1000);
    for (size_t tree = 0; tree < ROWS(of); tree++)
        for (size_t depth = 0; depth <= QUOTA_DEPTH_MAX; depth++) { /* the last one is too deep */
            struct berth_amount limits[] = {
                {"cpu", 1000}
            };
            size_t i = tree * (QUOTA_DEPTH_MAX + 1) + depth;
            struct berth_quota q = {
                .id = names[i], .parent = depth ? names[i - 1] : "", .limits = limits, .limits_len = 1};
            if (depth == QUOTA_DEPTH_MAX)
                refused(&s, berth_quota_put(s.c, &q, &s.err), "deeper than 8");
            else
                scene_check(&s, berth_quota_put(s.c, &q, &s.err));
            of[tree] = names[depth < QUOTA_DEPTH_MAX ? i : i - 1];
        }
    struct berth_workload w = {
        .id = "w", .replicas = 3, .quotas = of, .quotas_len = QUOTAS_MAX, .shape = {NEEDS(1, 1)}};
    scene_check(&s, berth_workload_put(s.c, &w, &s.err));
    check_cluster(&s);
    w.quotas_len = QUOTAS_MAX + 1;
    refused(&s, berth_workload_put(s.c, &w, &s.err), "5 quotas");
    check_cluster(&s);
    scene_cleanup(&s);
}

/* ---- a policy --------------------------------------------------------------------------------------------------- */

static void lists_of_a_policy_grow_to_their_bound(void **state)
{
    (void)state;
    static struct berth_window windows[WINDOWS_MAX + 1];
    static struct berth_profile others[BERTH_OTHERS_MAX + 1];
    struct scene s = scene_new();
    const char *nodes[] = {"n"};
    scene_node(&s, "n", 1000, 1000);
    scene_service(&s, "web", 3, 10, 10);
    for (size_t i = 0; i < ROWS(windows); i++)
        windows[i] = (struct berth_window){
            .id = names[i], .start_ns = (int64_t)i, .end_ns = BERTH_NEVER_NS, .nodes = nodes, .nodes_len = 1};
    for (size_t i = 0; i < ROWS(others); i++) {
        others[i] = *berth_profile_at(0);
        others[i].name = names[i];
    }
    s.policy = (struct berth_policy){
        .windows = windows, .windows_len = WINDOWS_MAX, .others = others, .others_len = BERTH_OTHERS_MAX};
    check_cluster(&s);
    struct berth_policy over[] = {
        {.windows = windows, .windows_len = ROWS(windows)},
        {.others = others,   .others_len = ROWS(others)  },
    };
    for (size_t i = 0; i < ROWS(over); i++) {
        struct berth_plan *p = NULL;
        refused(&s, berth_plan_make(s.s, &over[i], &p, &s.err), "policy: more than");
        assert_null(p);
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_grow_to_their_bound),
        cmocka_unit_test(resources_grow_while_plans_are_made),
        cmocka_unit_test(nodes_workloads_and_instances_grow),
        cmocka_unit_test(quotas_budgets_volumes_and_facts_grow),
        cmocka_unit_test(lists_of_a_node_grow_to_their_bound),
        cmocka_unit_test(quotas_of_a_workload_grow_to_their_bound),
        cmocka_unit_test(lists_of_a_policy_grow_to_their_bound),
    };
    return cmocka_run_group_tests(tests, fill_names, NULL);
}
