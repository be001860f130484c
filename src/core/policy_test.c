/* policy_test.c - what a policy may say of what waits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/policy.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define SECOND_NS ((int64_t)1000000000)

static void the_usual_policy_is_valid(void **state)
{
    (void)state;
    struct berth_policy usual = berth_policy_usual();
    assert_int_equal(policy_check(&usual, NULL), 0);
    assert_int_equal(usual.backfill.reservations, 100);
    assert_true(usual.preemption.on);
    assert_int_equal(usual.preemption.min_run_ns, 60 * SECOND_NS);
    assert_int_equal(policy_check(&(struct berth_policy){0}, NULL), 0);
}

static void what_is_out_of_range_is_refused(void **state)
{
    static const char *const nameless[] = {""}, *const named[] = {"a"};
    static const struct berth_expr expr = {.key = ""};
    static const struct berth_term term = {.exprs = &expr, .exprs_len = 1};
    static const struct berth_window windows[65] = {
        {.id = "w", .start_ns = 1, .end_ns = 2, .nodes = named, .nodes_len = 1}
    };
    static const struct {
        const char *says;
        struct berth_backfill backfill;
        struct berth_preemption preemption;
        struct berth_window window;
        size_t windows;
    } rows[] = {
        {"reservations",                   .backfill = {.reservations = 100001}  },
        {                                                                     "estimate", .backfill = {.estimate_ns = -1}                                      },
        {                                                 "before a preemption",                                .preemption = {.min_run_ns = -1}                                                },
        {                                                 "more than 64 windows",        .windows = 65                        },
        {                                  "a window without a name",          .windows = 1,                           .window = {.id = "", .end_ns = 1}},
        {                   "ends before it begins",          .windows = 1,                            .window = {.id = "w", .start_ns = 5, .end_ns = 5}},
        { "a node without a name",         .windows = 1,                           .window = {.id = "w", .end_ns = 1, .nodes = nameless, .nodes_len = 1}},
        {                                                                        "a quota without a name",         .windows = 1,
         .window = {.id = "w", .end_ns = 1, .quotas = nameless, .quotas_len = 1}},
        {                                                                         "a label without a name",       .windows = 1,
         .window = {.id = "w", .end_ns = 1, .require = &term, .require_len = 1}},
        {                                                                          "a list of more than 1024",                                 .windows = 1,
         .window = {.id = "w", .end_ns = 1, .nodes = named, .nodes_len = 1025}},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct berth_err err = {0};
        struct berth_policy p = {.backfill = rows[i].backfill,
                                 .preemption = rows[i].preemption,
                                 .windows = rows[i].windows == 1 ? &rows[i].window : windows,
                                 .windows_len = rows[i].windows};
        assert_int_equal(policy_check(&p, &err), -EINVAL);
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].says);
    }
    struct berth_policy one = {.windows = windows, .windows_len = 1};
    assert_int_equal(policy_check(&one, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_policy_is_valid),
        cmocka_unit_test(what_is_out_of_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
