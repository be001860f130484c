/* lease.h - one of several instances leads: a Lease object of coordination.k8s.io/v1, as Kubernetes' own controllers
 * use it.
 *
 * The three times are those of client-go: the lease's duration (15 s), the renew deadline (10 s) and the retry period
 * (2 s). Others' clocks do not count: a follower takes over a lease that has not changed for its duration as seen by
 * the follower. A leader leads until the renew deadline after its last successful renewal, counted from when that
 * renewal was sent, not from when it was answered. The deadline is shorter than the duration, so a leader has ended
 * before a follower begins. A leader renews every retry period, or as soon as the previous renewal is answered where
 * that takes longer. A request is given up after half of the deadline, as by client-go: a leader leads without a gap
 * while answers take less than that, and one request that hangs costs nothing.
 *
 * With the defaults a leader that dies is followed within 20 seconds, and one that stops cleanly at the next retry.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/api.h"

struct kube_lease;

struct kube_lease_config {
    struct kube_api *api;
    struct loop *loop;
    const char *namespace, *name; /* of the Lease; made when it is not there */
    const char *identity;         /* nobody else has it: host name and something random */
    int64_t duration_s;           /* 0: 15 */
    int64_t deadline_ns;          /* of a renewal; shorter than the duration; 0: 10 s */
    int64_t retry_ns; /* how often followers read and the leader renews; shorter than the deadline; 0: 2 s */
    int64_t (*wall_ns)(void *ctx); /* since 1970, for what is written; NULL: the system's clock */
    void (*began)(void *ctx);      /* from now on we lead */
    void (*ended)(void *ctx); /* not any more: another does, or nobody can be reached. Not told by kube_lease_free */
    void (*trouble)(void *ctx, const char *text); /* for the log; NULL: nobody listens */
    void *ctx;
};

/* Begins at once; texts are copied. */
struct kube_lease *kube_lease_new(const struct kube_lease_config *config);
/* Ends without a word: others wait for the lease to run out. NULL is fine. */
void kube_lease_free(struct kube_lease *l);
/* Gives the lease back if it is ours, so that another can take it at once; `released` is called when that is done or failed, or after
 * the renew deadline or 5 s, whichever is less. Leading ends at once, with `ended`. */
void kube_lease_release(struct kube_lease *l, void (*released)(void *ctx), void *ctx);

/* True for as long as nobody else can lead. Ask before every write that only a leader may make. */
bool kube_lease_leads(const struct kube_lease *l);
/* Who holds it as last seen, "" for nobody. */
const char *kube_lease_holder(const struct kube_lease *l);
