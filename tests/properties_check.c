/* properties_check.c - the same as properties_test.c, on many more random clusters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "properties.h"

static void every_cluster_has_the_properties(void **state)
{
    (void)state;
    assert_int_equal(seeds_check(1000000, 18000), 0);
}

static void where_pods_give_way_too(void **state)
{
    (void)state;
    assert_int_equal(seeds_check(CLAIMS_FROM + 1000000, 4000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cluster_has_the_properties),
        cmocka_unit_test(where_pods_give_way_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
