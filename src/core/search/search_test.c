/* search_test.c - the search chooses the node that a full scan would: the best score, then the first in the order of
 * nodes.
 *
 * A naive planner places pod by pod in the order of the plan. It knows the formula of the default profile for pods
 * without GPUs (the free share of cpu and of memory; nodes without GPUs before nodes with GPUs), the order of nodes,
 * and gangs. It has no blocks, bounds or remembered results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

enum { NODES_MAX = 1400, WORKLOADS_MAX = 60, CLASSES = 5 };

struct host {
    char id[8];
    uint32_t rank;
    int64_t cpu, memory, cpu_free, memory_free;
    bool gpu;
};

struct group {
    char id[8];
    uint32_t replicas;
    int64_t cpu, memory;
    const char *gang;
};

struct model {
    struct host hosts[NODES_MAX];
    size_t hosts_len;
    struct group groups[WORKLOADS_MAX]; /* in the order of ids, as in the plan */
    size_t groups_len;
    bool most_allocated;
};

/* ---- the naive planner ------------------------------------------------------------------------------------------ */

static int compare_hosts(const void *x, const void *y)
{
    const struct host *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->gpu != b->gpu)
        return a->gpu ? 1 : -1;
    if (a->cpu != b->cpu)
        return a->cpu > b->cpu ? -1 : 1;
    if (a->memory != b->memory)
        return a->memory > b->memory ? -1 : 1;
    return strcmp(a->id, b->id);
}

/* 2^-16 of the capacity, rounded down. Thousandths would make scores equal that differ in the planner. */
static int64_t share(int64_t amount, int64_t capacity)
{
    if (amount <= 0 || capacity <= 0)
        return 0;
    return (int64_t)((unsigned __int128)(uint64_t)amount * (UINT64_MAX / (uint64_t)capacity) >> 48);
}

static int64_t score(const struct model *m, const struct host *h, const struct group *g)
{
    int64_t left = share(h->cpu_free, h->cpu) - share(g->cpu, h->cpu) + share(h->memory_free, h->memory) -
                   share(g->memory, h->memory);
    int64_t half = 30, one = 60 << 16;
    return (m->most_allocated ? -half : half) * left + (h->gpu ? 0 : one);
}

static struct host *best_host(struct model *m, const struct group *g)
{
    struct host *best = NULL;
    for (size_t i = 0; i < m->hosts_len; i++) {
        struct host *h = &m->hosts[i];
        if (h->cpu_free < g->cpu || h->memory_free < g->memory)
            continue;
        if (!best || score(m, h, g) > score(m, best, g))
            best = h;
    }
    return best;
}

/* Finds a node for each pod of the group; false: some pod has no place. */
static bool place_group(struct model *m, const struct group *g, struct host **to)
{
    for (uint32_t r = 0; r < g->replicas; r++) {
        to[r] = best_host(m, g);
        if (!to[r])
            return false;
        to[r]->cpu_free -= g->cpu;
        to[r]->memory_free -= g->memory;
    }
    return true;
}

static void release_group(const struct group *g, struct host **from)
{
    for (uint32_t r = 0; r < g->replicas && from[r]; r++) {
        from[r]->cpu_free += g->cpu;
        from[r]->memory_free += g->memory;
    }
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

static const struct berth_action *find_action(const struct berth_action *at, size_t len, const char *workload,
                                              uint32_t ordinal)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(at[i].workload, workload) == 0 && at[i].ordinal == ordinal)
            return &at[i];
    return NULL;
}

static void compare_group(const struct group *g, struct host **want, const struct berth_action *at, size_t len,
                          uint64_t seed)
{
    for (uint32_t r = 0; r < g->replicas; r++) {
        const struct berth_action *a = find_action(at, len, g->id, r);
        const char *got = a ? a->node : "nowhere", *expected = want[r] ? want[r]->id : "nowhere";
        if (strcmp(got, expected) != 0)
            fail_msg("seed %llu: %s/%u went to %s and not to %s", (unsigned long long)seed, g->id, r, got, expected);
        if (!want[r])
            break;
    }
}

/* Gangs that fail may be tried again after other placements, so the model's gangs never fit. */
static void check_plan(struct scene *s, struct model *m, uint64_t seed)
{
    static struct berth_action at[WORKLOADS_MAX * 64];
    size_t len = berth_plan_actions(s->p);
    assert_true(len < ROWS(at));
    for (size_t i = 0; i < len; i++)
        at[i] = berth_plan_action(s->p, i);
    qsort(m->hosts, m->hosts_len, sizeof *m->hosts, compare_hosts);
    for (size_t i = 0; i < m->groups_len; i++) {
        struct host *want[64] = {NULL};
        struct group *g = &m->groups[i];
        if (!place_group(m, g, want) && g->gang) {
            release_group(g, want);
            memset(want, 0, sizeof want);
        }
        compare_group(g, want, at, len, seed);
    }
}

static void put_model(struct scene *s, const struct model *m)
{
    static const struct berth_gpu gpu = {"x", 1};
    for (size_t i = 0; i < m->hosts_len; i++) {
        const struct host *h = &m->hosts[i];
        scene_put_node(s, (struct berth_node){
                              .id = h->id, .rank = h->rank, .gpus = &gpu, .gpus_len = h->gpu, HAS(h->cpu, h->memory)});
        if (h->cpu_free == h->cpu && h->memory_free == h->memory)
            continue;
        struct berth_shape used = {NEEDS(h->cpu - h->cpu_free, h->memory - h->memory_free)};
        scene_instance(s, (struct berth_instance){.workload = "base",
                                                  .ordinal = (uint32_t)i,
                                                  .node = h->id,
                                                  .state = BERTH_RUNNING,
                                                  .ready = true,
                                                  .shape = &used});
    }
    scene_service(s, "base", (uint32_t)s->next - 1, 0, 0);
    for (size_t i = 0; i < m->groups_len; i++) {
        const struct group *g = &m->groups[i];
        scene_put(s, (struct berth_workload){
                         .id = g->id, .replicas = g->replicas, .gang = g->gang, .shape = {NEEDS(g->cpu, g->memory)}});
    }
}

/* ---- random clusters -------------------------------------------------------------------------------------------- */

struct model_params {
    uint32_t nodes, kinds;
    int64_t fill_percent; /* maximum, of the total capacity */
    bool gangs, gpus, ranks;
    bool wide; /* nodes and pods of very different sizes */
};

static const int64_t wide_cpu[] = {100, 1000, 8000, 64000, 128000};
static const int64_t wide_memory[] = {1000, 1000000, 300000000, 1000000000};
static const char *const profiles[] = {NULL, "pack"};

static void draw_hosts(struct model *m, const struct model_params *d, uint64_t *seed)
{
    m->hosts_len = 1 + scene_random_below(seed, d->nodes);
    for (size_t i = 0; i < m->hosts_len; i++) {
        struct host *h = &m->hosts[i];
        uint32_t kind = scene_random_below(seed, d->kinds);
        *h = (struct host){.cpu = 1000 + 700 * (int64_t)kind, .memory = 1000 + 500 * (int64_t)(kind % 3)};
        if (d->wide) {
            h->cpu = wide_cpu[scene_random_below(seed, ROWS(wide_cpu))];
            h->memory = wide_memory[scene_random_below(seed, ROWS(wide_memory))];
        }
        h->gpu = d->gpus && scene_random_below(seed, 4) == 0;
        h->rank = d->ranks ? scene_random_below(seed, 3) : 0;
        (void)snprintf(h->id, sizeof h->id, "n%04zu", i);
        h->cpu_free = h->cpu - h->cpu * scene_random_below(seed, (uint32_t)d->fill_percent + 1) / 100;
        h->memory_free = h->memory - h->memory * scene_random_below(seed, (uint32_t)d->fill_percent + 1) / 100;
    }
}

static void draw_groups(struct model *m, const struct model_params *d, uint64_t *seed)
{
    m->groups_len = 1 + scene_random_below(seed, WORKLOADS_MAX);
    for (size_t i = 0; i < m->groups_len; i++) {
        struct group *g = &m->groups[i];
        uint32_t class = scene_random_below(seed, CLASSES); /* few, so that searches repeat */
        *g = (struct group){.replicas = 1 + scene_random_below(seed, 30),
                            .cpu = 40 + 130 * (int64_t) class,
                            .memory = 400 - 90 * (int64_t) class};
        (void)snprintf(g->id, sizeof g->id, "w%03zu", i);
        if (d->wide && scene_random_below(seed, 2)) {
            g->cpu *= 200; /* up to 112 cores */
            g->memory *= 1000000;
        }
        if (!d->gangs || scene_random_below(seed, 3))
            continue;
        /* A gang that takes most free resources and then fails, because one pod fits nowhere. */
        g->replicas = 64;
        g->cpu = 900;
        g->gang = g->id;
    }
}

static void run(struct model_params d, int rounds, const char *profile)
{
    static struct model m;
    uint64_t seed = scene_seed();
    for (int round = 0; round < rounds; round++) {
        uint64_t first = seed;
        struct scene s = scene_new();
        m = (struct model){.most_allocated = profile != NULL};
        draw_hosts(&m, &d, &seed);
        draw_groups(&m, &d, &seed);
        s.profile = profile;
        put_model(&s, &m);
        scene_plan(&s);
        check_plan(&s, &m, first);
        scene_check(&s, berth_apply(s.c, s.p, s.next, &s.err));
        scene_audit(&s);
        assert_int_equal(berth_nodes_over_capacity(s.c), 0);
        scene_cleanup(&s);
    }
}

static void finds_best_of_few_nodes(void **state)
{
    (void)state;
    run((struct model_params){.nodes = 30, .kinds = 3, .fill_percent = 60}, 150, NULL);
}

static void finds_best_in_nearly_full_cluster(void **state)
{
    (void)state;
    run((struct model_params){.nodes = 200, .kinds = 4, .fill_percent = 100}, 60, NULL);
}

static void finds_best_of_many_kinds(void **state)
{
    (void)state;
    run((struct model_params){.nodes = NODES_MAX, .kinds = 9, .fill_percent = 90, .gpus = true, .ranks = true}, 12,
        NULL);
}

static void finds_best_of_equal_nodes(void **state)
{
    (void)state;
    run((struct model_params){.nodes = 400, .kinds = 1, .fill_percent = 0}, 25, NULL);
}

static void finds_best_with_pack_profile(void **state)
{
    (void)state;
    run((struct model_params){.nodes = 300, .kinds = 4, .fill_percent = 80}, 40, "pack");
}

/* Every gang takes resources pod by pod and then gives all of them back. */
static void finds_best_after_failed_gangs(void **state)
{
    (void)state;
    run((struct model_params){.nodes = 60, .kinds = 3, .fill_percent = 70, .gangs = true}, 80, NULL);
}

static void finds_best_of_many_nodes_after_failed_gangs(void **state)
{
    (void)state;
    run((struct model_params){.nodes = 900, .kinds = 5, .fill_percent = 100, .gangs = true}, 15, NULL);
}

/* Capacities over six orders of magnitude, and pods larger than whole small nodes. */
static void finds_best_of_large_and_tiny_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(profiles); i++) {
        run((struct model_params){.nodes = 30, .kinds = 1, .fill_percent = 60, .wide = true}, 100, profiles[i]);
        run((struct model_params){.nodes = NODES_MAX, .kinds = 1, .fill_percent = 90, .wide = true}, 8, profiles[i]);
    }
}

/* ---- single cases ----------------------------------------------------------------------------------------------- */

/* There are so many kinds that the tiny node shares its bounds with only some of them, the fullest among these. */
static void tiny_node_does_not_affect_a_large_pod(void **state)
{
    enum { LARGE = 300 };
    static struct model m;
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(profiles); i++) {
        struct scene s = scene_new();
        s.profile = profiles[i / 2];
        m = (struct model){.hosts_len = LARGE + i % 2, .groups_len = 1, .most_allocated = s.profile != NULL};
        for (size_t n = 0; n <= LARGE; n++) {
            int64_t cpu = n == LARGE ? 100 : 128000 - 10 * (int64_t)n;
            m.hosts[n] = (struct host){.cpu = cpu, .cpu_free = cpu, .memory = 1000000, .memory_free = 1000000};
            (void)snprintf(m.hosts[n].id, sizeof m.hosts[n].id, "n%03zu", n);
        }
        m.hosts[LARGE - 1].cpu_free = 121000;
        m.groups[0] = (struct group){"large", 1, 120000, 1000, NULL};
        put_model(&s, &m);
        scene_plan(&s);
        check_plan(&s, &m, 0);
        assert_string_equal(berth_plan_action(s.p, 0).node, s.profile ? "n299" : "n000");
        scene_cleanup(&s);
    }
}

static void equal_scores_go_to_lowest_rank_then_id(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "a", .rank = 7, HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "c", .rank = 3, HAS(1000, 1000)});
    scene_put_node(&s, (struct berth_node){.id = "b", .rank = 3, HAS(1000, 1000)});
    scene_service(&s, "web", 3, 100, 100);
    scene_expect(&s, "place web/0 b pending; place web/1 c pending; place web/2 a pending");
    scene_cleanup(&s);
}

static void exact_fit_is_a_fit(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_node(&s, "a", 1000, 1000);
    scene_service(&s, "web", 1, 1000, 1000);
    scene_expect(&s, "place web/0 a pending");
    scene_service(&s, "web", 1, 1001, 1000);
    scene_expect(&s, "");
    scene_cleanup(&s);
}

/* The node with the best key has no free memory, the one with most memory no free cpu: only one node has both. */
static void only_fitting_node_is_found(void **state)
{
    (void)state;
    struct scene s = scene_new();
    scene_service(&s, "base", 2000, 0, 0);
    for (uint32_t i = 0; i < 500; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "n%03u", i);
        scene_node(&s, id, 1000, 1000);
        struct berth_shape used = {NEEDS(i == 357 ? 899 : i % 2 ? 950 : 0, i == 357 ? 899 : i % 2 ? 0 : 950)};
        scene_instance(&s, (struct berth_instance){
                               .workload = "base", .ordinal = i, .node = id, .state = BERTH_RUNNING, .shape = &used});
    }
    scene_service(&s, "base", 500, 0, 0);
    scene_service(&s, "w1", 1, 101, 101);
    scene_service(&s, "w2", 1, 101, 101);
    scene_expect_and_apply(&s, "place w1/0 n357 pending");
    assert_int_equal(scene_pending(&s, "w2"), 1);
    scene_cleanup(&s);
}

static void nodes_without_the_resource_are_skipped(void **state)
{
    (void)state;
    struct scene s = scene_new();
    for (uint32_t i = 0; i < 300; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "n%03u", i);
        if (i == 211)
            scene_put_node(
                &s, (struct berth_node){.id = id, LIST(allocatable, struct berth_amount, {"cpu", 10}, {"fpga", 2})});
        else
            scene_node(&s, id, 1000, 1000);
    }
    struct berth_shape shape = {LIST(requests, struct berth_amount, {"cpu", 1}, {"fpga", 1})};
    scene_put(&s, (struct berth_workload){.id = "w", .replicas = 3, .shape = shape});
    scene_expect_and_apply(&s, "place w/0 n211 pending; place w/1 n211 pending");
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_best_of_few_nodes),
        cmocka_unit_test(finds_best_in_nearly_full_cluster),
        cmocka_unit_test(finds_best_of_many_kinds),
        cmocka_unit_test(finds_best_of_equal_nodes),
        cmocka_unit_test(finds_best_with_pack_profile),
        cmocka_unit_test(finds_best_after_failed_gangs),
        cmocka_unit_test(finds_best_of_many_nodes_after_failed_gangs),
        cmocka_unit_test(finds_best_of_large_and_tiny_nodes),
        cmocka_unit_test(equal_scores_go_to_lowest_rank_then_id),
        cmocka_unit_test(exact_fit_is_a_fit),
        cmocka_unit_test(only_fitting_node_is_found),
        cmocka_unit_test(nodes_without_the_resource_are_skipped),
        cmocka_unit_test(tiny_node_does_not_affect_a_large_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
