/* tls.h - certificates: made when there are none, named by a fingerprint. Fronts GnuTLS. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { TLS_PIN_MAX = 64 };

struct tls_identity {
    char *cert_pem, *key_pem; /* owned */
    char pin[TLS_PIN_MAX];    /* "sha256//BASE64" of the public key, as curl's --pinnedpubkey takes it */
};
void tls_identity_done(struct tls_identity *id);

/* Reads a certificate (chain) and its key. Refuses a key that does not belong to it, or that others may read. */
int tls_identity_read(const char *cert_path, const char *key_path, struct tls_identity *ret, struct berth_err *err);
/* Reads DIR/tls-cert.pem and DIR/tls-key.pem, or makes them: self-signed, ECDSA P-256, ten years from now_ns (since
 * 1970), for these names and addresses (ends with NULL) plus localhost. The key's mode is 0600. */
int tls_identity_ensure(const char *dir, const char *const *names, int64_t now_ns, struct tls_identity *ret,
                        struct berth_err *err);
