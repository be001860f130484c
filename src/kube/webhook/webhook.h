/* webhook.h - the HTTPS server of the validating webhook (kube/webhook/admission.h), which accepts POST requests with
 * an AdmissionReview.
 *
 * Size, time and number of connections are limited. The certificate is read again when its files change, so a renewal
 * needs no restart; while there is no certificate, the server does not listen.
 *
 * A job that names an unknown queue is held for a second: both may have been applied together, and the watch may not
 * have shown the queue yet. Then the API server is asked for the queue; the job is denied only if there is none.
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
    struct admission admission;       /* its `recent` belongs to the webhook */
    /* for asking whether unknown queues exist; must outlive the webhook. NULL: not asked */
    struct kube_api *api;
    const struct log *log;
};
int kube_webhook_new(const struct kube_webhook_config *config, struct kube_webhook **ret, struct berth_err *err);
void kube_webhook_free(struct kube_webhook *w); /* accepts NULL */
struct kube_webhook_stats {
    bool listens;                  /* it has a certificate and listens */
    uint64_t allowed, denied, bad; /* reviews; bad: requests that were no review */
    uint64_t held;                 /* reviews that waited for a queue */
};
struct kube_webhook_stats kube_webhook_stats(const struct kube_webhook *w);
uint16_t kube_webhook_port(const struct kube_webhook *w);
/* Checks at once whether the files have changed; returns true if another certificate is used from now on. */
bool kube_webhook_renew(struct kube_webhook *w);

/* In webhook_cert.c: `berth-kube webhook-cert`, for clusters without a certificate manager. Creates a certificate
 * authority and a certificate in a folder, and prints what the API server needs on `out`. argv[0] is the command.
 * Returns the exit status. */
int kube_webhook_cert(int argc, char *const *argv, FILE *out);
