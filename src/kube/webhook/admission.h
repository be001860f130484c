/* admission.h - may this object of berth.dev be taken? Asked by the API server before it stores one (an AdmissionReview), told as people are told who
 * submit to the daemon: the limit, what is used of it, and what would be accepted.
 *
 * Knows no network (kube/webhook/webhook.h), and changes nothing. A job is judged by its template with what LimitRanges and its RuntimeClass add to it; what
 * other admission adds to pods later is not known here. What is not of berth.dev is allowed unread. Names of what is not there yet do not stand
 * against queues and users, which may be made in any order; they stand against jobs.
 *
 * To judge one more kind: a row in admission.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "kube/cache/cache.h"
#include "kube/tenant/tenant.h"

struct judge_recent;

struct judge {
    struct project *project;
    struct judge_recent *recent; /* jobs that were allowed and are not seen yet; NULL: none are remembered */
    struct tenants *tenants;
    bool (*ready)(void *ctx); /* is the cluster known? */
    void *ctx;
    bool unsure_denies; /* what cannot be judged is refused; else it is allowed */
};

/* What is to be said of a job whose queue is not known here. */
enum judge_missing {
    JUDGE_REFUSES, /* there is none */
    JUDGE_WAITS,   /* it may be about to come */
    JUDGE_UNSURE,  /* it is there all the same, or may be: nothing can be said */
};
/* The answer to a review, a new reference. -EAGAIN, with JUDGE_WAITS: ask again in a moment. -EINVAL: this is no review. */
int judge_review(const struct judge *j, const json_t *review, int64_t now_ns, enum judge_missing missing, json_t **ret,
                 struct berth_err *err);

struct judge_request {
    const json_t *object, *old; /* old: what it was before; NULL: it is new */
    const char *who;            /* is asking */
    bool dry;                   /* nothing comes of it */
};
/* admission_job.c: -EINVAL, -EACCES, or -ENOENT for a queue that is not there, with the sentence; `warnings` (a list) gets what is allowed but odd. */
int judge_job(const struct judge *j, const struct judge_request *asked, int64_t now_ns, json_t *warnings,
              struct berth_err *err);

/* admission_recent.c: jobs that were allowed a moment ago count, until the projection knows them, so that several that come at once do not get together what
 * one alone could not. One that is never made is forgotten after ten seconds; so is the oldest of more than 1,024. */
struct kube_job;
struct judge_recent *judge_recent_new(void);
void judge_recent_free(struct judge_recent *r); /* NULL is fine */
void judge_recent_add(struct judge_recent *r, const json_t *object, int64_t now_ns);
/* The next one after *at, which is 0 at first, that is not the job of this name; NULL: there is none. */
const struct kube_job *judge_recent_next(struct judge_recent *r, const struct kube_job *but, int64_t now_ns,
                                         size_t *at);
/* The one that was told last is known by now. */
void judge_recent_drop(struct judge_recent *r, size_t *at);
