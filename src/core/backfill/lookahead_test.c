/* lookahead_test.c - start estimates that reservations cannot make: headroom, preemption, quotas, ports; and which
 * estimates are guesses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/backfill/lookahead.h"
#include "core/scene/scene_test.h"

#define SECOND_NS SCENE_SECOND_NS
#define MINUTE_NS (60 * SECOND_NS)
#define STOP_NS (10 * SECOND_NS)

/* A job of one pod. `stated`: its user has stated the run time. */
static struct berth_workload job(const char *id, int64_t runs_ns, bool stated)
{
    static const struct berth_amount needs[] = {
        {"cpu",    500},
        {"memory", 100}
    };
    return (struct berth_workload){
        .id = id,
        .kind = BERTH_JOB,
        .replicas = 1,
        .shape = {.requests = needs, .requests_len = 2},
        .estimate_ns = runs_ns,
        .predicted = runs_ns && !stated
    };
}

static struct scene stage(void)
{
    struct scene s = scene_with_nodes(1);
    s.policy = berth_policy_usual();
    return s;
}

/* Adds a workload with an instance that has been running for since_ns. */
static void runs(struct scene *s, struct berth_workload w, int64_t since_ns)
{
    scene_put(s, w);
    scene_instance(
        s, (struct berth_instance){
               .workload = w.id, .node = "a", .state = BERTH_RUNNING, .ready = true, .since_ns = s->now_ns - since_ns});
}

static struct lookahead look(struct scene *s)
{
    const struct lookahead_bounds bounds = {.plans_max = 1000, .stop_ns = STOP_NS};
    struct lookahead l;
    struct berth_cluster *copy = cluster_copy(s->c);
    scene_plan(s);
    uint64_t before = berth_plan_hash(s->p);
    lookahead_run(copy, &s->policy, s->now_ns, s->seed, &bounds, &l);
    scene_check(s, berth_audit(copy, &s->err));
    berth_cluster_free(copy);
    assert_true(l.complete);
    scene_audit(s); /* the cluster is unchanged */
    scene_plan(s);
    assert_true(berth_plan_hash(s->p) == before);
    return l;
}

/* Expects the workload to start after in_ns. `unforeseen`: a single plan predicts no start, or a later one. */
static void expect(struct scene *s, const char *id, int64_t in_ns, bool guess, bool not_predicted)
{
    struct lookahead l = look(s);
    const struct start_estimate *e = lookahead_find(&l, id);
    if (!e)
        fail_msg("no start of %s was found in %zu plans", id, l.plans);
    if (e->start_ns - s->now_ns != in_ns)
        fail_msg("%s starts in %.0f s, expected %.0f s", id, (double)(e->start_ns - s->now_ns) / 1e9,
                 (double)in_ns / 1e9);
    assert_int_equal(e->guess, guess);
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++)
        if (not_predicted && strcmp(berth_plan_pending_name(s->p, i), id) == 0) {
            int64_t reserved = berth_plan_queue_position(s->p, i).start_ns;
            assert_true(reserved == 0 || reserved > e->start_ns);
        }
    lookahead_done(&l);
}

static void start_estimate_counts_headroom(void **state)
{
    static const struct berth_headroom_amount keep = {.resource = "cpu", .amount = 400, .domain = "lab"};
    struct scene s = scene_new();
    (void)state;
    s.policy = berth_policy_usual();
    s.policy.headroom = (struct berth_headroom){.reserves = &keep, .reserves_len = 1, .priority = 100};
    scene_put_node(&s, (struct berth_node){.id = "a", .domain = "lab", HAS(1000, 1000)});
    struct berth_workload first = job("first", 10 * MINUTE_NS, true);
    first.shape.requests = (const struct berth_amount[]){
        {"cpu", 300}
    };
    first.shape.requests_len = 1;
    runs(&s, first, 0);
    scene_put(&s, job("second", MINUTE_NS, true));
    expect(&s, "second", 10 * MINUTE_NS, false, true);
    scene_cleanup(&s);
}

/* A pod that has not yet run for its minimum of a minute is preempted when it has. */
static void start_estimate_counts_preemption(void **state)
{
    struct scene s = stage();
    (void)state;
    struct berth_workload low = job("low", 30 * MINUTE_NS, true), high = job("high", MINUTE_NS, true);
    low.replicas = 2;
    high.priority = 10;
    runs(&s, low, 20 * SECOND_NS);
    scene_instance(&s, (struct berth_instance){.workload = "low",
                                               .ordinal = 1,
                                               .node = "a",
                                               .state = BERTH_RUNNING,
                                               .ready = true,
                                               .since_ns = s.now_ns - 20 * SECOND_NS});
    scene_put(&s, high);
    expect(&s, "high", 40 * SECOND_NS + STOP_NS, false, true);
    scene_cleanup(&s);
}

static void start_estimate_counts_quotas(void **state)
{
    static const struct berth_amount limit = {"cpu", 500};
    static const char *const user = "user/ann";
    struct scene s = stage();
    (void)state;
    scene_check(&s, berth_quota_put(s.c, &(struct berth_quota){.id = user, .limits = &limit, .limits_len = 1}, &s.err));
    const char *const names[] = {"first", "second", "third"};
    for (size_t i = 0; i < ROWS(names); i++) {
        struct berth_workload w = job(names[i], 5 * MINUTE_NS, true);
        w.quotas = &user;
        w.quotas_len = 1;
        w.created_ns = (int64_t)i + 1;
        if (i == 0)
            runs(&s, w, MINUTE_NS);
        else
            scene_put(&s, w);
    }
    expect(&s, "second", 4 * MINUTE_NS, false, true);
    expect(&s, "third", 9 * MINUTE_NS, false, true);
    scene_cleanup(&s);
}

static void start_estimate_counts_ports(void **state)
{
    static const struct berth_port port = {.port = 80};
    struct scene s = stage();
    (void)state;
    struct berth_workload first = job("first", 5 * MINUTE_NS, true), second = job("second", MINUTE_NS, true);
    first.shape.ports = second.shape.ports = &port;
    first.shape.ports_len = second.shape.ports_len = 1;
    runs(&s, first, 0);
    scene_put(&s, second);
    expect(&s, "second", 5 * MINUTE_NS, false, true);
    scene_cleanup(&s);
}

/* The reservation gives the same start where it can. */
static void start_estimate_follows_run_times(void **state)
{
    static const struct {
        const char *label;
        int64_t estimate, limit, ran; /* minutes */
        bool stated, guess;
        int64_t starts;
    } rows[] = {
        {"stated",              10, 0,  2,  true,  false, 8 },
        {"a limit",             0,  10, 2,  true,  false, 8 },
        {"predicted",           10, 0,  2,  false, true,  8 },
        {"nothing is known",    0,  0,  2,  true,  true,  58},
        {"outrun",              10, 0,  12, true,  true,  8 },
        {"outrun to its limit", 10, 15, 12, true,  false, 3 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage();
        struct berth_workload first = job("first", rows[i].estimate * MINUTE_NS, rows[i].stated);
        print_message("%s\n", rows[i].label);
        first.limit_ns = rows[i].limit * MINUTE_NS;
        first.shape = (struct berth_shape){NEEDS(1000, 100)};
        runs(&s, first, rows[i].ran * MINUTE_NS);
        scene_put(&s, job("second", MINUTE_NS, true));
        expect(&s, "second", rows[i].starts * MINUTE_NS, rows[i].guess, false);
        scene_cleanup(&s);
    }
}

/* A start that follows from a guess is a guess. */
static void start_after_a_guess_is_a_guess(void **state)
{
    struct scene s = stage();
    (void)state;
    const char *const names[] = {"first", "second", "third"};
    for (size_t i = 0; i < ROWS(names); i++) {
        struct berth_workload w = job(names[i], 10 * MINUTE_NS, i > 0);
        w.shape = (struct berth_shape){NEEDS(1000, 100)};
        w.created_ns = (int64_t)i + 1;
        if (i == 0)
            runs(&s, w, 0);
        else
            scene_put(&s, w);
    }
    expect(&s, "third", 20 * MINUTE_NS, true, false);
    scene_cleanup(&s);
}

/* A workload that waits for two others is resumed by the last of them. */
static void suspended_workload_resumes_after_its_last_wait(void **state)
{
    static const struct lookahead_wait waits[] = {
        {"later", "first",  false},
        {"later", "second", true },
        {"never", "large",  false},
    };
    struct scene s = stage();
    (void)state;
    struct berth_workload first = job("first", 10 * MINUTE_NS, true), second = job("second", MINUTE_NS, true);
    first.shape = second.shape = (struct berth_shape){NEEDS(1000, 100)};
    second.predicted = true;
    runs(&s, first, 0);
    scene_put(&s, second);
    struct berth_workload later = job("later", MINUTE_NS, true), never = later, large = later;
    later.suspended = never.suspended = true;
    never.id = "never";
    large.id = "large";
    large.shape = (struct berth_shape){NEEDS(5000, 100)};
    scene_put(&s, later);
    scene_put(&s, never);
    scene_put(&s, large);
    const struct lookahead_bounds bounds = {
        .plans_max = 1000, .stop_ns = STOP_NS, .waits = waits, .waits_len = ROWS(waits)};
    struct berth_cluster *copy = cluster_copy(s.c);
    struct lookahead l;
    lookahead_run(copy, &s.policy, s.now_ns, 0, &bounds, &l);
    const struct start_estimate *e = lookahead_find(&l, "later");
    assert_non_null(e);
    assert_true(e->start_ns == s.now_ns + 11 * MINUTE_NS && e->guess); /* `second` has to end as well, for room */
    assert_null(lookahead_find(&l, "never"));
    scene_check(&s, berth_audit(copy, &s.err));
    berth_cluster_free(copy);
    lookahead_done(&l);
    scene_cleanup(&s);
}

static void gang_estimate_counts_its_nodes(void **state)
{
    struct scene s = scene_with_nodes(2);
    (void)state;
    s.policy = berth_policy_usual();
    struct berth_workload gang = job("gang", MINUTE_NS, true);
    gang.replicas = gang.gang_min = 2;
    gang.gang = "gang";
    gang.shape = (struct berth_shape){NEEDS(800, 100)};
    runs(&s, job("first", 7 * MINUTE_NS, true), 0);
    scene_put(&s, gang);
    struct lookahead l = look(&s);
    const struct start_estimate *e = lookahead_find(&l, "gang");
    assert_non_null(e);
    assert_true(e->start_ns == s.now_ns + 7 * MINUTE_NS && e->end_ns == s.now_ns + 8 * MINUTE_NS);
    assert_int_equal(e->nodes, 2);
    lookahead_done(&l);
    scene_cleanup(&s);
}

/* The lookahead ends, and gives no estimate for a workload that never starts. */
static void workload_that_never_starts_has_no_estimate(void **state)
{
    struct scene s = stage();
    (void)state;
    struct berth_workload large = job("large", MINUTE_NS, true);
    large.shape = (struct berth_shape){NEEDS(5000, 100)};
    runs(&s, job("first", 10 * MINUTE_NS, true), 0);
    scene_put(&s, large);
    struct lookahead l = look(&s);
    assert_null(lookahead_find(&l, "large"));
    assert_null(lookahead_find(&l, "first"));
    lookahead_done(&l);
    scene_cleanup(&s);
}

/* The lookahead ends at the start of its subject. */
static void lookahead_ends_when_subject_starts(void **state)
{
    struct scene s = stage();
    struct lookahead l;
    (void)state;
    const char *const names[] = {"first", "second", "third", "fourth"};
    for (size_t i = 0; i < ROWS(names); i++) {
        struct berth_workload w = job(names[i], 10 * MINUTE_NS, true);
        w.shape = (struct berth_shape){NEEDS(1000, 100)};
        w.created_ns = (int64_t)i + 1;
        if (i == 0)
            runs(&s, w, 0);
        else
            scene_put(&s, w);
    }
    const struct lookahead_bounds bounds = {.plans_max = 1000, .stop_ns = STOP_NS, .subject = "third"};
    struct berth_cluster *copy = cluster_copy(s.c);
    lookahead_run(copy, &s.policy, s.now_ns, 0, &bounds, &l);
    assert_true(l.complete && l.until_ns == s.now_ns + 20 * MINUTE_NS);
    assert_true(lookahead_find(&l, "third")->start_ns == l.until_ns);
    assert_null(lookahead_find(&l, "fourth"));
    berth_cluster_free(copy);
    lookahead_done(&l);
    scene_cleanup(&s);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void lookahead_bounds_are_kept(void **state)
{
    struct scene s = stage();
    struct lookahead l;
    (void)state;
    struct berth_workload first = job("first", 10 * MINUTE_NS, true);
    first.shape = (struct berth_shape){NEEDS(1000, 100)};
    runs(&s, first, 0);
    scene_put(&s, job("second", MINUTE_NS, true));
    const struct lookahead_bounds rows[] = {
        {.plans_max = 1,      .stop_ns = STOP_NS         },
        { .plans_max = 1000, .stop_ns = STOP_NS, .horizon_ns = 5 * MINUTE_NS},
        { .plans_max = 1000, .stop_ns = STOP_NS,            .goes_on = never},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_cluster *copy = cluster_copy(s.c);
        lookahead_run(copy, &s.policy, s.now_ns, 0, &rows[i], &l);
        assert_false(l.complete && lookahead_find(&l, "second"));
        assert_true(l.plans <= rows[i].plans_max);
        berth_cluster_free(copy);
        lookahead_done(&l);
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_estimate_counts_headroom),
        cmocka_unit_test(start_estimate_counts_preemption),
        cmocka_unit_test(start_estimate_counts_quotas),
        cmocka_unit_test(start_estimate_counts_ports),
        cmocka_unit_test(start_estimate_follows_run_times),
        cmocka_unit_test(start_after_a_guess_is_a_guess),
        cmocka_unit_test(suspended_workload_resumes_after_its_last_wait),
        cmocka_unit_test(gang_estimate_counts_its_nodes),
        cmocka_unit_test(workload_that_never_starts_has_no_estimate),
        cmocka_unit_test(lookahead_ends_when_subject_starts),
        cmocka_unit_test(lookahead_bounds_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
