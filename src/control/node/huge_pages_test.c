/* huge_pages_test.c - a limit of huge pages equals the request: other limits are rejected, and stored ones do not reach
 * agents.
 */
#include "control/job/job_kit_test.h"
#include "control/watch/derived.h"

static void equal_limits_are_accepted(void **state)
{
    struct job_kit *j = *state;
    (void)submit(j, ALICE, "{command: [x], requests: {hugepages-2Mi: 2Mi}}");
    (void)submit(j, ALICE, "{command: [x], requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 2Mi}}");
    (void)submit(j, ALICE, "{command: [x], resources: {hugepages-2Mi: 4Mi}, limits: {hugepages-2Mi: 4096Ki}}");
    CALL(&j->k, 400, ALICE, "POST", "/v1/apps",
         "{name: a, requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 28Mi}}");
    SAYS(&j->k, "a limit of huge pages must equal the request, which is 2Mi; leave the limit out");
}

/* Stored by an earlier version, which let an instance use more pages than were booked for it. */
static void stored_limit_does_not_reach_the_agent(void **state)
{
    struct job_kit *j = *state;
    struct kit *k = &j->k;
    CALL(k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{allocatable: {hugepages-2Mi: 32Mi}}");
    kit_put(k, KIND_APP, "old.alice",
            "{v: 1, id: old.alice, name: old, owner: alice, group: red, generation: 1, command: [x], "
            "requests: {cpu: 1, hugepages-2Mi: 2Mi}, limits: {cpu: 2, hugepages-2Mi: 28Mi}}");
    kit_plan(k);
    CLEANUP(str) struct str text = {0};
    assert_int_equal(node_config_write(control_state(k->control), "n1", &text), 0);
    CLEANUP(json) json_t *config = json_loadb(text.at, text.len, 0, NULL);
    const json_t *one = json_array_get(json_object_get(config, "instances"), 0);
    const json_t *requests = json_object_get(one, "requests"), *limits = json_object_get(one, "limits");
    assert_string_equal(json_string_value(json_object_get(requests, "hugepages-2Mi")), "2Mi");
    assert_non_null(json_object_get(limits, "cpu"));
    assert_null(json_object_get(limits, "hugepages-2Mi"));
    /* Other members can be changed; these amounts only to equal ones. */
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/old", "{display: Old, limits: {cpu: 3}}");
    CALL(k, 400, ALICE, "PATCH", "/v1/apps/old", "{limits: {hugepages-2Mi: 30Mi}}");
    CALL(k, 400, ALICE, "PATCH", "/v1/apps/old", "{requests: {hugepages-2Mi: 4Mi}}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/old", "{requests: {hugepages-2Mi: 4Mi}, limits: {hugepages-2Mi: 4Mi}}");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, jobs_open, jobs_close)
    const struct CMUnitTest tests[] = {
        TEST(equal_limits_are_accepted),
        TEST(stored_limit_does_not_reach_the_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
