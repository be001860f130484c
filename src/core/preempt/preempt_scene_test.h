/* preempt_scene_test.h - a scene for preemption tests: jobs, gangs and their running instances, one line each.
 *
 * Include the headers that scene_test.h needs before this one.
 */
#pragma once

#include "core/scene/scene_test.h"

#define MINUTE_NS (60 * SCENE_SECOND_NS)

/* Nodes a, b, ... of 1000; the time is noon. */
static inline struct scene stage(size_t nodes)
{
    struct scene s = scene_with_nodes(nodes);
    s.now_ns = 12 * 60 * MINUTE_NS;
    s.policy.preemption.on = s.policy.preemption.services = true;
    return s;
}

static inline void job(struct scene *s, const char *id, int32_t priority, uint32_t tasks, int64_t cpu)
{
    scene_put(s, (struct berth_workload){
                     .id = id, .kind = BERTH_JOB, .replicas = tasks, .priority = priority, .shape = {NEEDS(cpu, 1)}});
}

static inline void gang(struct scene *s, const char *id, int32_t priority, uint32_t tasks, uint32_t least, int64_t cpu)
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
static inline void runs(struct scene *s, const char *workload, uint32_t ordinal, const char *node, int64_t minutes)
{
    scene_instance(s, (struct berth_instance){.workload = workload,
                                              .ordinal = ordinal,
                                              .node = node,
                                              .state = BERTH_RUNNING,
                                              .ready = true,
                                              .since_ns = s->now_ns - minutes * MINUTE_NS});
}

/* A job of one pod of 400 that counts against a quota. */
static inline void quota_job(struct scene *s, const char *id, int32_t priority, const char *quota)
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
