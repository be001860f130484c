/* config.h - where the API server is, and who we are to it: a kubeconfig, or what a pod finds in its own file system.
 *
 * Reads only; requests are made by kube/client/api.h, which also runs the program that a kubeconfig may name for credentials (kube/client/exec.h). A kubeconfig may name files or hold their contents. What would let anybody
 * in between read the token (insecure-skip-tls-verify, a token without TLS off this machine) is refused with a sentence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kube_exec;

struct kube_config {
    char *server;             /* "https://10.0.0.1:6443", without a slash at its end */
    char *server_name;        /* whom its certificate must name, where that is not the host of `server`; else NULL */
    char *ca_pem;             /* authorities; NULL: the system's */
    char *cert_pem, *key_pem; /* a client certificate; NULL: none */
    char *token;              /* NULL: none, or it is in token_path */
    char *token_path;         /* a file that is read again as it changes; NULL: none */
    struct kube_exec *exec;   /* a program that gives token or certificate; NULL: none, or there is a token */
    char *namespace;          /* of the context, or of the pod we are in; "default" */
    char *origin;             /* for people: "the file x, context y", "the pod's service account" */
};

struct kube_config_where {
    const char *path; /* NULL: $KUBECONFIG (a list with ':', the first that says something wins), then a pod's service
                            account, then ~/.kube/config */
    const char *context;     /* NULL: the current one */
    const char *account_dir; /* of a pod's service account; NULL: where Kubernetes puts it */
};

/* On failure the text says what to do, and *ret is untouched. */
int kube_config_load(const struct kube_config_where *where, struct kube_config *ret, struct berth_err *err);
void kube_config_done(struct kube_config *c);

/* The token to send now, owned by the caller; NULL without one, or where a program gives it. Of a file: read anew. */
int kube_config_token(const struct kube_config *c, char **ret, struct berth_err *err);

/* May it be one: no spaces, no control characters? */
bool kube_token_plain(const char *token);

static inline void kube_config_cleanup(struct kube_config *c)
{
    kube_config_done(c);
}
