/* waiting_test.h - waiting jobs in one line each, and their estimated starts.
 *
 * Include the prerequisites of scene_test.h before this header.
 */
#pragma once

#include "core/scene/scene_test.h"

#define START_NS (1000 * SCENE_SECOND_NS) /* the moment at which scenes begin */

struct job {
    const char *id;
    uint32_t pods; /* 0: one pod and no gang */
    int64_t cpu, seconds;
    int64_t limit, deadline; /* seconds; deadline: after START_NS */
    uint32_t gpus, milli;
    const char *user;
    const char *gang; /* shared by several jobs; NULL: the job's own */
    const char *queue;
};

/* Puts a job that is younger than the jobs put before. */
static inline void put_job(struct scene *s, struct job j)
{
    struct berth_workload w = {
        .id = j.id,
        .kind = BERTH_JOB,
        .replicas = j.pods ? j.pods : 1,
        .created_ns = (int64_t)s->next + s->now_ns,
        .gang = j.gang   ? j.gang
                : j.pods ? j.id
                         : NULL,
        .estimate_ns = j.seconds * SCENE_SECOND_NS,
        .limit_ns = j.limit * SCENE_SECOND_NS,
        .deadline_ns = j.deadline ? START_NS + j.deadline * SCENE_SECOND_NS : 0,
        .queue = j.queue,
        .quotas = &j.user,
        .quotas_len = j.user != NULL,
        .shape = {NEEDS(j.cpu, 10), .gpu = {.count = j.gpus, .milli = j.milli}}
    };
    s->next += 100; /* later jobs are younger */
    scene_put(s, w);
}

static inline void run_job(struct scene *s, struct job j, const char *node, uint64_t gpus)
{
    put_job(s, j);
    scene_instance(
        s,
        (struct berth_instance){
            .workload = j.id, .node = node, .state = BERTH_RUNNING, .ready = true, .since_ns = START_NS, .gpus = gpus});
}

static inline struct scene stage(size_t nodes, uint32_t reservations)
{
    struct scene s = scene_with_nodes(nodes);
    s.policy.backfill.reservations = reservations;
    return s;
}

static inline struct berth_queue_position queue_position(struct scene *s, const char *id)
{
    for (size_t i = 0; i < berth_plan_pendings(s->p); i++)
        if (strcmp(berth_plan_pending_name(s->p, i), id) == 0)
            return berth_plan_queue_position(s->p, i);
    fail_msg("%s does not wait", id);
    return (struct berth_queue_position){0};
}

/* Returns the estimated start in seconds after START_NS; -1: none. */
static inline int64_t start_of(struct scene *s, const char *id)
{
    int64_t at = queue_position(s, id).start_ns;
    return at ? (at - START_NS) / SCENE_SECOND_NS : -1;
}

/* Like scene_expect_and_apply; also checks that the reservations stay the same and that the plan leaves no facts. */
static inline void step(struct scene *s, const char *want)
{
    int64_t starts[64];
    size_t len;
    scene_expect(s, want);
    len = berth_plan_pendings(s->p);
    assert_true(len <= ROWS(starts));
    for (size_t i = 0; i < len; i++)
        starts[i] = berth_plan_queue_position(s->p, i).start_ns;
    scene_apply(s);
    assert_int_equal(berth_plan_facts(s->p), 0);
    assert_int_equal(berth_plan_pendings(s->p), len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(berth_plan_queue_position(s->p, i).start_ns, starts[i]);
}
