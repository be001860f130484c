/* scene_test.h - a cluster for tests: objects are put in one line each, planned at a moment, and the plan is compared
 * as text.
 *
 * Include <stdio.h>, <stdlib.h>, <cmocka.h> and its prerequisites before this header. A plan is written as its actions
 * joined by "; ", each as
 *     OP POD NODE CAUSE [#INSTANCE] [for REPLACED] [after WAIT,...] [RESOURCE=LIMIT]
 * and compared as a set. scene_expect makes a plan and compares it; scene_expect_and_apply also applies it and checks
 * that nothing is left to do.
 */
#pragma once

#include <string.h>

#include "base/hash.h"
#include "core/model/cluster.h"

enum { SCENE_TEXT_MAX = 16384, SCENE_ACTIONS_MAX = 512 };

#define SCENE_SECOND_NS ((int64_t)1000000000)

struct scene {
    struct berth_cluster *c;
    struct berth_err err;
    uint64_t next; /* the id of the next instance */
    int64_t now_ns;
    uint64_t seed;
    const char *profile; /* NULL: the default profile */
    struct berth_policy policy;
    struct berth_snapshot *s;
    struct berth_plan *p; /* of the last scene_plan */
};

/* Initialises a list and its length among the fields of a description. */
#define LIST(field, type, ...)                                                                                         \
    .field = (const type[]){__VA_ARGS__}, .field##_len = sizeof((const type[]){__VA_ARGS__}) / sizeof(type)
#define NAMES(field, ...) LIST(field, char *const, __VA_ARGS__)
#define HAS(cpu, memory) LIST(allocatable, struct berth_amount, {"cpu", cpu}, {"memory", memory})
#define NEEDS(cpu, memory) LIST(requests, struct berth_amount, {"cpu", cpu}, {"memory", memory})
#define LABEL(name, text) LIST(labels, struct berth_label, {name, text})
#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

static inline struct scene scene_new(void)
{
    return (struct scene){.c = berth_cluster_new(), .next = 1, .now_ns = 1000 * SCENE_SECOND_NS};
}

static inline void scene_reset(struct scene *s)
{
    berth_plan_free(s->p);
    berth_snapshot_free(s->s);
    s->p = NULL;
    s->s = NULL;
}

static inline void scene_cleanup(struct scene *s)
{
    scene_reset(s);
    berth_cluster_free(s->c);
}

static inline void scene_check(struct scene *s, int rc)
{
    if (rc)
        fail_msg("%s", s->err.text);
}

static inline void scene_audit(struct scene *s)
{
    scene_check(s, berth_audit(s->c, &s->err));
}

/* ---- putting objects -------------------------------------------------------------------------------------------- */

static inline void scene_put_node(struct scene *s, struct berth_node n)
{
    scene_check(s, berth_node_put(s->c, &n, &s->err));
}

static inline void scene_node(struct scene *s, const char *id, int64_t cpu, int64_t memory)
{
    scene_put_node(s, (struct berth_node){.id = id, HAS(cpu, memory)});
}

/* Puts the node in another state, from now on. */
static inline void scene_state(struct scene *s, const char *id, int64_t cpu, int64_t memory,
                               enum berth_node_state state)
{
    scene_put_node(s, (struct berth_node){.id = id, .state = state, .since_ns = s->now_ns, HAS(cpu, memory)});
}

static inline void scene_put(struct scene *s, struct berth_workload w)
{
    scene_check(s, berth_workload_put(s->c, &w, &s->err));
}

static inline void scene_service(struct scene *s, const char *id, uint32_t replicas, int64_t cpu, int64_t memory)
{
    scene_put(s, (struct berth_workload){.id = id, .replicas = replicas, .shape = {NEEDS(cpu, memory)}});
}

static inline void scene_instance(struct scene *s, struct berth_instance i)
{
    if (i.id == 0)
        i.id = s->next;
    s->next = i.id >= s->next ? i.id + 1 : s->next;
    scene_check(s, berth_instance_put(s->c, &i, &s->err));
}

/* Puts a running, ready instance. */
static inline void scene_running(struct scene *s, const char *workload, uint32_t ordinal, const char *node)
{
    scene_instance(s, (struct berth_instance){.workload = workload,
                                              .ordinal = ordinal,
                                              .node = node,
                                              .state = BERTH_RUNNING,
                                              .ready = true,
                                              .since_ns = s->now_ns});
}

/* Puts a running, ready instance that reports use. */
static inline void scene_running_with_use(struct scene *s, uint64_t id, const char *workload, uint32_t ordinal,
                                          const char *node, int64_t cpu, int64_t memory)
{
    struct berth_usage usage[] = {
        {.resource = "cpu",    .used = cpu   },
        {.resource = "memory", .used = memory}
    };
    scene_instance(s, (struct berth_instance){.id = id,
                                              .workload = workload,
                                              .ordinal = ordinal,
                                              .node = node,
                                              .state = BERTH_RUNNING,
                                              .ready = true,
                                              .since_ns = 1,
                                              .usage = usage,
                                              .usage_len = 2});
}

/* Puts a new state of an instance, as reported by an agent. */
static inline void scene_report(struct scene *s, uint64_t id, enum berth_state state, bool ready)
{
    uint32_t slot = cluster_instance_find(s->c, id);
    assert_true(slot != NONE);
    struct instance was = *cluster_instance(s->c, slot);
    struct berth_instance i = {.id = id,
                               .workload = intern_text(&s->c->names, cluster_workload(s->c, was.workload.v)->id),
                               .ordinal = was.ordinal,
                               .node = intern_text(&s->c->names, cluster_node(s->c, was.node.v)->body->id),
                               .state = state,
                               .ready = ready,
                               .since_ns = s->now_ns,
                               .gpus = was.gpus,
                               .replaces = was.replaces};
    scene_check(s, berth_instance_put(s->c, &i, &s->err));
}

/* Removes an instance that was confirmed to have stopped. */
static inline void scene_remove(struct scene *s, uint64_t id)
{
    scene_check(s, berth_instance_remove(s->c, id, &s->err));
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

static inline void scene_plan(struct scene *s)
{
    struct berth_policy policy = s->policy;
    policy.profile = s->profile ? berth_profile_find(s->profile) : NULL;
    scene_reset(s);
    s->s = berth_freeze(s->c, s->now_ns, s->seed);
    scene_check(s, berth_plan_make(s->s, &policy, &s->p, &s->err));
}

static inline void scene_line(struct berth_action a, char *to, size_t room)
{
    int n = snprintf(to, room, "%s %s/%u %s %s", berth_op_name(a.op), a.workload, a.ordinal, a.node,
                     berth_cause_name(a.cause));
    if (a.instance)
        n += snprintf(to + n, room - (size_t)n, " #%llu", (unsigned long long)a.instance);
    if (a.replaces)
        n += snprintf(to + n, room - (size_t)n, " for %llu", (unsigned long long)a.replaces);
    for (size_t i = 0; i < a.waits_len; i++)
        n += snprintf(to + n, room - (size_t)n, "%s%llu", i ? "," : " after ", (unsigned long long)a.waits[i]);
    if (a.op == BERTH_ADJUST)
        n += snprintf(to + n, room - (size_t)n, " %s=%lld", a.resource, (long long)a.limit);
    assert_true((size_t)n < room);
}

/* Writes the actions of the last plan in its order. */
static inline void scene_text(const struct scene *s, char *to)
{
    size_t len = 0;
    *to = '\0';
    for (size_t i = 0; i < berth_plan_actions(s->p); i++) {
        char line[1024];
        scene_line(berth_plan_action(s->p, i), line, sizeof line);
        assert_true(len + strlen(line) + 3 < SCENE_TEXT_MAX);
        len += (size_t)snprintf(to + len, SCENE_TEXT_MAX - len, "%s%s", len ? "; " : "", line);
    }
}

static inline int scene_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the actions in a text. */
static inline void scene_sort(const char *text, char *to)
{
    char copy[SCENE_TEXT_MAX];
    char *at[SCENE_ACTIONS_MAX];
    size_t len = 0, used = 0;

    assert_true(strlen(text) < sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    for (char *from = copy; from && *from;) {
        char *end = strstr(from, "; ");
        if (end) {
            *end = '\0';
            end += 2;
        }
        assert_true(len < SCENE_ACTIONS_MAX);
        at[len++] = from;
        from = end;
    }
    qsort(at, len, sizeof *at, scene_compare);
    *to = '\0';
    for (size_t i = 0; i < len; i++)
        used += (size_t)snprintf(to + used, SCENE_TEXT_MAX - used, "%s%s", i ? "; " : "", at[i]);
}

static inline void scene_expect(struct scene *s, const char *want)
{
    char raw[SCENE_TEXT_MAX], got[SCENE_TEXT_MAX], sorted[SCENE_TEXT_MAX];
    scene_plan(s);
    scene_text(s, raw);
    scene_sort(raw, got);
    scene_sort(want, sorted);
    assert_string_equal(got, sorted);
}

/* Applies the last plan. Checks that the audit passes and that nothing is left to do. */
static inline void scene_apply(struct scene *s)
{
    char left[SCENE_TEXT_MAX];
    size_t over = berth_nodes_over_capacity(s->c);
    scene_check(s, berth_apply(s->c, s->p, s->next, &s->err));
    for (size_t i = 0; i < berth_plan_actions(s->p); i++) {
        enum berth_op op = berth_plan_action(s->p, i).op;
        s->next += op == BERTH_PLACE || op == BERTH_RESERVE;
    }
    scene_audit(s);
    assert_true(berth_nodes_over_capacity(s->c) <= over);
    scene_plan(s);
    scene_text(s, left);
    assert_string_equal(left, "");
}

static inline void scene_expect_and_apply(struct scene *s, const char *want)
{
    scene_expect(s, want);
    scene_apply(s);
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

/* Returns how many pods of the workload the last plan left pending. */
static inline size_t scene_pending(struct scene *s, const char *workload)
{
    size_t n = 0;
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++) {
        struct berth_pending p = berth_plan_pending(s->p, i);
        n += strcmp(p.workload, workload) == 0 ? p.ordinals_len : 0;
    }
    return n;
}

/* Returns the reason `word` of the pending workload; fails if there is none. */
static inline struct berth_reason scene_reason(struct scene *s, const char *workload, const char *word)
{
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++) {
        struct berth_pending p = berth_plan_pending(s->p, i);
        for (size_t r = 0; strcmp(p.workload, workload) == 0 && r < p.reasons_len; r++)
            if (strcmp(p.reasons[r].reason, word) == 0)
                return p.reasons[r];
    }
    fail_msg("%s is not left over for the reason %s", workload, word);
    return (struct berth_reason){"", "", 0, 0, ""};
}

/* ---- random numbers --------------------------------------------------------------------------------------------- */

static inline uint64_t scene_random(uint64_t *seed)
{
    return hash_u64(*seed += 0x9e3779b97f4a7c15u);
}

/* Draws a number below n. */
static inline uint32_t scene_random_below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(scene_random(seed) % n);
}

static inline uint64_t scene_seed(void)
{
    const char *set = getenv("BERTH_TEST_SEED");
    uint64_t seed = set ? strtoull(set, NULL, 0) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* Returns a cluster of nodes a, b, ... with 1000 cpu and 1000 memory each. */
static inline struct scene scene_with_nodes(size_t nodes)
{
    struct scene s = scene_new();
    for (size_t i = 0; i < nodes; i++) {
        const char id[] = {(char)('a' + i), '\0'};
        scene_node(&s, id, 1000, 1000);
    }
    return s;
}

/* Changes the state of one of these nodes. */
static inline void scene_set_node_state(struct scene *s, const char *node, enum berth_node_state to)
{
    scene_state(s, node, 1000, 1000, to);
}
