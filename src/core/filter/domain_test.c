/* domain_test.c - the required domains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void a_listed_domain_is_needed(void **state)
{
    (void)state;
    static const struct {
        const char *label, *has, *asked[2];
        size_t asked_len;
        uint64_t want;
    } rows[] = {
        {"anywhere",         "blue", {NULL},            0, 0},
        {"anywhere, none",   NULL,   {NULL},            0, 0},
        {"this one",         "blue", {"blue"},          1, 0},
        {"the second",       "blue", {"green", "blue"}, 2, 0},
        {"another",          "blue", {"green"},         1, 1},
        {"node is in none",  NULL,   {"blue"},          1, 1},
        {"part of the name", "blue", {"blu", "blues"},  2, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1", .domain = rows[i].has});
        kit_workload(&k, "web", 1, &(struct berth_shape){.domains = rows[i].asked, .domains_len = rows[i].asked_len});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "domain", "", rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listed_domain_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
