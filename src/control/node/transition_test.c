/* transition_test.c - every entry of the tables in transition.h. */
#include "control/node/transition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void node_transitions_match_the_header(void **state)
{
    (void)state;
    /* As in the header: ready joining cordoned draining lost. */
    static const char *const rows[] = {".-yyy", "y.y-y", "y-.yy", "y-y.y", "yyyy."};
    for (unsigned from = 0; from < 5; from++)
        for (unsigned to = 0; to < 5; to++) {
            bool want = rows[from][to] != '-';
            if (node_transition_ok((enum berth_node_state)from, (enum berth_node_state)to) != want)
                fail_msg("%s to %s", berth_node_state_name((enum berth_node_state)from),
                         berth_node_state_name((enum berth_node_state)to));
        }
}

static void instance_transitions_match_the_header(void **state)
{
    (void)state;
    /* As in the header: reserved assigned starting running stopping ended. */
    static const char *const rows[] = {".y----", "-.yyyy", "--.yyy", "--y.yy", "----.y", "-----."};
    for (unsigned from = 0; from < 6; from++)
        for (unsigned to = 0; to < 6; to++) {
            bool want = rows[from][to] != '-';
            if (instance_transition_ok((enum berth_state)from, (enum berth_state)to) != want)
                fail_msg("%s to %s", berth_state_name((enum berth_state)from), berth_state_name((enum berth_state)to));
        }
}

static void node_state_names_are_found(void **state)
{
    (void)state;
    for (unsigned s = BERTH_NODE_READY; s <= BERTH_NODE_LOST; s++) {
        enum berth_node_state found = BERTH_NODE_LOST;
        assert_true(node_state_find(berth_node_state_name((enum berth_node_state)s), &found));
        assert_int_equal(found, s);
    }
    enum berth_node_state found = BERTH_NODE_DRAINING;
    assert_false(node_state_find("gone", &found));
    assert_int_equal(found, BERTH_NODE_DRAINING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_transitions_match_the_header),
        cmocka_unit_test(instance_transitions_match_the_header),
        cmocka_unit_test(node_state_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
