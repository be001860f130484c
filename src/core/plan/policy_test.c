/* policy_test.c - validation of policies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/plan/policy.h"

#define SECOND_NS ((int64_t)1000000000)

static void default_policy_is_valid(void **state)
{
    (void)state;
    struct berth_policy usual = berth_policy_usual();
    assert_int_equal(policy_check(&usual, NULL), 0);
    assert_int_equal(usual.backfill.reservations, 100);
    assert_true(usual.preemption.on);
    assert_int_equal(usual.preemption.min_run_ns, 60 * SECOND_NS);
    assert_int_equal(policy_check(&(struct berth_policy){0}, NULL), 0);
}

static void refused(struct berth_policy p, const char *says)
{
    struct berth_err err = {0};
    assert_int_equal(policy_check(&p, &err), -EINVAL);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void window_refused(struct berth_window w, const char *says)
{
    refused((struct berth_policy){.windows = &w, .windows_len = 1}, says);
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    refused((struct berth_policy){.backfill.reservations = 100001}, "100001 reservations");
    refused((struct berth_policy){.backfill.estimate_ns = -1}, "the default estimate");
    refused((struct berth_policy){.preemption.min_run_ns = -1}, "before a preemption");
    refused((struct berth_policy){.windows_len = 65}, "more than 64 windows");
}

static void invalid_windows_are_refused(void **state)
{
    static const char *const nameless[] = {""}, *const named[] = {"a"};
    static const struct berth_expr expr = {.key = ""};
    static const struct berth_term term = {.exprs = &expr, .exprs_len = 1};
    const struct berth_window good = {.id = "w", .start_ns = 1, .end_ns = 2, .nodes = named, .nodes_len = 1};
    struct berth_window w = good;
    (void)state;
    assert_int_equal(policy_check(&(struct berth_policy){.windows = &w, .windows_len = 1}, NULL), 0);
    w.id = "";
    window_refused(w, "a window without a name");
    w = good;
    w.end_ns = 1;
    window_refused(w, "ends before it begins");
    w = good;
    w.nodes = nameless;
    window_refused(w, "a node without a name");
    w = good;
    w.quotas = nameless;
    w.quotas_len = 1;
    window_refused(w, "a quota without a name");
    w = good;
    w.require = &term;
    w.require_len = 1;
    window_refused(w, "a label without a name");
    w = good;
    w.nodes_len = BERTH_LIST_MAX + 1;
    window_refused(w, "a list of more than 1024");
}

static void typical_pod_refused(struct berth_typical_pod d, const char *says)
{
    refused((struct berth_policy){.demand = &d, .demand_len = 1}, says);
}

static void invalid_typical_pods_are_refused(void **state)
{
    static const char *const nameless[] = {""};
    static const struct berth_amount less = {"cpu", -1}, none = {"", 1};
    const struct berth_typical_pod good = {
        .shape.gpu = {.count = 1, .milli = 500},
          .pods = 1
    };
    struct berth_typical_pod d = good;
    (void)state;
    assert_int_equal(policy_check(&(struct berth_policy){.demand = &d, .demand_len = 1}, NULL), 0);
    d.pods = 0;
    typical_pod_refused(d, "typical pods: 0 pods");
    d.pods = BERTH_REPLICAS_MAX + 1;
    typical_pod_refused(d, "10000001 pods");
    d = good;
    d.shape.gpu.count = 2;
    typical_pod_refused(d, "2 GPUs of 500 thousandths");
    d.shape.gpu = (struct berth_gpu_need){.count = BERTH_NODE_GPUS_MAX + 1};
    typical_pod_refused(d, "65 GPUs");
    d.shape.gpu = (struct berth_gpu_need){.count = 1, .milli = 1001};
    typical_pod_refused(d, "1001 thousandths");
    d.shape.gpu = (struct berth_gpu_need){.count = 1, .models = nameless, .models_len = 1};
    typical_pod_refused(d, "a GPU model without a name");
    d = good;
    d.shape.requests = &less;
    d.shape.requests_len = 1;
    typical_pod_refused(d, "request of cpu is out of range");
    d.shape.requests = &none;
    typical_pod_refused(d, "a resource without a name");
    d.shape.requests_len = BERTH_LIST_MAX + 1;
    typical_pod_refused(d, "a list of more than 1024");
    refused((struct berth_policy){.demand_len = BERTH_TYPICAL_PODS_MAX + 1}, "more than 65536 typical pods");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_policy_is_valid),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(invalid_typical_pods_are_refused),
        cmocka_unit_test(invalid_windows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
