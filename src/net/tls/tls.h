/* tls.h - TLS certificates: creates self-signed certificates, computes fingerprints, and runs a CA. Wraps GnuTLS.
 *
 * Every key created here is ECDSA P-256. Texts are PEM. The functions read no clock: the time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    TLS_PIN_MAX = 64,
    TLS_NAME_MAX = 256,          /* a common name with its NUL */
    TLS_SERIAL_PREFIX_BYTES = 8, /* part of a serial number that the signer chooses */
    TLS_SERIAL_MAX = 48,         /* a serial number in hexadecimal with its NUL; longer ones are truncated */
    TLS_REQUEST_MAX = 8192       /* maximum size of a certificate signing request */
};

struct tls_identity {
    char *cert_pem, *key_pem; /* owned */
    char pin[TLS_PIN_MAX];    /* "sha256//BASE64" of the public key, the format of curl's --pinnedpubkey */
};
void tls_identity_done(struct tls_identity *id);

/* Reads a certificate (chain) and its key. Fails if the key does not match the certificate, or if other users may read
 * the key. */
int tls_identity_read(const char *cert_path, const char *key_path, struct tls_identity *ret, struct berth_err *err);
/* Reads DIR/tls-cert.pem and DIR/tls-key.pem, or creates them: self-signed, valid for ten years from now_ns (since
 * 1970), for these names and addresses (NULL-terminated) plus localhost. The key file has mode 0600. */
int tls_identity_ensure(const char *dir, const char *const *names, int64_t now_ns, struct tls_identity *ret,
                        struct berth_err *err);

/* Computes the SHA-256 digest of the bytes, in lower-case hexadecimal. */
enum { SHA256_TEXT_MAX = 65 };
int sha256_text(const void *bytes, size_t len, char ret[static SHA256_TEXT_MAX], struct berth_err *err);
/* Computes the SHA-256 digest of a descriptor's remaining content. Blocks while reading. Returns -EFBIG for more than
 * `max` bytes. Also writes the content to `to`, unless `to` is -1. `ret_len` receives the number of bytes; may be NULL.
 * (sha256_fd.c) */
int sha256_fd(int fd, int to, uint64_t max, char ret[static SHA256_TEXT_MAX], uint64_t *ret_len, struct berth_err *err);

/* ---- certificate authority (tls_ca.c) --------------------------------------------------------------------------- */

/* Reads DIR/ca-cert.pem and DIR/ca-key.pem, or creates them: valid for ten years, for signing server and client
 * certificates. Returns -EINVAL if the certificate may not sign others. */
int tls_ca_ensure(const char *dir, int64_t now_ns, struct tls_identity *ret, struct berth_err *err);
/* Creates a server certificate for these names and addresses plus localhost, signed by `ca` and valid as long as the
 * CA. The key is read from DIR/NAME-key.pem, or created there, so that the pin does not change. The certificate is
 * created anew each time, with the current names. */
int tls_server_cert(const struct tls_identity *ca, const char *dir, const char *name, const char *const *names,
                    int64_t now_ns, struct tls_identity *ret, struct berth_err *err);

/* Creates a key and a certificate signing request for it. The caller owns both. The key must stay on the caller's
 * disk. */
int tls_request_make(char **ret_key_pem, char **ret_request_pem, struct berth_err *err);

struct tls_client_cert_spec {
    const char *common_name;
    /* TLS_SERIAL_PREFIX_BYTES: the serial number is a byte 1, the stamp, and random bytes; NULL: only random bytes */
    const unsigned char *stamp;
    int64_t not_before_ns, not_after_ns;
};
/* Signs a client certificate for the key of a request; the caller owns the certificate. Only the key of the request is
 * used, not its name and not its extensions. Returns -EINVAL for a request that is damaged, too large, not signed by
 * its own key, or whose key is not ECDSA P-256. The text of a request is untrusted input. */
int tls_request_sign(const struct tls_identity *ca, const char *request_pem, const struct tls_client_cert_spec *grant,
                     char **ret_cert_pem, struct berth_err *err);

struct tls_cert_info {
    char common_name[TLS_NAME_MAX];
    char serial[TLS_SERIAL_MAX]; /* lower-case hexadecimal, without padding */
    int64_t not_before_ns, not_after_ns;
    char pin[TLS_PIN_MAX];
};
/* Reads the first certificate in the text. */
int tls_cert_info(const char *cert_pem, struct tls_cert_info *ret, struct berth_err *err);
