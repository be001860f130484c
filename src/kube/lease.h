/* lease.h - one of several instances leads: a Lease object of coordination.k8s.io/v1, as Kubernetes' own controllers use it.
 *
 * Others' clocks do not count: a lease is free when it has not changed for its duration as seen from here. Whoever leads
 * stops leading, by its own clock, some time before others may take over: counted from when the renewal was sent, not from when it was answered. With the defaults
 * a leader that dies is followed within 5 seconds (3 s + two looks of 0.5 s), and one that stops cleanly at the next look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/api.h"

struct kube_lease;

struct kube_lease_config {
    struct kube_api *api;
    struct loop *loop;
    const char *namespace, *name;  /* of the Lease; made when it is not there */
    const char *identity;          /* nobody else has it: host name and something random */
    int64_t duration_s;            /* 0: 3 */
    int64_t look_ns;               /* how often others look and the leader renews; 0: 0.5 s */
    int64_t guard_ns;              /* how long before its end a leader steps down; 0: 0.5 s */
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
/* Gives the lease back if it is ours, so that another can take it at once; `released` is called when that is done or failed, or within a
 * second at most. Leading ends at once, with `ended`. */
void kube_lease_release(struct kube_lease *l, void (*released)(void *ctx), void *ctx);

/* True for as long as nobody else can lead. Ask before every write that only a leader may make. */
bool kube_lease_leads(const struct kube_lease *l);
/* Who holds it as last seen, "" for nobody. */
const char *kube_lease_holder(const struct kube_lease *l);
