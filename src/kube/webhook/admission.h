/* admission.h - admission of objects of berth.dev: validates an AdmissionReview before the API server stores the
 * object.
 *
 * Messages are those of submissions to the daemon: the limit, what is used of it, and what would be accepted. Knows no
 * network (kube/webhook/webhook.h) and changes nothing. A job is checked by its template plus what LimitRanges and its
 * RuntimeClass add; what other admission plugins add to pods later is unknown here. Objects of other API groups are
 * allowed without being read. References to missing objects are no error for queues and users, which may be created in
 * any order; for jobs they are.
 *
 * To check another kind: a row in admission.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "kube/cache/cache.h"
#include "kube/tenant/tenant.h"

struct recent_jobs;

struct admission {
    struct cache *cache;
    struct recent_jobs *recent; /* recently allowed jobs that are not seen yet; NULL: not tracked */
    struct tenants *tenants;
    bool (*ready)(void *ctx); /* reports whether the cluster is known */
    void *ctx;
    bool deny_unchecked; /* denies objects that cannot be checked; otherwise they are allowed */
};

/* The result for a job whose queue is not known here. */
enum missing_queue {
    MISSING_QUEUE_DENY,   /* the queue does not exist: deny */
    MISSING_QUEUE_WAIT,   /* the queue may be about to appear: retry */
    MISSING_QUEUE_UNSURE, /* it is stored or may be: the job cannot be checked */
};
/* Returns the response to a review, a new reference. -EAGAIN, with MISSING_QUEUE_WAIT: call again shortly. -EINVAL: not
 * a review. */
int admission_review(const struct admission *j, const json_t *review, int64_t now_ns, enum missing_queue missing,
                     json_t **ret, struct berth_err *err);

struct admission_request {
    const json_t *object, *old; /* old: the previous object; NULL: creation */
    const char *who;            /* name of the requesting user */
    bool dry;                   /* dry run: the object is not stored */
};
/* In admission_job.c: returns -EINVAL, -EACCES, or -ENOENT for a missing queue, with a message. Appends warnings about
 * allowed but doubtful settings to the list. */
int admission_check_job(const struct admission *j, const struct admission_request *request, int64_t now_ns,
                        json_t *warnings, struct berth_err *err);

/* In admission_recent.c: jobs allowed moments ago count until the cache knows them, so that several jobs submitted at
 * once cannot exceed a quota together. A job that is never stored is forgotten after ten seconds; so is the oldest of
 * more than 1,024. */
struct kube_job;
struct recent_jobs *recent_jobs_new(void);
void recent_jobs_free(struct recent_jobs *r); /* accepts NULL */
void recent_jobs_add(struct recent_jobs *r, const json_t *object, int64_t now_ns);
/* Returns the next job from *at on (0 at first), skipping the job named like `but`; NULL: none left. */
const struct kube_job *recent_jobs_next(struct recent_jobs *r, const struct kube_job *but, int64_t now_ns, size_t *at);
/* Forgets the job returned last: the cache knows it. */
void recent_jobs_drop(struct recent_jobs *r, size_t *at);
