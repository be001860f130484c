/* properties_check.c - the same as properties_test.c, on many more random clusters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "properties.h"

static void every_cluster_has_the_properties(void **state)
{
    (void)state;
    assert_int_equal(seeds_check(1000000, 14000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cluster_has_the_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
