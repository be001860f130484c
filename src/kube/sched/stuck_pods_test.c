/* stuck_pods_test.c - pods that cannot be deleted: retried after growing pauses, and pods that wait for them lose their
 * reservation.
 */
#include "kube/sched/stuck_pods.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"

#define SECOND_NS INT64_C(1000000000)
#define PORT "containers: [{name: c, ports: [{hostPort: 80}]}]"

struct told {
    struct scene s;
    struct stuck_pods stuck;
    uint64_t victim, waiter;
    unsigned given_back;
};

static void gives_back(void *ctx, const struct cache_pod_view *pod)
{
    struct told *t = ctx;
    assert_int_equal(pod->instance, t->waiter);
    t->given_back++;
}

/* `victim` has the port that `p` needs; `p` gets a reservation. */
static void told_begin(struct told *t)
{
    struct cache_pod_view pod;
    *t = (struct told){0};
    scene_begin(&t->s);
    t->stuck = (struct stuck_pods){.cache = t->s.p, .gives_back = gives_back, .ctx = t};
    scene_node(&t->s, "n1", "a", "");
    scene_pod(&t->s, "victim", "", "n1", PORT);
    scene_pod(&t->s, "p", "", "", PORT);
    (void)cache_cluster(t->s.p);
    assert_true(cache_pod_find(t->s.p, "default:victim", &pod));
    t->victim = pod.instance;
    cache_set_stopping(t->s.p, t->victim, true);
    t->waiter = cache_assume_pod(t->s.p, "default:p", "n1", 0, &t->victim, 1);
    assert_true(t->waiter > 0);
}

static void told_cleanup(struct told *t)
{
    stuck_pods_done(&t->stuck);
    scene_cleanup(&t->s);
}

static bool is_stopping(const struct told *t)
{
    struct cache_pod_view pod;
    return cache_pod_by_instance(t->s.p, t->victim, &pod) && pod.stopping;
}

static bool is_promised(const struct told *t)
{
    struct cache_pod_view pod;
    return cache_pod_by_instance(t->s.p, t->waiter, &pod);
}

static void reservation_is_lost_after_pause(void **state)
{
    (void)state;
    CLEANUP(told) struct told t;
    told_begin(&t);
    assert_true(stuck_pods_check(&t.stuck, 0) == INT64_MAX);
    assert_int_equal(stuck_pods_add(&t.stuck, t.victim, 0), SECOND_NS);
    assert_int_equal(stuck_pods_check(&t.stuck, SECOND_NS - 1), SECOND_NS);
    assert_true(is_stopping(&t) && is_promised(&t));
    assert_true(stuck_pods_check(&t.stuck, SECOND_NS) == INT64_MAX);
    assert_false(is_stopping(&t) || is_promised(&t));
    assert_int_equal(t.given_back, 1);
}

static void pause_doubles_with_each_failure(void **state)
{
    (void)state;
    CLEANUP(told) struct told t;
    told_begin(&t);
    for (unsigned i = 0; i < 20; i++) {
        int64_t pause_ns = i < 6 ? SECOND_NS << i : 60 * SECOND_NS;
        assert_int_equal(stuck_pods_add(&t.stuck, t.victim, 7), 7 + pause_ns);
        assert_int_equal(t.stuck.pods.len, 1);
        (void)stuck_pods_check(&t.stuck, 7 + pause_ns);
    }
}

/* The victim is deleted otherwise meanwhile, or only the answer was lost: the reservation stays. */
static void reservation_stays_if_victim_goes(void **state)
{
    (void)state;
    CLEANUP(told) struct told t;
    told_begin(&t);
    (void)stuck_pods_add(&t.stuck, t.victim, 0);
    scene_put(
        &t.s, CACHE_POD,
        "{metadata: {name: victim, namespace: default, uid: uid-victim, creationTimestamp: 100, deletionTimestamp: 200}, "
        "spec: {schedulerName: berth, nodeName: n1, " PORT "}}");
    assert_true(stuck_pods_check(&t.stuck, SECOND_NS) == INT64_MAX);
    assert_true(is_stopping(&t) && is_promised(&t));
    scene_drop(&t.s, CACHE_POD, "{metadata: {name: victim, namespace: default}}");
    assert_true(stuck_pods_check(&t.stuck, SECOND_NS) == INT64_MAX);
    assert_int_equal(t.stuck.pods.len, 0);
    assert_int_equal(t.given_back, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reservation_is_lost_after_pause),
        cmocka_unit_test(pause_doubles_with_each_failure),
        cmocka_unit_test(reservation_stays_if_victim_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
