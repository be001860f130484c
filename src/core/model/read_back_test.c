/* read_back_test.c - reading a cluster: capacities of nodes and held amounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "berth.h"

static struct berth_cluster *cluster_of_one(void)
{
    static const struct berth_amount there[] = {
        {"cpu",    8000},
        {"memory", 4096}
    };
    static const struct berth_amount twice[] = {
        {"cpu", 2000}
    };
    static const struct berth_gpu gpus[] = {
        {"a", 1},
        {"a", 1}
    };
    static const struct berth_amount asked[] = {
        {"cpu", 1500}
    };
    struct berth_cluster *c = berth_cluster_new();
    struct berth_node node = {.id = "n",
                              .allocatable = there,
                              .allocatable_len = 2,
                              .overcommit = twice,
                              .overcommit_len = 1,
                              .gpus = gpus,
                              .gpus_len = 2};
    struct berth_workload work = {
        .id = "w",
        .kind = BERTH_JOB,
        .replicas = 3,
        .shape = {.requests = asked, .requests_len = 1, .gpu = {.count = 1, .milli = 250}}
    };
    assert_int_equal(berth_node_put(c, &node, NULL), 0);
    assert_int_equal(berth_workload_put(c, &work, NULL), 0);
    return c;
}

static void put(struct berth_cluster *c, uint64_t id, enum berth_state state)
{
    struct berth_instance i = {
        .id = id, .workload = "w", .ordinal = (uint32_t)id - 1, .node = "n", .state = state, .gpus = 2};
    assert_int_equal(berth_instance_put(c, &i, NULL), 0);
}

static void use_of_nodes_is_read_back(void **state)
{
    static const struct {
        const char *resource;
        int64_t there, held;
    } rows[] = {
        {"cpu",     8000, 3000}, /* without over-commit; stopping instances hold resources, ended ones do not */
        {"memory",  4096, 0   },
        {"gpu",     2000, 500 },
        {"nothing", 0,    0   },
    };
    struct berth_cluster *c = cluster_of_one();
    struct berth_node_use use;
    (void)state;
    put(c, 1, BERTH_RUNNING);
    put(c, 2, BERTH_STOPPING);
    put(c, 3, BERTH_ENDED);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(berth_node_use(c, "n", rows[i].resource, &use));
        assert_int_equal(use.there, rows[i].there);
        assert_int_equal(use.held, rows[i].held);
    }
    assert_false(berth_node_use(c, "m", "cpu", &use));
    berth_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_of_nodes_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
