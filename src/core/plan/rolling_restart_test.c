/* rolling_restart_test.c - rolling restarts of services with topology constraints: pods are replaced a few at a time,
 * and the spread is even at the end, whatever else runs on the nodes and however long each pod takes to stop and to
 * start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

enum { ZONES = 3, NODES_OF_ZONE = 3, PODS_MAX = 256, STEPS_MAX = 400, ROUNDS = 40 };

struct pod {
    uint64_t id;
    uint32_t zone;
    enum berth_state state;
    bool outdated;
};

struct restart {
    struct scene s;
    uint64_t seed;
    uint32_t replicas;
    struct pod pods[PODS_MAX];
    size_t len;
};

static const char *node_name(uint32_t zone, uint32_t n, char buf[static 3])
{
    buf[0] = (char)('a' + zone);
    buf[1] = (char)('1' + n);
    buf[2] = '\0';
    return buf;
}

static void pod_add(struct restart *r, uint64_t id, const char *node, enum berth_state state, bool outdated)
{
    assert_true(r->len < PODS_MAX);
    r->pods[r->len++] = (struct pod){id, (uint32_t)(node[0] - 'a'), state, outdated};
}

/* Creates nodes with some load, and an evenly spread service whose pods are all outdated. */
static void restart_begin(struct restart *r, struct berth_workload w, bool soft)
{
    static const char *const web[] = {"web"};
    static const struct berth_expr expr = {"app", BERTH_IN, web, 1};
    const struct berth_spread spread = {
        .topology = "zone", .select = {.exprs = &expr, .exprs_len = 1},
             .max_skew = 1, .soft = soft
    };
    char node[3];
    r->s = scene_new();
    r->s.now_ns = 3600 * SCENE_SECOND_NS;
    for (uint32_t z = 0; z < ZONES; z++)
        for (uint32_t n = 0; n < NODES_OF_ZONE; n++) {
            const char zone[] = {(char)('a' + z), '\0'};
            int64_t cpu = 1000 + 500 * scene_random_below(&r->seed, 3); /* as if other work held the rest */
            scene_put_node(&r->s, (struct berth_node){.id = node_name(z, n, node), .zone = zone, HAS(cpu, 1000)});
        }
    w.id = "web";
    w.replicas = r->replicas;
    w.labels = (const struct berth_label[]){
        {"app", "web"}
    };
    w.labels_len = 1;
    w.shape = (struct berth_shape){NEEDS(100, 10), .spread = &spread, .spread_len = 1};
    scene_put(&r->s, w);
    for (uint32_t i = 0; i < r->replicas; i++) {
        uint32_t zone = (uint32_t)(i % ZONES), n = scene_random_below(&r->seed, NODES_OF_ZONE);
        pod_add(r, r->s.next, node_name(zone, n, node), BERTH_RUNNING, true);
        scene_instance(&r->s, (struct berth_instance){.workload = "web",
                                                      .ordinal = i,
                                                      .node = node,
                                                      .state = BERTH_RUNNING,
                                                      .ready = true,
                                                      .since_ns = 1,
                                                      .outdated = true});
    }
}

static struct pod *pod_find(struct restart *r, uint64_t id)
{
    for (size_t i = 0; i < r->len; i++)
        if (r->pods[i].id == id)
            return &r->pods[i];
    fail_msg("there is no instance %llu", (unsigned long long)id);
    return NULL;
}

/* Records what the last plan does, and applies it. */
static size_t apply_and_record(struct restart *r)
{
    scene_plan(&r->s);
    uint64_t id = r->s.next;
    size_t actions = berth_plan_actions(r->s.p);
    for (size_t i = 0; i < actions; i++) {
        struct berth_action a = berth_plan_action(r->s.p, i);
        struct pod *pod = a.instance ? pod_find(r, a.instance) : NULL;
        if (a.op == BERTH_PLACE || a.op == BERTH_RESERVE)
            pod_add(r, id++, a.node, a.op == BERTH_PLACE ? BERTH_ASSIGNED : BERTH_RESERVED, false);
        else if (a.op == BERTH_PROMOTE)
            pod->state = BERTH_ASSIGNED;
        else
            pod->state = pod->state == BERTH_RESERVED ? BERTH_ENDED : BERTH_STOPPING;
    }
    scene_apply(&r->s);
    return actions;
}

/* Stops and readies some pods at random; returns how many are still stopping or starting. */
static size_t advance_pods(struct restart *r)
{
    size_t under_way = 0;
    r->s.now_ns += 10 * SCENE_SECOND_NS;
    for (size_t i = 0; i < r->len; i++) {
        struct pod *pod = &r->pods[i];
        bool moves = pod->state == BERTH_STOPPING || pod->state == BERTH_ASSIGNED;
        under_way += moves || pod->state == BERTH_RESERVED;
        if (!moves || scene_random_below(&r->seed, 3) == 0)
            continue;
        if (pod->state == BERTH_STOPPING) {
            scene_remove(&r->s, pod->id);
            pod->state = BERTH_ENDED;
        } else {
            scene_report(&r->s, pod->id, BERTH_RUNNING, true);
            pod->state = BERTH_RUNNING;
        }
    }
    return under_way;
}

struct evenness {
    uint32_t pods, outdated, skew;
};

/* Returns the evenness of the pods that are not stopping. */
static struct evenness measure_evenness(const struct restart *r)
{
    uint32_t count[ZONES] = {0}, most = 0, least = UINT32_MAX;
    struct evenness e = {0};
    for (size_t i = 0; i < r->len; i++) {
        bool stays = r->pods[i].state != BERTH_ENDED && r->pods[i].state != BERTH_STOPPING;
        count[r->pods[i].zone] += stays;
        e.pods += stays;
        e.outdated += stays && r->pods[i].outdated;
    }
    for (uint32_t z = 0; z < ZONES; z++) {
        most = count[z] > most ? count[z] : most;
        least = count[z] < least ? count[z] : least;
    }
    e.skew = most - least;
    return e;
}

static void run_restart(struct restart *r, const char *label)
{
    for (size_t step = 0; step < STEPS_MAX; step++) {
        size_t actions = apply_and_record(r);
        struct evenness e = measure_evenness(r);
        uint32_t apart = e.pods > r->replicas ? e.pods - r->replicas : r->replicas - e.pods;
        if (e.skew > 1 + apart)
            fail_msg("%s, seed %llu: a skew of %u with %u of %u pods", label, (unsigned long long)r->seed, e.skew,
                     e.pods, r->replicas);
        if (actions + advance_pods(r) > 0)
            continue;
        if (e.outdated || e.pods != r->replicas || e.skew > 1)
            fail_msg("%s, seed %llu: ends with %u pods of %u, %u outdated, a skew of %u", label,
                     (unsigned long long)r->seed, e.pods, r->replicas, e.outdated, e.skew);
        return;
    }
    fail_msg("%s: the restart does not end", label);
}

static void rolling_restarts_keep_the_spread(void **state)
{
    static const struct {
        const char *label;
        uint32_t replicas, min_available;
        bool soft;
    } rows[] = {
        {"one pod per zone",                  3, 2, false},
        {"one pod per zone, preferred",       3, 2, true },
        {"two pods per zone",                 6, 5, false},
        {"two pods per zone, preferred",      6, 5, true },
        {"several at a time",                 9, 6, false},
        {"several at a time, preferred",      9, 6, true },
        {"the new pod first",                 6, 6, false},
        {"the new pod first, preferred",      6, 6, true },
        {"uneven by one",                     7, 6, false},
        {"uneven by one, preferred",          7, 6, true },
        {"uneven by one, several at a time",  8, 5, false},
        {"uneven by one, several, preferred", 8, 5, true },
    };
    uint64_t seed = scene_seed();
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        for (uint32_t round = 0; round < ROUNDS; round++) {
            struct restart r = {.seed = seed + 1000 * round, .replicas = rows[i].replicas};
            restart_begin(&r, (struct berth_workload){.min_available = rows[i].min_available}, rows[i].soft);
            run_restart(&r, rows[i].label);
            scene_cleanup(&r.s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rolling_restarts_keep_the_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
