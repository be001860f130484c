/* tier_test.c - quotas, guarantees, spare pods, the order of demands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/scene/scene_test.h"

enum { HOUR = 3600 };

static void put_quota(struct scene *s, struct berth_quota q)
{
    scene_check(s, berth_quota_put(s->c, &q, &s->err));
}

#define CORES(field, amount) LIST(field, struct berth_amount, {"cpu", amount})

/* A job of one-core pods. */
static struct berth_workload job(const char *id, uint32_t pods, const char *const *quota)
{
    static const struct berth_amount core[] = {
        {"cpu",    1000},
        {"memory", 1   }
    };
    return (struct berth_workload){
        .id = id,
        .kind = BERTH_JOB,
        .replicas = pods,
        .quotas = quota,
        .quotas_len = quota ? 1 : 0,
        .shape = {.requests = core, .requests_len = 2}
    };
}

static const char *const ann[] = {"user/ann"}, *const bob[] = {"user/bob"}, *const carl[] = {"user/carl"};

static const char *reason_of(struct scene *s, size_t i)
{
    struct berth_pending pending = berth_plan_pending(s->p, i);
    return pending.reasons_len ? pending.reasons[0].text : "";
}

static void a_limit_holds_at_every_level(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 16000, 100);
    put_quota(&s, (struct berth_quota){.id = "group/lab", CORES(limits, 3000)});
    put_quota(&s, (struct berth_quota){.id = "user/ann", .parent = "group/lab", CORES(limits, 2000)});
    put_quota(&s, (struct berth_quota){.id = "user/bob", .parent = "group/lab"});
    scene_put(&s, job("1", 4, ann));
    scene_put(&s, job("2", 4, bob));
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending; place 2/0 n pending");
    scene_plan(&s);
    assert_int_equal(berth_plan_pendings(s.p), 2);
    assert_string_equal(reason_of(&s, 0), "quota user/ann: 2 of 2 cpu are used or reserved; 1 requested");
    assert_string_equal(reason_of(&s, 1), "quota group/lab: 3 of 3 cpu are used or reserved; 1 requested");
    scene_audit(&s);
    /* An ended pod frees quota, and is no longer counted as asked. */
    scene_report(&s, 3, BERTH_ENDED, false);
    scene_expect_and_apply(&s, "place 2/1 n pending");
    struct berth_quota_use use;
    assert_true(berth_quota_use(s.c, "group/lab", "cpu", &use));
    assert_int_equal(use.held, 3000);
    assert_int_equal(use.asked, 7000);
    scene_audit(&s);
}

static void stopping_pods_count_against_limits(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 16000, 100);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(limits, 1000)});
    scene_put(&s, job("1", 1, ann));
    scene_expect_and_apply(&s, "place 1/0 n pending");
    scene_put(&s, job("2", 1, ann));
    struct berth_workload held = job("1", 1, ann);
    held.suspended = true;
    scene_put(&s, held);
    scene_expect_and_apply(&s, "stop 1/0 n suspended #1; reserve 2/0 n pending after 1");
    scene_remove(&s, 1);
    scene_expect_and_apply(&s, "promote 2/0 n pending #2");
    scene_audit(&s);
}

static void job_limit_counts_jobs_not_pods(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 16000, 100);
    put_quota(&s, (struct berth_quota){.id = "user/ann", LIST(limits, struct berth_amount, {"jobs", 1})});
    scene_put(&s, job("1", 2, ann));
    scene_put(&s, job("2", 2, ann));
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending");
    scene_report(&s, 1, BERTH_ENDED, false);
    scene_expect_and_apply(&s, "");
    scene_report(&s, 2, BERTH_ENDED, false);
    scene_expect_and_apply(&s, "place 2/0 n pending; place 2/1 n pending");
    scene_audit(&s);
}

static void totals_count_expected_usage(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 16000, 100);
    put_quota(&s, (struct berth_quota){.id = "user/ann",
                                       LIST(totals, struct berth_total,
                                            {"cpu", 3 * 1000 * HOUR, 1000 * HOUR, 0, 3000 * SCENE_SECOND_NS})});
    struct berth_workload w = job("1", 4, ann);
    w.limit_ns = HOUR * SCENE_SECOND_NS;
    scene_put(&s, w);
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending");
    assert_int_equal(berth_plan_recheck_ns(s.p), 3000 * SCENE_SECOND_NS);
    s.now_ns = 3000 * SCENE_SECOND_NS; /* another period */
    scene_expect_and_apply(&s, "place 1/2 n pending");
}

/* The guarantee of one user is lent to another; the tiers decide who gets it back first. */
static void guaranteed_comes_before_borrowed(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(guarantees, 2000)});
    put_quota(&s, (struct berth_quota){.id = "user/bob", CORES(guarantees, 2000)});
    struct berth_workload first = job("1", 4, ann);
    first.created_ns = 1;
    scene_put(&s, first);
    struct berth_workload second = job("2", 1, bob);
    second.created_ns = 2;
    second.priority = -5; /* a low priority does not matter */
    scene_put(&s, second);
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending; place 2/0 n pending; place 1/2 n pending");
    scene_plan(&s);
    assert_int_equal(berth_plan_pendings(s.p), 1);
    assert_int_equal(berth_plan_queue_position(s.p, 0).entitlement, BERTH_BORROWED);
}

static void weighted_guarantees_follow_weights(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 9000, 100);
    put_quota(&s, (struct berth_quota){.id = "user/ann", .weight = 2, .weighted = true});
    put_quota(&s, (struct berth_quota){.id = "user/bob", .weight = 1, .weighted = true});
    struct berth_workload a = job("1", 9, ann), b = job("2", 9, bob);
    a.created_ns = 1;
    b.created_ns = 2;
    scene_put(&s, a);
    scene_put(&s, b);
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending; place 1/2 n pending; place 1/3 n pending; "
                               "place 1/4 n pending; place 1/5 n pending; place 2/0 n pending; place 2/1 n pending; "
                               "place 2/2 n pending");
}

/* The pod of the service runs in its new shape, while its instance of the older shape is on a lost node. Both instances
 * count against the guarantee, the one with the lower id first, in whichever order the cluster was told of them. */
static void instances_of_one_ordinal_count_in_order_of_their_ids(void **state)
{
    (void)state;
    for (int newest_first = 0; newest_first < 2; newest_first++) {
        CLEANUP(scene) struct scene s = scene_new();
        scene_node(&s, "n", 3000, 100);
        scene_state(&s, "lost", 3000, 100, BERTH_NODE_LOST);
        put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(guarantees, 2000)});
        struct berth_workload web = {.id = "web",
                                     .replicas = 1,
                                     .on_lost = BERTH_LOST_REPLACE,
                                     .quotas = ann,
                                     .quotas_len = 1,
                                     .shape = {NEEDS(1000, 1)}};
        scene_put(&s, web);
        const struct berth_shape older = {NEEDS(3000, 1)};
        const struct berth_instance twins[] = {
            {.id = 1, .workload = "web", .node = "lost", .state = BERTH_RUNNING, .shape = &older},
            {.id = 2, .workload = "web", .node = "n",    .state = BERTH_RUNNING, .ready = true  },
        };
        scene_instance(&s, twins[newest_first]);
        scene_instance(&s, twins[!newest_first]);
        struct berth_workload first = job("1", 2, ann), second = job("2", 1, bob);
        first.created_ns = 1;
        second.created_ns = 2;
        scene_put(&s, first);
        scene_put(&s, second);
        /* Instance 1 needs more than is guaranteed: both instances are borrowed, and the whole guarantee is left to the
         * first job. */
        scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending");
    }
}

static void gang_is_guaranteed_as_a_whole(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    put_quota(&s, (struct berth_quota){.id = "user/ann", CORES(guarantees, 2000)});
    put_quota(&s, (struct berth_quota){.id = "user/carl", CORES(guarantees, 4000)});
    struct berth_workload gang = job("1", 3, ann), other = job("2", 2, carl);
    gang.gang = "1";
    gang.created_ns = 1;
    other.created_ns = 2;
    scene_put(&s, gang);
    scene_put(&s, other);
    /* two cores of the gang would be guaranteed, so no pod of it is */
    scene_expect_and_apply(&s, "place 2/0 n pending; place 2/1 n pending");
}

static void spare_pods_come_last(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    struct berth_workload elastic = job("1", 8, NULL), plain = job("2", 1, NULL);
    elastic.gang = "1";
    elastic.gang_min = 2;
    elastic.created_ns = 1;
    plain.created_ns = 2;
    scene_put(&s, elastic);
    scene_put(&s, plain);
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending; place 2/0 n pending; place 1/2 n pending");
    scene_plan(&s);
    assert_int_equal(berth_plan_pendings(s.p), 1);
    assert_int_equal(berth_plan_pending(s.p, 0).ordinals_len, 5);
    assert_int_equal(berth_plan_queue_position(s.p, 0).entitlement, BERTH_SPARE);
}

/* No pod of a gang is placed if its minimum does not fit. */
static void spare_pods_wait_for_the_minimum(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 2000, 100);
    struct berth_workload elastic = job("1", 8, NULL);
    elastic.gang = "1";
    elastic.gang_min = 3;
    scene_put(&s, elastic);
    scene_expect_and_apply(&s, "");
    assert_int_equal(berth_plan_pending(s.p, 0).ordinals_len, 8);
}

/* The gang has an affinity to a pod that is placed after it: the gang is placed in the second round, and its spare pods
 * follow. */
static void spare_pods_follow_a_gang_placed_in_a_later_round(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    const char *const values[] = {"host"};
    const struct berth_expr expr = {"app", BERTH_IN, values, 1};
    const struct berth_affinity near = {
        .topology = "node", .select = {&expr, 1, 0}
    };
    (void)state;
    scene_node(&s, "n", 9000, 100);
    struct berth_workload elastic = job("1", 2, NULL), aide = job("2", 1, NULL), host = job("3", 1, NULL);
    elastic.gang = aide.gang = "g";
    elastic.gang_min = 1;
    aide.shape.near = &near;
    aide.shape.near_len = 1;
    host.labels = &(struct berth_label){"app", "host"};
    host.labels_len = 1;
    host.priority = -1;
    scene_put(&s, elastic);
    scene_put(&s, aide);
    scene_put(&s, host);
    scene_expect_and_apply(&s, "place 3/0 n pending; place 1/0 n pending; place 2/0 n pending; place 1/1 n pending");
}

static void strict_order_blocks_later_jobs(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    struct berth_workload large = job("1", 1, NULL), small = job("2", 1, NULL);
    large.shape = (struct berth_shape){NEEDS(8000, 1)};
    large.created_ns = 1;
    small.created_ns = 2;
    scene_put(&s, large);
    scene_put(&s, small);
    scene_service(&s, "web", 1, 1000, 1);
    s.policy.backfill.strict = true;
    scene_expect_and_apply(&s, "place web/0 n pending");
    assert_string_equal(reason_of(&s, 1), "waits for a job ahead of it in the queue");
    s.policy.backfill.strict = false;
    scene_expect_and_apply(&s, "place 2/0 n pending");
}

static void max_wait_overrides_queue_priority(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 1000, 100);
    struct berth_workload old = job("1", 1, NULL), urgent = job("2", 1, NULL);
    const struct berth_queue queues[] = {
        {.id = "low"   },
        { .id = "high", .priority = 9}
    };
    s.policy.order = (struct berth_order){.queues = queues, .queues_len = 2, .max_wait_ns = HOUR * SCENE_SECOND_NS};
    old.created_ns = s.now_ns;
    urgent.created_ns = s.now_ns + 5;
    old.queue = "low";
    urgent.queue = "high";
    scene_put(&s, old);
    scene_put(&s, urgent);
    scene_expect(&s, "place 2/0 n pending");
    assert_int_equal(berth_plan_recheck_ns(s.p), old.created_ns + HOUR * SCENE_SECOND_NS);
    s.now_ns += HOUR * SCENE_SECOND_NS;
    scene_expect_and_apply(&s, "place 1/0 n pending");
}

static void time_limit_stops_pods(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    struct berth_workload w = job("1", 2, NULL);
    w.limit_ns = 60 * SCENE_SECOND_NS;
    scene_put(&s, w);
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending");
    scene_report(&s, 1, BERTH_RUNNING, true);
    s.now_ns += 10 * SCENE_SECOND_NS;
    scene_report(&s, 2, BERTH_RUNNING, true);
    scene_expect_and_apply(&s, "");
    assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + 50 * SCENE_SECOND_NS);
    s.now_ns += 50 * SCENE_SECOND_NS;
    scene_expect_and_apply(&s, "stop 1/0 n expired #1");
    s.now_ns += 10 * SCENE_SECOND_NS;
    scene_expect_and_apply(&s, "stop 1/1 n expired #2");
}

/* Time limits also end jobs that the plan need not look at, because they have all they want; the recheck time is the
 * next limit. */
static void time_limit_sets_next_recheck(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    for (int64_t i = 1; i <= 3; i++) {
        char id[] = {(char)('0' + i), 0};
        struct berth_workload w = job(id, 1, NULL);
        w.limit_ns = 60 * i * SCENE_SECOND_NS;
        scene_put(&s, w);
        scene_running(&s, id, 0, "n");
    }
    int64_t since_ns = s.now_ns;
    for (int64_t i = 1; i <= 3; i++) {
        static const char *const want[] = {"stop 1/0 n expired #1", "stop 2/0 n expired #2", "stop 3/0 n expired #3"};
        s.now_ns = since_ns + 60 * i * SCENE_SECOND_NS;
        scene_expect(&s, want[i - 1]);
        assert_true(berth_plan_recheck_ns(s.p) == (i < 3 ? since_ns + 60 * (i + 1) * SCENE_SECOND_NS : BERTH_NEVER_NS));
        scene_expect_and_apply(&s, want[i - 1]);
    }
}

static void invalid_quotas_are_rejected(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    put_quota(&s, (struct berth_quota){.id = "b", .parent = "a"});
    struct berth_quota loop = {.id = "a", .parent = "b"};
    assert_int_equal(berth_quota_put(s.c, &loop, &s.err), -40); /* ELOOP */
    assert_non_null(strstr(s.err.text, "cannot be the parent"));
    struct berth_quota negative = {.id = "a", CORES(limits, -1)};
    assert_int_equal(berth_quota_put(s.c, &negative, &s.err), -22); /* EINVAL */
    assert_int_equal(berth_quota_remove(s.c, "a", &s.err), -2);     /* ENOENT: it is only named */
}

/* A quota that moves in the tree takes its usage along. */
static void moved_quota_takes_its_usage_along(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    (void)state;
    scene_node(&s, "n", 4000, 100);
    scene_put(&s, job("1", 2, ann));
    scene_expect_and_apply(&s, "place 1/0 n pending; place 1/1 n pending");
    struct berth_quota_use use;
    const char *const parents[] = {"group/x", "group/y", ""};
    for (size_t i = 0; i < ROWS(parents); i++) {
        put_quota(&s, (struct berth_quota){.id = "user/ann", .parent = parents[i]});
        scene_audit(&s);
        for (size_t j = 0; j < 2; j++) {
            bool there = berth_quota_use(s.c, parents[j], "cpu", &use);
            assert_int_equal(use.held, there && i == j ? 2000 : 0);
        }
    }
    scene_check(&s, berth_workload_remove(s.c, "1", &s.err));
    scene_audit(&s);
    assert_true(berth_quota_use(s.c, "user/ann", "jobs", &use));
    assert_int_equal(use.held, 0); /* a removed workload has no quotas, though its instances still stop */
    assert_int_equal(use.asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_holds_at_every_level),
        cmocka_unit_test(stopping_pods_count_against_limits),
        cmocka_unit_test(job_limit_counts_jobs_not_pods),
        cmocka_unit_test(totals_count_expected_usage),
        cmocka_unit_test(guaranteed_comes_before_borrowed),
        cmocka_unit_test(weighted_guarantees_follow_weights),
        cmocka_unit_test(instances_of_one_ordinal_count_in_order_of_their_ids),
        cmocka_unit_test(gang_is_guaranteed_as_a_whole),
        cmocka_unit_test(spare_pods_come_last),
        cmocka_unit_test(spare_pods_wait_for_the_minimum),
        cmocka_unit_test(spare_pods_follow_a_gang_placed_in_a_later_round),
        cmocka_unit_test(strict_order_blocks_later_jobs),
        cmocka_unit_test(max_wait_overrides_queue_priority),
        cmocka_unit_test(time_limit_stops_pods),
        cmocka_unit_test(time_limit_sets_next_recheck),
        cmocka_unit_test(invalid_quotas_are_rejected),
        cmocka_unit_test(moved_quota_takes_its_usage_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
