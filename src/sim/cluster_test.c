/* cluster_test.c - a few whole clusters under a seed; the same seed twice; and judges that notice what is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/cluster.h"

#define HOURS 0.25

static void nothing_breaks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sim_options options = {.seed = seed, .hours = HOURS};
        struct sim_result result = {0};
        struct berth_err err = {0};
        if (sim_cluster_run(&options, &result, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(result.invariant, 0);
        assert_true(result.events > 100 && result.checks > 100);
        assert_true(result.plans > 0 && result.replayed > 0 && result.placements > 0);
    }
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    struct sim_options options = {.seed = 42, .hours = HOURS};
    struct sim_result first = {0}, second = {0}, other = {0};
    assert_int_equal(sim_cluster_run(&options, &first, NULL), 0);
    assert_int_equal(sim_cluster_run(&options, &second, NULL), 0);
    assert_memory_equal(&first, &second, sizeof first);
    options.seed = 43;
    assert_int_equal(sim_cluster_run(&options, &other, NULL), 0);
    assert_int_not_equal(first.hash, other.hash);
}

/* ---- sabotage ------------------------------------------------------------------------------------------------------ */

static bool lose_a_line(void *ctx, const char *line, size_t len)
{
    unsigned *told = ctx;
    (void)line;
    (void)len;
    return ++*told != 20;
}

static void a_lost_event_of_a_watch_is_noticed(void **state)
{
    (void)state;
    unsigned told = 0;
    struct sim_sabotage sabotage = {.ctx = &told, .watched = lose_a_line};
    struct sim_options options = {.seed = 1, .hours = HOURS, .sabotage = &sabotage};
    struct sim_result result = {0};
    struct berth_err err = {0};
    assert_int_equal(sim_cluster_run(&options, &result, &err), -EBADMSG);
    assert_int_equal(result.invariant, 28);
    assert_non_null(strstr(err.text, "seed 1"));
}

/* Somebody writes past the daemon: an instance that no plan has placed, on a node that may not even take it. */
static void write_past(void *ctx, struct store *store, uint64_t event)
{
    static const char doc[] =
        "{\"v\":1,\"id\":900000,\"workload\":\"ghost\",\"ordinal\":0,\"node\":\"nowhere\",\"state\":"
        "\"running\",\"of\":1}";
    struct store_op op = {
        .key = "instances/900000", .value = {doc, sizeof doc - 1}
    };
    struct store_txn txn = {.ops = &op, .ops_len = 1};
    (void)ctx;
    if (event == 200) {
        (void)store_submit(store, &txn, NULL, NULL, NULL);
        (void)store_pump(store);
    }
}

static void what_is_written_past_the_daemon_is_noticed(void **state)
{
    (void)state;
    struct sim_sabotage sabotage = {.after_event = write_past};
    struct sim_options options = {.seed = 2, .hours = HOURS, .sabotage = &sabotage};
    struct sim_result result = {0};
    struct berth_err err = {0};
    assert_int_equal(sim_cluster_run(&options, &result, &err), -EBADMSG);
    assert_true(result.invariant > 0);
}

/* A crash that loses everything: what was acknowledged is gone. */
static struct store *lose_all(void *ctx, struct store *store)
{
    (void)ctx;
    store_close(store);
    return store_memory_new();
}

static void acknowledged_work_that_is_lost_is_noticed(void **state)
{
    (void)state;
    struct sim_sabotage sabotage = {.crashed = lose_all};
    struct sim_options options = {.seed = 3, .hours = 2, .rates = {.faults = 400}, .sabotage = &sabotage};
    struct sim_result result = {0};
    struct berth_err err = {0};
    assert_int_equal(sim_cluster_run(&options, &result, &err), -EBADMSG);
    assert_int_equal(result.invariant, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_breaks),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(a_lost_event_of_a_watch_is_noticed),
        cmocka_unit_test(what_is_written_past_the_daemon_is_noticed),
        cmocka_unit_test(acknowledged_work_that_is_lost_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
