/* config.h - address and credentials of the API server: from a kubeconfig, or from the service account of a pod.
 *
 * Reads files only; requests are sent by kube/client/api.h, which also runs an exec plugin (kube/client/exec.h). A
 * kubeconfig may name files or hold their contents. Settings that would expose the token to the network
 * (insecure-skip-tls-verify, a token without TLS to another machine) are rejected with a message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kube_exec;

struct kube_config {
    char *server;             /* "https://10.0.0.1:6443", without a trailing slash */
    char *server_name;        /* name to expect in the server's certificate if not the host of `server`; else NULL */
    char *ca_pem;             /* certificate authorities; NULL: the system's */
    char *cert_pem, *key_pem; /* client certificate; NULL: none */
    char *token;              /* NULL: none, or read from token_path */
    char *token_path;         /* file that is read again as it changes; NULL: none */
    struct kube_exec *exec;   /* exec plugin; NULL: none, or a token is given */
    char *namespace;          /* of the context, or of our pod; "default" */
    char *origin;             /* for messages: "the file x, context y", "the pod's service account" */
};

struct kube_config_where {
    /* NULL: $KUBECONFIG (a list separated by ':', the first file that sets a value wins), then a pod's service account,
     * then ~/.kube/config */
    const char *path;
    const char *context;     /* NULL: the current context */
    const char *account_dir; /* folder of the pod's service account; NULL: the standard one */
};

/* On failure the message says what to do, and *ret is untouched. */
int kube_config_load(const struct kube_config_where *where, struct kube_config *ret, struct berth_err *err);
void kube_config_done(struct kube_config *c);

/* Returns the token to send now, owned by the caller; NULL without one, or with an exec plugin. A token file is read
 * each time. */
int kube_config_token(const struct kube_config *c, char **ret, struct berth_err *err);

/* Reports whether the text is a valid token: no spaces, no control characters. */
bool kube_token_plain(const char *token);

static inline void kube_config_cleanup(struct kube_config *c)
{
    kube_config_done(c);
}
