/* preempt_test.c - who is stopped for whom, who is not, and that it comes to an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene_test.h"

#define MINUTE_NS (60 * SCENE_SECOND_NS)

/* Nodes a, b, ... of 1000; it is noon, and what runs has run for an hour if nothing else is said. */
static struct scene stage(size_t nodes)
{
    struct scene s = scene_stage(nodes);
    s.now_ns = 12 * 60 * MINUTE_NS;
    s.policy.preemption.on = s.policy.preemption.services = true;
    return s;
}

static void job(struct scene *s, const char *id, int32_t priority, uint32_t tasks, int64_t cpu)
{
    scene_put(s, (struct berth_workload){
                     .id = id, .kind = BERTH_JOB, .replicas = tasks, .priority = priority, .shape = {NEEDS(cpu, 1)}});
}

static void gang(struct scene *s, const char *id, int32_t priority, uint32_t tasks, uint32_t least, int64_t cpu)
{
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = tasks,
                                         .gang = id,
                                         .gang_min = least,
                                         .priority = priority,
                                         .shape = {NEEDS(cpu, 1)}});
}

/* A task that has been running for some minutes. */
static void runs(struct scene *s, const char *workload, uint32_t ordinal, const char *node, int64_t minutes)
{
    scene_instance(s, (struct berth_instance){.workload = workload,
                                              .ordinal = ordinal,
                                              .node = node,
                                              .state = BERTH_RUNNING,
                                              .ready = true,
                                              .since_ns = s->now_ns - minutes * MINUTE_NS});
}

/* ---- one for one ------------------------------------------------------------------------------------------------- */

/* `low` runs alone on the only node; `high` wants it. */
static void who_may_stop_whom(void **state)
{
    static const struct {
        const char *label;
        int32_t low, high;
        bool off, unpreemptible;
        int64_t min_run, own_min_run, minutes;
        const char *want;
        int64_t recheck_minutes; /* from now; 0: none */
    } rows[] = {
        {"a higher priority",       0, 1, false, false, 0,  0,  60,
         "stop low/0 a preempted #1; reserve high/0 a pending after 1",                                                            0},
        {"the same",                1, 1, false, false, 0,  0,  60, "",                                                            0},
        {"a lower one",             2, 1, false, false, 0,  0,  60, "",                                                            0},
        {"not by this policy",      0, 1, true,  false, 0,  0,  60, "",                                                            0},
        {"not this one",            0, 1, false, true,  0,  0,  60, "",                                                            0},
        {"too young by the policy", 0, 1, false, false, 10, 0,  9,  "",                                                            1},
        {"too young by itself",     0, 1, false, false, 10, 20, 15, "",                                                            5},
        {"old enough",              0, 1, false, false, 10, 5,  10, "stop low/0 a preempted #1; reserve high/0 a pending after 1", 0},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(1);
        s.policy.preemption.on = !rows[i].off;
        s.policy.preemption.min_run_ns = rows[i].min_run * MINUTE_NS;
        scene_put(&s, (struct berth_workload){.id = "low",
                                              .kind = BERTH_JOB,
                                              .replicas = 1,
                                              .priority = rows[i].low,
                                              .unpreemptible = rows[i].unpreemptible,
                                              .min_run_ns = rows[i].own_min_run * MINUTE_NS,
                                              .shape = {NEEDS(800, 1)}});
        job(&s, "high", rows[i].high, 1, 500);
        runs(&s, "low", 0, "a", rows[i].minutes);
        print_message("%s\n", rows[i].label);
        scene_step(&s, rows[i].want);
        if (rows[i].recheck_minutes)
            assert_int_equal(berth_plan_recheck_ns(s.p), s.now_ns + rows[i].recheck_minutes * MINUTE_NS);
        scene_cleanup(&s);
    }
}

/* ---- least harm --------------------------------------------------------------------------------------------------- */

struct resident {
    const char *id;
    int32_t priority;
    int64_t cpu;
    const char *node;
    int64_t minutes;
};

/* Of what runs on a and b, who makes room for one of 500 of priority 9? */
static void the_least_harm_is_done(void **state)
{
    static const struct {
        const char *label;
        struct resident at[5];
        const char *want;
    } rows[] = {
        {"the lowest tier, however long it has run",
         {{"p", 1, 600, "a", 90}, {"q", 2, 600, "b", 1}},
         "stop p/0 a preempted #1; reserve new/0 a pending after 1"                           },
        {"then the least work",
         {{"p", 1, 600, "a", 90}, {"q", 1, 600, "b", 1}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"work is time times size",
         {{"p", 1, 900, "a", 30}, {"q", 1, 600, "b", 40}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"one that is too large rather than two of a higher tier",
         {{"p", 2, 300, "a", 1}, {"q", 2, 400, "a", 1}, {"r", 1, 1000, "b", 90}},
         "stop r/0 b preempted #3; reserve new/0 b pending after 3"                           },
        {"nobody who is not needed",
         {{"p", 1, 200, "a", 1}, {"q", 1, 500, "a", 2}, {"r", 1, 300, "a", 3}, {"t", 5, 1000, "b", 1}},
         "stop q/0 a preempted #2; reserve new/0 a pending after 2"                           },
        {"nor of several",
         {{"p", 1, 100, "a", 1},
          {"q", 1, 300, "a", 2},
          {"r", 1, 400, "a", 3},
          {"t", 9, 200, "a", 5},
          {"u", 9, 900, "b", 5}},
         "stop p/0 a preempted #1; stop r/0 a preempted #3; reserve new/0 a pending after 1,3"},
        {"the youngest of equals",
         {{"p", 1, 600, "a", 5}, {"q", 1, 600, "b", 5}},
         "stop q/0 b preempted #2; reserve new/0 b pending after 2"                           },
        {"all of a node",
         {{"p", 1, 300, "a", 5}, {"q", 1, 300, "a", 5}, {"r", 10, 400, "a", 5}, {"t", 9, 900, "b", 5}},
         "stop p/0 a preempted #1; stop q/0 a preempted #2; reserve new/0 a pending after 1,2"},
        {"nobody, where that would not be enough",
         {{"p", 1, 400, "a", 5}, {"q", 9, 600, "a", 5}, {"r", 1, 300, "b", 5}, {"t", 9, 600, "b", 5}},
         ""                                                                                   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(2);
        for (size_t n = 0; n < 5 && rows[i].at[n].id; n++) {
            const struct resident *r = &rows[i].at[n];
            job(&s, r->id, r->priority, 1, r->cpu);
            runs(&s, r->id, 0, r->node, r->minutes);
        }
        job(&s, "new", 9, 1, 500);
        print_message("%s\n", rows[i].label);
        scene_step(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* A service keeps its minimum, whoever asks. */
static void services_keep_their_minimum(void **state)
{
    (void)state;
    struct scene s = stage(3);
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 2, .min_available = 2, .priority = 1, .shape = {NEEDS(900, 1)}});
    runs(&s, "web", 0, "a", 1);
    runs(&s, "web", 1, "b", 1);
    job(&s, "low", 5, 1, 900);
    runs(&s, "low", 0, "c", 90);
    job(&s, "new", 9, 1, 600);
    scene_step(&s, "stop low/0 c preempted #3; reserve new/0 c pending after 3");
    job(&s, "more", 9, 1, 600);
    scene_step(&s, "");
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 2, .min_available = 1, .priority = 1, .shape = {NEEDS(900, 1)}});
    scene_step(&s, "stop web/1 b preempted #2; reserve more/0 b pending after 2");
    job(&s, "most", 9, 1, 600);
    scene_step(&s, "");
    scene_cleanup(&s);
}

/* ---- what goes together --------------------------------------------------------------------------------------------- */

static void gangs_go_whole(void **state)
{
    (void)state;
    struct scene s = stage(3);
    gang(&s, "pair", 1, 2, 0, 900);
    runs(&s, "pair", 0, "a", 60);
    runs(&s, "pair", 1, "b", 60);
    job(&s, "one", 2, 1, 900);
    runs(&s, "one", 0, "c", 60);
    job(&s, "new", 9, 2, 700);
    /* the second pod finds room where the other half of the gang was */
    scene_step(&s, "stop pair/0 a preempted #1; stop pair/1 b preempted #2; reserve new/0 a pending after 1; "
                   "reserve new/1 b pending after 2");
    scene_gone(&s, 1);
    scene_step(&s, "promote new/0 a pending #4");
    scene_gone(&s, 2);
    scene_step(&s, "promote new/1 b pending #5");
    scene_cleanup(&s);
}

static void spare_pods_go_first(void **state)
{
    (void)state;
    struct scene s = stage(3);
    gang(&s, "train", 5, 3, 2, 900);
    runs(&s, "train", 0, "a", 1);
    runs(&s, "train", 1, "b", 1);
    runs(&s, "train", 2, "c", 90);
    job(&s, "new", 1, 1, 600); /* even for less: what is spare comes last */
    scene_step(&s, "stop train/2 c preempted #3; reserve new/0 c pending after 3");
    job(&s, "high", 9, 1, 600);
    scene_step(&s, "stop train/0 a preempted #1; stop train/1 b preempted #2; reserve high/0 a pending after 1");
    scene_cleanup(&s);
}

/* A spare pod gives its room once, whether it goes alone or with all. */
static void a_spare_pod_counts_once(void **state)
{
    (void)state;
    struct scene s = stage(1);
    gang(&s, "train", 1, 2, 1, 200);
    runs(&s, "train", 0, "a", 60);
    runs(&s, "train", 1, "a", 60);
    job(&s, "low", 2, 1, 300);
    runs(&s, "low", 0, "a", 60);
    job(&s, "firm", 9, 1, 300);
    runs(&s, "firm", 0, "a", 60);
    job(&s, "new", 5, 1, 600);
    scene_step(&s, "stop train/0 a preempted #1; stop train/1 a preempted #2; stop low/0 a preempted #3; "
                   "reserve new/0 a pending after 1,2,3");
    scene_cleanup(&s);
}

/* A gang gets all its places, or nobody is stopped for it. */
static void all_or_nothing_for_a_gang(void **state)
{
    static const struct {
        uint32_t tasks;
        const char *want;
    } rows[] = {
        {2, "place new/0 c pending; stop low/1 b preempted #2; reserve new/1 b pending after 2"},
        {3, "place new/0 c pending; stop low/0 a preempted #1; stop low/1 b preempted #2; "
            "reserve new/1 b pending after 2; reserve new/2 a pending after 1"      },
        {4, ""                                                                                 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(4);
        job(&s, "low", 1, 2, 800);
        runs(&s, "low", 0, "a", 60);
        runs(&s, "low", 1, "b", 60);
        job(&s, "firm", 9, 1, 800);
        runs(&s, "firm", 0, "d", 60);
        gang(&s, "new", 9, rows[i].tasks, 0, 700);
        scene_step(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* Whoever was chosen before a gang had to go, and need no longer, stays. */
static void nobody_goes_beside_a_gang_in_vain(void **state)
{
    (void)state;
    struct scene s = stage(2);
    gang(&s, "pair", 2, 2, 0, 600);
    runs(&s, "pair", 0, "a", 60);
    runs(&s, "pair", 1, "b", 60);
    job(&s, "low", 1, 1, 400);
    runs(&s, "low", 0, "a", 60);
    gang(&s, "new", 9, 2, 0, 400);
    scene_step(&s, "place new/0 b pending; stop low/0 a preempted #3; reserve new/1 a pending after 3");
    scene_cleanup(&s);
    s = stage(2);
    gang(&s, "pair", 2, 2, 0, 600);
    runs(&s, "pair", 0, "a", 60);
    runs(&s, "pair", 1, "b", 60);
    job(&s, "low", 1, 1, 400);
    runs(&s, "low", 0, "a", 60);
    job(&s, "firm", 9, 1, 400);
    runs(&s, "firm", 0, "b", 60);
    gang(&s, "new", 9, 2, 0, 400);
    scene_step(&s, "stop pair/0 a preempted #1; stop pair/1 b preempted #2; reserve new/0 a pending after 1; "
                   "reserve new/1 b pending after 2");
    scene_cleanup(&s);
}

/* One who goes takes along whoever was to take over from it. */
static void a_move_ends_with_its_pod(void **state)
{
    (void)state;
    struct scene s = stage(3);
    scene_put(&s, (struct berth_workload){.id = "web", .replicas = 2, .priority = 1, .shape = {NEEDS(900, 1)}});
    runs(&s, "web", 0, "a", 60);
    scene_instance(
        &s,
        (struct berth_instance){
            .workload = "web", .node = "b", .state = BERTH_STARTING, .since_ns = s.now_ns - MINUTE_NS, .replaces = 1});
    runs(&s, "web", 1, "c", 90);
    job(&s, "new", 9, 1, 500);
    scene_plan(&s);
    scene_step(&s, "stop web/0 a preempted #1; stop web/0 b preempted #2; reserve new/0 a pending after 1; "
                   "reserve web/0 b pending after 2");
    scene_cleanup(&s);
}

/* ---- more than room -------------------------------------------------------------------------------------------------- */

static void ports_and_gpus(void **state)
{
    (void)state;
    struct scene s = scene_new();
    s.now_ns = 12 * 60 * MINUTE_NS;
    s.policy.preemption.on = s.policy.preemption.services = true;
    struct berth_gpu gpus[] = {
        {"x", 100},
        {"x", 100},
        {"x", 100}
    };
    scene_put_node(&s, (struct berth_node){.id = "a", HAS(1000, 1000), .gpus = gpus, .gpus_len = 3});
    scene_put(&s, (struct berth_workload){
                      .id = "small", .kind = BERTH_JOB, .replicas = 3, .shape = {NEEDS(10, 1), .gpu = {.count = 1}}
    });
    for (uint32_t i = 0; i < 3; i++)
        scene_instance(&s, (struct berth_instance){.workload = "small",
                                                   .ordinal = i,
                                                   .node = "a",
                                                   .state = BERTH_RUNNING,
                                                   .gpus = (uint64_t)1 << i,
                                                   .since_ns = s.now_ns - (60 - i) * MINUTE_NS});
    scene_put(&s, (struct berth_workload){
                      .id = "wide",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .priority = 1,
                      .shape = {NEEDS(10, 1), .gpu = {.count = 2}}
    });
    scene_step(&s, "stop small/1 a preempted #2; stop small/2 a preempted #3; reserve wide/0 a pending after 2,3");
    scene_put(&s, (struct berth_workload){
                      .id = "old",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .shape = {NEEDS(10, 1), LIST(ports, struct berth_port, {BERTH_TCP, 80})}
    });
    runs(&s, "old", 0, "a", 5);
    scene_put(&s, (struct berth_workload){
                      .id = "web",
                      .replicas = 1,
                      .priority = 2,
                      .shape = {NEEDS(10, 1), LIST(ports, struct berth_port, {BERTH_TCP, 80})}
    });
    scene_step(&s, "stop old/0 a preempted #5; reserve web/0 a pending after 2,3,5");
    scene_cleanup(&s);
}

/* Filters that stops cannot change are held. */
static void nobody_stops_in_vain(void **state)
{
    (void)state;
    struct scene s = stage(2);
    job(&s, "low", 1, 2, 900);
    runs(&s, "low", 0, "a", 60);
    runs(&s, "low", 1, "b", 60);
    scene_put(
        &s, (struct berth_workload){
                .id = "there", .kind = BERTH_JOB, .replicas = 1, .priority = 9, .shape = {NEEDS(500, 1), .node = "c"}
    });
    struct berth_term app = {LIST(exprs, struct berth_expr, {"app", BERTH_EXISTS, NULL, 0})};
    struct berth_near near = {.topology = "node", .select = app};
    scene_put(&s, (struct berth_workload){
                      .id = "near",
                      .kind = BERTH_JOB,
                      .replicas = 1,
                      .priority = 9,
                      .shape = {NEEDS(500, 1), .near = &near, .near_len = 1}
    });
    scene_step(&s, "");
    assert_int_equal(scene_pending(&s, "there"), 1);
    scene_cleanup(&s);
}

/* ---- quotas ---------------------------------------------------------------------------------------------------------- */

static void quota_job(struct scene *s, const char *id, int32_t priority, const char *quota)
{
    const char *const quotas[] = {quota};
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = BERTH_JOB,
                                         .replicas = 1,
                                         .priority = priority,
                                         .quotas = quotas,
                                         .quotas_len = 1,
                                         .shape = {NEEDS(400, 1)}});
}

/* Of two users one has reached the limit: only that user's own work can make room. */
static void a_full_quota_gives_its_own(void **state)
{
    static const struct {
        int32_t own, others;
        const char *want;
    } rows[] = {
        {1, 0, "stop ann1/0 a preempted #1; reserve new/0 a pending after 1"},
        {9, 0, ""                                                           },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct scene s = stage(3);
        struct berth_quota ann = {.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 400})};
        scene_must(&s, berth_quota_put(s.c, &ann, &s.err));
        quota_job(&s, "ann1", rows[i].own, "user/ann");
        quota_job(&s, "bob1", rows[i].others, "user/bob");
        runs(&s, "ann1", 0, "a", 60);
        runs(&s, "bob1", 0, "b", 1);
        quota_job(&s, "new", 5, "user/ann");
        scene_step(&s, rows[i].want);
        scene_cleanup(&s);
    }
}

/* What was tried and taken back leaves no trace: ann's limit is as full as before, though there will be room on c. */
static void what_is_taken_back_holds_its_quota(void **state)
{
    (void)state;
    struct scene s = stage(3);
    struct berth_quota ann = {.id = "user/ann", LIST(limits, struct berth_amount, {"cpu", 400})};
    scene_must(&s, berth_quota_put(s.c, &ann, &s.err));
    quota_job(&s, "ann1", 1, "user/ann");
    quota_job(&s, "ann2", 0, "user/ann");
    job(&s, "firm", 9, 2, 600);
    job(&s, "full", 9, 1, 1000);
    runs(&s, "ann1", 0, "a", 60);
    runs(&s, "firm", 0, "a", 60);
    runs(&s, "full", 0, "b", 60);
    runs(&s, "firm", 1, "c", 60);
    scene_instance(&s, (struct berth_instance){.workload = "old",
                                               .node = "c",
                                               .state = BERTH_STOPPING,
                                               .since_ns = 1,
                                               .shape = &(struct berth_shape){NEEDS(400, 1)}});
    gang(&s, "new", 9, 3, 0, 400);
    scene_step(&s, "");
    assert_int_equal(scene_pending(&s, "new"), 3);
    assert_int_equal(scene_pending(&s, "ann2"), 1);
    scene_cleanup(&s);
}

/* What is borrowed goes back to whom it is guaranteed, whatever the priorities. */
static void what_is_borrowed_is_reclaimed(void **state)
{
    (void)state;
    struct scene s = stage(2);
    struct berth_quota quotas[] = {
        {.id = "group/x", LIST(guarantees, struct berth_amount, {"cpu", 800})},
        {.id = "group/y", LIST(guarantees, struct berth_amount, {"cpu", 800})},
    };
    for (size_t i = 0; i < 2; i++)
        scene_must(&s, berth_quota_put(s.c, &quotas[i], &s.err));
    static const char *const names[] = {"x1", "x2", "x3", "x4"}, *const nodes[] = {"a", "a", "b", "b"};
    for (uint32_t i = 0; i < 4; i++) {
        quota_job(&s, names[i], 5, "group/x");
        runs(&s, names[i], 0, nodes[i], 60 - (int64_t)i);
    }
    quota_job(&s, "y1", 1, "group/y");
    quota_job(&s, "y2", 1, "group/y");
    quota_job(&s, "y3", 1, "group/y"); /* beyond its own guarantee, and of a lower priority */
    scene_step(&s, "stop x3/0 b preempted #3; stop x4/0 b preempted #4; reserve y1/0 b pending after 4; "
                   "reserve y2/0 b pending after 3,4");
    scene_cleanup(&s);
}

/* A pod that comes back by right does not take the place of another of the same service that is borrowed. */
static void nobody_goes_for_its_own(void **state)
{
    (void)state;
    struct scene s = stage(2);
    struct berth_quota x = {.id = "group/x", LIST(guarantees, struct berth_amount, {"cpu", 1000})};
    scene_must(&s, berth_quota_put(s.c, &x, &s.err));
    scene_put(&s, (struct berth_workload){
                      .id = "web", .replicas = 3, .priority = 1, NAMES(quotas, "group/x"), .shape = {NEEDS(500, 1)}});
    runs(&s, "web", 0, "a", 60);
    runs(&s, "web", 1, "b", 60);
    runs(&s, "web", 2, "a", 60);
    scene_put(&s,
              (struct berth_workload){
                  .id = "new", .kind = BERTH_JOB, .replicas = 1, .priority = 9, .shape = {NEEDS(700, 1), .node = "b"}
    });
    scene_step(&s, "stop web/1 b preempted #2; reserve new/0 b pending after 2");
    scene_cleanup(&s);
}

/* ---- bounds ---------------------------------------------------------------------------------------------------------- */

static void so_many_at_a_time(void **state)
{
    (void)state;
    struct scene s = stage(4);
    s.policy.preemption.most = 3;
    job(&s, "low", 1, 4, 900);
    const char *const nodes[] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < 4; i++)
        runs(&s, "low", i, nodes[i], 60);
    job(&s, "new", 9, 4, 900);
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), 6);
    scene_apply(&s);
    s.now_ns += MINUTE_NS;
    scene_plan(&s);
    assert_int_equal(berth_plan_actions(s.p), 2);
    scene_apply(&s);
    scene_cleanup(&s);
}

/* ---- chance ---------------------------------------------------------------------------------------------------------- */

enum { NODES = 4, JOBS = 14 };

struct told {
    uint32_t tasks, least; /* of a gang, else 0 */
    int32_t priority;
    int64_t cpu, created_ns;
    bool service;
    const char *quota; /* NULL: none */
};

struct chance {
    struct scene s;
    uint64_t seed;
    struct told told[JOBS];
    uint32_t len;
    bool guaranteed;
};

static uint32_t number_of(const char *id)
{
    return (uint32_t)atoi(id + 1);
}

static void put_quotas(struct scene *s)
{
    const struct berth_quota quotas[] = {
        {.id = "group/x",
         LIST(limits,                          struct berth_amount, {"cpu", 2000}),
         LIST(guarantees, struct berth_amount, {"cpu", 1000})},
        {.id = "group/y", LIST(guarantees, struct berth_amount,                    {"cpu", 1500})                   },
    };
    for (size_t i = 0; i < 2; i++)
        scene_must(s, berth_quota_put(s->c, &quotas[i], &s->err));
}

static void put_told(struct scene *s, const struct told *t, uint32_t n)
{
    char id[16];
    snprintf(id, sizeof id, "j%u", n);
    scene_put(s, (struct berth_workload){.id = id,
                                         .kind = t->service ? BERTH_SERVICE : BERTH_JOB,
                                         .replicas = t->tasks,
                                         .gang = t->least ? id : NULL,
                                         .gang_min = t->least,
                                         .priority = t->priority,
                                         .quotas = &t->quota,
                                         .quotas_len = t->quota ? 1 : 0,
                                         .created_ns = t->created_ns,
                                         .shape = {NEEDS(t->cpu, 1)}});
}

static void put_another(struct chance *x)
{
    struct told *t = &x->told[x->len];
    t->tasks = 1 + scene_below(&x->seed, 3);
    t->least = scene_below(&x->seed, 3) ? 0 : 1 + scene_below(&x->seed, t->tasks);
    t->priority = (int32_t)scene_below(&x->seed, 4);
    t->cpu = 100 * (1 + scene_below(&x->seed, 8));
    t->service = !t->least && scene_below(&x->seed, 4) == 0;
    t->quota = scene_below(&x->seed, 3) == 0 ? NULL : scene_below(&x->seed, 2) ? "group/x" : "group/y";
    t->created_ns = x->s.now_ns;
    put_told(&x->s, t, x->len++);
}

/* Is there a promise that waits for the instance? */
static bool is_awaited(const struct berth_plan *p, struct berth_action stop)
{
    for (size_t i = 0; i < berth_plan_actions(p); i++) {
        struct berth_action a = berth_plan_action(p, i);
        for (size_t n = 0; a.op == BERTH_RESERVE && n < a.waits_len; n++)
            if (a.waits[n] == stop.instance)
                return true;
    }
    return false;
}

/* Or is there one on the node of some pod of its gang, all of which go? One that was only promised a place is not waited for. */
static bool is_of_use(const struct berth_plan *p, struct berth_action stop)
{
    for (size_t i = 0; i < berth_plan_actions(p); i++) {
        struct berth_action mate = berth_plan_action(p, i);
        bool goes = mate.cause == BERTH_CAUSE_PREEMPTED && strcmp(mate.workload, stop.workload) == 0;
        for (size_t n = 0; goes && n < berth_plan_actions(p); n++) {
            struct berth_action a = berth_plan_action(p, n);
            if (a.op == BERTH_RESERVE && strcmp(a.node, mate.node) == 0)
                return true;
        }
    }
    return false;
}

/* Who is stopped is awaited, and of a lower tier than somebody who gains by it. */
static void check_stops(const struct chance *x)
{
    const struct berth_plan *p = x->s.p;
    int32_t highest = INT32_MIN;
    assert_true(berth_plan_stats(p).unplaced <= 3 * JOBS); /* no pod is wished for twice */
    for (size_t i = 0; i < berth_plan_actions(p); i++) {
        struct berth_action a = berth_plan_action(p, i);
        if (a.op == BERTH_RESERVE && x->told[number_of(a.workload)].priority > highest)
            highest = x->told[number_of(a.workload)].priority;
    }
    for (size_t i = 0; i < berth_plan_actions(p); i++) {
        struct berth_action a = berth_plan_action(p, i);
        if (a.cause != BERTH_CAUSE_PREEMPTED)
            continue;
        const struct told *t = &x->told[number_of(a.workload)];
        bool elastic = t->least && t->least < t->tasks;
        assert_true(t->least ? is_of_use(p, a) : is_awaited(p, a));
        assert_true(x->guaranteed || elastic || t->priority < highest);
    }
}

/* Gangs have nothing or their minimum, and no quota is exceeded. */
static void check_cluster(const struct chance *x)
{
    const struct berth_cluster *c = x->s.c;
    struct berth_quota_use use;
    if (berth_quota_use(c, "group/x", "cpu", &use) && x->guaranteed)
        assert_true(use.held <= 2000);
    for (uint32_t w = 0; w < c->workloads.len; w++) {
        const struct workload *of = cluster_workload(c, w);
        uint32_t has = 0;
        for (uint32_t i = of->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
            has += cluster_instance(c, i)->state != BERTH_STOPPING;
        assert_true(of->gang == NONE || has == 0 || has >= of->gang_min);
    }
}

/* The same told in another order gives the same plan. */
static void check_order(struct chance *x)
{
    struct scene s = scene_new();
    s.now_ns = x->s.now_ns;
    s.policy = x->s.policy;
    for (size_t i = NODES; i-- > 0;) {
        const char id[] = {(char)('a' + i), '\0'};
        scene_node(&s, id, 1000, 1000);
    }
    for (uint32_t n = x->len; n-- > 0;)
        put_told(&s, &x->told[n], n);
    if (x->guaranteed)
        put_quotas(&s);
    for (uint64_t id = x->s.next; id-- > 1;) {
        uint32_t slot = cluster_instance_find(x->s.c, id);
        if (slot == NONE)
            continue;
        const struct instance *i = cluster_instance(x->s.c, slot);
        uint64_t waits[64];
        size_t len = 0;
        const struct wait *w;
        for (uint32_t at = i->state == BERTH_RESERVED ? i->waits : NONE; at != NONE && len < 64; at = w->more) {
            w = pages_at(&x->s.c->waits, at);
            waits[len++] = w->id;
        }
        scene_instance(&s, (struct berth_instance){
                               .id = id,
                               .workload = intern_text(&x->s.c->names, cluster_workload(x->s.c, i->workload.v)->id),
                               .ordinal = i->ordinal,
                               .node = intern_text(&x->s.c->names, i->node_id),
                               .state = i->state,
                               .ready = i->ready,
                               .since_ns = i->since_ns,
                               .waits = waits,
                               .waits_len = len});
    }
    scene_plan(&s);
    char one[SCENE_TEXT_MAX], two[SCENE_TEXT_MAX];
    scene_text(&x->s, one);
    scene_text(&s, two);
    assert_string_equal(one, two);
    scene_cleanup(&s);
}

static void plan_and_apply(struct chance *x)
{
    scene_plan(&x->s);
    check_stops(x);
    check_order(x);
    scene_apply(&x->s); /* and nothing is left to do */
    check_cluster(x);
}

/* Instances stop and start, sooner or later. */
static void happen(struct chance *x, bool all)
{
    struct scene *s = &x->s;
    for (uint64_t id = 1; id < s->next; id++) {
        uint32_t slot = cluster_instance_find(s->c, id);
        if (slot == NONE)
            continue;
        enum berth_state state = cluster_instance(s->c, slot)->state;
        if (!all && scene_below(&x->seed, 3) == 0)
            continue;
        if (state == BERTH_STOPPING)
            scene_gone(s, id);
        else if (state == BERTH_ASSIGNED || state == BERTH_STARTING)
            scene_report(s, id, BERTH_RUNNING, true);
    }
}

/* Nothing new comes: all that is told is done, until nothing is left. Two who stop each other would never get there. */
static void it_comes_to_an_end(struct chance *x)
{
    for (unsigned round = 0; round < 60; round++) {
        x->s.now_ns += 2 * MINUTE_NS;
        scene_plan(&x->s);
        if (berth_plan_actions(x->s.p) == 0 && x->s.c->stopping == 0)
            return;
        plan_and_apply(x);
        happen(x, true);
    }
    fail_msg("it does not come to an end");
}

static void chances(void **state)
{
    uint64_t seed = scene_seed();
    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        struct chance x = {.s = stage(NODES), .seed = seed + round, .guaranteed = round % 2};
        if (x.guaranteed)
            put_quotas(&x.s);
        x.s.policy.preemption.min_run_ns = scene_below(&x.seed, 2) ? MINUTE_NS : 0;
        while (x.len < JOBS) {
            put_another(&x);
            plan_and_apply(&x);
            happen(&x, false);
            x.s.now_ns += (int64_t)scene_below(&x.seed, 120) * SCENE_SECOND_NS;
        }
        it_comes_to_an_end(&x);
        scene_cleanup(&x.s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_stop_whom),
        cmocka_unit_test(the_least_harm_is_done),
        cmocka_unit_test(services_keep_their_minimum),
        cmocka_unit_test(gangs_go_whole),
        cmocka_unit_test(spare_pods_go_first),
        cmocka_unit_test(a_spare_pod_counts_once),
        cmocka_unit_test(all_or_nothing_for_a_gang),
        cmocka_unit_test(nobody_goes_beside_a_gang_in_vain),
        cmocka_unit_test(a_move_ends_with_its_pod),
        cmocka_unit_test(ports_and_gpus),
        cmocka_unit_test(nobody_stops_in_vain),
        cmocka_unit_test(a_full_quota_gives_its_own),
        cmocka_unit_test(what_is_taken_back_holds_its_quota),
        cmocka_unit_test(what_is_borrowed_is_reclaimed),
        cmocka_unit_test(nobody_goes_for_its_own),
        cmocka_unit_test(so_many_at_a_time),
        cmocka_unit_test(chances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
