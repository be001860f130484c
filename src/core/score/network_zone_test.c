/* network_zone_test.c - the zone of the data or the clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"
#include "core/score/score.h"

static void requested_zone_is_best(void **state)
{
    (void)state;
    static const struct {
        const char *label, *near;
        int32_t n1, n2, n3;
        const char *want;
    } rows[] = {
        {"this zone",        "b",  0,         SCORE_ONE, 0, "n2 n1 n3"},
        {"the first zone",   "a",  SCORE_ONE, 0,         0, "n1 n2 n3"},
        {"an unknown zone",  "c",  0,         0,         0, "n1 n2 n3"},
        {"part of its name", "bb", 0,         0,         0, "n1 n2 n3"},
        {"none asked for",   NULL, 0,         0,         0, "n1 n2 n3"}, /* a missing zone does not match, either */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1", .zone = "a"});
        kit_node(&k, (struct berth_node){.id = "n2", .zone = "b"});
        kit_node(&k, (struct berth_node){.id = "n3", .rank = 1});
        kit_workload(&k, "web", 3, &(struct berth_shape){.max_per_node = 1, .near_zone = rows[i].near});
        kit_plan(&k, "network_zone");
        print_message("%s\n", rows[i].label);
        assert_int_equal(kit_score(&k, "web", "n1"), rows[i].n1);
        assert_int_equal(kit_score(&k, "web", "n2"), rows[i].n2);
        assert_int_equal(kit_score(&k, "web", "n3"), rows[i].n3);
        assert_string_equal(kit_order(&k, "web"), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requested_zone_is_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
