/* fold_test.c - equal consecutive actions become one row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/sim/fold.h"

#define PLACE(workload, ordinal, node, devices)                                                                        \
    {                                                                                                                  \
        BERTH_PLACE, BERTH_CAUSE_PENDING, workload, ordinal, node, .gpus = devices                                     \
    }
#define STOP(workload, ordinal, node)                                                                                  \
    {                                                                                                                  \
        BERTH_STOP, BERTH_CAUSE_DRAINED, workload, ordinal, node                                                       \
    }
#define ADJUST(workload, ordinal, node)                                                                                \
    {                                                                                                                  \
        BERTH_ADJUST, BERTH_CAUSE_BUSY, workload, ordinal, node, .resource = "cpu"                                     \
    }

static const struct berth_action actions[] = {
    PLACE("web", 0, "b", 3), PLACE("web", 1, "a", 0), PLACE("web", 2, "b", 6), STOP("web", 3, "b"),
    PLACE("db", 0, "b", 0),  PLACE("db", 1, "b", 0),  ADJUST("db", 0, "b"),    ADJUST("db", 1, "b"),
};

static void fold_all(struct fold *fold, enum fold_level level)
{
    fold_init(fold, level);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        fold_add(fold, &actions[i]);
    fold_end(fold);
}

struct want {
    const char *workload, *node; /* NULL: several */
    uint64_t pods, nodes, gpus;
    uint32_t ordinal;
};

static void compare(enum fold_level level, const struct want *want, size_t len)
{
    struct fold fold;

    fold_all(&fold, level);
    assert_int_equal(fold.rows.len, len);
    for (size_t i = 0; i < len; i++) {
        const struct fold_row *row = &fold.rows.at[i];
        assert_string_equal(row->first.workload, want[i].workload);
        if (want[i].node)
            assert_string_equal(row->first.node, want[i].node);
        else
            assert_null(row->first.node);
        assert_int_equal(row->pods, want[i].pods);
        assert_int_equal(row->nodes, want[i].nodes);
        assert_int_equal(row->gpus, want[i].gpus);
        assert_int_equal(fold.ordinals.at[row->ordinals_at], want[i].ordinal);
        for (size_t j = 1; j < row->pods; j++)
            assert_true(fold.ordinals.at[row->ordinals_at + j - 1] < fold.ordinals.at[row->ordinals_at + j]);
    }
    fold_done(&fold);
}

static void fold_none_keeps_every_action(void **state)
{
    struct fold fold;

    (void)state;
    fold_all(&fold, FOLD_NONE);
    assert_int_equal(fold.rows.len, sizeof actions / sizeof actions[0]);
    for (size_t i = 0; i < fold.rows.len; i++)
        assert_int_equal(fold.rows.at[i].first.ordinal, actions[i].ordinal);
    fold_done(&fold);
}

static void folds_by_node(void **state)
{
    static const struct want want[] = {
        {"web", "a", 1, 1, 0, 1},
        {"web", "b", 2, 1, 3, 0},
        {"web", "b", 1, 1, 0, 3},
        {"db",  "b", 2, 1, 0, 0},
        {"db",  "b", 1, 1, 0, 0},
        {"db",  "b", 1, 1, 0, 1},
    };

    (void)state;
    compare(FOLD_NODE, want, sizeof want / sizeof want[0]);
}

static void folds_by_workload(void **state)
{
    static const struct want want[] = {
        {"web", NULL, 3, 2, 3, 0},
        {"web", "b",  1, 1, 0, 3},
        {"db",  "b",  2, 1, 0, 0},
        {"db",  "b",  1, 1, 0, 0},
        {"db",  "b",  1, 1, 0, 1},
    };

    (void)state;
    compare(FOLD_WORKLOAD, want, sizeof want / sizeof want[0]);
}

static void empty_plan_gives_no_rows(void **state)
{
    struct fold fold;

    (void)state;
    fold_init(&fold, FOLD_NODE);
    fold_end(&fold);
    assert_int_equal(fold.rows.len, 0);
    fold_done(&fold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_none_keeps_every_action),
        cmocka_unit_test(folds_by_node),
        cmocka_unit_test(folds_by_workload),
        cmocka_unit_test(empty_plan_gives_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
