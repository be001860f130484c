/* task_config_test.c - the "task" member of a node's configuration. */
#include "control/node/task_config.h"

#include "base/mem.h"
#include "control/api/permit_kit_test.h"
#include "control/watch/derived.h"
#include "wire/text/document.h"

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    world_open(w);
    world_put(w, KIND_NODE, "n1", "{\"v\":1,\"id\":\"n1\",\"allocatable\":{\"cpu\":64},\"address\":\"10.0.0.1\"}");
    world_put(w, KIND_NODE, "n2", "{\"v\":1,\"id\":\"n2\",\"allocatable\":{\"cpu\":64}}");
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world_done(*state);
    mem_free(*state);
    return 0;
}

static void job_put(struct world *w, const char *id, const char *more)
{
    CLEANUP(str) struct str text = {0};

    str_addf(&text, "{\"v\":1,\"id\":%s,\"owner\":\"alice\",\"generation\":1,\"command\":[\"x\"]%s}", id, more);
    world_put(w, KIND_JOB, id, text.at);
}

static void instance_put(struct world *w, unsigned number, const char *job, unsigned ordinal, const char *node,
                         const char *state)
{
    CLEANUP(str) struct str text = {0};
    char id[24];

    str_addf(
        &text,
        "{\"v\":1,\"id\":%u,\"workload\":\"%s\",\"ordinal\":%u,\"node\":\"%s\",\"state\":\"%s\",\"of\":1,\"ready\":false}",
        number, job, ordinal, node, state);
    world_put(w, KIND_INSTANCE, str_u64(number, id), text.at);
}

/* Returns the member "task" of an instance on one line with sorted keys; "": none. Free with free(). */
static char *task_text(const struct world *w, const char *node, unsigned number)
{
    CLEANUP(str) struct str text = {0};
    const json_t *one;
    char *found = NULL;
    size_t i;

    assert_int_equal(node_config_write(w->state, node, &text), 0);
    CLEANUP(json) json_t *doc = json_loadb(text.at, text.len, 0, NULL);
    json_array_foreach(json_object_get(doc, "instances"), i,
                       one) if (json_integer_value(json_object_get(one, "id")) == number &&
                                json_object_get(one, "task")) found =
        json_dumps(json_object_get(one, "task"), JSON_COMPACT | JSON_SORT_KEYS);
    return found ? found : strdup("");
}

static void task_is(const struct world *w, const char *node, unsigned number, const char *want)
{
    char *found = task_text(w, node, number);

    assert_string_equal(found, want);
    free(found);
}

/* Checks that the cached configuration equals a newly written one. */
static void cache_is_current(const struct world *w, struct node_config *kept, const char *node)
{
    CLEANUP(str) struct str text = {0};

    assert_int_equal(node_config_write(w->state, node, &text), 0);
    node_config_update(kept, w->state, state_find(w->state, KIND_NODE, node));
    assert_string_equal(str_text(&kept->text), text.at);
}

static void single_task_has_no_member(void **state)
{
    struct world *w = *state;

    job_put(w, "17", "");
    instance_put(w, 1, "17", 0, "n1", "assigned");
    task_is(w, "n1", 1, "");
}

static void array_task_has_indices(void **state)
{
    struct world *w = *state;

    job_put(w, "17", ",\"array\":{\"from\":10,\"to\":20,\"step\":5}");
    instance_put(w, 1, "17", 2, "n1", "running");
    task_is(w, "n1", 1, "{\"first\":10,\"index\":20,\"last\":20,\"step\":5}");
}

static void independent_tasks_have_ordinal_and_size(void **state)
{
    struct world *w = *state;

    job_put(w, "17", ",\"replicas\":3");
    instance_put(w, 1, "17", 2, "n1", "assigned");
    task_is(w, "n1", 1, "{\"rank\":2,\"size\":3}");
}

static void gang_task_has_the_hosts(void **state)
{
    struct world *w = *state;

    job_put(w, "4017", ",\"replicas\":3,\"gang\":true");
    instance_put(w, 1, "4017", 0, "n2", "assigned");
    instance_put(w, 2, "4017", 1, "n1", "reserved");
    instance_put(w, 3, "4017", 2, "n2", "starting");
    task_is(w, "n2", 1,
            "{\"hosts\":[{\"address\":\"n2\",\"node\":\"n2\",\"slots\":2},{\"address\":\"10.0.0.1\",\"node\":\"n1\","
            "\"slots\":1}],\"local_rank\":0,\"node_rank\":0,\"port\":61017,\"rank\":0,\"size\":3}");
    task_is(w, "n2", 3,
            "{\"hosts\":[{\"address\":\"n2\",\"node\":\"n2\",\"slots\":2},{\"address\":\"10.0.0.1\",\"node\":\"n1\","
            "\"slots\":1}],\"local_rank\":1,\"node_rank\":0,\"port\":61017,\"rank\":2,\"size\":3}");
    /* A running task's configuration no longer contains its peers. */
    instance_put(w, 3, "4017", 2, "n2", "running");
    task_is(w, "n2", 3, "{\"rank\":2,\"size\":3}");
}

static void gang_on_one_node_uses_loopback(void **state)
{
    struct world *w = *state;

    job_put(w, "5", ",\"replicas\":2,\"gang\":true");
    instance_put(w, 1, "5", 0, "n2", "assigned");
    instance_put(w, 2, "5", 1, "n2", "assigned");
    task_is(w, "n2", 2,
            "{\"hosts\":[{\"address\":\"127.0.0.1\",\"node\":\"n2\",\"slots\":2}],\"local_rank\":1,\"node_rank\":0,"
            "\"port\":61005,\"rank\":1,\"size\":2}");
}

static void roles_of_a_set_are_one_gang(void **state)
{
    struct world *w = *state;

    job_put(w, "4", ",\"replicas\":9,\"gang\":\"other\"");
    job_put(w, "5", ",\"role\":\"driver\",\"of\":5");
    job_put(w, "6", ",\"replicas\":2,\"role\":\"worker\",\"of\":5");
    instance_put(w, 1, "5", 0, "n1", "assigned");
    instance_put(w, 2, "6", 0, "n1", "assigned");
    instance_put(w, 3, "6", 1, "n2", "assigned");
    task_is(w, "n2", 3,
            "{\"hosts\":[{\"address\":\"10.0.0.1\",\"node\":\"n1\",\"slots\":2},{\"address\":\"n2\",\"node\":\"n2\","
            "\"slots\":1}],\"local_rank\":0,\"node_rank\":1,\"port\":61005,\"rank\":2,\"role\":\"worker\",\"size\":3}");
}

static void elastic_gang_counts_existing_tasks(void **state)
{
    struct world *w = *state;

    job_put(w, "5", ",\"replicas\":8,\"gang\":true,\"gang_min\":2");
    instance_put(w, 1, "5", 0, "n1", "assigned");
    instance_put(w, 2, "5", 3, "n1", "assigned");
    task_is(w, "n1", 2,
            "{\"hosts\":[{\"address\":\"127.0.0.1\",\"node\":\"n1\",\"slots\":2}],\"local_rank\":1,\"node_rank\":0,"
            "\"port\":61005,\"rank\":1,\"size\":2}");
}

static void cached_config_follows_peers(void **state)
{
    struct world *w = *state;
    struct node_config kept = {0};

    job_put(w, "5", ",\"role\":\"driver\",\"of\":5");
    job_put(w, "6", ",\"replicas\":2,\"role\":\"worker\",\"of\":5");
    instance_put(w, 1, "5", 0, "n1", "assigned");
    cache_is_current(w, &kept, "n1");
    instance_put(w, 2, "6", 0, "n2", "assigned"); /* on another node and of another job */
    cache_is_current(w, &kept, "n1");
    assert_non_null(strstr(kept.text.at, "\"n2\""));
    instance_put(w, 3, "6", 1, "n2", "assigned");
    cache_is_current(w, &kept, "n1");
    instance_put(w, 1, "5", 0, "n1", "running");
    cache_is_current(w, &kept, "n1");
    assert_null(strstr(kept.text.at, "\"n2\""));
    uint64_t before = kept.mark;
    instance_put(w, 4, "6", 0, "n2", "assigned"); /* a peer is retried: the configuration of running tasks stays */
    cache_is_current(w, &kept, "n1");
    assert_int_equal(kept.mark, before);
    node_config_done(&kept);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(single_task_has_no_member),
        CASE(array_task_has_indices),
        CASE(independent_tasks_have_ordinal_and_size),
        CASE(gang_task_has_the_hosts),
        CASE(gang_on_one_node_uses_loopback),
        CASE(roles_of_a_set_are_one_gang),
        CASE(elastic_gang_counts_existing_tasks),
        CASE(cached_config_follows_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
