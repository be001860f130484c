/* properties_check.c - the checks of properties_test.c on many more random clusters, within a time bound (bound.h). */
/* bed: seeds, in part */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "properties.h"

static void every_cluster_has_the_properties(void **state)
{
    (void)state;
    assert_int_equal(seeds_check_within(1000000, (struct bound){.least = 2500, .most = 18000, .seconds = 50}), 0);
}

static void clusters_with_preemption_have_the_properties(void **state)
{
    (void)state;
    const struct bound bound = {.least = 500, .most = 4000, .seconds = 20};
    assert_int_equal(seeds_check_within(PREEMPTION_SEEDS_FROM + 1000000, bound), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cluster_has_the_properties),
        cmocka_unit_test(clusters_with_preemption_have_the_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
