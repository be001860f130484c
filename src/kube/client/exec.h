/* exec.h - exec plugins: a token or a certificate from a program that a kubeconfig names, run as kubectl does.
 *
 * client.authentication.k8s.io/v1 and v1beta1. The program runs without a shell and without standard input, for at most
 * a minute; its standard output is an ExecCredential, its standard error is inherited. kube/client/api.h keeps the
 * credential and decides when to run the program again.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct kube_exec; /* the program and its arguments */

/* Parses the user's `exec`; `cluster` is the context's cluster, for provideClusterInfo. A command with a slash is
 * relative to the folder of the kubeconfig. */
int kube_exec_read(const json_t *exec, const json_t *cluster, const char *kubeconfig, struct kube_exec **ret,
                   struct berth_err *err);
void kube_exec_free(struct kube_exec *e); /* accepts NULL */

struct kube_credential {
    char *token;              /* NULL: none */
    char *cert_pem, *key_pem; /* NULL: none */
    int64_t expires_ns;       /* since 1970; INT64_MAX: not given */
};
void kube_credential_done(struct kube_credential *c);

/* Runs the program and waits for it, on any thread. The program is killed when stop_fd (-1: none) becomes readable. The
 * error message names the command and what to do. */
int kube_exec_run(const struct kube_exec *e, int stop_fd, struct kube_credential *ret, struct berth_err *err);

/* Parses the program's output; `version` is the requested apiVersion. */
int kube_credential_parse(const char *text, size_t len, const char *version, struct kube_credential *ret,
                          struct berth_err *err);

static inline void kube_credential_cleanup(struct kube_credential *c)
{
    kube_credential_done(c);
}
