/* lease.h - leader election among instances by a Lease object of coordination.k8s.io/v1, compatible with Kubernetes'
 * own controllers.
 *
 * The three times are those of client-go: the lease duration (15 s), the renew deadline (10 s) and the retry period (2
 * s). Clocks of other machines do not matter: a follower takes over a lease that it has not seen change for the lease
 * duration. A leader leads until the renew deadline after its last successful renewal, counted from when that renewal
 * was sent, not answered. The deadline is shorter than the duration, so a leader stops before a follower starts.
 *
 * A leader renews every retry period, or as soon as the previous renewal is answered if that takes longer. As in
 * client-go, a request times out after half of the deadline: the leader leads without a gap while answers take less
 * than that, and a single request that hangs is harmless. With the defaults, a leader that dies is replaced within 20
 * seconds, one that stops cleanly at the next retry.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/api.h"

struct kube_lease;

struct kube_lease_config {
    struct kube_api *api;
    struct loop *loop;
    const char *namespace, *name;  /* of the Lease, which is created if missing */
    const char *identity;          /* unique: host name and a random part */
    int64_t duration_s;            /* 0: 15 */
    int64_t deadline_ns;           /* renew deadline, shorter than the duration; 0: 10 s */
    int64_t retry_ns;              /* retry period of followers and leader, shorter than the deadline; 0: 2 s */
    int64_t (*wall_ns)(void *ctx); /* since 1970, for written times; NULL: the system's clock */
    void (*began)(void *ctx);      /* this instance leads from now on */
    /* it no longer leads: another does, or the API server is unreachable. Not called by kube_lease_free */
    void (*ended)(void *ctx);
    void (*trouble)(void *ctx, const char *text); /* messages for the log; NULL: none */
    void *ctx;
};

/* Starts at once; texts are copied. */
struct kube_lease *kube_lease_new(const struct kube_lease_config *config);
/* Stops without releasing the lease: other instances wait until it runs out. Accepts NULL. */
void kube_lease_free(struct kube_lease *l);
/* Releases the lease if it is ours, so that another instance can take it at once. Leading ends at once, with `ended`.
 * `released` is called when the release is done or has failed, or after the smaller of the renew deadline and 5 s. */
void kube_lease_release(struct kube_lease *l, void (*released)(void *ctx), void *ctx);

/* Returns true while no other instance can lead. To be checked before every write that only a leader may make. */
bool kube_lease_leads(const struct kube_lease *l);
/* Returns the holder as last seen; "": none. */
const char *kube_lease_holder(const struct kube_lease *l);
