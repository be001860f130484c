/* cumulative_use_test.c - consumption of cumulative resources, summed per node until the period ends. */
#include "control/api/kit_test.h"
#include "control/watch/derived.h"

#define N1 "node:n1"
#define DAY_NS (INT64_C(86400) * 1000000000)

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    CALL(k, 201, ADMIN, "POST", "/v1/resources", "{name: traffic, kind: cumulative, period: 30d}");
    CALL(k, 201, ADMIN, "POST", "/v1/resources", "{name: charge, kind: cumulative, period: 90d}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi, traffic: 100G, charge: 50}}");
    CALL(
        k, 201, ADMIN, "POST", "/v1/apps",
        "{name: web, replicas: 2, requests: {cpu: 1}, limits: {traffic: 10G, charge: 9, wear: 9, traffic-throttle: 5G}}");
    kit_plan(k);
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static void use(struct kit *k, int seq, const char *items)
{
    char body[512];
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [%s]}", seq, items);
    CALL(k, 200, N1, "POST", "/v1/nodes/n1/report", body);
}

static void consumed_is(struct kit *k, const char *traffic, const char *charge)
{
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_at(k, "consumed/traffic") ? kit_text(k, "consumed/traffic") : "", traffic);
    assert_string_equal(kit_at(k, "consumed/charge") ? kit_text(k, "consumed/charge") : "", charge);
    assert_null(kit_at(k, "consumed/cpu"));
    assert_null(kit_at(k, "consumed/wear"));
}

static void use_is_summed(void **state)
{
    struct kit *k = *state;
    use(k, 1, "{id: 1, state: running}, {id: 2, state: running}");
    consumed_is(k, "", "");
    use(k, 2, "{id: 1, state: running, usage: {traffic: 1G, cpu: 1, wear: 5}}");
    consumed_is(k, "1G", "");
    use(k, 3, "{id: 1, state: running, usage: {traffic: 3G}}, {id: 2, state: running, usage: {traffic: 2G}}");
    consumed_is(k, "5G", "");
    use(k, 4, "{id: 1, state: running, usage: {traffic: 3001M}}"); /* hardly more: recorded later */
    consumed_is(k, "5G", "");
    use(k, 5, "{id: 1, state: running, usage: {traffic: 1G}}"); /* the counter was reset */
    consumed_is(k, "6G", "");
    use(k, 6, "{id: 2, state: failed, error: x, usage: {traffic: 4G}}"); /* last report of an ended instance */
    consumed_is(k, "8G", "");
    kit_restart(k);
    use(k, 7, "{id: 1, state: running, usage: {traffic: 2G, charge: 3}}");
    consumed_is(k, "9G", "3");
}

static void sum_restarts_with_each_period(void **state)
{
    struct kit *k = *state;
    use(k, 1, "{id: 1, state: running, usage: {traffic: 8G, charge: 3}}");
    consumed_is(k, "8G", "3");
    k->now_ns += 29 * DAY_NS;
    use(k, 2, "{id: 1, state: running, usage: {traffic: 16G}}");
    consumed_is(k, "16G", "3");
    k->now_ns += 2 * DAY_NS;
    use(k, 3, "{id: 1, state: running, usage: {traffic: 20G}}");
    consumed_is(k, "4G", "3"); /* the resource with the longer period keeps its sum */
    k->now_ns += 29 * DAY_NS;
    use(k, 4, "{id: 1, state: running, usage: {traffic: 30G}}");
    consumed_is(k, "14G", "3");
    /* 91 days: the longer period has ended, too, although the shorter one began again meanwhile */
    k->now_ns += 31 * DAY_NS;
    use(k, 5, "{id: 1, state: running, usage: {traffic: 40G, charge: 5}}");
    consumed_is(k, "10G", "2");
}

/* Consumption is kept, and a full period follows. */
static void clock_set_back_restarts_the_period(void **state)
{
    struct kit *k = *state;
    k->now_ns += 400 * DAY_NS;
    use(k, 1, "{id: 1, state: running, usage: {traffic: 8G}}");
    k->now_ns -= 300 * DAY_NS;
    kit_restart(k); /* while the daemon runs its time never goes back */
    use(k, 2, "{id: 1, state: running, usage: {traffic: 16G}}");
    consumed_is(k, "16G", "");
    k->now_ns += 29 * DAY_NS;
    use(k, 3, "{id: 1, state: running, usage: {traffic: 20G}}");
    consumed_is(k, "20G", "");
    k->now_ns += 2 * DAY_NS;
    use(k, 4, "{id: 1, state: running, usage: {traffic: 30G}}");
    consumed_is(k, "10G", "");
}

static int64_t period_told(const struct kit *k, const char *resource)
{
    const struct state *s = control_state(k->control);
    struct node_config config = {0};
    node_config_update(&config, s, state_find(s, KIND_NODE, "n1"));
    json_t *doc = json_loads(config.text.at, 0, NULL), *first = json_array_get(json_object_get(doc, "instances"), 0);
    const json_t *limit = json_object_get(json_object_get(first, "limits"), resource);
    assert_non_null(limit);
    int64_t period_ns = json_integer_value(json_object_get(limit, "period_ns"));
    json_decref(doc);
    node_config_done(&config);
    return period_ns;
}

static void node_config_has_the_period(void **state)
{
    struct kit *k = *state;
    const struct state *s = control_state(k->control);
    struct node_config kept = {0};
    node_config_update(&kept, s, state_find(s, KIND_NODE, "n1"));
    assert_int_equal(period_told(k, "traffic"), 30 * DAY_NS);
    assert_int_equal(period_told(k, "traffic-throttle"), 30 * DAY_NS);
    assert_int_equal(period_told(k, "wear"), 0);
    CALL(k, 200, ADMIN, "PATCH", "/v1/resources/traffic", "{period: 7d}");
    node_config_update(&kept, s, state_find(s, KIND_NODE, "n1"));
    assert_non_null(strstr(kept.text.at, "\"period_ns\":604800000000000"));
    node_config_done(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(use_is_summed, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(sum_restarts_with_each_period, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(clock_set_back_restarts_the_period, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(node_config_has_the_period, open_kit, close_kit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
