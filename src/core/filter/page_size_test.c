/* page_size_test.c - nodes that are restricted to one huge-page size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/scene/kit_test.h"

#define MIB ((int64_t)1 << 20)

static void other_page_size_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        int64_t held_to, small, large; /* requested bytes of 2 MiB and of 1 GiB pages */
        uint64_t want;
    } rows[] = {
        {"no pages asked for", 2 * MIB,   0,       0,       0},
        {"this size",          2 * MIB,   4 * MIB, 0,       0},
        {"another size",       2 * MIB,   0,       KIT_GIB, 1},
        {"both sizes",         2 * MIB,   2 * MIB, KIT_GIB, 1},
        {"held to none",       0,         2 * MIB, 0,       0},
        {"held to a third",    64 * 1024, 2 * MIB, 0,       1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = kit_new();
        const struct berth_amount has = {"hugepages-2Mi", 8 * MIB};
        struct berth_node n = {.id = "n1", .page_size_bytes = rows[i].held_to, .allocatable = &has};
        n.allocatable_len = rows[i].held_to == 0 || rows[i].held_to == 2 * MIB;
        const struct berth_amount asked[] = {
            {"hugepages-2Mi", rows[i].small},
            {"hugepages-1Gi", rows[i].large},
        };
        kit_node(&k, n);
        kit_workload(&k, "web", 1, &(struct berth_shape){.requests = asked, .requests_len = 2});
        kit_plan(&k, NULL);
        kit_expect(&k, rows[i].label, "page-size", "", rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_page_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
