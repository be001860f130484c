/* tls.h - certificates: made when there are none, named by a fingerprint; an authority that signs others. Fronts GnuTLS.
 *
 * Every key made here is ECDSA P-256. Texts are PEM. The functions know no clock: the time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    TLS_PIN_MAX = 64,
    TLS_NAME_MAX = 256,    /* a common name with its NUL */
    TLS_STAMP_BYTES = 8,   /* of a serial number, chosen by who signs */
    TLS_SERIAL_MAX = 48,   /* a serial number in hex, with its NUL; longer ones are cut */
    TLS_REQUEST_MAX = 8192 /* bytes of a request to sign */
};

struct tls_identity {
    char *cert_pem, *key_pem; /* owned */
    char pin[TLS_PIN_MAX];    /* "sha256//BASE64" of the public key, as curl's --pinnedpubkey takes it */
};
void tls_identity_done(struct tls_identity *id);

/* Reads a certificate (chain) and its key. Refuses a key that does not belong to it, or that others may read. */
int tls_identity_read(const char *cert_path, const char *key_path, struct tls_identity *ret, struct berth_err *err);
/* Reads DIR/tls-cert.pem and DIR/tls-key.pem, or makes them: self-signed, ten years from now_ns (since 1970), for these
 * names and addresses (ends with NULL) plus localhost. The key's mode is 0600. */
int tls_identity_ensure(const char *dir, const char *const *names, int64_t now_ns, struct tls_identity *ret,
                        struct berth_err *err);

/* Of these bytes, in lower-case hexadecimal. */
enum { SHA256_TEXT_MAX = 65 };
int sha256_text(const void *bytes, size_t len, char ret[static SHA256_TEXT_MAX], struct berth_err *err);
/* Of all that a descriptor has from where it stands, which takes the time of reading it; at most `max` bytes: -EFBIG. What was
 * read is also written to `to`, unless that is -1. `ret_len`: how many; may be NULL. (tls_sum.c) */
int sha256_fd(int fd, int to, uint64_t max, char ret[static SHA256_TEXT_MAX], uint64_t *ret_len, struct berth_err *err);

/* ---- an authority of one's own (tls_ca.c) ---- */

/* Reads DIR/ca-cert.pem and DIR/ca-key.pem, or makes them: for ten years, to sign servers and clients. -EINVAL for a
 * certificate that may not sign. */
int tls_ca_ensure(const char *dir, int64_t now_ns, struct tls_identity *ret, struct berth_err *err);
/* A server's certificate for these names and addresses plus localhost, signed by `ca` and valid as long as that is. The
 * key is that of DIR/NAME-key.pem, made when it is not there, so that its pin stays; the certificate is made anew each
 * time and follows the names. */
int tls_server_cert(const struct tls_identity *ca, const char *dir, const char *name, const char *const *names,
                    int64_t now_ns, struct tls_identity *ret, struct berth_err *err);

/* A new key, and a request to sign it for whoever sends it. Both owned by the caller; the key is for one's own disk. */
int tls_request_make(char **ret_key_pem, char **ret_request_pem, struct berth_err *err);

struct tls_grant {
    const char *common_name;
    const unsigned char
        *stamp; /* TLS_STAMP_BYTES: the serial number is a byte 1, these, and random ones; NULL: random */
    int64_t not_before_ns, not_after_ns;
};
/* A client's certificate for the key of a request, owned by the caller. Of the request nothing else counts: not its
 * name, not its extensions. -EINVAL for one that is damaged, too large, not signed by its own key, or whose key is not
 * ECDSA P-256; its text is a stranger's. */
int tls_request_sign(const struct tls_identity *ca, const char *request_pem, const struct tls_grant *grant,
                     char **ret_cert_pem, struct berth_err *err);

struct tls_cert_info {
    char common_name[TLS_NAME_MAX];
    char serial[TLS_SERIAL_MAX]; /* lower-case hex, as many bytes as it has */
    int64_t not_before_ns, not_after_ns;
    char pin[TLS_PIN_MAX];
};
/* Of the first certificate in the text. */
int tls_cert_info(const char *cert_pem, struct tls_cert_info *ret, struct berth_err *err);
