/* webhook.h - the judge (kube/webhook/admission.h) behind HTTPS, as the API server asks it: POST /judge with an AdmissionReview.
 *
 * Bounded in size, time and number of connections. The certificate is read again when its files change: whoever renews it need not restart
 * anything; while there is none yet, nothing listens. A job that names a queue which is not there is held for a second: both may have been applied together, and the queue not be
 * seen yet. Then the API server is asked whether there is one; only if not the job is refused.
 */
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "kube/client/api.h"
#include "kube/webhook/admission.h"
#include "net/loop.h"

struct kube_webhook;

struct kube_webhook_config {
    struct loop *loop;
    const char *listen;               /* "ADDRESS:PORT" */
    const char *cert_path, *key_path; /* PEM */
    struct judge judge;               /* what it remembers is the webhook's own */
    struct kube_api *api;             /* is asked for queues that are not known; outlives the webhook. NULL: none is */
    const struct log *log;
};
int kube_webhook_new(const struct kube_webhook_config *config, struct kube_webhook **ret, struct berth_err *err);
void kube_webhook_free(struct kube_webhook *w); /* NULL is fine */
struct kube_webhook_stats {
    bool listens;                  /* there is a certificate */
    uint64_t allowed, denied, bad; /* reviews; bad: what was no review */
    uint64_t held;                 /* that waited for a queue */
};
struct kube_webhook_stats kube_webhook_stats(const struct kube_webhook *w);
uint16_t kube_webhook_port(const struct kube_webhook *w);
/* Looks at once whether the files have changed; true: another certificate is shown from now on. */
bool kube_webhook_renew(struct kube_webhook *w);

/* webhook_cert.c: `berth-kube webhook-cert`, for who has nothing that makes certificates: an authority and a certificate in a folder, and what the API
 * server must be told of them, on `out`. argv[0] is the command. The exit status. */
int kube_webhook_cert(int argc, char *const *argv, FILE *out);
