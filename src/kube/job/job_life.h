/* job_life.h - the life of Jobs of berth.dev: watched, accepted, placed as whole workloads, made as pods, followed to their end.
 *
 * What is known of a job is its object and its pods, nothing else: whoever starts reads both and goes on. A role is put into the projection
 * (kube/cache/cache.h) once the API server has said what a pod of it would look like; the plan places tasks, and each becomes a pod on its node in one
 * request. How a job stands is worked out from its pods each time one of them changed (job_progress.c), and written to its status. An end is
 * first written, then what still runs is deleted.
 *
 * Only while somebody leads is anything made, deleted or written; trials of pods are made by everybody, so that a new leader knows all roles.
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
    struct project *project;
    struct tenants *tenants;    /* NULL: none */
    struct kube_events *events; /* NULL: none are written */
    const struct log *log;
    const char *const *schedulers; /* that the pods may name, one at least; they name the first if nothing is said */
    size_t schedulers_len;
    bool (*leads)(void *ctx);   /* NULL: always */
    void (*synced)(void *ctx);  /* once: all that is there is known, or that there are none */
    void (*changed)(void *ctx); /* there is something to be looked at */
    /* What is claimed for a role, each time it is; NULL: its job is gone. For a record of it; NULL: nobody listens. */
    void (*claimed)(void *ctx, const char *role, const struct job_claim *claim);
    void *ctx;
};
struct kube_jobs *kube_jobs_new(const struct kube_jobs_config *config);
void kube_jobs_free(struct kube_jobs *k); /* before the projection; NULL is fine */

/* For the projection's config, which is made first. */
const char *kube_jobs_claim(struct kube_jobs *k, const char *role, struct arena *arena, struct berth_workload *w);
void kube_jobs_task(struct kube_jobs *k, const struct project_task *task);

/* Does what is to be done, of jobs that changed. For whoever leads, before each plan. */
void kube_jobs_look(struct kube_jobs *k, int64_t now_ns);
/* Instead of it for whoever only tells of a plan and never leads, once all is known: which tasks are over. Nothing is done. */
void kube_jobs_reckon(struct kube_jobs *k);
/* Carries the action out if it is about a role or a task of it; false: it is not, or the pod is to give way as any pod does. */
bool kube_jobs_carry_out(struct kube_jobs *k, const struct berth_action *a);
/* Why tasks of a role wait; false: it is none. Sets *ret_told to false where it is too soon to tell another reason. */
bool kube_jobs_waits(struct kube_jobs *k, const struct berth_pending *pending, int64_t now_ns, bool *ret_told);

/* Objects as they come; for tests, and the watch. */
void kube_jobs_put(struct kube_jobs *k, const json_t *object);
void kube_jobs_drop(struct kube_jobs *k, const char *namespace, const char *name);

struct kube_jobs_stats {
    size_t jobs;    /* there */
    size_t refused; /* of these: their pods are not accepted */
    uint64_t made, failed, deleted, told;
};
struct kube_jobs_stats kube_jobs_stats(const struct kube_jobs *k);
