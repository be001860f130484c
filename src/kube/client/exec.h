/* exec.h - a token or a certificate from a program that a kubeconfig names: the user's `exec`, as kubectl runs it.
 *
 * client.authentication.k8s.io/v1 and v1beta1. The program is run as it is written, without a shell, with nothing to read and a minute of time; what it
 * prints is an ExecCredential. What it says on standard error goes where ours goes. Who keeps the credential and when the program is run again is kube/client/api.h's.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct kube_exec; /* which program, and how */

/* Of the user's `exec`; `cluster` is that of the context, for programs that want to know it (provideClusterInfo). A command with a slash is relative to
 * the folder of the kubeconfig. */
int kube_exec_read(const json_t *exec, const json_t *cluster, const char *kubeconfig, struct kube_exec **ret,
                   struct berth_err *err);
void kube_exec_free(struct kube_exec *e); /* NULL is fine */

struct kube_credential {
    char *token;              /* NULL: none */
    char *cert_pem, *key_pem; /* NULL: none */
    int64_t expires_ns;       /* since 1970; INT64_MAX: it does not say */
};
void kube_credential_done(struct kube_credential *c);

/* Runs it and waits for it, on any thread. It is ended when stop_fd (-1: none) becomes readable. The text of a failure names the command and what to do. */
int kube_exec_run(const struct kube_exec *e, int stop_fd, struct kube_credential *ret, struct berth_err *err);

/* What such a program prints; `version` is the apiVersion that was asked for. */
int kube_credential_parse(const char *text, size_t len, const char *version, struct kube_credential *ret,
                          struct berth_err *err);

static inline void kube_credential_cleanup(struct kube_credential *c)
{
    kube_credential_done(c);
}
