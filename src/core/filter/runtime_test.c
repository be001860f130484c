/* runtime_test.c - the required runtime, on nodes that list theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

static void a_listed_runtime_is_needed(void **state)
{
    (void)state;
    static const struct {
        const char *label, *has[2];
        size_t has_len;
        const char *asked;
        uint64_t want;
    } rows[] = {
        {"not asked for",   {"oci"},       1, NULL,  0},
        {"has it",          {"oci"},       1, "oci", 0},
        {"has it, too",     {"oci", "vm"}, 2, "vm",  0},
        {"lacks it",        {"oci"},       1, "vm",  1},
        {"lists none: any", {NULL},        0, "vm",  0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        kit_node(&k, (struct berth_node){.id = "n1", .runtimes = rows[i].has, .runtimes_len = rows[i].has_len});
        kit_workload(&k, "web", 1, &(struct berth_shape){.runtime = rows[i].asked});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "runtime", "", rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listed_runtime_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
