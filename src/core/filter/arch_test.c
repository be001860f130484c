/* arch_test.c - the required architecture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void node_needs_the_same_architecture(void **state)
{
    (void)state;
    static const struct {
        const char *label, *has, *asked;
        uint64_t want;
    } rows[] = {
        {"not asked for", "arm64", NULL,    0},
        {"the same",      "arm64", "arm64", 0},
        {"another",       "amd64", "arm64", 1},
        {"not known",     NULL,    "arm64", 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1", .arch = rows[i].has});
        kit_workload(&k, "web", 1, &(struct berth_shape){.arch = rows[i].asked});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "arch", "", rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_needs_the_same_architecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
