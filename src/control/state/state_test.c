/* state_test.c - documents become objects of the state and of the cluster, and are removed again; failures change
 * nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/state/state.h"

struct bench {
    struct store *store;
    struct state *state;
    uint64_t revision;
};

static void open_empty(struct bench *b)
{
    *b = (struct bench){.store = store_memory_new()};
    assert_int_equal(state_load(b->store, &b->state, NULL), 0);
}

static void bench_cleanup(struct bench *b)
{
    state_free(b->state);
    store_close(b->store);
}

#define BENCH __attribute__((cleanup(bench_cleanup))) struct bench

static int apply_document(struct bench *b, const char *key, const char *doc, struct berth_err *err)
{
    struct store_event event = {
        .key = key,
        .value = {doc, doc ? strlen(doc) : 0},
        .gone = !doc,
        .created = b->revision + 1,
        .revision = b->revision + 1
    };
    b->revision++;
    return state_apply(b->state, &event, err);
}

static void put(struct bench *b, const char *key, const char *doc)
{
    struct berth_err err = {0};
    int rc = apply_document(b, key, doc, &err);
    if (rc != 0)
        print_error("%s: %s\n", key, err.text);
    assert_int_equal(rc, 0);
}

static void gone(struct bench *b, const char *key)
{
    assert_int_equal(apply_document(b, key, NULL, NULL), 0);
}

struct counting {
    enum berth_state state;
    size_t n;
};

static void count_state(void *ctx, const struct berth_instance_view *instance)
{
    struct counting *c = ctx;
    c->n += instance->state == c->state;
}

/* Counts the instances of web.alice in the cluster. */
static size_t instances_in(struct bench *b, enum berth_state state)
{
    struct counting c = {.state = state};
    berth_instances(state_cluster(b->state), "web.alice", count_state, &c);
    return c.n;
}

static void small_cluster(struct bench *b)
{
    put(b, "users/alice", "{\"v\":1,\"id\":\"alice\",\"role\":\"user\",\"group\":\"lab\"}");
    put(b, "nodes/n1", "{\"v\":1,\"id\":\"n1\",\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\"}}");
    put(b, "apps/web.alice",
        "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"group\":\"lab\",\"generation\":1,"
        "\"replicas\":2,\"requests\":{\"cpu\":\"1\"}}");
    put(b, "instances/1",
        "{\"v\":1,\"id\":1,\"workload\":\"web.alice\",\"ordinal\":0,\"node\":\"n1\",\"state\":\"running\",\"of\":1}");
}

/* Returns the number of instances that a plan of the state's cluster would place. */
static size_t placements(struct bench *b)
{
    struct berth_snapshot *snapshot = berth_freeze(state_cluster(b->state), 0, 0);
    struct berth_policy policy = {0};
    struct berth_plan *plan;
    size_t n = 0;
    assert_int_equal(berth_plan_make(snapshot, &policy, &plan, NULL), 0);
    for (size_t i = 0; i < berth_plan_actions(plan); i++)
        n += berth_plan_action(plan, i).op == BERTH_PLACE;
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    return n;
}

static void documents_become_objects(void **state)
{
    (void)state;
    BENCH b;
    open_empty(&b);
    small_cluster(&b);

    const struct object *web = state_find(b.state, KIND_APP, "web.alice");
    assert_non_null(web);
    assert_string_equal(web->owner, "alice");
    assert_string_equal(web->group, "lab");
    assert_int_equal(web->work->replicas, 2);
    assert_int_equal(web->work->instances_len, 1);
    const struct object *one = web->work->instances[0];
    assert_string_equal(one->owner, "alice");
    assert_int_equal(one->instance->state, BERTH_RUNNING);
    assert_ptr_equal(state_find(b.state, KIND_NODE, "n1")->node->instances[0], one);
    assert_ptr_equal(state_find_work(b.state, "web.alice"), web);
    assert_null(state_find(b.state, KIND_JOB, "web.alice"));
    assert_int_equal(state_revision(b.state), 4);
    assert_int_equal(placements(&b), 1);
    assert_int_equal(state_audit(b.state, NULL), 0);
}

static void rejected_documents_change_nothing(void **state)
{
    (void)state;
    BENCH b;
    struct berth_err err;
    static const char *const rows[][2] = {
        {"apps/web.alice", "{\"v\":1,\"id\":\"web.alice\",\"replicas\":\"many\"}"                                    },
        {"apps/web.alice", "not json"                                                                                },
        {"apps/web.alice", "[]"                                                                                      },
        {"nodes/n1",       "{\"v\":1,\"id\":\"n1\",\"allocatable\":{\"cpu\":-1}}"                                    },
        {"instances/2",    "{\"v\":1,\"id\":2,\"workload\":\"web.alice\",\"node\":\"nowhere\",\"state\":\"running\"}"},
        {"things/x",       "{}"                                                                                      },
    };
    open_empty(&b);
    small_cluster(&b);
    uint64_t hash = state_hash(b.state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(apply_document(&b, rows[i][0], rows[i][1], &err) < 0);
        assert_non_null(strstr(err.text, rows[i][0]));
        assert_int_equal(state_hash(b.state), hash);
        assert_int_equal(state_audit(b.state, NULL), 0);
    }
    assert_null(state_find(b.state, KIND_INSTANCE, "2"));
    assert_int_equal(state_find(b.state, KIND_APP, "web.alice")->work->replicas, 2);
}

static void state_hash_is_independent_of_order(void **state)
{
    (void)state;
    BENCH a, b;
    struct store_event events[] = {
        {.key = "groups/x", .value = {"{\"v\":1,\"id\":\"x\"}", 16},                                .revision = 1},
        {.key = "groups/y", .value = {"{\"v\":1,\"id\":\"y\"}", 16},                                .revision = 2},
        {.key = "tokens/t", .value = {"{\"v\":1,\"id\":\"t\",\"user\":\"u\",\"hash\":\"00\"}", 40}, .revision = 3},
    };
    open_empty(&a);
    open_empty(&b);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(state_apply(a.state, &events[i], NULL), 0);
        assert_int_equal(state_apply(b.state, &events[1 - i], NULL), 0);
    }
    assert_int_equal(state_hash(a.state), state_hash(b.state));
    uint64_t hash = state_hash(a.state);
    struct store_event removed = {.key = "groups/y", .gone = true, .revision = 4};
    assert_int_equal(state_apply(a.state, &removed, NULL), 0);
    assert_int_not_equal(state_hash(a.state), hash);
    assert_int_equal(state_apply(a.state, &events[1], NULL), 0);
    assert_int_equal(state_hash(a.state), hash);
}

static void a_disabled_user_suspends_its_workloads(void **state)
{
    (void)state;
    BENCH b;
    open_empty(&b);
    small_cluster(&b);
    assert_int_equal(placements(&b), 1);
    put(&b, "users/alice", "{\"v\":1,\"id\":\"alice\",\"role\":\"user\",\"group\":\"lab\",\"disabled\":true}");
    assert_false(state_work_should_run(b.state, state_find(b.state, KIND_APP, "web.alice")));
    assert_int_equal(placements(&b), 0);
    put(&b, "users/alice", "{\"v\":1,\"id\":\"alice\",\"role\":\"user\",\"group\":\"lab\"}");
    assert_int_equal(placements(&b), 1);
    assert_int_equal(state_audit(b.state, NULL), 0);
}

static void instances_follow_their_workload_to_another_group(void **state)
{
    (void)state;
    BENCH b;
    open_empty(&b);
    small_cluster(&b);
    put(&b, "apps/web.alice",
        "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"group\":\"office\",\"generation\":1,"
        "\"replicas\":2,\"requests\":{\"cpu\":\"1\"}}");
    assert_string_equal(state_find(b.state, KIND_INSTANCE, "1")->group, "office");
    assert_string_equal(state_find(b.state, KIND_INSTANCE, "1")->owner, "alice");
}

static void gangs_are_separate_per_owner(void **state)
{
    (void)state;
    BENCH b;
    open_empty(&b);
    put(&b, "nodes/n1", "{\"v\":1,\"id\":\"n1\",\"allocatable\":{\"cpu\":\"4\"}}");
    put(&b, "jobs/1",
        "{\"v\":1,\"id\":1,\"owner\":\"alice\",\"generation\":1,\"gang\":\"g\",\"requests\":{\"cpu\":1}}");
    put(&b, "jobs/2", "{\"v\":1,\"id\":2,\"owner\":\"bob\",\"generation\":1,\"gang\":\"g\",\"requests\":{\"cpu\":9}}");
    assert_int_equal(placements(&b), 1); /* bob's job, which fits nowhere, does not delay alice's */
}

static void numbers_sort_by_value_and_are_never_reused(void **state)
{
    (void)state;
    BENCH b;
    static const unsigned order[] = {2, 10, 9, 100, 1};
    char key[32], doc[128];
    size_t len;
    open_empty(&b);
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof key, "jobs/%u", order[i]);
        (void)snprintf(doc, sizeof doc, "{\"v\":1,\"id\":%u,\"owner\":\"alice\",\"generation\":1}", order[i]);
        put(&b, key, doc);
    }
    const struct object *const *jobs = state_list(b.state, KIND_JOB, &len);
    static const char *const sorted[] = {"1", "2", "9", "10", "100"};
    assert_int_equal(len, 5);
    for (size_t i = 0; i < len; i++)
        assert_string_equal(jobs[i]->id, sorted[i]);
    gone(&b, "jobs/100");
    assert_int_equal(state_next_number(b.state, KIND_JOB), 101);
    put(&b, "counters/jobs", "{\"v\":1,\"last\":500}");
    assert_int_equal(state_next_number(b.state, KIND_JOB), 501);
    assert_int_equal(state_next_number(b.state, KIND_JOB), 502);
}

static void instances_survive_their_workload(void **state)
{
    (void)state;
    BENCH b;
    open_empty(&b);
    small_cluster(&b);
    put(&b, "specs/web.alice/1",
        "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"group\":\"lab\",\"generation\":1,"
        "\"requests\":{\"cpu\":\"1\"}}");
    gone(&b, "apps/web.alice");
    const struct object *one = state_find(b.state, KIND_INSTANCE, "1");
    assert_string_equal(one->owner, "alice");
    assert_int_equal(state_audit(b.state, NULL), 0); /* the shape comes from the spec, also after a rebuild */
    put(&b, "apps/web.alice", "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"generation\":2}");
    assert_int_equal(state_find(b.state, KIND_APP, "web.alice")->work->instances_len, 1);
    gone(&b, "instances/1");
    assert_int_equal(state_find(b.state, KIND_APP, "web.alice")->work->instances_len, 0);
    assert_int_equal(state_find(b.state, KIND_NODE, "n1")->node->instances_len, 0);
    gone(&b, "nodes/n1");
}

static void removed_node_removes_assumed_instances(void **state)
{
    (void)state;
    BENCH b;
    struct berth_instance assumed = {.id = 7, .workload = "web.alice", .ordinal = 1, .node = "n1"};
    open_empty(&b);
    small_cluster(&b);
    assumed.state = BERTH_ASSIGNED;
    assert_int_equal(state_assume(b.state, &assumed, NULL), 0);
    assert_int_equal(state_assumed(b.state), 1);
    assert_int_equal(placements(&b), 0); /* the assumed instance counts */
    gone(&b, "nodes/n1");
    state_revert(b.state, KIND_INSTANCE, "7");
    assert_int_equal(state_assumed(b.state), 0);
    gone(&b, "instances/1");
    assert_int_equal(state_audit(b.state, NULL), 0);
}

static void assumption_is_confirmed_or_reverted(void **state)
{
    (void)state;
    BENCH b;
    struct berth_instance assumed = {.id = 2, .workload = "web.alice", .ordinal = 1, .node = "n1"};
    open_empty(&b);
    small_cluster(&b);
    assumed.state = BERTH_ASSIGNED;
    assert_int_equal(state_assume(b.state, &assumed, NULL), 0);
    put(&b, "instances/2",
        "{\"v\":1,\"id\":2,\"workload\":\"web.alice\",\"ordinal\":1,\"node\":\"n1\",\"state\":\"assigned\",\"of\":1}");
    assert_int_equal(state_assumed(b.state), 0);
    assert_int_equal(state_audit(b.state, NULL), 0);

    assert_int_equal(state_assume_removed(b.state, 2, NULL), 0);
    assert_int_equal(placements(&b), 1);
    state_revert(b.state, KIND_INSTANCE, "2");
    assert_int_equal(placements(&b), 0);
    assert_int_equal(state_audit(b.state, NULL), 0);
    assert_int_equal(state_rebuild(b.state, NULL), 0);
    assert_int_equal(placements(&b), 0);
}

static void assumption_survives_concurrent_reports(void **state)
{
    (void)state;
    BENCH b;
    struct berth_instance stopping = {.id = 1, .workload = "web.alice", .node = "n1", .state = BERTH_STOPPING};
    static const char running[] = "{\"v\":1,\"id\":1,\"workload\":\"web.alice\",\"ordinal\":0,\"node\":\"n1\","
                                  "\"state\":\"running\",\"of\":1,\"seq\":7}";
    open_empty(&b);
    small_cluster(&b);
    assert_int_equal(state_assume(b.state, &stopping, NULL), 0);
    put(&b, "instances/1", running); /* a report arrives before the stop is committed */
    assert_true(state_is_assumed(b.state, KIND_INSTANCE, "1"));
    assert_int_equal(instances_in(&b, BERTH_STOPPING), 1);
    assert_int_equal(state_find(b.state, KIND_INSTANCE, "1")->instance->state, BERTH_RUNNING);
    state_revert(b.state, KIND_INSTANCE, "1");
    assert_int_equal(instances_in(&b, BERTH_RUNNING), 1);

    assert_int_equal(state_assume_removed(b.state, 1, NULL), 0);
    put(&b, "instances/1", running);
    assert_int_equal(instances_in(&b, BERTH_RUNNING), 0);
    gone(&b, "instances/1");
    assert_int_equal(state_assumed(b.state), 0);
    assert_int_equal(state_audit(b.state, NULL), 0);
}

/* A document takes a port that a plan had assigned to an assumed instance. */
static void conflicting_document_drops_assumptions(void **state)
{
    (void)state;
    BENCH b;
    struct berth_instance placed = {.id = 5, .workload = "proxy.alice", .node = "n1", .state = BERTH_ASSIGNED};
    open_empty(&b);
    small_cluster(&b);
    put(&b, "apps/proxy.alice",
        "{\"v\":1,\"id\":\"proxy.alice\",\"name\":\"proxy\",\"owner\":\"alice\",\"generation\":1,\"replicas\":2,"
        "\"ports\":[80]}");
    assert_int_equal(state_assume(b.state, &placed, NULL), 0);
    uint64_t dropped = state_assumption_losses(b.state);
    put(&b, "instances/6",
        "{\"v\":1,\"id\":6,\"workload\":\"proxy.alice\",\"ordinal\":1,\"node\":\"n1\",\"state\":\"assigned\",\"of\":1}");
    assert_int_equal(state_assumption_losses(b.state), dropped + 1);
    assert_int_equal(state_assumed(b.state), 0);
    assert_int_equal(state_audit(b.state, NULL), 0);
}

/* Writes the first action of a plan at this time, as "op cause", or "". */
static void first_action(struct bench *b, int64_t now_ns, char *to, size_t size)
{
    struct berth_snapshot *snapshot = berth_freeze(state_cluster(b->state), now_ns, 0);
    struct berth_policy policy = {0};
    struct berth_plan *plan;
    to[0] = 0;
    assert_int_equal(berth_plan_make(snapshot, &policy, &plan, NULL), 0);
    if (berth_plan_actions(plan)) {
        struct berth_action a = berth_plan_action(plan, 0);
        (void)snprintf(to, size, "%s %s", berth_op_name(a.op), berth_cause_name(a.cause));
    }
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
}

#define APP(rest) "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\"," rest "}"

static void changed_template_replaces_pods_changed_replicas_does_not(void **state)
{
    (void)state;
    BENCH b;
    char got[64];
    open_empty(&b);
    small_cluster(&b);
    static const char first[] = APP("\"generation\":1,\"replicas\":1,\"image\":\"a\"");
    put(&b, "apps/web.alice", first);
    put(&b, "apps/web.alice", APP("\"generation\":2,\"replicas\":1,\"image\":\"a\",\"priority\":3"));
    put(&b, "specs/web.alice/1", first);
    first_action(&b, 0, got, sizeof got);
    assert_string_equal(got, "");
    put(&b, "apps/web.alice", APP("\"generation\":3,\"replicas\":1,\"image\":\"b\""));
    first_action(&b, 0, got, sizeof got);
    assert_string_equal(got, "stop outdated");
    assert_int_equal(state_audit(b.state, NULL), 0); /* equal to a rebuild from the documents */
    put(&b, "apps/web.alice", APP("\"generation\":4,\"replicas\":1,\"image\":\"a\""));
    first_action(&b, 0, got, sizeof got);
    assert_string_equal(got, "");
}

static void failures_cause_back_off(void **state)
{
    (void)state;
    BENCH b;
    char got[64];
    const int64_t second = 1000000000;
    open_empty(&b);
    small_cluster(&b);
    put(&b, "facts/since/web.alice", "{\"v\":1,\"kind\":\"since\",\"key\":\"web.alice\",\"value\":2,\"at\":100}");
    first_action(&b, 119 * second, got, sizeof got);
    assert_string_equal(got, "");
    first_action(&b, 120 * second, got, sizeof got);
    assert_string_equal(got, "place pending");
    first_action(&b, 119 * second, got, sizeof got);
    assert_string_equal(got, "");
    gone(&b, "facts/since/web.alice");
    first_action(&b, 119 * second, got, sizeof got);
    assert_string_equal(got, "place pending");
    for (uint64_t n = 1; n < 100; n++)
        assert_true(pause_ns(n) > 0 && pause_ns(n) <= pause_ns(n + 1));
}

static void loaded_state_equals_live_state(void **state)
{
    (void)state;
    BENCH b;
    open_empty(&b);
    small_cluster(&b);
    struct store *store = store_memory_new();
    for (unsigned k = 0; k < KINDS; k++) {
        size_t len;
        const struct object *const *list = state_list(b.state, (enum kind)k, &len);
        for (size_t i = 0; i < len; i++) {
            char key[OBJECT_KEY_MAX];
            struct store_op op = {.key = object_key((enum kind)k, list[i]->id, key), .value = list[i]->doc};
            struct store_txn txn = {.ops = &op, .ops_len = 1};
            assert_int_equal(store_submit(store, &txn, NULL, NULL, NULL), 0);
        }
    }
    store_drain(store);
    struct state *loaded;
    assert_int_equal(state_load(store, &loaded, NULL), 0);
    assert_int_equal(state_revision(loaded), 4);
    assert_int_equal(state_find(loaded, KIND_APP, "web.alice")->work->instances_len, 1);
    assert_int_equal(state_audit(loaded, NULL), 0);
    state_free(loaded);
    store_close(store);
}

static void keep(struct store *store, const char *key, const char *text)
{
    struct store_op op = {
        .key = key, .value = {text, strlen(text)}
    };
    struct store_txn txn = {.ops = &op, .ops_len = 1};
    assert_int_equal(store_submit(store, &txn, NULL, NULL, NULL), 0);
}

/* Earlier versions stored definitions beyond the limit of names: their stores load and can be changed. */
static void a_store_with_too_many_resources_is_loaded(void **state)
{
    (void)state;
    struct store *store = store_memory_new();
    static const char doc[] = "{\"name\": \"%s\", \"kind\": \"cumulative\", \"period\": \"30d\"}";
    for (int i = 0; i < BERTH_RESOURCES_MAX + 4; i++) {
        char key[OBJECT_KEY_MAX], name[16], text[128];
        (void)snprintf(name, sizeof name, "r%d", i);
        (void)snprintf(text, sizeof text, doc, name);
        keep(store, object_key(KIND_RESOURCE, name, key), text);
    }
    store_drain(store);
    struct state *loaded;
    size_t len;
    assert_int_equal(state_load(store, &loaded, NULL), 0);
    (void)state_list(loaded, KIND_RESOURCE, &len);
    assert_int_equal(len, BERTH_RESOURCES_MAX + 4);
    assert_int_equal(state_audit(loaded, NULL), 0);
    state_free(loaded);
    store_close(store);
}

/* The same for nodes, workloads, instances, quotas and volumes: objects that name such a resource load, and workloads
 * are not placed. */
static void a_store_whose_work_names_too_many_resources_is_loaded(void **state)
{
    static const char *const docs[][2] = {
        {"jobs/1",          "{\"id\":1,\"owner\":\"alice\",\"requests\":{\"cpu\":1,%s},\"limits\":{\"more\":1}}"          },
        {"jobs/2",          "{\"id\":2,\"owner\":\"alice\",\"requests\":{\"cpu\":1}}"                                     },
        {"nodes/n1",        "{\"id\":\"n1\",\"allocatable\":{\"cpu\":4,\"pods\":9,%s,\"another\":1}}"                     },
        {"groups/lab",      "{\"id\":\"lab\",\"quota\":{\"limits\":{\"gpu\":1,\"third\":2},\"guarantees\":{\"third\":1}}}"},
        {"users/alice",     "{\"id\":\"alice\",\"role\":\"user\",\"group\":\"lab\"}"                                      },
        {"volumes/v.alice", "{\"id\":\"v.alice\",\"owner\":\"alice\",\"driver\":\"odd\"}"                                 },
        {"instances/1",     "{\"id\":1,\"workload\":1,\"node\":\"n1\",\"state\":\"running\",\"of\":1,"
                        "\"usage\":{\"fourth\":{\"used\":1}}}"                                     },
    };
    BENCH b = {.store = store_memory_new()};
    CLEANUP(str) struct str names = {0};
    (void)state;
    for (int i = 0; i < 60; i++)
        str_addf(&names, "%s\"x%d\":1", i ? "," : "", i);
    for (int i = 0; i < BERTH_RESOURCES_MAX - 40; i++) {
        char key[OBJECT_KEY_MAX], name[16], text[128];
        (void)snprintf(name, sizeof name, "r%d", i);
        (void)snprintf(text, sizeof text, "{\"name\": \"%s\", \"kind\": \"cumulative\", \"period\": \"30d\"}", name);
        keep(b.store, object_key(KIND_RESOURCE, name, key), text);
    }
    for (size_t i = 0; i < sizeof docs / sizeof *docs; i++) {
        CLEANUP(str) struct str text = {0};
        str_addf(&text, docs[i][1], names.at);
        keep(b.store, docs[i][0], text.at);
    }
    store_drain(b.store);
    struct berth_err err = {0};
    if (state_load(b.store, &b.state, &err))
        fail_msg("%s", err.text);
    assert_non_null(state_find(b.state, KIND_JOB, "1"));
    assert_int_equal(placements(&b), 1); /* of job 2 */
    assert_int_equal(state_audit(b.state, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_become_objects),
        cmocka_unit_test(rejected_documents_change_nothing),
        cmocka_unit_test(state_hash_is_independent_of_order),
        cmocka_unit_test(a_disabled_user_suspends_its_workloads),
        cmocka_unit_test(instances_follow_their_workload_to_another_group),
        cmocka_unit_test(gangs_are_separate_per_owner),
        cmocka_unit_test(numbers_sort_by_value_and_are_never_reused),
        cmocka_unit_test(instances_survive_their_workload),
        cmocka_unit_test(removed_node_removes_assumed_instances),
        cmocka_unit_test(assumption_is_confirmed_or_reverted),
        cmocka_unit_test(assumption_survives_concurrent_reports),
        cmocka_unit_test(conflicting_document_drops_assumptions),
        cmocka_unit_test(changed_template_replaces_pods_changed_replicas_does_not),
        cmocka_unit_test(failures_cause_back_off),
        cmocka_unit_test(loaded_state_equals_live_state),
        cmocka_unit_test(a_store_with_too_many_resources_is_loaded),
        cmocka_unit_test(a_store_whose_work_names_too_many_resources_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
