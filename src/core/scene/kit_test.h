/* kit_test.h - small clusters for tests of filters and scores: objects are put, planned and queried in one line each.
 *
 * Include <cmocka.h> and its prerequisites before this header. Errors in these functions fail the test.
 *
 * Every workload has the label app=ID, which TERM_APP selects.
 */
#pragma once

#include <string.h>

#include "core/plan/plan.h"
#include "core/search/attempt.h"

struct kit {
    struct berth_cluster *cluster;
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    struct berth_err err;
    const char *const *resources; /* used by scores; NULL: cpu and memory */
    size_t resources_len;
    uint32_t steps; /* of scores; 0: not rounded */
    const struct berth_typical_pod *demand;
    size_t demand_len;
    uint64_t seed, instances;
    int64_t now_ns;
    char order[256];
};

/* Initialises a list and its length among the fields of a description. */
#define LIST(field, type, ...)                                                                                         \
    .field = (const type[]){__VA_ARGS__}, .field##_len = sizeof((const type[]){__VA_ARGS__}) / sizeof(type)
#define NAMES(field, ...) LIST(field, char *const, __VA_ARGS__)
#define TERM(of, weigh, ...) ((struct berth_term){LIST(exprs, struct berth_expr, {of, __VA_ARGS__}), .weight = (weigh)})
#define TERM_APP(app, weigh) TERM("app", weigh, BERTH_IN, (const char *const[]){app}, 1)
#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

#define KIT_GIB ((int64_t)1 << 30)

static inline void kit_reset(struct kit *k)
{
    berth_plan_free(k->plan);
    berth_snapshot_free(k->snapshot);
    k->plan = NULL;
    k->snapshot = NULL;
}

static inline void kit_cleanup(struct kit *k)
{
    kit_reset(k);
    berth_cluster_free(k->cluster);
}

static inline struct kit kit_new(void)
{
    return (struct kit){.cluster = berth_cluster_new()};
}

static inline void kit_check(const struct kit *k, int rc)
{
    if (rc)
        fail_msg("%s", k->err.text);
}

/* ---- putting objects -------------------------------------------------------------------------------------------- */

/* Puts a node. Without allocatable it has 8 cores and 8 GiB. */
static inline void kit_node(struct kit *k, struct berth_node n)
{
    static const struct berth_amount usual[] = {
        {"cpu",    8000       },
        {"memory", 8 * KIT_GIB},
    };
    if (!n.allocatable) {
        n.allocatable = usual;
        n.allocatable_len = ROWS(usual);
    }
    kit_check(k, berth_node_put(k->cluster, &n, &k->err));
}

static inline void kit_volume(struct kit *k, struct berth_volume v)
{
    kit_check(k, berth_volume_put(k->cluster, &v, &k->err));
}

static inline void kit_workload(struct kit *k, const char *id, uint32_t replicas, const struct berth_shape *shape)
{
    const struct berth_label app = {"app", id};
    struct berth_workload w = {.id = id, .replicas = replicas, .labels = &app, .labels_len = 1};
    if (shape)
        w.shape = *shape;
    kit_check(k, berth_workload_put(k->cluster, &w, &k->err));
}

/* A pod request in one line. */
struct kit_request {
    uint32_t pods, count, milli; /* pods, number of GPUs, thousandths of each */
    int64_t cpu;
    const char *model;
    int64_t memory;
};

static inline struct berth_shape kit_shape(const struct kit_request *r, struct berth_amount needs[2])
{
    struct berth_shape shape = {
        .requests = needs, .gpu = {.count = r->count, .milli = r->milli, .models = &r->model}
    };
    shape.gpu.models_len = r->model != NULL;
    if (r->cpu)
        needs[shape.requests_len++] = (struct berth_amount){"cpu", r->cpu};
    if (r->memory)
        needs[shape.requests_len++] = (struct berth_amount){"memory", r->memory};
    return shape;
}

/* Puts a suspended workload: typical pods that are not placed now. */
static inline void kit_typical(struct kit *k, const char *id, const struct kit_request *r)
{
    struct berth_amount needs[2];
    struct berth_workload w = {.id = id, .replicas = r->pods, .suspended = true, .shape = kit_shape(r, needs)};
    kit_check(k, berth_workload_put(k->cluster, &w, &k->err));
}

/* Puts a workload to place. */
static inline void kit_pending(struct kit *k, const char *id, uint32_t pods, const struct kit_request *r)
{
    struct berth_amount needs[2];
    struct berth_shape shape = kit_shape(r, needs);
    kit_workload(k, id, pods, &shape);
}

/* Puts a running pod; `gpus`: the devices it holds. */
static inline void kit_running(struct kit *k, const char *workload, uint32_t ordinal, const char *node, uint64_t gpus)
{
    struct berth_instance i = {.id = ++k->instances, .workload = workload, .ordinal = ordinal, .node = node};
    i.state = BERTH_RUNNING;
    i.ready = true;
    i.gpus = gpus;
    kit_check(k, berth_instance_put(k->cluster, &i, &k->err));
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

/* Plans with a single score; NULL: the default profile. */
static inline void kit_plan(struct kit *k, const char *score)
{
    const struct berth_weight only = {score, 1};
    const struct berth_profile profile = {.name = "test",
                                          .scores = &only,
                                          .scores_len = 1,
                                          .resources = k->resources,
                                          .resources_len = k->resources_len,
                                          .steps = k->steps};
    const struct berth_policy policy = {
        .profile = score ? &profile : NULL, .demand = k->demand, .demand_len = k->demand_len};
    kit_reset(k);
    k->snapshot = berth_freeze(k->cluster, k->now_ns, k->seed);
    kit_check(k, berth_plan_make(k->snapshot, &policy, &k->plan, &k->err));
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

/* Returns whether this plan places the pod; *ret: the action. */
static inline bool kit_placed(const struct kit *k, const char *workload, uint32_t ordinal, struct berth_action *ret)
{
    for (size_t i = 0; i < berth_plan_actions(k->plan); i++) {
        struct berth_action a = berth_plan_action(k->plan, i);
        if (a.op == BERTH_PLACE && strcmp(a.workload, workload) == 0 && a.ordinal == ordinal) {
            *ret = a;
            return true;
        }
    }
    return false;
}

static inline const char *kit_node_of(const struct kit *k, const char *workload, uint32_t ordinal)
{
    struct berth_action a;
    return kit_placed(k, workload, ordinal, &a) ? a.node : "";
}

/* Returns the nodes of pods 0, 1, ... up to the first that was not placed: "n2 n1". */
static inline const char *kit_order(struct kit *k, const char *workload)
{
    struct berth_action a;
    size_t len = 0;
    for (uint32_t i = 0; kit_placed(k, workload, i, &a); i++) {
        size_t more = strlen(a.node);
        assert_true(len + more + 2 < sizeof k->order);
        if (len)
            k->order[len++] = ' ';
        memcpy(k->order + len, a.node, more);
        len += more;
    }
    k->order[len] = '\0';
    return k->order;
}

/* Returns how many nodes refuse the pending pods for the reason; 0 if no pods are pending. */
static inline uint64_t kit_refusals(const struct kit *k, const char *workload, const char *reason, const char *what)
{
    uint64_t nodes = 0;
    for (size_t i = 0; i < berth_plan_pendings(k->plan); i++) {
        struct berth_pending p = berth_plan_pending(k->plan, i);
        for (size_t r = 0; r < p.reasons_len && strcmp(p.workload, workload) == 0; r++)
            if (strcmp(p.reasons[r].reason, reason) == 0 && strcmp(p.reasons[r].what, what) == 0)
                nodes += p.reasons[r].nodes;
    }
    return nodes;
}

/* Expects that `want` nodes refuse the single pod web/0 for the reason, and that it is placed only if none does. */
static inline void kit_expect(const struct kit *k, const char *label, const char *reason, const char *what,
                              uint64_t want)
{
    uint64_t nodes = kit_refusals(k, "web", reason, what);
    const char *node = kit_node_of(k, "web", 0);
    if (nodes != want)
        fail_msg("%s: %llu nodes refuse for %s, not %llu", label, (unsigned long long)nodes, reason,
                 (unsigned long long)want);
    if ((want == 0) != (*node != '\0'))
        fail_msg("%s: placed on \"%s\"", label, node);
}

/* ---- internal state --------------------------------------------------------------------------------------------- */

/* Begins a placement attempt of the workload in the state after the plan; ended by attempt_end. */
static inline void kit_attempt(struct kit *k, const char *workload, struct attempt *t)
{
    uint32_t w = cluster_workload_find(k->cluster, workload);
    assert_true(w != NONE);
    struct attempt_spec who = {w, snapshot_workload(k->snapshot, w)->class, NONE, NONE, NONE};
    attempt_begin(t, &k->plan->c, who, false);
}

static inline uint32_t kit_position(const struct kit *k, const char *node)
{
    return k->snapshot->layout->position[cluster_node_find(k->cluster, node)];
}

/* Returns the score of one more pod on the node, without the key. */
static inline int32_t kit_score(struct kit *k, const char *workload, const char *node)
{
    struct attempt t;
    uint32_t p = kit_position(k, node);
    int32_t out[BLOCK] = {0};

    kit_attempt(k, workload, &t);
    for (uint32_t i = 0; i < t.live_len; i++)
        t.live[i].score->add(&t, p / BLOCK, (uint64_t)1 << p % BLOCK, t.live[i].weight, out);
    int32_t score = out[p % BLOCK] + (t.preferences ? t.preferences->at[p] : 0);
    attempt_end(&t);
    return score;
}
