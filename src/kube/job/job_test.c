/* job_test.c - the specs of Jobs: what is parsed, what is rejected with which messages; and the pods created from them.
 */
#include "kube/job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/job/job_pod.h"
#include "wire/text/yaml.h"

#define SECOND_NS INT64_C(1000000000)
#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define TEMPLATE "template: {spec: {containers: [{name: c, image: i}]}}"

static json_t *parse(const char *spec, const char *name)
{
    CLEANUP(str) struct str yaml = {0};
    json_t *root = NULL;
    struct berth_err err = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: ns, uid: u-1, generation: 3, creationTimestamp: '2026-01-01T00:00:00Z'}, "
        "spec: {%s}}",
        name, spec);
    if (yaml_parse(yaml.at, yaml.len, "test", &root, &err) < 0)
        fail_msg("%s in %s", err.text, yaml.at);
    return root;
}

static void all_keys_are_parsed(void **state)
{
    (void)state;
    struct arena arena;
    struct kube_job job;
    struct berth_err err = {0};
    json_t *root = parse("queue: q, user: ann, priority: -5, suspend: true, begin: '2026-03-01T12:00:00Z', deadline: "
                         "'2026-03-02T12:00:00+02:00', timeLimit: 2h30m, estimate: 90m, minRun: 60, retries: 3, gang: "
                         "false, preemptible: false, preempts: false, type: t, class: c, network: n, parameters: 7, "
                         "attributes: {a: b}, ttlSecondsAfterFinished: 0, roles: [{" TEMPLATE
                         "}, {name: worker, tasks: 4, min: 2, " TEMPLATE "}]",
                         "train");
    arena_init(&arena);
    if (kube_job_read(root, &arena, &job, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(job.namespace, "ns");
    assert_string_equal(job.uid, "u-1");
    assert_int_equal(job.generation, 3);
    assert_true(job.created_ns == 1767225600 * SECOND_NS);
    assert_string_equal(job.queue, "q");
    assert_string_equal(job.user, "ann");
    assert_int_equal(job.priority, -5);
    assert_true(job.suspend && !job.gang && !job.preemptible && !job.preempts);
    assert_true(job.begin_ns == 1772366400 * SECOND_NS && job.deadline_ns == 1772445600 * SECOND_NS);
    assert_true(job.limit_ns == 9000 * SECOND_NS && job.estimate_ns == 5400 * SECOND_NS &&
                job.min_run_ns == 60 * SECOND_NS);
    assert_int_equal(job.retries, 3);
    assert_string_equal(job.class_name, "c");
    assert_int_equal(job.parameters, 7);
    assert_int_equal(job.attributes_len, 1);
    assert_int_equal(job.ttl_s, 0);
    assert_int_equal(job.roles_len, 2);
    assert_string_equal(job.roles[0].name, "task");
    assert_int_equal(job.roles[0].tasks, 1);
    assert_int_equal(job.roles[1].min, 2);
    assert_int_equal(kube_job_tasks(&job), 5);
    json_decref(root);
    arena_done(&arena);
}

static void defaults_are_set(void **state)
{
    (void)state;
    struct arena arena;
    struct kube_job job;
    json_t *root = parse("roles: [{" TEMPLATE "}]", "x");
    arena_init(&arena);
    assert_int_equal(kube_job_read(root, &arena, &job, NULL), 0);
    assert_true(job.gang && job.preemptible && job.preempts && !job.suspend);
    assert_int_equal(job.ttl_s, -1);
    assert_int_equal(job.retries, 0);
    assert_string_equal(job.queue, "");
    json_decref(root);
    arena_done(&arena);
}

static void invalid_specs_are_rejected(void **state)
{
    static const struct {
        const char *label, *name, *spec, *want;
    } rows[] = {
        {"no roles",            "x",                                                     "queue: q",                                                                             "roles: expected 1 to 16"                        },
        {"an unknown key",      "x",                                                     "rules: [], roles: [{" TEMPLATE "}]",                                                   "rules"                                          },
        {"a name with dots",    "a.b",                                                   "roles: [{" TEMPLATE "}]",                                                              "metadata.name"                                  },
        {"a long name",         "a123456789a123456789a123456789a123456789a123456789abc", "roles: [{" TEMPLATE "}]",                                                              "52"                                             },
        {"a role's name",       "x",                                                     "roles: [{name: A, " TEMPLATE "}]",                                                     "lower-case"                                     },
        {"no tasks",            "x",                                                     "roles: [{tasks: 0, " TEMPLATE "}]",                                                    "tasks: expected a whole number from 1 to 100000"},
        {"too many at least",   "x",                                                     "roles: [{tasks: 2, min: 3, " TEMPLATE "}]",
         "min: expected at most 2, the number of tasks"                                                                                                                                                                           },
        {"two of a name",       "x",                                                     "roles: [{" TEMPLATE "}, {" TEMPLATE "}]",                                              "duplicate name task"                            },
        {"an attempt's name",   "x",
         "retries: 1, roles: [{name: w, tasks: 2, " TEMPLATE "}, {name: w-1, tasks: 3, " TEMPLATE "}]",
         "pods of w-1 would have the same names as retries of w"                                                                                                                                                                  },
        {"no template",         "x",                                                     "roles: [{tasks: 2}]",                                                                  "template"                                       },
        {"no spec",             "x",                                                     "roles: [{template: {}}]",                                                              "an object with a spec"                          },
        {"no containers",       "x",                                                     "roles: [{template: {spec: {}}}]",                                                      "expected at least one container"                },
        {"always restarted",    "x",                                                     "roles: [{template: {spec: {restartPolicy: Always, containers: [{name: c}]}}}]",
         "restartPolicy: expected Never or OnFailure"                                                                                                                                                                             },
        {"on a node",           "x",                                                     "roles: [{template: {spec: {nodeName: n, containers: [{name: c}]}}}]",                  "use nodeSelector"                               },
        {"gated",               "x",                                                     "roles: [{template: {spec: {schedulingGates: [{name: g}], containers: [{name: c}]}}}]",
         "use suspend"                                                                                                                                                                                                            },
        {"a time",              "x",                                                     "begin: soon, roles: [{" TEMPLATE "}]",                                                 "begin"                                          },
        {"a duration",          "x",                                                     "timeLimit: -5, roles: [{" TEMPLATE "}]",                                               "timeLimit"                                      },
        {"no duration",         "x",                                                     "timeLimit: 0, roles: [{" TEMPLATE "}]",                                                "a duration from 1s to 3650d"                    },
        {"negative",            "x",                                                     "ttlSecondsAfterFinished: -1, roles: [{" TEMPLATE "}]",                                 "0 or more"                                      },
        {"a word for a number", "x",                                                     "retries: many, roles: [{" TEMPLATE "}]",                                               "retries"                                        },
    };
    (void)state;
    json_t *bare = json_pack("{s:{s:s}}", "metadata", "name", "x");
    assert_true(kube_job_read(bare, NULL, NULL, NULL) < 0); /* no spec at all */
    json_decref(bare);
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena;
        struct kube_job job = {.retries = 77};
        struct berth_err err = {0};
        json_t *root = parse(rows[i].spec, rows[i].name);
        arena_init(&arena);
        if (kube_job_read(root, &arena, &job, &err) == 0)
            fail_msg("%s: it was accepted", rows[i].label);
        if (!strstr(err.text, rows[i].want))
            fail_msg("%s: \"%s\" has no \"%s\"", rows[i].label, err.text, rows[i].want);
        assert_int_equal(job.retries, 77);
        json_decref(root);
        arena_done(&arena);
    }
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static const char *env_of(const json_t *pod, size_t container, const char *name)
{
    const json_t *spec = json_object_get(pod, "spec");
    const json_t *env = json_object_get(json_array_get(json_object_get(spec, "containers"), container), "env");
    for (size_t i = 0; i < json_array_size(env); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(env, i), "name")), name) == 0)
            return json_string_value(json_object_get(json_array_get(env, i), "value"));
    return "";
}

static const char *at(const json_t *pod, const char *part, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(pod, part), key));
    return text ? text : "";
}

static void pods_are_generated(void **state)
{
    (void)state;
    struct arena arena;
    struct kube_job job;
    CLEANUP(str) struct str name = {0};
    json_t *root =
        parse("roles: [{name: m, " TEMPLATE "}, {name: w, tasks: 3, template: {metadata: {labels: {app: x, "
              "berth.dev/job: other}, annotations: {a: b}}, spec: {restartPolicy: OnFailure, initContainers: "
              "[{name: i}], containers: [{name: c, env: [{name: RANK, value: mine}]}, {name: d}]}}}]",
              "train");
    arena_init(&arena);
    assert_int_equal(kube_job_read(root, &arena, &job, NULL), 0);
    json_t *before = json_deep_copy(root);
    const struct kube_job_task task = {.role = 1, .ordinal = 2, .attempt = 3, .node = "n7"};
    kube_job_pod_name(&job, &task, &name);
    assert_string_equal(name.at, "train-w-2-3");
    json_t *pod = kube_job_pod(&job, 1, &task, "berth");
    assert_string_equal(at(pod, "metadata", "name"), "train-w-2-3");
    const json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
    assert_string_equal(json_string_value(json_object_get(labels, "berth.dev/job")), "train"); /* not the template's */
    assert_string_equal(json_string_value(json_object_get(labels, "berth.dev/attempt")), "3");
    assert_string_equal(json_string_value(json_object_get(labels, "app")), "x");
    assert_string_equal(at(pod, "spec", "nodeName"), "n7");
    assert_string_equal(at(pod, "spec", "restartPolicy"), "OnFailure");
    assert_string_equal(at(pod, "spec", "hostname"), "train-w-2"); /* the same in every attempt */
    assert_string_equal(env_of(pod, 0, "RANK"), "mine");
    assert_string_equal(env_of(pod, 1, "RANK"), "3");
    assert_string_equal(env_of(pod, 1, "WORLD_SIZE"), "4");
    assert_string_equal(env_of(pod, 1, "MASTER_ADDR"), "train-m-0.train");
    json_decref(pod);
    pod = kube_job_pod(&job, 1, NULL, "berth"); /* for a dry run */
    assert_string_equal(at(pod, "metadata", "generateName"), "train-w-");
    assert_string_equal(at(pod, "metadata", "name"), "");
    assert_string_equal(at(pod, "spec", "nodeName"), "");
    json_decref(pod);
    assert_true(json_equal(root, before)); /* the template is unchanged */
    json_decref(before);
    json_decref(root);
    arena_done(&arena);
}

/* A template may name any of our schedulers; another scheduler would not know the job. */
static void template_scheduler_names_are_checked(void **state)
{
    static const char *const ours[] = {"berth", "berth-pack"};
    static const struct {
        const char *template, *want;
    } rows[] = {
        {"{spec: {containers: [{name: c}]}}",                            "berth"     },
        {"{spec: {schedulerName: berth, containers: [{name: c}]}}",      "berth"     },
        {"{spec: {schedulerName: berth-pack, containers: [{name: c}]}}", "berth-pack"},
        {"{spec: {schedulerName: somebody, containers: [{name: c}]}}",   "berth"     },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str spec = {0};
        struct arena arena;
        struct kube_job job;
        str_addf(&spec, "roles: [{template: %s}]", rows[i].template);
        json_t *root = parse(spec.at, "one");
        arena_init(&arena);
        assert_int_equal(kube_job_read(root, &arena, &job, NULL), 0);
        const char *found = kube_job_scheduler(&job, 0, ours, 2);
        assert_string_equal(found, rows[i].want);
        json_t *pod = kube_job_pod(&job, 0, NULL, found);
        assert_string_equal(at(pod, "spec", "schedulerName"), rows[i].want);
        json_decref(pod);
        json_decref(root);
        arena_done(&arena);
    }
}

/* A job of one task has no Service; an elastic one has no fixed world size; host names have at most 63 letters. */
static void pod_contents_follow_the_job(void **state)
{
    (void)state;
    static const char long_name[] = "a123456789a123456789a123456789a123456789a123456789";
    struct arena arena;
    struct kube_job job;
    const struct kube_job_task task = {.role = 0, .ordinal = 7, .attempt = 1, .node = "n"};
    arena_init(&arena);
    json_t *root = parse("roles: [{" TEMPLATE "}]", "one");
    assert_int_equal(kube_job_read(root, &arena, &job, NULL), 0);
    assert_false(kube_job_has_service(&job));
    json_t *pod = kube_job_pod(&job, 0, &task, "berth");
    assert_string_equal(at(pod, "spec", "hostname"), "");
    assert_string_equal(env_of(pod, 0, "RANK"), "");
    assert_string_equal(env_of(pod, 0, "BERTH_TASK"), "7");
    json_decref(pod);
    json_decref(root);
    root = parse("roles: [{name: a-rather-long-name, tasks: 9, min: 2, " TEMPLATE "}]", long_name);
    assert_int_equal(kube_job_read(root, &arena, &job, NULL), 0);
    pod = kube_job_pod(&job, 0, &task, "berth");
    assert_true(strlen(at(pod, "spec", "hostname")) <= 63);
    assert_non_null(strstr(at(pod, "spec", "hostname"), "-7"));
    assert_string_equal(env_of(pod, 0, "WORLD_SIZE"), "");
    assert_string_equal(env_of(pod, 0, "RANK"), "7");
    json_decref(pod);
    json_t *service = kube_job_service(&job);
    assert_string_equal(at(service, "spec", "clusterIP"), "None");
    assert_string_equal(at(service, "metadata", "name"), long_name);
    json_decref(service);
    json_decref(root);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_keys_are_parsed),
        cmocka_unit_test(defaults_are_set),
        cmocka_unit_test(invalid_specs_are_rejected),
        cmocka_unit_test(pods_are_generated),
        cmocka_unit_test(template_scheduler_names_are_checked),
        cmocka_unit_test(pod_contents_follow_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
