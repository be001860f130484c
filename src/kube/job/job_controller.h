/* job_controller.h - the life of Jobs of berth.dev: watched, accepted, placed as whole workloads, run as pods, followed
 * to their end.
 *
 * A job's state is its object and its pods, nothing else: a new process reads both and continues. A role is put into
 * the cache (kube/cache/cache.h) after the API server has answered a dry run of its pod. The plan places tasks, and
 * each becomes a pod on its node in one request. The status is recomputed from the pods after each change of one
 * (job_progress.c) and written to the object. The end of a job is written first; then its running pods are deleted.
 *
 * Only the leader creates, deletes or writes anything. Dry runs of pods are made by every process, so that a new leader
 * knows all roles.
 */
#pragma once

#include "base/log.h"
#include "kube/cache/cache.h"
#include "kube/client/event.h"

struct kube_jobs;
struct job_claim;
struct tenants;

struct kube_jobs_config {
    struct kube_api *api;
    struct loop *loop;
    struct cache *cache;
    struct tenants *tenants;    /* NULL: none */
    struct kube_events *events; /* NULL: no events are written */
    const struct log *log;
    const char *const *schedulers; /* names that the pods may use, at least one; the first is the default */
    size_t schedulers_len;
    bool (*leads)(void *ctx);   /* NULL: always the leader */
    void (*synced)(void *ctx);  /* called once, when all jobs are known, or that there are none */
    void (*changed)(void *ctx); /* called when kube_jobs_process has work */
    /* Called for each claim made for a role, for the journal; `claim` is NULL if the job is gone. NULL: no listener. */
    void (*claimed)(void *ctx, const char *role, const struct job_claim *claim);
    void *ctx;
};
struct kube_jobs *kube_jobs_new(const struct kube_jobs_config *config);
void kube_jobs_free(struct kube_jobs *k); /* free it before the cache; accepts NULL */

/* Callbacks for the cache_config, which is created first. */
const char *kube_jobs_claim(struct kube_jobs *k, const char *role, struct arena *arena, struct berth_workload *w);
void kube_jobs_task(struct kube_jobs *k, const struct cache_task_view *task);

/* Processes jobs that changed. Called by the leader before each plan. */
void kube_jobs_process(struct kube_jobs *k, int64_t now_ns);
/* For a process that only explains plans and never leads: called instead of kube_jobs_process, after everything is
 * known. Computes which tasks are over and writes nothing. */
void kube_jobs_recompute(struct kube_jobs *k);
/* Carries out the action if it is about a role or a task; false: it is not, or the pod is to be preempted like any
 * pod. */
bool kube_jobs_apply_action(struct kube_jobs *k, const struct berth_action *a);
/* Records why tasks of a role are pending; false: the workload is no role. Sets *ret_told to false if it is too soon to
 * report another reason. */
bool kube_jobs_report_pending(struct kube_jobs *k, const struct berth_pending *pending, int64_t now_ns, bool *ret_told);

/* Adds, updates or removes a job object; called by the watch, and by tests. */
void kube_jobs_put(struct kube_jobs *k, const json_t *object);
void kube_jobs_drop(struct kube_jobs *k, const char *namespace, const char *name);

struct kube_jobs_stats {
    size_t jobs;    /* existing jobs */
    size_t refused; /* of these, jobs whose pods are not accepted */
    uint64_t made, failed, deleted, told;
};
struct kube_jobs_stats kube_jobs_stats(const struct kube_jobs *k);
