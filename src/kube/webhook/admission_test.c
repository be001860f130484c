/* admission_test.c - reviews and their responses: jobs, queues and related kinds, and objects of other groups. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"
#include "kube/webhook/admission.h"

#define NOW_NS (INT64_C(1800000000) * 1000000000)
#define TASK(cpu) "template: {spec: {containers: [{name: c, resources: {requests: {cpu: " cpu "}}}]}}"
#define ONE(cpu) "roles: [{" TASK(cpu) "}]"

struct admission_fixture {
    struct scene s;
    bool ready;
    struct admission admission;
};

static bool ready(void *ctx)
{
    return ((struct admission_fixture *)ctx)->ready;
}

static void tenant(struct admission_fixture *c, enum kind kind, const char *name, const char *spec)
{
    CLEANUP(str) struct str yaml = {0};
    struct berth_err err = {0};
    str_addf(&yaml, "{%s}", spec);
    json_t *root = kit_parse(yaml.at);
    if (tenants_put(c->s.tenants, kind, name, root, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    json_decref(root);
}

/* A group of two users, their queue, and a queue with limits of which three cores are in use. */
static void fixture_begin(struct admission_fixture *c)
{
    *c = (struct admission_fixture){.ready = true};
    scene_begin(&c->s);
    c->admission = (struct admission){.cache = c->s.p, .tenants = c->s.tenants, .ready = ready, .ctx = c};
    scene_node(&c->s, "n", "a", "");
    tenant(c, KIND_GROUP, "team", "namespaces: [lab]");
    tenant(c, KIND_USER, "ann", "group: team, names: [ann@example, 'system:serviceaccount:lab:robot']");
    tenant(c, KIND_USER, "open", "");
    tenant(c, KIND_QUEUE, "closed", "groups: [team]");
    tenant(c, KIND_QUEUE, "short", "maxTime: 1h");
    tenant(c, KIND_QUEUE, "small", "quota: {limits: {cpu: 8}, admitted: {cpu: 10}}");
    tenant(c, KIND_QUEUE, "hours", "quota: {totals: [{resource: cpu, hours: 10}]}");
    scene_pod(&c->s, "held", "berth.dev/queue: small", "n", "containers: [{resources: {requests: {cpu: 3}}}]");
}

static void fixture_cleanup(struct admission_fixture *c)
{
    scene_cleanup(&c->s);
}

static json_t *object_of(const char *namespace, const char *name, const char *spec)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml, "{metadata: {name: %s, namespace: %s}, spec: {%s}}", name, namespace, spec);
    return kit_parse(yaml.at);
}

struct asked {
    const char *resource, *name, *spec, *old, *who; /* old: NULL is a creation */
    const char *namespace;                          /* NULL: default */
};

static json_t *review_of(const struct asked *a)
{
    const char *namespace = a->namespace ? a->namespace : "default";
    json_t *review =
        json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s}, s:s, s:{s:s}, s:o}}", "apiVersion", "admission.k8s.io/v1",
                  "kind", "AdmissionReview", "request", "uid", "u1", "resource", "group", "berth.dev", "version", "v1",
                  "resource", a->resource, "operation", a->old ? "UPDATE" : "CREATE", "userInfo", "username",
                  a->who ? a->who : "somebody", "object", object_of(namespace, a->name, a->spec));
    if (a->old)
        (void)json_object_set_new(json_object_get(review, "request"), "oldObject",
                                  object_of(namespace, a->name, a->old));
    assert_non_null(review);
    return review;
}

/* Returns "" if allowed; otherwise the code and the message; warnings after a '|' each. */
static const char *ask(struct admission_fixture *c, const json_t *review, enum missing_queue missing)
{
    json_t *answer = NULL, *one;
    struct berth_err err = {0};
    size_t i;
    str_clear(&c->s.text);
    int rc = admission_review(&c->admission, review, NOW_NS, missing, &answer, &err);
    if (rc < 0) {
        str_addf(&c->s.text, "%s%s", rc == -EAGAIN ? "wait" : "bad: ", err.text);
        return str_text(&c->s.text);
    }
    assert_string_equal(json_string_value(json_object_get(answer, "kind")), "AdmissionReview");
    const json_t *response = json_object_get(answer, "response"), *status = json_object_get(response, "status");
    assert_string_equal(json_string_value(json_object_get(response, "uid")), "u1");
    assert_int_equal(json_is_true(json_object_get(response, "allowed")), !status);
    if (status)
        str_addf(&c->s.text, "%lld %s", (long long)json_integer_value(json_object_get(status, "code")),
                 json_string_value(json_object_get(status, "message")));
    json_array_foreach(json_object_get(response, "warnings"), i, one)
    {
        str_addf(&c->s.text, "|%s", json_string_value(one));
    }
    json_decref(answer);
    struct berth_err bad = {0};
    if (berth_audit(cache_cluster(c->s.p), &bad) < 0)
        fail_msg("%s", bad.text);
    return str_text(&c->s.text);
}

static void reviews(void **state)
{
    (void)state;
    static const struct {
        struct asked asked;
        const char *want; /* "": allowed without warnings; else parts of the response, separated by " ... " */
    } rows[] = {
  /* spec */
        {{"jobs", "a", ONE("1")},                                                                                                 ""                                                    },
        {{"jobs", "a", "roles: []"},                                                                                              "422 spec: roles: expected 1 to 16"                   },
        {{"jobs", "a", ONE("1") ", colour: red"},                                                                                 "422 spec: ... colour"                                },
        {{"jobs", "A_b", ONE("1")},                                                                                               "422 metadata.name"                                   },
 /* queue */
        {{"jobs", "a", ONE("1") ", queue: none"},                                                                                 "422 spec.queue: queue none does not exist"           },
        {{"jobs", "a", ONE("1") ", queue: default"},                                                                              ""                                                    },
        {{"jobs", "a", ONE("1") ", queue: closed"},
         "403 spec.queue: queue closed does not accept jobs of this namespace"                                                                                                          },
        {{"jobs", "a", ONE("1") ", queue: closed", .namespace = "lab"},                                                           ""                                                    },
        {{"jobs", "a", ONE("1") ", queue: closed, user: open"},
         "403 spec.queue: queue closed does not accept jobs of user open"                                                                                                               },
        {{"jobs", "a", ONE("1") ", queue: closed, user: ann", .who = "ann@example"},                                              ""                                                    },
        {{"jobs", "a", ONE("1") ", queue: short, timeLimit: 2h"},                                                                 "403 spec.queue: queue short allows at most 1h"       },
        {{"jobs", "a", ONE("1") ", queue: short, timeLimit: 1h"},                                                                 ""                                                    },
 /* user */
        {{"jobs", "a", ONE("1") ", user: ann", .who = "bob@example"},
         "403 spec.user: bob@example may not create jobs as user ann ... names of ann"                                                                                                  },
        {{"jobs", "a", ONE("1") ", user: ann", .who = "system:serviceaccount:lab:robot"},                                         ""                                                    },
        {{"jobs", "a", ONE("1") ", user: open"},                                                                                  "|spec.user: user open lists no Kubernetes user names"},
        {{"jobs", "a", ONE("1") ", user: nobody"},                                                                                "|spec.user: user nobody does not exist"              },
        {{"jobs", "a", ONE("1") ", user: ann, priority: 1", ONE("1") ", user: ann", "bob@example"},                               ""                                                    },
        {{"jobs", "a", ONE("1") ", user: ann", ONE("1"), "bob@example"},                                                          "403 spec.user: bob@example may not"                  },
 /* quotas of concurrent use */
        {{"jobs", "a", ONE("8") ", queue: small"},
         "403 quota queue/small: 3 cpu of 10 cpu are admitted; this job requests 8 cpu, and 7 cpu would be accepted"                                                                    },
        {{"jobs", "a", ONE("9") ", queue: small"},
         "403 quota queue/small: at most 8 cpu at once; this job requests 9 cpu and could never run; 8 cpu would be accepted"                                                           },
        {{"jobs", "a", ONE("7") ", queue: small"},                                                                                ""                                                    },
        {{"jobs", "a", "queue: small, roles: [{name: x, tasks: 9, " TASK("1") "}]"},
         "403 quota queue/small: at most 8 cpu at once"                                                                                                                                 },
        {{"jobs", "a", "queue: small, roles: [{name: x, tasks: 9, min: 2, " TASK("1") "}]"},
         "403 quota queue/small: 3 cpu of 10 cpu are admitted; this job requests 9 cpu"                                                                                                 },
        {{"jobs", "a", "queue: small, roles: [{name: x, tasks: 2, " TASK("3") "}, {name: y, tasks: 3, " TASK("1") "}]"},
         "403 quota queue/small: at most 8 cpu at once; this job requests 9 cpu"                                                                                                        },
        {{"jobs", "a",
          "queue: small, gang: false, roles: [{name: x, tasks: 2, " TASK("3") "}, {name: y, tasks: 3, " TASK("1") "}]"},
         "403 quota queue/small: 9 cpu of 10 cpu are admitted; this job requests 3 cpu, and 1 cpu would be accepted"                                                                    },
        {{"jobs", "a",
          "queue: small, gang: false, roles: [{name: x, tasks: 2, " TASK("3") "}, {name: y, " TASK("1") "}]"},
         ""                                                                                                                                                                             },
        {{"jobs", "a", ONE("8") ", queue: small, priority: 3", ONE("8") ", queue: small"},                                        ""                                                    },
        {{"jobs", "a", ONE("9") ", queue: small", ONE("8") ", queue: small"},
         "403 quota queue/small: at most 8 cpu at once"                                                                                                                                 },
 /* quotas of hours */
        {{"jobs", "a", ONE("2") ", queue: hours, timeLimit: 6h"},
         "403 quota queue/hours: 0 of 10 cpu hours are used or reserved; this job requests 12, and 10 would be accepted"                                                                },
        {{"jobs", "a", ONE("2") ", queue: hours, timeLimit: 5h"},                                                                 ""                                                    },
 /* warnings */
        {{"jobs", "a", ONE("1") ", deadline: '2020-01-01T00:00:00Z'"},                                                            "|spec.deadline: the deadline has passed"             },
        {{"jobs", "a", ONE("1") ", timeLimit: 1h, estimate: 2h"},                                                                 "|spec.estimate: longer than timeLimit"               },
        {{"jobs", "a", "roles: [{tasks: 2, min: 1, " TASK("1") "}], gang: false"},                                                "|spec.roles[0].min"                                  },
        {{"jobs", "a", "roles: [{template: {spec: {containers: [{name: c}]}}}]"},
         "|spec.roles[0].template: the containers request no resources"                                                                                                                 },
 /* other kinds */
        {{"policies", "p", "formula: 'return age +'"},                                                                            "422 spec: formula ... line 1"                        },
        {{"policies", "p", "formula: 'return age'"},                                                                              ""                                                    },
        {{"queues", "q", "timeLimit: 2h, maxTime: 1h"},                                                                           "422 spec: timeLimit: is longer than maxTime"         },
        {{"queues", "q", "groups: [later]"},                                                                                      "|spec: groups: group later does not exist"           },
        {{"queues", "small", "parent: small"},                                                                                    "422 spec: parent"                                    },
        {{"groups", "g", "quota: {limits: {cpus: 1}}"},                                                                           "422 spec: quota ... did you mean \"cpu\"?"           },
        {{"users", "u", "names: [a, b], group: team"},                                                                            ""                                                    },
        {{"domains", "d", "colour: red"},                                                                                         "422 spec: ... colour"                                },
 /* not checked */
        {{"things", "x", ""},                                                                                                     "|Not checked: this request cannot be checked"        },
    };
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    for (size_t i = 0; i < ROWS(rows); i++) {
        json_t *review = review_of(&rows[i].asked);
        const char *got = ask(&c, review, MISSING_QUEUE_DENY), *at = got;
        json_decref(review);
        if (!*rows[i].want && *got)
            fail_msg("%s %s {%s}: '%s'", rows[i].asked.resource, rows[i].asked.name, rows[i].asked.spec, got);
        for (const char *want = rows[i].want; *want;) {
            const char *end = strstr(want, " ... ");
            CLEANUP(str) struct str part = {0};
            str_add_bytes(&part, want, end ? (size_t)(end - want) : strlen(want));
            const char *found = strstr(at, part.at);
            if (!found || (want == rows[i].want && found != got))
                fail_msg("%s %s {%s}: '%s', not '%s'", rows[i].asked.resource, rows[i].asked.name, rows[i].asked.spec,
                         got, rows[i].want);
            at = found + part.len;
            want += end ? part.len + 5 : part.len;
        }
    }
}

/* Containers, init containers, sidecars, limits without requests, numbers without quotes. */
static void pod_requests_are_summed(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *asks;
    } rows[] = {
        {"containers: [{name: a, resources: {limits: {cpu: 9}}}]",                                                                                        "9"  },
        {"containers: [{name: a, resources: {limits: {cpu: 90}, requests: {cpu: '9'}}}]",                                                                 "9"  },
        {"containers: [{name: a, resources: {requests: {cpu: 5}}}, {name: b, resources: {requests: {cpu: 4500m}}}]",
         "9.5"                                                                                                                                                 },
        {"containers: [{name: a}], initContainers: [{name: i, resources: {requests: {cpu: 11}}}]",                                                        "11" },
        {"containers: [{name: a, resources: {requests: {cpu: 5}}}], initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 4}}}]",
         "9"                                                                                                                                                   },
        {"containers: [{name: a, resources: {requests: {cpu: 1}}}], resources: {requests: {cpu: 8.5}}",                                                   "8.5"},
    };
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str spec = {0}, want = {0};
        str_addf(&spec, "queue: small, roles: [{template: {spec: {%s}}}]", rows[i].spec);
        str_addf(&want, "this job requests %s cpu and could never run", rows[i].asks);
        json_t *review = review_of(&(struct asked){"jobs", "a", spec.at});
        const char *got = ask(&c, review, MISSING_QUEUE_DENY);
        if (!strstr(got, want.at))
            fail_msg("{%s}: '%s'", rows[i].spec, got);
        json_decref(review);
    }
}

static void unknown_cluster_allows_or_denies(void **state)
{
    (void)state;
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    json_t *job = review_of(&(struct asked){"jobs", "a", ONE("9") ", queue: small"});
    json_t *pod = review_of(&(struct asked){"pods", "a", "x: y"});
    json_t *same = review_of(&(struct asked){"jobs", "a", ONE("9") ", queue: small", ONE("9") ", queue: small"});
    (void)json_object_set_new(json_object_get(json_object_get(pod, "request"), "resource"), "group", json_string(""));
    c.ready = false;
    assert_non_null(strstr(ask(&c, job, MISSING_QUEUE_DENY), "|Not checked: the scheduler has just started"));
    assert_string_equal(ask(&c, pod, MISSING_QUEUE_DENY), "");
    c.admission.deny_unchecked = true;
    assert_non_null(strstr(ask(&c, job, MISSING_QUEUE_DENY), "503 the scheduler has just started"));
    assert_string_equal(ask(&c, pod, MISSING_QUEUE_DENY), ""); /* not ours, whatever it requests */
    assert_string_equal(ask(&c, same, MISSING_QUEUE_DENY), "");
    c.ready = true;
    assert_non_null(strstr(ask(&c, job, MISSING_QUEUE_DENY), "403 quota queue/small"));
    assert_string_equal(ask(&c, same, MISSING_QUEUE_DENY), "");
    json_decref(job);
    json_decref(pod);
    json_decref(same);
}

/* An unknown queue may be about to appear. */
static void unknown_queue_waits(void **state)
{
    (void)state;
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    json_t *job = review_of(&(struct asked){"jobs", "a", ONE("1") ", queue: soon"});
    assert_string_equal(ask(&c, job, MISSING_QUEUE_WAIT), "wait");
    assert_non_null(strstr(ask(&c, job, MISSING_QUEUE_DENY), "422 spec.queue: queue soon does not exist"));
    assert_non_null(
        strstr(ask(&c, job, MISSING_QUEUE_UNSURE), "Not checked: the scheduler has not seen its queue yet."));
    c.admission.deny_unchecked = true;
    assert_non_null(
        strstr(ask(&c, job, MISSING_QUEUE_UNSURE), "503 the scheduler has not seen its queue yet; try again later"));
    c.admission.deny_unchecked = false;
    tenant(&c, KIND_QUEUE, "soon", "");
    assert_string_equal(ask(&c, job, MISSING_QUEUE_WAIT), "");
    json_decref(job);
}

/* A review leaves nothing behind: repeated, it gets the same response, and nothing is pending. */
static void review_leaves_nothing_behind(void **state)
{
    (void)state;
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    struct berth_quota_use before, after;
    fixture_begin(&c);
    assert_true(berth_quota_use(cache_cluster(c.s.p), "queue/small", "cpu", &before));
    json_t *job = review_of(&(struct asked){
        "jobs", "a", "queue: small, roles: [{name: x, tasks: 2, " TASK("2") "}, {name: y, tasks: 3, " TASK("1") "}]"});
    for (int i = 0; i < 3; i++)
        assert_string_equal(ask(&c, job, MISSING_QUEUE_DENY), "");
    assert_true(berth_quota_use(cache_cluster(c.s.p), "queue/small", "cpu", &after));
    assert_int_equal(after.asked, before.asked);
    assert_int_equal(before.asked, 3000);
    assert_string_equal(scene_says(&c.s), "");
    json_decref(job);
}

/* A review does not put tenants in use: plans would change without a recorded input. */
static void review_does_not_enable_tenants(void **state)
{
    (void)state;
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c = {.ready = true};
    scene_begin(&c.s);
    scene_node(&c.s, "n", "a", "");
    c.admission = (struct admission){.cache = c.s.p, .tenants = c.s.tenants, .ready = ready, .ctx = &c};
    json_t *job = review_of(&(struct asked){"jobs", "a", ONE("1")});
    assert_string_equal(ask(&c, job, MISSING_QUEUE_DENY), "");
    assert_false(tenants_in_use(c.s.tenants));
    json_decref(job);
}

static void invalid_reviews(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{apiVersion: admission.k8s.io/v1, kind: AdmissionReview}",
        "{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: ''}}",
        "{apiVersion: admission.k8s.io/v1beta1, kind: AdmissionReview, request: {uid: u}}",
        "{apiVersion: admission.k8s.io/v1, kind: Pod, request: {uid: u}}",
        "{apiVersion: [], kind: 7, request: [1]}",
    };
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    for (size_t i = 0; i < ROWS(rows); i++) {
        json_t *root = kit_parse(rows[i]);
        assert_non_null(strstr(ask(&c, root, MISSING_QUEUE_DENY), "bad: expected an AdmissionReview"));
        json_decref(root);
    }
}

/* Ten cores may be admitted, three are in use; jobs of four cores. */
static void concurrent_jobs_count_together(void **state)
{
    (void)state;
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    json_t *a = review_of(&(struct asked){"jobs", "a", ONE("4") ", queue: small"});
    json_t *b = review_of(&(struct asked){"jobs", "b", ONE("4") ", queue: small"});
    assert_string_equal(ask(&c, a, MISSING_QUEUE_DENY), "");
    assert_string_equal(ask(&c, b, MISSING_QUEUE_DENY), ""); /* nothing is tracked */
    c.admission.recent = recent_jobs_new();
    (void)json_object_set_new(json_object_get(a, "request"), "dryRun", json_true());
    assert_string_equal(ask(&c, a, MISSING_QUEUE_DENY), "");
    assert_string_equal(ask(&c, b, MISSING_QUEUE_DENY), ""); /* the other one was a dry run */
    assert_string_equal(ask(&c, b, MISSING_QUEUE_DENY), ""); /* a job does not count against itself */
    assert_non_null(strstr(ask(&c, a, MISSING_QUEUE_DENY), "7 cpu of 10 cpu are admitted; this job requests 4 cpu"));
    scene_pod(&c.s, "held", "", "n", "containers: [{resources: {requests: {cpu: 3}}}]"); /* not in the queue */
    assert_string_equal(ask(&c, a, MISSING_QUEUE_DENY), "");
    recent_jobs_add(c.admission.recent, json_object_get(json_object_get(b, "request"), "object"),
                    NOW_NS - INT64_C(11000000000));
    json_t *larger = review_of(&(struct asked){"jobs", "c", ONE("8") ", queue: small"});
    /* jobs that are never stored are forgotten after a while */
    assert_string_equal(ask(&c, larger, MISSING_QUEUE_DENY), "");
    json_decref(a);
    json_decref(b);
    json_decref(larger);
    recent_jobs_free(c.admission.recent);
}

/* Requests added by LimitRanges and runtime classes count. */
static void limit_ranges_and_overhead_count(void **state)
{
    static const struct {
        const char *spec, *want;
    } rows[] = {
        {"{containers: [{name: c}]}",                                                           "requests 8 cpu"},
        {"{containers: [{name: c, resources: {limits: {cpu: 1}}}]}",                            ""              },
        {"{containers: [{name: c, resources: {requests: {cpu: 1}}}, {name: d}]}",               "requests 9 cpu"},
        {"{runtimeClassName: heavy, containers: [{name: c, resources: {requests: {cpu: 6}}}]}", "requests 8 cpu"},
        {"{runtimeClassName: none, containers: [{name: c, resources: {requests: {cpu: 6}}}]}",  ""              },
    };
    (void)state;
    __attribute__((cleanup(fixture_cleanup))) struct admission_fixture c;
    fixture_begin(&c);
    scene_put(
        &c.s, CACHE_LIMIT_RANGE,
        "{metadata: {name: l, namespace: default2}, spec: {limits: [{type: Container, defaultRequest: {cpu: 1}}]}}");
    scene_put(
        &c.s, CACHE_LIMIT_RANGE,
        "{metadata: {name: l, namespace: default}, spec: {limits: [{type: Pod, defaultRequest: {cpu: 50}}, {type: "
        "Container, default: {cpu: 9}, defaultRequest: {cpu: 8}}]}}");
    scene_put(&c.s, CACHE_RUNTIME_CLASS, "{metadata: {name: heavy}, overhead: {podFixed: {cpu: 2}}}");
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str spec = {0};
        str_addf(&spec, "queue: small, roles: [{template: {spec: %s}}]", rows[i].spec);
        json_t *review = review_of(&(struct asked){"jobs", "a", spec.at});
        const char *got = ask(&c, review, MISSING_QUEUE_DENY);
        if (*rows[i].want ? !strstr(got, rows[i].want) : *got != 0)
            fail_msg("%s: %s", rows[i].spec, got);
        json_decref(review);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reviews),
        cmocka_unit_test(concurrent_jobs_count_together),
        cmocka_unit_test(limit_ranges_and_overhead_count),
        cmocka_unit_test(pod_requests_are_summed),
        cmocka_unit_test(unknown_cluster_allows_or_denies),
        cmocka_unit_test(unknown_queue_waits),
        cmocka_unit_test(review_leaves_nothing_behind),
        cmocka_unit_test(review_does_not_enable_tenants),
        cmocka_unit_test(invalid_reviews),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
