/* job_kit_test.h - a fixture for tests: jobs and their cache against a fake API server. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/client/clock.h"
#include "kube/client/server_kit_test.h"
#include "kube/job/job_controller.h"
#include "kube/object/object_kit_test.h"

#define SECOND_NS INT64_C(1000000000)
#define PODS "/api/v1/namespaces/default/pods"
#define JOB "/apis/berth.dev/v1/namespaces/default/jobs/train"
#define TEMPLATE "template: {spec: {containers: [{name: c, image: i}]}}"

struct life {
    struct fake f; /* first member: handlers get its address */
    struct scene s;
    struct kube_jobs *k;
    struct log log;
    unsigned synced, changes;
    int64_t ahead_ns; /* offset of the clock of plans */
};

static inline const char *claim(void *ctx, const char *role, struct arena *arena, struct berth_workload *w)
{
    return kube_jobs_claim(((struct life *)ctx)->k, role, arena, w);
}

static inline void task(void *ctx, const struct cache_task_view *t)
{
    kube_jobs_task(((struct life *)ctx)->k, t);
}

static inline void synced(void *ctx)
{
    ((struct life *)ctx)->synced++;
}

static inline void changed(void *ctx)
{
    ((struct life *)ctx)->changes++;
}

static inline struct http_request *next(struct life *l, const char *method, const char *path)
{
    struct http_request *x = fake_next(&l->f);
    assert_string_equal(http_method(x), method);
    assert_string_equal(http_path(x), path);
    return x;
}

/* Answers that the API server serves jobs but has none. */
static inline void jobs_are_watched(struct life *l)
{
    static const char none[] = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\","
                               "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n";
    fake_answer(next(l, "GET", "/apis/berth.dev/v1/jobs"), 200, "{\"items\":[]}");
    struct http_request *x = next(l, "GET", "/apis/berth.dev/v1/jobs");
    fake_stream(&l->f, x);
    assert_true(http_stream_send(x, none, strlen(none)));
}

static inline void life_begin_as(struct life *l, bool watches)
{
    static const char *const names[] = {"berth"};
    *l = (struct life){0};
    fake_start(&l->f, (struct http_config){0});
    l->s.p = cache_new(&(struct cache_config){
        .schedulers = names, .schedulers_len = 1, .changed = changed, .ctx = l, .claim = claim, .task = task});
    l->k = kube_jobs_new(&(struct kube_jobs_config){.api = l->f.api,
                                                    .loop = l->f.kit.loop,
                                                    .cache = l->s.p,
                                                    .log = &l->log,
                                                    .schedulers = names,
                                                    .schedulers_len = 1,
                                                    .synced = synced,
                                                    .changed = changed,
                                                    .ctx = l});
    if (watches)
        jobs_are_watched(l);
    else
        fake_answer(next(l, "GET", "/apis/berth.dev/v1/jobs"), 404, "{}");
    KIT_UNTIL(&l->f.kit, l->synced == 1);
    scene_node(&l->s, "n1", "a", "");
    scene_node(&l->s, "n2", "b", "");
}

static inline void life_begin(struct life *l)
{
    life_begin_as(l, false);
}

static inline void life_cleanup(struct life *l)
{
    kube_jobs_free(l->k);
    cache_free(l->s.p);
    str_done(&l->s.text);
    fake_cleanup(&l->f);
}

static inline void put_uid(struct life *l, const char *uid, const char *spec, const char *status, int generation)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml,
             "{metadata: {name: train, namespace: default, uid: %s, generation: %d, creationTimestamp: "
             "'2026-01-01T00:00:00Z'}, spec: {%s}, status: {%s}}",
             uid, generation, spec, status);
    json_t *root = kit_parse(yaml.at);
    kube_jobs_put(l->k, root);
    json_decref(root);
}

static inline void put(struct life *l, const char *spec, const char *status, int generation)
{
    put_uid(l, "j-1", spec, status, generation);
}

static inline const char *body(struct http_request *x)
{
    size_t len;
    return http_body(x, &len);
}

static inline void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("%s is not in %s", part, text);
}

/* Answers a dry run with the pod as it would be created. */
static inline void answer_trial(struct life *l, const char *cpu)
{
    CLEANUP(str) struct str pod = {0}, yaml = {0};
    struct http_request *x = next(l, "POST", PODS);
    has(body(x), "\"generateName\"");
    str_addf(
        &yaml,
        "{metadata: {namespace: default}, spec: {schedulerName: berth, containers: [{name: c, resources: {requests: "
        "{cpu: %s}}}]}}",
        cpu);
    size_t object = proto_object_begin(&pod, "v1", "Pod");
    kit_object(&pod, CACHE_POD, yaml.at);
    proto_object_end(&pod, object);
    http_answer(x, 201, NULL, "application/vnd.kubernetes.protobuf", pod.at, pod.len);
}

static inline bool is_there(struct life *l, const char *role)
{
    return cache_role_exists(l->s.p, role);
}

/* Runs kube_jobs_process, plans and carries the plan out; returns how many actions were for jobs. */
static inline unsigned step(struct life *l)
{
    unsigned count = 0;
    struct berth_plan *plan;
    struct berth_policy policy = {.preemption = {.on = true}};
    int64_t now_ns = kube_wall_ns() + l->ahead_ns;
    kube_jobs_process(l->k, now_ns);
    struct berth_cluster *c = cache_cluster(l->s.p);
    assert_int_equal(berth_audit(c, NULL), 0);
    struct berth_snapshot *snapshot = berth_freeze(c, now_ns, 0);
    assert_int_equal(berth_plan_make(snapshot, &policy, &plan, NULL), 0);
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        count += kube_jobs_apply_action(l->k, &a);
    }
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending pending = berth_plan_pending(plan, i);
        bool told = true;
        (void)kube_jobs_report_pending(l->k, &pending, now_ns, &told);
    }
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    return count;
}

static inline void pod(struct life *l, const char *name, unsigned ordinal, unsigned attempt, const char *phase,
                       const char *more)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: 200, labels: {berth.dev/job: "
        "train, berth.dev/role: w, berth.dev/index: '%u', berth.dev/attempt: '%u'}, ownerReferences: [{kind: Job, apiVersion: berth.dev/v1, "
        "uid: j-1, controller: true}]%s}, spec: {schedulerName: berth, nodeName: n1, containers: [{name: c, "
        "resources: {requests: {cpu: 1}}}]}, status: {phase: %s}}",
        name, name, ordinal, attempt, more, phase);
    scene_put(&l->s, CACHE_POD, yaml.at);
}

/* Answers requests until a status is written; accepts and returns it. */
static inline const char *status(struct life *l)
{
    for (;;) {
        struct http_request *x = fake_next(&l->f);
        bool tells = strcmp(http_path(x), JOB "/status") == 0;
        str_clear(&l->s.text);
        str_add(&l->s.text, body(x));
        fake_answer(x, tells ? 200 : 201, "{}");
        if (tells)
            return str_text(&l->s.text);
    }
}

/* Runs as many loop rounds as it takes until every sent request is answered or has arrived. */
static inline void settle(struct life *l)
{
    for (int i = 0; i < 20; i++)
        kit_round(&l->f.kit);
    KIT_UNTIL(&l->f.kit, kube_api_stats(l->f.api).under_way == l->f.asked.len);
}

static inline void accepted(struct life *l, const char *spec, const char *told)
{
    put(l, spec, told, 1);
    answer_trial(l, "1");
    KIT_UNTIL(&l->f.kit, is_there(l, "default:train:w"));
}
