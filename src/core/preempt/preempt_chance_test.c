/* preempt_chance_test.c - random jobs that preempt each other: every step is correct, and preemption ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/preempt/preempt_scene_test.h"

/* ---- random worlds ---------------------------------------------------------------------------------------------- */

enum { NODES = 4, JOBS = 14 };

struct job_spec {
    uint32_t tasks, least; /* of a gang, else 0 */
    int32_t priority;
    int64_t cpu, created_ns;
    bool service;
    const char *quota; /* NULL: none */
};

struct random_world {
    struct scene s;
    uint64_t seed;
    struct job_spec job_spec[JOBS];
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
        scene_check(s, berth_quota_put(s->c, &quotas[i], &s->err));
}

static void put_job_spec(struct scene *s, const struct job_spec *t, uint32_t n)
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

static void put_random_job(struct random_world *x)
{
    struct job_spec *t = &x->job_spec[x->len];
    t->tasks = 1 + scene_random_below(&x->seed, 3);
    t->least = scene_random_below(&x->seed, 3) ? 0 : 1 + scene_random_below(&x->seed, t->tasks);
    t->priority = (int32_t)scene_random_below(&x->seed, 4);
    t->cpu = 100 * (1 + scene_random_below(&x->seed, 8));
    t->service = !t->least && scene_random_below(&x->seed, 4) == 0;
    t->quota = scene_random_below(&x->seed, 3) == 0 ? NULL : scene_random_below(&x->seed, 2) ? "group/x" : "group/y";
    t->created_ns = x->s.now_ns;
    put_job_spec(&x->s, t, x->len++);
}

/* Returns whether a reservation waits for the instance. */
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

/* Returns whether a place is reserved on the node of some pod of its gang, all of which stop. No reservation waits for
 * an instance that was itself only reserved. */
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

/* Checks that a reservation waits for each victim, and that some reserved pod is of a higher tier than the victim. */
static void check_stops(const struct random_world *x)
{
    const struct berth_plan *p = x->s.p;
    int32_t highest = INT32_MIN;
    assert_true(berth_plan_stats(p).unplaced <= 3 * JOBS); /* no pod has two demands */
    for (size_t i = 0; i < berth_plan_actions(p); i++) {
        struct berth_action a = berth_plan_action(p, i);
        if (a.op == BERTH_RESERVE && x->job_spec[number_of(a.workload)].priority > highest)
            highest = x->job_spec[number_of(a.workload)].priority;
    }
    for (size_t i = 0; i < berth_plan_actions(p); i++) {
        struct berth_action a = berth_plan_action(p, i);
        if (a.cause != BERTH_CAUSE_PREEMPTED)
            continue;
        const struct job_spec *t = &x->job_spec[number_of(a.workload)];
        bool elastic = t->least && t->least < t->tasks;
        assert_true(t->least ? is_of_use(p, a) : is_awaited(p, a));
        assert_true(x->guaranteed || elastic || t->priority < highest);
    }
}

/* Checks that gangs have nothing or their minimum, and that no quota is exceeded. */
static void check_cluster(const struct random_world *x)
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

/* Checks that a cluster filled in another order gives the same plan. */
static void check_order(struct random_world *x)
{
    struct scene s = scene_new();
    s.now_ns = x->s.now_ns;
    s.policy = x->s.policy;
    for (size_t i = NODES; i-- > 0;) {
        const char id[] = {(char)('a' + i), '\0'};
        scene_node(&s, id, 1000, 1000);
    }
    for (uint32_t n = x->len; n-- > 0;)
        put_job_spec(&s, &x->job_spec[n], n);
    if (x->guaranteed)
        put_quotas(&s);
    for (uint64_t id = x->s.next; id-- > 1;) {
        uint32_t slot = cluster_instance_find(x->s.c, id);
        if (slot == NONE)
            continue;
        const struct instance *i = cluster_instance(x->s.c, slot);
        uint64_t waits[64];
        size_t len = 0;
        const struct instance_wait *w;
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

static void plan_and_apply(struct random_world *x)
{
    scene_plan(&x->s);
    check_stops(x);
    check_order(x);
    scene_apply(&x->s); /* and the next plan is empty */
    check_cluster(x);
}

/* Lets instances stop and start, sooner or later. */
static void advance_instances(struct random_world *x, bool all)
{
    struct scene *s = &x->s;
    for (uint64_t id = 1; id < s->next; id++) {
        uint32_t slot = cluster_instance_find(s->c, id);
        if (slot == NONE)
            continue;
        enum berth_state state = cluster_instance(s->c, slot)->state;
        if (!all && scene_random_below(&x->seed, 3) == 0)
            continue;
        if (state == BERTH_STOPPING)
            scene_remove(s, id);
        else if (state == BERTH_ASSIGNED || state == BERTH_STARTING)
            scene_report(s, id, BERTH_RUNNING, true);
    }
}

/* Adds nothing new and carries out every plan until nothing is left to do. Two jobs that preempt each other would never
 * end. */
static void run_until_stable(struct random_world *x)
{
    for (unsigned round = 0; round < 60; round++) {
        x->s.now_ns += 2 * MINUTE_NS;
        scene_plan(&x->s);
        if (berth_plan_actions(x->s.p) == 0 && x->s.c->stopping == 0)
            return;
        plan_and_apply(x);
        advance_instances(x, true);
    }
    fail_msg("it does not come to an end");
}

static void random_preemption_ends(void **state)
{
    uint64_t seed = scene_seed();
    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        struct random_world x = {.s = stage(NODES), .seed = seed + round, .guaranteed = round % 2};
        if (x.guaranteed)
            put_quotas(&x.s);
        x.s.policy.preemption.min_run_ns = scene_random_below(&x.seed, 2) ? MINUTE_NS : 0;
        while (x.len < JOBS) {
            put_random_job(&x);
            plan_and_apply(&x);
            advance_instances(&x, false);
            x.s.now_ns += (int64_t)scene_random_below(&x.seed, 120) * SCENE_SECOND_NS;
        }
        run_until_stable(&x);
        scene_cleanup(&x.s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_preemption_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
