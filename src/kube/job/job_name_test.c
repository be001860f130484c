/* job_name_test.c - jobs with equal pod names: the later one is not accepted and reports why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"
#include "kube/job/job_controller.h"
#include "kube/object/object_kit_test.h"

static void ignore(void *ctx)
{
    (void)ctx;
}

struct named {
    const char *job, *role;
    int tasks, retries;
};

static void put(struct kube_jobs *k, const char *namespace, const struct named *n, int created)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: %s, uid: uid-%s-%s, generation: 1, creationTimestamp: "
        "'2026-01-01T00:00:0%dZ'}, spec: {retries: %d, roles: [{name: %s, tasks: %d, template: {spec: {containers: "
        "[{name: c}]}}}]}}",
        n->job, namespace, namespace, n->job, created, n->retries, n->role, n->tasks);
    json_t *root = kit_parse(yaml.at);
    kube_jobs_put(k, root);
    json_decref(root);
}

static void conflicting_pod_names_are_rejected(void **state)
{
    static const struct {
        const char *label;
        struct named a, b;
        bool want;
    } rows[] = {
        {"other names",                       {"a", "x", 1, 0},   {"b", "x", 1, 0},    false},
        {"the same of both",                  {"a-b", "c", 1, 0}, {"a", "b-c", 1, 0},  true },
        {"one is the beginning of the other", {"a", "b", 5, 0},   {"a-b", "c", 5, 0},  false},
        {"a third task as a second attempt",  {"a", "b", 2, 1},   {"a-b", "1", 3, 0},  true },
        {"the same by a role",                {"a", "b", 2, 1},   {"a", "b", 2, 1},    false}, /* the same job again */
        {"of a task that is not there",       {"a", "b", 1, 1},   {"a-b", "1", 3, 0},  false},
        {"no second attempt",                 {"a", "b", 2, 0},   {"a-b", "1", 3, 0},  false},
        {"no third task",                     {"a", "b", 2, 1},   {"a-b", "1", 2, 0},  false},
        {"not the same number",               {"a", "b", 2, 1},   {"a-b", "01", 3, 0}, false},
    };
    (void)state;
    for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
        static const char *const names[] = {"berth"};
        const struct named *first = i % 2 ? &rows[i / 4].b : &rows[i / 4].a;
        const struct named *second = i % 2 ? &rows[i / 4].a : &rows[i / 4].b;
        bool apart = i / 2 % 2; /* in two namespaces names never conflict */
        struct fake f = {0};
        fake_start(&f, (struct http_config){0});
        struct cache *p =
            cache_new(&(struct cache_config){.schedulers = names, .schedulers_len = 1, .changed = ignore});
        struct log log = {0};
        struct kube_jobs *k = kube_jobs_new(&(struct kube_jobs_config){.api = f.api,
                                                                       .loop = f.kit.loop,
                                                                       .cache = p,
                                                                       .log = &log,
                                                                       .schedulers = names,
                                                                       .schedulers_len = 1,
                                                                       .synced = ignore,
                                                                       .changed = ignore});
        put(k, "default", first, 1);
        assert_int_equal(kube_jobs_stats(k).refused, 0);
        put(k, apart ? "other" : "default", second, 2);
        if (kube_jobs_stats(k).refused != (rows[i / 4].want && !apart))
            fail_msg("%s, %zu: %zu are refused", rows[i / 4].label, i % 4, kube_jobs_stats(k).refused);
        kube_jobs_drop(k, "default", first->job);
        put(k, apart ? "other" : "default", &(struct named){second->job, "fresh", 1, 0}, 2);
        kube_jobs_free(k);
        cache_free(p);
        fake_cleanup(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(conflicting_pod_names_are_rejected)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
