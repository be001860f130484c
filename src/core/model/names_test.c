/* names_test.c - every enum value has a unique name; other values have "?". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "berth.h"

enum { WORDS_MAX = 32 };

/* Checks `name` for the first `len` values; the next value is invalid. */
static void check_names(const char *(*name)(unsigned), unsigned len)
{
    const char *seen[WORDS_MAX];
    assert_true(len <= WORDS_MAX);
    for (unsigned i = 0; i < len; i++) {
        seen[i] = name(i);
        assert_non_null(seen[i]);
        assert_true(strlen(seen[i]) > 1);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
    }
    assert_string_equal(name(len), "?");
    assert_string_equal(name(UINT32_MAX), "?");
}

static const char *op(unsigned i)
{
    return berth_op_name((enum berth_op)i);
}

static const char *cause(unsigned i)
{
    return berth_cause_name((enum berth_cause)i);
}

static const char *instance_state(unsigned i)
{
    return berth_state_name((enum berth_state)i);
}

static const char *node_state(unsigned i)
{
    return berth_node_state_name((enum berth_node_state)i);
}

static void every_value_has_a_unique_name(void **state)
{
    (void)state;
    check_names(op, BERTH_ADJUST + 1);
    check_names(cause, BERTH_CAUSE_EXPIRED + 1);
    check_names(instance_state, BERTH_ENDED + 1);
    check_names(node_state, BERTH_NODE_LOST + 1);
}

static void names_are_as_documented(void **state)
{
    (void)state;
    assert_string_equal(berth_op_name(BERTH_RESERVE), "reserve");
    assert_string_equal(berth_cause_name(BERTH_CAUSE_INFEASIBLE), "infeasible");
    assert_string_equal(berth_state_name(BERTH_STOPPING), "stopping");
    assert_string_equal(berth_node_state_name(BERTH_NODE_DRAINING), "draining");
    assert_string_equal(berth_version(), BERTH_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_unique_name),
        cmocka_unit_test(names_are_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
